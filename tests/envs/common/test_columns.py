"""Columns are as wide as their widest cell; numbers stand on the right, and strangers' texts can't
move the cursor.
"""

from __future__ import annotations

import pytest

from envs.common.columns import counted, in_columns


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_with_it():
    rows = [("a name that is longer than its head", "lost", "7"), ("b", "won", "12")]
    assert in_columns(rows, ("snake", "result", "turns")).splitlines() == [
        "snake                                result  turns",
        "a name that is longer than its head  lost        7",
        "b                                    won        12",
    ]


def test_rows_need_no_heads_and_may_be_indented():
    assert in_columns([("one", "x"), ("three", "y")], indent="  ") == "  one    x\n  three  y"


def test_a_last_cell_that_is_empty_leaves_no_blanks():
    assert in_columns([("one", ""), ("two", "lost here")]) == "one\ntwo  lost here"


@pytest.mark.parametrize(
    "number",
    ["7", "-1.5", "+0.30", "−2", "1,234.5", ".5", "93.2%", "1e-05", "-", "–", "†", "?", ""],
)
def test_a_column_of_numbers_stands_on_the_right(number):
    assert in_columns([(number,), ("100000.25",)]).splitlines()[0] == number.rjust(9).rstrip()


@pytest.mark.parametrize("text", ["1 to 2", "failed", "11×11", "v2", "2026-11-26", "1.2.3"])
def test_a_column_with_any_text_stands_on_the_left(text):
    assert in_columns([("1", "x"), (text, "y")]).splitlines()[0] == "1".ljust(len(text)) + "  x"


def test_only_heads_are_left_of_no_rows():
    assert in_columns([], ("snake", "turns")) == "snake  turns"
    assert in_columns([]) == ""


def test_a_strangers_text_cant_move_the_cursor():
    shown = in_columns([("\x1b[2J\n",), ("b",)])
    assert shown.splitlines() == ["\\x1b[2J\\n", "b"]


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError):
        in_columns([("a", "b"), ("c",)])


def test_one_thing_has_no_plural():
    assert [counted(number, "snake") for number in (0, 1, 2)] == ["0 snakes", "1 snake", "2 snakes"]
