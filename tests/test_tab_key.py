"""What the Tab key completes, as the shell asks for it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from procsnake.cli.tab_key import complete
from tests.command_line import run

ROOT = Path(__file__).parents[1]


@pytest.fixture
def offered(monkeypatch, tmp_path):
    """What is offered at the end of a line, in a folder with two runs and a recording."""
    for name in ("battlesnake-ppo-1", "coinrun-2"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.yaml").touch()
    (tmp_path / "runs" / "no-run").mkdir()
    (tmp_path / "game.jsonl").touch()
    monkeypatch.chdir(tmp_path)

    def offered(line: str) -> list[str]:
        monkeypatch.setenv("_ARGCOMPLETE", "1")
        monkeypatch.setenv("_ARGCOMPLETE_SUPPRESS_SPACE", "1")
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        output = io.StringIO()
        with open(os.devnull, "w") as debug:
            monkeypatch.setattr("argcomplete.io.debug_stream", debug)
            monkeypatch.setattr(
                "argcomplete.finders.CompletionFinder._init_debug_stream", lambda _: None
            )
            complete(end=lambda _: None, output=output)
        return output.getvalue().split("\013")

    return offered


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("procsnake tourn", ["tournament"]),
        ("procsnake arena le", ["leave"]),
        ("procsnake train --res", ["--resume"]),
        ("procsnake compare --x agent", ["agent_steps"]),
        ("procsnake train battlesnake-le", ["battlesnake-league"]),
        ("procsnake match flood mc", ["mcts"]),
        ("procsnake match flood champion-d", ["champion-duel"]),
        ("procsnake match flood --map hz_castle_wall_", ["hz_castle_wall_lg", "hz_castle_wall_xl"]),
        ("procsnake match flood --map=snail", ["--map=snail_mode"]),
        ("procsnake match flood --ruleset wr", ["wrapped", "wrapped_constrictor"]),
        ("procsnake watch procgen/starp", ["procgen/starpilot"]),
        ("procsnake report ", ["runs/battlesnake-ppo-1", "runs/coinrun-2"]),
        ("procsnake train --resume runs/co", ["runs/coinrun-2"]),
        ("procsnake evaluate runs/b", ["runs/battlesnake-ppo-1"]),
        ("procsnake replay show ga", ["game.jsonl"]),
        ("procsnake match game", ["game.jsonl"]),
    ],
)
def test_what_fits_is_offered(offered, line, words):
    assert offered(line) == words


def test_options_are_offered_once_a_dash_is_typed(offered):
    assert not any(word.startswith("-") for word in offered("procsnake train "))
    assert "--resume" in offered("procsnake train -")


COMPLETES = """
import os, sys
def end(code):
    sys.stderr.write(" ".join(sys.modules))
    sys.stderr.flush()
    os.kill(os.getpid(), 9)
os._exit = end
from procsnake.cli.main import main
main()
"""


def test_nothing_slow_is_imported():
    line = "procsnake tune-search games "
    environment = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETES],
        env={**os.environ, **environment, "_ARGCOMPLETE_STDOUT_FILENAME": os.devnull},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    modules = set(done.stderr.split())
    assert "agents.registry" in modules
    assert not modules & {"torch", "ray", "numba", "onnxruntime", "flask"}


PRESSES_TAB = """
eval "$(procsnake completion bash)"
COMP_LINE="procsnake match flood alph"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=($COMP_LINE)
$(complete -p procsnake | sed 's/.*-F \\([^ ]*\\) .*/\\1/') procsnake
echo "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_by_the_printed_script(tmp_path):
    program = tmp_path / "procsnake"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/procsnake" "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", PRESSES_TAB],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.stdout.split(), done.returncode) == (["alphabeta"], 0)


@pytest.mark.parametrize(
    ("shell", "registers"),
    [("bash", "complete "), ("zsh", "compdef "), ("fish", "complete --command procsnake")],
)
def test_the_script_registers_procsnake(capsys, shell, registers):
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert registers in out
