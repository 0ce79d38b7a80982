"""What is said of compiling: by the first process of a cache folder, and truly. And who finds what
was compiled.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envs.battlesnake.jit.cache import _Locator

# Numba compiles a kernel anew for each type of argument.
COMPILE = """
import subprocess, sys
from envs.battlesnake.rng import mix
number, *later = sys.argv[2:]
mix(eval(number))
if later:
    subprocess.run([sys.executable, "-c", sys.argv[1], sys.argv[1], *later], check=True)
"""
AT_ONCE = """
from envs.battlesnake.rng import mix
print("ready", flush=True)
input()
try:
    mix("no number")
except Exception:
    assert mix._cache._depth == 0
mix(1)
print(sum(mix.stats.cache_misses.values()))
"""
ENVS = Path(__file__).parents[4] / "envs"
Said = Callable[..., list[str]]


@pytest.fixture
def said(tmp_path: Path) -> Said:
    def run(cache: str, *numbers: str, clone: Path = ENVS.parent) -> list[str]:
        """What is said where the first number's kernel is compiled in one process, and the next
        one's in a process of that.
        """
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith("PROCSNAKE_")
        }
        variables["PROCSNAKE_CACHE"] = str(tmp_path / cache)
        command = [sys.executable, "-c", COMPILE, COMPILE, *numbers]
        return subprocess.run(
            command, cwd=clone, env=variables, capture_output=True, text=True, check=True
        ).stderr.splitlines()

    return run


def test_the_engine_is_announced_once_for_a_cache_and_not_by_processes_that_another_starts(
    said: Said,
) -> None:
    assert said("cache", "1", "True") == [
        "procsnake: compiling the game engine; this takes about a minute, once …"
    ]
    assert said("cache", "1") == []
    assert said("cache", "1.0") == [
        "procsnake: compiling a part of the game engine that was not needed before …"
    ]


def test_without_a_cache_nobody_is_promised_that_it_was_the_last_time(
    said: Said, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (line,) = said("file", "1")
    assert line.startswith(
        "procsnake: compiling the game engine; this takes about a minute each time, because "
    )
    assert str(tmp_path / "file") in line


def test_a_second_clone_finds_what_the_first_compiled_unless_its_kernels_differ(
    said: Said, tmp_path: Path
) -> None:
    shutil.copytree(ENVS, tmp_path / "clone" / "envs", copy_function=shutil.copyfile)
    assert len(said("cache", "1")) == 1
    assert said("cache", "1", clone=tmp_path / "clone") == []
    kernels = tmp_path / "clone" / "envs" / "battlesnake" / "rng.py"
    text = kernels.read_text()
    commented = text.replace("\n@kernel\n", "\n# A word more.\n@kernel\n").replace("Return", "Give")
    assert commented.count("A word more") > 1
    kernels.write_text(commented)
    assert said("cache", "1", clone=tmp_path / "clone") == []
    with open(tmp_path / "clone" / "envs" / "battlesnake" / "state.py", "a") as file:
        file.write("ANOTHER = 1\n")
    assert len(said("cache", "1", clone=tmp_path / "clone")) == 1


def test_processes_that_need_a_kernel_at_once_compile_it_once_even_after_one_that_fails(
    tmp_path: Path,
) -> None:
    variables = os.environ | {"PROCSNAKE_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", AT_ONCE]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.DEVNULL,
        "text": True,
    }
    processes = [subprocess.Popen(command, env=variables, **pipes) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        misses = sorted(int(process.communicate(timeout=600)[0]) for process in processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    # Each one fails at the text by itself.
    assert misses == [1, 1, 2]


def test_where_the_system_has_no_such_locks_kernels_are_compiled_and_kept_all_the_same(
    tmp_path: Path,
) -> None:
    without = (
        'import sys; sys.modules["fcntl"] = None; from envs.battlesnake.rng import mix; mix(1);'
        " print(mix.stats.cache_misses)"
    )
    command = [sys.executable, "-c", without]
    variables = {**os.environ, "PROCSNAKE_CACHE": str(tmp_path)}
    printed = [
        subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert ["1}" in line for line in printed] == [True, False]


def test_a_kernels_file_is_stamped_as_it_is_now(tmp_path: Path) -> None:
    """A file that changes while a process runs, or is loaded anew, is told by its own code, with
    the constants that kernels read.
    """
    file = tmp_path / "kernels.py"
    stamps = []
    for source in ("LIMIT = 3", "LIMIT = 3  # Why.", "LIMIT = 40"):
        file.write_text(source)
        stamps.append(_Locator(len, str(file)).get_source_stamp())
    assert stamps[0] == stamps[1]
    assert stamps[1] != stamps[2]


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Name) and "kernel" in each.id for each in function.decorator_list
    )


def constants_of_kernels(path: Path) -> dict[str, str]:
    """The names that the kernels of a file use, with the modules from which it imports them."""
    tree = ast.parse(path.read_text())
    imported = {
        name.asname or name.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)]
    used = {
        node.id
        for kernel in kernels
        for node in ast.walk(ast.Module(kernel.body, []))
        if isinstance(node, ast.Name)
    }
    return {name: imported[name] for name in used & imported.keys()}


def test_whatever_kernels_import_belongs_to_the_hash() -> None:
    """A constant in a file that isn't hashed could change without its kernels being compiled."""
    hashed = {
        file
        for folder in ("envs/battlesnake", "agents")
        for file in (ENVS.parent / folder).rglob("*.py")
        if "kernel" in file.read_text()
    }
    missing = set()
    for file in hashed:
        for name, module in constants_of_kernels(file).items():
            place = ENVS.parent.joinpath(*module.split("."))
            origin = place.with_suffix(".py")
            if module.startswith(("envs.", "agents.")) and origin.exists() and origin not in hashed:
                missing.add((name, module))
    assert not missing
