"""Would the tests notice a mistake? Draw single mistakes by a seed, and run the tests that could.

    python -m tests.mutants --count 40 --seed 0 --results mutants.jsonl agents train serve

Each mutant changes one operator, number or condition in a copy of a commit. Of the quick test files
that import its module, or what imports it, the nearest runs first, and at most `FILES` run.
`--results` gets a line for each mutant, and those that it has aren't run again. What survives is to
be looked at: a test is missing, or the mutant changes nothing that anybody could see. Files with
kernels are left out, because each mutant would be compiled anew; `tests.envs.battlesnake.mutations`
has those of the rules.

Tests run in forks of this process, which has imported torch, Ray and what else takes long."""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = 6
PATIENCE_S = 900
PROCESSOR_S = 120
"""How long one test file may take, and of a processor, which a busy machine changes less."""
WARM = (
    "_pytest.assertion.rewrite",
    "boto3",
    "flask",
    "gymnasium.vector",
    "numba",
    "pettingzoo",
    "ray.rllib.algorithms.dqn",
    "ray.rllib.algorithms.ppo",
    "scipy.stats",
    "sqlalchemy.orm",
    "torch",
    "yaml",
)
"""What the tests import from elsewhere, but for pytest's plugins, whose asserts it rewrites."""
ROOMS = ["agents", "envs", "procsnake", "serve", "train"]
_SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_KERNEL = re.compile(r"^\s*@(kernel|njit|jit|numba)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One mistake: the `index`-th place of a file that can be changed."""

    file: Path
    """Relative to the copy."""
    index: int
    text: str
    """The file with the mistake."""
    description: str

    @property
    def module(self) -> str:
        return module_name(self.file)

    @property
    def place(self) -> str:
        return f"{self.file}#{self.index}: {self.description}"


def module_name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that can be changed, outside of annotations."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if is_place(node):
            yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "slice"):
                continue
            children = value if isinstance(value, list) else [value]
            pending += [child for child in children if isinstance(child, ast.AST)]


def is_place(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[operator]):
            return type(operator) in _SWAPPED
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator):
            return type(operator) in _SWAPPED
        case ast.Constant(value=value):
            return type(value) is int
    return isinstance(node, ast.If)


def changed(text: str, index: int) -> tuple[str, str]:
    """Return the text with its `index`-th place changed, and a description of the change."""
    tree = ast.parse(text)
    node = list(places(tree))[index]
    before = ast.unparse(node).splitlines()[0]
    match node:
        case ast.Compare(ops=[operator]):
            node.ops = [_SWAPPED[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator):
            node.op = _SWAPPED[type(operator)]()
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.If(test=test):
            node.test = ast.UnaryOp(ast.Not(), test)
    after = ast.unparse(node).splitlines()[0]
    return ast.unparse(ast.fix_missing_locations(tree)), f"{before} -> {after}"


def draw(tree: Path, rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants of the rooms' files, each place as likely as any other."""
    everywhere = []
    for room in rooms:
        for path in sorted((tree / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not _KERNEL.search(text):
                number = len(list(places(ast.parse(text))))
                everywhere += [(path, index) for index in range(number)]
    mutants = []
    for path, index in random.Random(seed).sample(everywhere, count):
        text, description = changed(path.read_text(encoding="utf-8"), index)
        mutants.append(Mutant(path.relative_to(tree), index, text, description))
    return mutants


@dataclass
class Copy:
    """A commit's files in a folder, in which mistakes are made and taken back."""

    tree: Path
    _passing: set[str] = field(default_factory=set)
    """Test files that have passed without any mistake."""

    def try_out(self, mutant: Mutant) -> str:
        """Return the first test that fails by the mistake, or how many files it survives."""
        files = self.tests_of(mutant)
        survived = 0
        for file in files:
            with self.mistake(mutant):
                failing = self.first_failure(file)
            if failing and self.passes(file):
                return f"caught by {failing}"
            survived += failing is None
        return f"survived {survived} of {len(files)} files"

    @contextlib.contextmanager
    def mistake(self, mutant: Mutant) -> Iterator[None]:
        target = self.tree / mutant.file
        # Compiled code counts as new by its source's size and second, which two mutants may share.
        compiled = Path(importlib.util.cache_from_source(str(target)))
        before = target.read_text(encoding="utf-8")
        target.write_text(mutant.text, encoding="utf-8")
        compiled.unlink(missing_ok=True)
        try:
            yield
        finally:
            target.write_text(before, encoding="utf-8")
            compiled.unlink(missing_ok=True)

    def passes(self, file: str) -> bool:
        """Whether a test file passes without a mistake. Some need git's history."""
        if file not in self._passing and self.first_failure(file) is None:
            self._passing.add(file)
        return file in self._passing

    def first_failure(self, file: str) -> str | None:
        """Return the first quick test of a file that fails, if one does."""
        with tempfile.TemporaryFile("w+") as output:
            process = os.fork()
            if process == 0:
                run_tests(self.tree, file, output.fileno())
            status = waited_for(process)
            output.seek(0)
            summary = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read(), re.MULTILINE)
        if status is None:
            return f"{file}, which doesn't end"
        if os.waitstatus_to_exitcode(status) in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        return summary[1] if summary else file

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the test files to try: its own, those that import it, those that import these."""
        near = self.tree / "tests" / mutant.file.parent
        own = near / f"test_{mutant.file.stem}.py"
        files = self.importing("tests", mutant.module)
        files.sort(key=lambda path: (path != own, near not in path.parents))
        if own.exists() and own not in files:
            files.insert(0, own)
        for path in self.importers(mutant.module):
            if len(files) < FILES:
                importer = module_name(path.relative_to(self.tree))
                files += [file for file in self.importing("tests", importer) if file not in files]
        return [str(path.relative_to(self.tree)) for path in files[:FILES]]

    def importers(self, module: str) -> list[Path]:
        return [path for room in ROOMS for path in self.importing(room, module)]

    def importing(self, room: str, module: str) -> list[Path]:
        """Return a room's files that import a module, or in `tests` the test files that do."""
        package, _, name = module.rpartition(".")
        importing = re.compile(
            rf"\b{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b"
        )
        return [path for path, text in texts(self.tree / room) if importing.search(text)]


@cache
def texts(folder: Path) -> list[tuple[Path, str]]:
    """Return the Python files of a folder, of `tests` the test files only, with their texts."""
    pattern = "test_*.py" if folder.name == "tests" else "*.py"
    return [(path, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob(pattern))]


def run_tests(tree: Path, file: str, output: int) -> None:
    """Run a test file of a copy in this process, which ends with it."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = sys.path[0] = str(tree)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    status = 1
    try:
        status = pytest.main(["-q", "-x", "--tb=no", "-p", "no:cacheprovider", file])
    finally:
        sys.stdout.flush()
        os._exit(status)


def waited_for(process: int) -> int | None:
    """Return the status with which a process ends, or None if it has to be killed."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def warm_up() -> None:
    """Import what is the same for each mutant."""
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="+", help="folders, such as agents train serve")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--results", type=Path, help="a file of lines of JSON to continue")
    options = parser.parse_args()
    results: dict[str, str] = {}
    if options.results and options.results.exists():
        for line in options.results.read_text(encoding="utf-8").splitlines():
            results.update(json.loads(line))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        command = ["git", "archive", options.commit]
        archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        warm_up()
        copy = Copy(Path(folder))
        mutants = draw(copy.tree, options.rooms, options.count, options.seed)
        for number, mutant in enumerate(mutants, start=1):
            if mutant.place not in results:
                results[mutant.place] = copy.try_out(mutant)
                if options.results:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({mutant.place: results[mutant.place]}) + "\n")
            print(f"{number}/{options.count} {mutant.place}: {results[mutant.place]}", flush=True)
    caught = sum(result.startswith("caught") for result in results.values())
    print(f"{caught} of {len(results)} were caught")


if __name__ == "__main__":
    main()
