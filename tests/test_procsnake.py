"""The command line: bad input is one line and exit code 2, good input does what its help says."""

from __future__ import annotations

import json
import platform
import re
import socket
from pathlib import Path

import numpy
import pytest

import procsnake
from tests.agents.bundles import make_bundle
from tests.envs.battlesnake.traces import DATA

ROOT = Path(__file__).parents[1]
RECORDING = str(DATA / "cli-output-example.jsonl")


def run(capsys, *arguments):
    try:
        code = procsnake.main(arguments)
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train"], "one of the arguments"),
        (["train", "battlesnake-ppo", "--mintues", "3"], "train: unknown option '--mintues'. Did you mean '--minutes'"),
        (["train", "battlesnake-ppo", "more"], "procsnake train: unexpected 'more'. See procsnake train --help"),
        (["compare", "battlesnak"], "procsnake compare: unknown world 'battlesnak'. Did you mean 'battlesnake'"),
        (["train", "batlesnake-ppo"], "Did you mean 'battlesnake-ppo'"),
        (["train", "battlesnake-ppo", "--set", "env.name=battlesnak"], "Did you mean 'battlesnake'"),
        (["train", "battlesnake-ppo", "--set", "algorithm=pp0"], "Did you mean 'ppo'"),
        (["train", "battlesnake-ppo", "--set", "ppo.learning_rat=1"], "Did you mean 'ppo.learning_rate'"),
        (["train", "battlesnake-ppo", "--set", "env.options.width=2"], "2x11"),
        (["train", "--resume", "/nowhere"], "/nowhere is no run"),
        (["evaluate", "flod"], "Did you mean 'flood'"),
        (["evaluate", "/nowhere/bundle"], "no policy bundle at /nowhere/bundle"),
        (["evaluate", "flood", "--width", "2"], "width is 2"),
        (["evaluate", "flood", "--games", "0"], "0 is less than 1"),
        (["evaluate", "flood", "--ruleset", "wraped"], "Did you mean 'wrapped'"),
        (["play", "flood", "ftp://x"], "is not the URL of a snake"),
        (["play", "flood", "http://127.0.0.1:9"], "no snake answers at http://127.0.0.1:9"),
        (["serve", "flood", "--color", "blue"], "color is 'blue'"),
        (["replay", "show", "/nowhere.jsonl"], "cannot read recording /nowhere.jsonl"),
        (["replay", "shw", "/nowhere.jsonl"], "Did you mean 'show'"),
        (["replay", "to-test", RECORDING], "needs the turn"),
        (["replay", "show", RECORDING, "--turn", "9999"], "9999"),
        (["replay", "animate", RECORDING, "--out", "/tmp/x.bmp"], "unknown animation format '.bmp'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, said):
    code, _, err = run(capsys, *arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert said in last
    assert "Traceback" not in err


def test_a_truncated_bundle_and_a_port_in_use(capsys, tmp_path):
    bundle = make_bundle(tmp_path / "bundle")
    network = bundle / "policy.onnx"
    network.write_bytes(network.read_bytes()[:-10])
    code, _, err = run(capsys, "evaluate", str(bundle))
    assert (code, err.count("\n")) == (2, 1)
    assert "policy.onnx" in err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = run(capsys, "serve", "flood", "--port", str(taken.getsockname()[1]))
    assert (code, err.count("\n")) == (2, 1)
    assert "another program listens there" in err


def test_every_command_teaches(capsys):
    _, out, _ = run(capsys, "--help")
    named = re.findall(r"^    (\w+)", out, re.MULTILINE)
    assert len(named) > 15
    for command in named:
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert "examples:" in out or "make play" in out, command


def test_versions_are_those_of_what_is_installed(capsys):
    code, out, _ = run(capsys, "--version")
    assert (code, out.count("\n")) == (0, 1)
    assert f"numpy {numpy.__version__} " in out
    assert f"python {platform.python_version()} " in out
    declared = re.search(r'version="(.+?)"', (ROOT / "setup.py").read_text())
    assert out.startswith(f"procsnake {declared[1]} ")


def test_evaluate_prints_json_of_what_was_played(capsys):
    code, out, _ = run(capsys, "evaluate", "flood", "--against", "random", "--num-snakes", "2", "--games", "40", "--json")
    (score,) = json.loads(out)
    assert (code, score["games"], score["opponents"]) == (0, 40, ["random"])
    assert score["wins"] > 30


def test_play_draws_the_last_board_and_records(capsys, tmp_path):
    record = tmp_path / "game.jsonl"
    code, out, _ = run(capsys, "play", "flood", "greedy", "--seed", "1", "--record", str(record))
    assert code == 0
    assert "wins after" in out or "a draw after" in out
    first, *_, last = record.read_text().splitlines()
    assert json.loads(first)["ruleset"]["name"] == "standard"
    assert "isDraw" in json.loads(last)


def test_a_recorded_turn_becomes_a_test_that_runs(capsys, tmp_path):
    written = tmp_path / "test_turn.py"
    code, out, _ = run(capsys, "replay", "to-test", RECORDING, "--turn", "3", "--out", str(written))
    assert (code, out) == (0, f"written: {written}\n")
    names: dict = {}
    exec(compile(written.read_text(), written, "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()


def test_a_recorded_board_is_shown(capsys):
    code, out, _ = run(capsys, "replay", "show", RECORDING, "--turn", "3")
    assert code == 0
    assert out.startswith("╭ turn 3 ")
