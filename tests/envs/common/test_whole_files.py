"""Files and folders appear whole or not at all, and places where nothing can be written are
refused.
"""

from __future__ import annotations

import os

import pytest

from envs.common.errors import ConfigError
from envs.common.whole_files import make_folder_of, replace_whole, write_whole


def test_a_file_is_replaced_and_nothing_lies_beside_it(tmp_path):
    for content in ("first", b"second"):
        write_whole(tmp_path / "file", content)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "second"


def test_two_that_write_the_same_file_do_not_meet(tmp_path, monkeypatch):
    replaced = os.replace
    parts = []

    def meet(part, path):
        parts.append(part)
        if len(parts) == 1:
            replace_whole(path, "second")
            assert part.read_text() == "first"
        replaced(part, path)

    monkeypatch.setattr(os, "replace", meet)
    replace_whole(tmp_path / "file", "first")
    assert len(set(parts)) == 2
    assert (tmp_path / "file").read_text() == "first"


def test_a_file_that_cannot_be_replaced_leaves_no_part(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConfigError, match="taken can't be written"):
        write_whole(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_folder_of_a_file_is_made(tmp_path):
    make_folder_of(tmp_path / "a" / "b" / "file")
    assert not list((tmp_path / "a" / "b").iterdir())


@pytest.mark.parametrize("place", ["file/page.html", "file/folder/page.html", "folder", "x" * 300])
def test_a_place_where_no_file_can_be_is_refused(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=r"can't be written.*Choose another place"):
        make_folder_of(tmp_path / place)
