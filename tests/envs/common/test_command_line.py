"""Commands that procsnake suggests: a shell takes them as they are printed."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import procsnake
from envs.common.errors import MissingDependencyError, pip_install
from envs.common.outputs import kept_at
from envs.common.shell_command import shell_command

INSTALLED = Path(sysconfig.get_path("scripts"), "procsnake")


def without_procsnake_on_path(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert shutil.which("procsnake") is None


def shell(command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, **options
    )


@pytest.mark.parametrize("word", ["plain", "two words", "it's", "$HOME", "a;b", "runs/…"])
def test_a_shell_hands_on_every_word_as_it_was(monkeypatch, word):
    without_procsnake_on_path(monkeypatch)
    program, *words = shlex.split(shell_command("match", word))
    assert words == ["match", word]
    assert shell(f"printf %s {shlex.join([word])}").stdout == word
    assert Path(program).samefile(INSTALLED)


def test_the_program_is_named_so_that_it_is_found(monkeypatch, tmp_path):
    without_procsnake_on_path(monkeypatch)
    monkeypatch.chdir(INSTALLED.parents[2])
    assert shell_command("champions") == f"{INSTALLED.parent.parent.name}/bin/procsnake champions"
    monkeypatch.chdir(tmp_path)
    assert shell(shell_command("--version")).stdout.startswith("procsnake ")
    monkeypatch.setenv("PATH", f"{INSTALLED.parent}{os.pathsep}/usr/bin:/bin")
    assert shell_command("champions") == "procsnake champions"


def test_in_a_directory_that_is_gone_the_whole_path_is_named(monkeypatch, tmp_path):
    without_procsnake_on_path(monkeypatch)
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert shell_command("champions") == f"{shlex.quote(str(INSTALLED))} champions"


def test_another_installation_on_path_is_not_mistaken_for_this_one(monkeypatch, tmp_path):
    other = tmp_path / "procsnake"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert Path(shlex.split(shell_command("champions"))[0]).samefile(INSTALLED)


def test_without_a_console_script_the_module_is_called(monkeypatch, tmp_path):
    without_procsnake_on_path(monkeypatch)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert shlex.split(shell_command("champions")) == [
        sys.executable,
        "-m",
        "procsnake",
        "champions",
    ]


def examples() -> list[str]:
    """The example lines of every command's --help, joined where they go on in the next line."""
    found = []
    for words in commands():
        text = parser_of(words).epilog.replace("\\\n", " ")
        found += re.findall(r"^  (\S*procsnake .*)$", text, re.MULTILINE)
    return found


def commands() -> list[tuple[str, ...]]:
    return list(words_of(parser_of(())))


def words_of(parser, before=()):
    """Yield the words of each command, and of the commands within it."""
    if parser._subparsers is None:
        return
    for name, inner in parser._subparsers._group_actions[0].choices.items():
        yield (*before, name)
        yield from words_of(inner, (*before, name))


whole_parser = functools.cache(procsnake.cli.main.build_parser)


def parser_of(words):
    parser = whole_parser()
    for word in words:
        parser = parser._subparsers._group_actions[0].choices[word]
    return parser


def pasted(line: str, folder: Path) -> list[str]:
    """The words that procsnake gets if a line is pasted into a shell in this folder."""
    caught = folder / "caught"
    catch = f"procsnake() {{ printf '%s\\0' \"$@\" > {shlex.quote(str(caught))}; }}"
    done = shell(f"{catch}\n{line}\n", cwd=folder)
    assert (done.returncode, done.stderr) == (0, ""), line
    return caught.read_text().split("\0")[:-1]


def test_every_example_in_the_help_can_be_copied_whole(monkeypatch, tmp_path):
    """With its explanation, which stands behind a #."""
    monkeypatch.setenv("PATH", f"{INSTALLED.parent}{os.pathsep}/usr/bin:/bin")
    whole_parser.cache_clear()  # its examples have the path that procsnake had
    (tmp_path / "token.txt").touch()
    lines = examples()
    assert len(lines) > 40
    for line in lines:
        options = whole_parser().parse_args(pasted(line, tmp_path))
        assert callable(options.run), line


def test_what_quickstart_suggests_next_can_be_copied(monkeypatch, tmp_path):
    run = tmp_path / "my runs" / "it's one"
    record = tmp_path / "a game.jsonl"
    monkeypatch.setenv("PATH", f"{INSTALLED.parent}{os.pathsep}/usr/bin:/bin")
    got = [
        pasted(line, tmp_path)
        for line in procsnake.quickstart.suggestions(run, record, "battlesnake-ppo").splitlines()
    ]
    assert [words[0] for words in got] == ["serve", "match", "play", "replay", "evaluate", "train"]
    assert [words[1] for words in got[:2]] == [str(run), str(run)]
    assert got[2][1:] == ["--against", str(run)]
    assert got[3][1:] == ["show", str(record)]
    assert got[4][1] == str(run)
    for words in got:
        whole_parser().parse_args(words)


def test_no_message_writes_a_command_by_itself():
    """Every command that a message suggests is an error's `next_commands`, or made by
    `shell_command`, so that it is quoted and the program is found.
    """
    names = "|".join(name for (name, *_) in commands())
    by_hand = re.compile(rf"[\"'].*: procsnake (?:{names})\b")
    root = Path(procsnake.__file__).parents[1]
    found = []
    for floor in ("envs", "agents", "train", "serve"):
        for path in (root / floor).rglob("*.py"):
            if "template" in path.parts:
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [
                f"{path}:{number}: {line}"
                for number, line in enumerate(lines, 1)
                if by_hand.search(line)
            ]
    assert not found


def test_an_errors_next_command_is_printed_with_the_program_that_runs(monkeypatch, capsys):
    without_procsnake_on_path(monkeypatch)
    assert procsnake.main(["train", "--config", "nowhere.yaml"]) == 2
    message = capsys.readouterr().err
    assert message.rstrip().endswith(shell_command("train", "--list"))
    assert not message.rstrip().endswith(": procsnake train --list")


def test_pip_is_the_one_of_this_python(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert shlex.split(pip_install("procsnake[train]")) == [
        sys.executable,
        "-m",
        "pip",
        "install",
        "procsnake[train]",
    ]
    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_install("x") == shlex.join([sys.executable, "-m", "pip", "install", "x"])
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert pip_install("procsnake[train]") == "pip install 'procsnake[train]'"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("torch", "train"),
        ("ray.tune", "train"),
        ("flask", "serve"),
        ("prometheus_client", "serve"),
        ("boto3", "aws"),
        ("psycopg", "postgres"),
        ("gunicorn.app", "serve"),
    ],
)
def test_the_extra_that_brings_a_module(module, extra):
    error = MissingDependencyError.of_extra(
        ModuleNotFoundError(name=module), feature="procsnake train"
    )
    assert f"procsnake[{extra}]" in str(error)


@pytest.mark.parametrize("module", ["nowhere", "tor", "pytest", None])
def test_what_no_extra_brings_stays_the_error_that_it_was(module):
    assert MissingDependencyError.of_extra(ModuleNotFoundError(name=module), feature="x") is None


@pytest.mark.parametrize("name", ["games.db", "comparisons/battlesnake"])
def test_what_commands_make_lies_in_one_folder_and_old_places_stay_known(
    monkeypatch, tmp_path, name
):
    monkeypatch.chdir(tmp_path)
    assert kept_at(name) == f"outputs/{name}"
    (tmp_path / name).mkdir(parents=True)
    assert kept_at(name) == name
    (tmp_path / "outputs" / name).mkdir(parents=True)
    assert kept_at(name) == f"outputs/{name}"


def test_a_tournament_leaves_nothing_that_git_would_add(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    assert (
        procsnake.main(["tournament", "greedy", "random", "--games", "1", "--max-turns", "2"]) == 0
    )
    assert "the tournament is kept in outputs/tournament.db" in capsys.readouterr().err
    assert (tmp_path / "outputs" / "tournament.db").is_file()
    assert (
        subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout
        == b""
    )
    assert procsnake.main(["tournament", "--max-turns", "2"]) == 0


def test_a_tournament_of_before_is_gone_on_with(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert (
        procsnake.main(
            shlex.split("tournament greedy random --games 1 --max-turns 2 --store tournament.db")
        )
        == 0
    )
    assert procsnake.main(["tournament"]) == 0
    assert not (tmp_path / "outputs").exists()
