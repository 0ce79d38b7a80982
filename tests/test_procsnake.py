"""The command line: bad input is one line and exit code 2, good input does what its help says."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import pty
import re
import shlex
import socket
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy
import pytest

import procsnake
from tests.agents.bundles import make_bundle
from tests.command_line import run
from tests.envs.battlesnake.traces import DATA

ROOT = Path(__file__).parents[1]
RECORDING = str(DATA / "cli-output-example.jsonl")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train"], "one of the arguments"),
        (
            ["train", "battlesnake-ppo", "--mintues", "3"],
            "train: unknown option '--mintues'. Did you mean '--minutes'",
        ),
        (["train", "battlesnake-ppo", "more"], "procsnake train: unexpected 'more'. See "),
        (
            ["benchmark", "battlesnak"],
            "procsnake benchmark: unknown command 'battlesnak'. Did you mean 'battlesnake'",
        ),
        (["train", "batlesnake-ppo"], "Did you mean 'battlesnake-ppo'"),
        (
            ["train", "battlesnake-ppo", "--set", "env.name=battlesnak"],
            "Did you mean 'battlesnake'",
        ),
        (["train", "battlesnake-ppo", "--set", "algorithm=pp0"], "Did you mean 'ppo'"),
        (
            ["train", "battlesnake-ppo", "--set", "ppo.learning_rat=1"],
            "Did you mean 'ppo.learning_rate'",
        ),
        (["train", "battlesnake-ppo", "--set", "env.options.width=2"], "width is 2"),
        (
            ["train", "--resume", ""],
            "train: argument --resume: it is empty; maybe it comes from a variable that isn't set",
        ),
        (["train", "--config", ""], "argument --config: it is empty"),
        (
            ["train", "battlesnake-ppo", "--help-keys", "--init-from", ""],
            "argument --init-from: it is empty",
        ),
        (["evaluate", ""], "argument agent: it is empty"),
        (["evaluate", "flood", "--games", "1", "--against", ""], "argument --against: it is empty"),
        (
            [
                "launch",
                "sagemaker",
                "battlesnake-ppo",
                "--kms-key",
                "",
            ],
            "argument --kms-key: it is empty",
        ),
        (
            ["launch", "slurm", "battlesnake-ppo", "--out", ""],
            "argument --out: it is empty",
        ),
        (["train", "--resume", "/nowhere"], "/nowhere is not a run"),
        (["evaluate", "flod"], "Did you mean 'flood'"),
        (["evaluate", "/nowhere/bundle"], "no policy bundle at /nowhere/bundle"),
        (["evaluate", "flood", "--width", "2"], "width is 2"),
        (["evaluate", "flood", "--games", "0"], "0 is less than 1"),
        (["evaluate", "flood", "--ruleset", "wraped"], "Did you mean 'wrapped'"),
        (["evaluate", "flood", "--num-snakes", "2"], "--num-snakes 2 needs an opponent"),
        (["solo", "flood", "--against", "flood"], "solo: unknown option '--against'"),
        (["evaluate", "flood", "--episodes", "5"], "evaluate: unknown option '--episodes'"),
        (["levels", "champion-fruitbot", "--games", "1"], "levels: unknown option '--games'"),
        (["levels", "flood"], "flood"),
        (["evaluate", "champion-fruitbot"], "Measure it there: "),
        (["watch", "champion-fruitbot", "--width", "7"], "watch: unknown option '--width'"),
        (["watch", "flood", "greedy"], "snakes play each other: "),
        (["match", "flood", "--levels", "all"], "match: unknown option '--levels'"),
        (["keyboard", "procgen/mase"], "'maze'"),
        (
            ["analyse", "game.jsonl", "--out", "x.json"],
            "--out is x.json, but only --fit writes a file",
        ),
        (["match", "flood", "greedy", "--delay", "nan"], "nan is not a number of at least 0"),
        (
            ["match", "flood", "greedy", "--watch", "--delay", "-1"],
            "-1 is not a number of at least 0",
        ),
        (
            ["quickstart", "--experiment", "nowhere", "--delay", "-1"],
            "-1 is not a number of at least 0",
        ),
        (["match", "flood", "ftp://x"], "is not the URL of a snake"),
        (["match", "flood", "http://127.0.0.1:9"], "no snake answers at http://127.0.0.1:9"),
        (
            ["serve", "flood", "--port", "70000"],
            "70000 is not a port; ports go from 0, any free one, to 65535. See ",
        ),
        (["serve", "flood", "--color", "blue"], "color is 'blue'"),
        (
            ["serve", "flood", "--keep-mib", "9999999999999"],
            "9999999999999 is more than 1099511627776. See ",
        ),
        (["serve", "flood", "--keep-days", "1" + "0" * 400], "0 is more than 1000000. See "),
        (["replay", "show", "/nowhere.jsonl"], "cannot read recording /nowhere.jsonl"),
        (["replay", "shw", "/nowhere.jsonl"], "Did you mean 'show'"),
        (["replay", "to-test", RECORDING], "choose one: --turn N"),
        (["replay", "show", RECORDING, "--delay", "-0.5"], "-0.5 is not a number of at least 0"),
        (["replay", "show", RECORDING, "--delay", "1e300"], "1e300 seconds are more than an hour"),
        (["replay", "show", RECORDING, "--out", "x.svg"], "unknown option '--out'"),
        (["replay", "animate", RECORDING, "--turn", "3"], "unknown option '--turn'"),
        (["replay", "show", RECORDING, "--turn", "9999"], "9999"),
        (
            ["replay", "show", RECORDING, "--width", "7"],
            "--width is 7, but the recording says 11; leave it out",
        ),
        (
            ["replay", "animate", RECORDING, "--out", "/tmp/x.bmp"],
            "unknown animation format '.bmp'",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, said):
    code, _, err = run(capsys, *arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert said in last
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyse", "LONG"], "there is no file x"),
        (["analyse", "--last", "3", "LONG"], "there is no x"),
        (["analyse", "--fit", "LONG", "--out", "fitted.json"], "there is no x"),
        (["compare", "LONG"], "File name too long"),
        (["evaluate", "LONG"], "unknown agent"),
        (
            ["export", "aicrowd", "LONG", "--track", "generalization", "--out", "entry"],
            "unknown experiment",
        ),
        (["export", "check", "LONG"], "there is no folder"),
        (["export", "onnx", "LONG", "--out", "policy.onnx"], "there is no policy bundle"),
        (
            ["export", "onnx", "champion-duel", "--out", "LONG"],
            "can't be written: File name too long",
        ),
        (["games", "list", "--database", "sqlite:///LONG"], "there is no sqlite:///x"),
        (["match", "LONG", "flood"], "unknown agent"),
        (["watch", "procgen/LONG"], "unknown environment"),
        (["sprt", "--store", "LONG"], "there is no x"),
        (["tournament", "--store", "LONG"], "there is no x"),
        (["train", "--resume", "LONG"], "is not a run"),
    ],
    ids=str,
)
def test_a_name_that_no_file_can_have_is_one_line_and_exit_code_2(
    capsys, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    Path("procgen").mkdir()
    code, _, told = run(capsys, *(word.replace("LONG", "x" * 256) for word in arguments))
    assert code == 2
    assert said in told.splitlines()[-1]
    assert "Traceback" not in told


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
    named = re.findall(r"^  ([a-z-]+)  ", out, re.MULTILINE)
    assert len(named) > 15
    for command in named:
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert "examples" in out or "make play" in out, command


def test_versions_are_those_of_what_is_installed(capsys):
    code, out, _ = run(capsys, "--version")
    assert (code, out.count("\n")) == (0, 1)
    assert f"numpy {numpy.__version__} " in out
    assert f"python {platform.python_version()} " in out
    declared = re.search(r'version="(.+?)"', (ROOT / "setup.py").read_text())
    assert out.startswith(f"procsnake {declared[1]} ")


def test_evaluate_prints_json_of_what_was_played(capsys):
    code, out, _ = run(
        capsys,
        *shlex.split("evaluate flood --against random --num-snakes 2 --games 40 --json"),
    )
    (score,) = json.loads(out)
    assert (code, score["games"], score["opponents"]) == (0, 40, ["random"])
    assert score["wins"] > 30


def test_play_draws_the_last_board_and_records(capsys, tmp_path):
    record = tmp_path / "game.jsonl"
    code, out, _ = run(capsys, "match", "flood", "greedy", "--seed", "1", "--record", str(record))
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


def on_a_terminal(*arguments: str, columns: int, **environment: str) -> str:
    """All that a command writes to a terminal of so many columns and 30 lines."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    clean = {
        k: v
        for k, v in os.environ.items()
        if k not in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
    }
    settings = clean | {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
    command = [sys.executable, "-m", "procsnake", *arguments]
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=settings, cwd=ROOT
    ) as child:
        os.close(follower)
        written = b""
        try:
            while piece := os.read(leader, 65536):
                written += piece
        except OSError:  # Linux's way of saying that nobody writes any more
            pass
        assert child.wait(60) == 0, written.decode()
    os.close(leader)
    return written.decode()


SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""A terminal's escape sequence."""


@pytest.mark.parametrize(("columns", "beside"), [(100, True), (20, False)])
def test_a_watched_game_fits_its_terminal(columns, beside):
    """A line that is too long would be broken into two, and the next picture would be drawn a line
    too low.
    """
    shown = on_a_terminal("replay", "show", RECORDING, "--delay", "0", columns=columns)
    lines = [
        line
        for part in re.split(r"\x1b\[[0-9]*A|\r\n|\n|\r", shown)
        for line in [SEQUENCE.sub("", part)]
    ]
    assert max(map(len, lines)) <= columns
    assert shown.count(" turn ") > 3
    assert any("│  A " in line for line in lines) == beside


def test_no_color_is_kept_to_on_a_terminal():
    shown = on_a_terminal("replay", "show", RECORDING, "--delay", "0", columns=100, NO_COLOR="1")
    assert "\x1b[38" not in shown
    assert "\x1b[48" not in shown
    assert "A▲" in shown or "A▶" in shown
    assert "\x1b[38;2;" in on_a_terminal(
        "replay", "show", RECORDING, "--turn", "3", "--delay", "0", columns=100
    )


def test_ctrl_c_while_all_is_imported_is_one_line(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(procsnake.cli.main, "build_parser", interrupted)
    assert procsnake.main(["champions"]) == 130
    assert capsys.readouterr().err == "\nprocsnake: stopped; nothing is left half-written\n"


def in_a_shell(redirected: str, **environment: str) -> tuple[int, str]:
    """The exit code of a command with redirections, such as "match flood greedy >&-", and what
    stderr shows.
    """
    program = f"{shlex.quote(sys.executable)} -m procsnake {redirected}"
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", **environment}
    command = ["bash", "-o", "pipefail", "-c", program]
    done = subprocess.run(command, env=settings, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


SHORT = f"replay show {shlex.quote(RECORDING)} --turn 3"
LONG = "champions --json"
"""Commands whose output is written as they end, and earlier."""


@pytest.mark.parametrize("command", [SHORT, LONG])
def test_output_for_which_there_is_no_room_is_told(command):
    assert in_a_shell(f"{command} > /dev/full") == (
        2,
        "procsnake: the output can't be written: No space left on device\n",
    )


@pytest.mark.parametrize("command", [SHORT, LONG])
def test_a_reader_who_goes_away_is_no_error(command):
    # `true` reads nothing, and the command writes only once `true` has ended.
    assert in_a_shell(f"{command} | true") == (0, "")


def test_a_stdout_that_is_closed_or_lacks_letters_is_no_error():
    assert in_a_shell(f"{SHORT} >&-") == (0, "")
    assert in_a_shell(SHORT, PYTHONIOENCODING="ascii") == (0, "")


def test_commands_that_need_a_working_directory_say_that_it_is_gone(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert run(capsys, "champions")[0] == 0
    code, _, err = run(capsys, "games", "list")
    assert (code, err.count("\n"), "working directory is gone" in err) == (2, 1, True)


def test_nothing_slow_is_imported_before_ctrl_c_can_be_told():
    """Importing the module itself, which no handler can surround, brings in the standard library
    and nothing else.
    """
    code = (
        "import sys; before = set(sys.modules); import procsnake; print(*sorted(set(sys.modules) -"
        " before - {'procsnake'}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    imported = {name.partition(".")[0] for name in said.split()}
    assert imported <= {*sys.stdlib_module_names, "procsnake", "procsnake_packages"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("champions",),
        ("match", "greedy", "flood", "--seed", "3"),
        ("train", "--list"),
        ("match", "greedy", "flood", "--seed", "3", "--watch", "--delay", "0"),
        ("match", "greedy", "flood", "--seed", "3", "--delay", "0"),
        ("evaluate", "greedy", "--against", "random", "--num-snakes", "2", "--games", "2"),
        ("train", "battlesnake-ppo", "--help-keys"),
        ("launch", "sagemaker", "battlesnake-ppo", "--instances", "ml.c5.4xlarge", "--explain"),
        ("tournament", "greedy", "random", "--games", "1", "--max-turns", "3"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_json_is_all_that_stands_on_stdout(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    assert json.loads(out)


def test_a_match_in_json_agrees_with_what_is_told(capsys):
    _, told, _ = run(capsys, "match", "greedy", "flood", "--seed", "3")
    _, out, _ = run(capsys, "match", "greedy", "flood", "--seed", "3", "--json")
    found = json.loads(out)
    _, *rows, end = told.splitlines()
    assert end == f"{found['winner']} wins after {found['turns']} turns"
    for row, snake in zip(rows, found["snakes"], strict=True):
        assert snake["name"] in row
        assert (snake["cause"] or "alive") in row


def test_every_command_that_prints_figures_has_the_same_json_option():
    """Servers, clusters and images print no figures."""
    options = {
        name: parser._option_string_actions.get("--json") for name, parser in all_parsers().items()
    }
    without = {
        "serve",
        "cluster",
        "completion",
        "export aicrowd",
        "export onnx",
        "export submit",
        "image",
        "keyboard",
        "play",
        "replay animate",
        "replay show",
        "replay to-test",
        "tune-search parameters",
        "tune-sagemaker",
    }
    assert {name for name, option in options.items() if option is None} == without
    assert len({option.help for option in options.values() if option}) == 1


def all_parsers(parser=None, before=()):
    """Return the parsers of all commands that do something, by their words."""
    parser = parser or procsnake.cli.main.build_parser()
    if parser._subparsers is None:
        return {" ".join(before): parser}
    found = {}
    for name, inner in parser._subparsers._group_actions[0].choices.items():
        found |= all_parsers(inner, (*before, name))
    return found


def test_without_a_command_it_shows_all_in_groups(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    for group in ("start", "train", "measure", "compete", "scale"):
        assert f"\n{group}:\n" in out


def test_help_imports_no_command():
    code = (
        "import sys, procsnake.cli.main as main\n"
        "try: main.parse(['--help'])\n"
        "except SystemExit: pass\n"
        "rooms = ('procsnake.cli.measure', 'agents')\n"
        "print([name for name in sys.modules if name.startswith(rooms)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_kept_games_in_json(capsys, tmp_path):
    from serve.archive.store import GameStore
    from tests.serve.archive.played import play, tell_all

    database = f"sqlite:///{tmp_path}/games.db"
    played = play(seed=1)
    store = GameStore(database)
    tell_all(store, "s", played, 0)
    assert store.flush()
    store.close()
    code, out, _ = run(capsys, "games", "list", "--database", database, "--json")
    (game,) = json.loads(out)
    assert (code, game["id"], game["snake"]) == (0, played.game_id, "s")
    code, out, _ = run(
        capsys, "games", "export", str(tmp_path / "games"), "--database", database, "--json"
    )
    assert (code, json.loads(out)) == (
        0,
        {"games": 1, "directory": str(tmp_path / "games"), "left_out": []},
    )
