"""`procsnake sprt` as it is typed."""

from __future__ import annotations

import json
import re

import pytest

from agents.measure.sprt.settings import Sprt
from agents.measure.tournament.store import Store
from procsnake import main
from tests.command_line import run

SMALL = ["--width", "7", "--height", "7", "--max-turns", "100", "--elo1", "60", "--jobs", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_tells_the_verdict_keeps_the_games_and_writes_a_page(folder, capsys):
    assert main(["sprt", "flood", "greedy", *SMALL]) == 0
    told = capsys.readouterr()
    assert re.search(
        r"H1 accepted: flood is stronger: against greedy, flood measured \+\d+ \(\+\d+ … \+\d+\)"
        r" normalised Elo; 60",
        told.out,
    )
    assert "LLR 2.9" in told.out or "LLR 3." in told.out
    assert (folder / "outputs" / "sprt.db").is_file()
    assert "H1 accepted" in (folder / "outputs" / "sprt.html").read_text()
    assert main(["sprt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["games"]) == ("H1", 2 * found["blocks"])
    assert found["won"] + found["shared"] + found["lost"] == found["games"]
    assert found["llr"] >= found["bounds"][1]
    assert found["elo"]["low"] < found["elo"]["value"] < found["elo"]["high"]


def test_undecided_it_says_so_and_can_be_gone_on_with(capsys):
    assert main(["sprt", "flood", "twin=flood", *SMALL, "--games", "6", "--nodes", "50"]) == 0
    assert "games 6 · score 50.0% · Elo +0 (-338 … +338)" in (told := capsys.readouterr().out)
    assert "Undecided" in told
    assert main(["sprt", "--games", "8", "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 8


def test_a_setting_of_another_test_is_refused_where_the_stores_players_go_on(capsys):
    assert main(["sprt", "flood", "twin=flood", *SMALL, "--games", "2"]) == 0
    for words, told in (
        (["--elo1", "30"], "hypotheses"),
        (["--nodes", "50"], "nodes"),
        (["--snakes", "3"], "seats"),
    ):
        assert main(["sprt", *words, "--jobs", "1"]) == 2
        assert (
            f"outputs/sprt.db holds another sprt: {told} differ. To continue it, leave out the"
            " players and these options" in capsys.readouterr().err
        )
    assert main(["sprt", *SMALL, "--games", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 4


def test_a_name_that_was_misspelt_is_no_test_that_the_mended_command_would_not_be(capsys):
    assert main(["sprt", "flood", "gredy", *SMALL, "--games", "2"]) == 2
    assert "Did you mean 'greedy'" in capsys.readouterr().err
    assert main(["sprt", "flood", "greedy", *SMALL, "--games", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 2


def test_games_of_rules_as_they_were_are_no_verdict_on_those_of_now(folder, capsys):
    rules = folder / "my_rule.py"
    told = "outputs/sprt.db has games of an earlier version of my_rule.py+flood"
    test = ["sprt", "my_rule.py+flood", "flood", *SMALL]
    rules.write_text("def nothing(me):\n    return [True] * 4\n")
    assert main([*test, "--games", "4"]) == 0
    rules.write_text("def upwards(me):\n    return [20, 0, 0, 0]\n")
    for words in (
        [*test, "--games", "4"],
        [*test, "--games", "6"],
        ["sprt", "--games", "6", "--jobs", "1"],
    ):
        capsys.readouterr()
        assert main(words) == 2
        assert told in capsys.readouterr().err
    # Whoever only looks at the games needs no players.
    assert main(["sprt", "--games", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 4
    rules.write_text("def nothing(me):\n    return [True] * 4\n")
    assert main([*test, "--games", "6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 6


def test_a_book_is_written_and_played_to_its_end(folder, capsys):
    assert (
        main(["sprt", "flood", "twin=flood", *SMALL, "--games", "6", "--write-book", "book.jsonl"])
        == 0
    )
    assert len((folder / "book.jsonl").read_text().splitlines()) == 4
    assert main(["sprt", "flood", "twin=flood", *SMALL, "--book", "book.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 6


def test_whom_the_effort_does_not_reach_is_said(capsys):
    assert (
        main(["sprt", "alphabeta", "flood", *SMALL, "--games", "2", "--nodes", "20", "--json"]) == 0
    )
    told = capsys.readouterr()
    assert "note: flood keeps its own effort, not 20 nodes per move" in told.err
    assert json.loads(told.out)["effort"] == {
        "nodes": 20,
        "cpu_ms": None,
        "wall_ms": None,
        "own": ["flood"],
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no players to start with"),
        (["flood"], "between two players, not 1"),
        (["flood", "gredy"], "Did you mean 'greedy'"),
        (["flood", "greedy", "--elo0", "10"], "elo0 is 10 and elo1 10"),
        (["flood", "greedy", "--wall"], "--time MS --wall"),
        (["flood", "greedy", "--nodes", "5", "--time", "5"], "one way"),
        (["flood", "alphabeta?cpu_ms=0"], "cpu_ms is 0"),
        (["flood", "greedy", "--book", "nowhere.jsonl"], "can't be read"),
        (
            ["flood", "greedy", "--write-book", "no/folder/book.jsonl", "--games", "2"],
            "can't be written",
        ),
    ],
)
def test_what_cannot_be_right_is_said_in_a_line(capsys, words, told):
    assert main(["sprt", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_book_is_either_played_or_written(capsys):
    code, _, error = run(
        capsys, "sprt", "flood", "greedy", "--book", "a.jsonl", "--write-book", "b.jsonl"
    )
    assert code == 2
    assert "--write-book: not allowed with argument --book" in error


def test_a_place_where_no_page_can_be_is_refused_before_the_games(folder, capsys):
    (folder / "file").touch()
    assert main(["sprt", "flood", "greedy", *SMALL, "--report", "file/sprt.html"]) == 2
    told = capsys.readouterr().err
    assert "file/sprt.html can't be written" in told
    assert "Traceback" not in told
    with Store(folder / "outputs" / "sprt.db", Sprt) as store:
        assert store.games() == []
