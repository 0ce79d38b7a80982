from __future__ import annotations

import pytest

import procsnake
from agents.registry import make
from serve.arena import create_app
from serve.server import running

SMALL = ["--width", "7", "--height", "7", "--seed", "3"]


def test_a_match_is_told_and_repeats_with_its_seed(capsys):
    told = []
    for _ in range(2):
        assert procsnake.main(["match", "random", "greedy", "flood", *SMALL]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    lines = told[0].splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["random", "greedy", "flood"]
    assert lines[3].endswith("turns")


def test_it_plays_rules_of_ones_own_against_a_server_and_draws_the_end(capsys, tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text("def right(me): return [0, 0, 0, 1]")
    with running(create_app(make("greedy"))) as url:
        assert procsnake.main(["match", str(rule), url, "--watch", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "mine" in out
    assert out.splitlines()[-1].endswith("turns")


@pytest.mark.parametrize("players", [["flod", "greedy"], ["http://127.0.0.1:9", "greedy"]])
def test_who_cannot_play_is_said_on_one_line(capsys, players):
    assert procsnake.main(["match", *players]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_browser_needs_a_local_player(capsys):
    assert procsnake.main(["match", "http://127.0.0.1:9", "--browser"]) == 2
    assert "local player" in capsys.readouterr().err
