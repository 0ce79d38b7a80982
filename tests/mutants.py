"""Would the tests notice a mistake? Draw single mistakes by a seed, and run the tests that could.

    python -m tests.mutants --count 40 --seed 0 agents train serve

Each mutant changes one operator, number or condition in a copy of the commit, and runs the quick
tests that import its module, at most `FILES` of them. Prints one JSON object: by mutant, whether it
was caught. What survives is to be looked at: a test is missing, or the mutant changes nothing that
anybody could see. Files with kernels are left out, because each mutant would be compiled anew;
`tests.envs.battlesnake.mutations` has those of the rules."""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = 8
PATIENCE_S = 300
_NOTHING_COLLECTED = 5
"""pytest's exit code."""
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
    """Relative to the repository."""
    index: int
    text: str
    """The file with the mistake."""
    description: str

    @property
    def module(self) -> str:
        return ".".join(self.file.with_suffix("").parts).removesuffix(".__init__")


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that can be changed, outside of annotations."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if is_place(node):
            yield node
        for name, field in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "slice"):
                continue
            children = field if isinstance(field, list) else [field]
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


def draw(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants of the rooms' files, each place as likely as any other."""
    everywhere = []
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not _KERNEL.search(text):
                number = len(list(places(ast.parse(text))))
                everywhere += [(path, index) for index in range(number)]
    mutants = []
    for path, index in random.Random(seed).sample(everywhere, count):
        text, description = changed(path.read_text(encoding="utf-8"), index)
        mutants.append(Mutant(path.relative_to(ROOT), index, text, description))
    return mutants


def tests_of(mutant: Mutant) -> list[str]:
    """Return the test files that import the mutant's module, those of its room first."""
    package, _, name = mutant.module.rpartition(".")
    importing = re.compile(
        rf"\b{re.escape(mutant.module)}\b|from {re.escape(package)} import .*\b{name}\b"
    )
    room = ROOT / "tests" / mutant.file.parent
    files = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if importing.search(path.read_text(encoding="utf-8"))
    ]
    if not files and room.is_dir():
        files = sorted(room.glob("test_*.py"))
    files.sort(key=lambda path: room not in path.parents)
    return [str(path.relative_to(ROOT)) for path in files[:FILES]]


@dataclass
class Copy:
    """The commit's files in a folder, in which mistakes are made and taken back."""

    folder: Path

    def __post_init__(self) -> None:
        self._passes: dict[str, bool] = {}

    def try_out(self, mutant: Mutant) -> str:
        files = [file for file in tests_of(mutant) if self.passes(file)]
        if not files:
            return "no test imports it"
        target = self.folder / mutant.file
        before = target.read_text(encoding="utf-8")
        target.write_text(mutant.text, encoding="utf-8")
        is_caught = self.fails(files)
        target.write_text(before, encoding="utf-8")
        return "caught" if is_caught else "survived"

    def passes(self, file: str) -> bool:
        """Whether a test file passes without a mistake. Some need git's history."""
        if file not in self._passes:
            self._passes[file] = not self.fails([file])
        return self._passes[file]

    def fails(self, files: list[str]) -> bool:
        """Whether any quick test in the files fails, or doesn't end in time."""
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(self.folder)},
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode not in (0, _NOTHING_COLLECTED)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="+", help="folders, such as agents train serve")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        copy = Copy(Path(folder))
        for number, mutant in enumerate(draw(options.rooms, options.count, options.seed), start=1):
            place = f"{mutant.file}#{mutant.index}: {mutant.description}"
            results[place] = copy.try_out(mutant)
            print(f"{number}/{options.count} {results[place]}: {place}", file=sys.stderr)
    caught = sum(result == "caught" for result in results.values())
    print(json.dumps({"seed": options.seed, "caught": caught, "mutants": results}, indent=2))


if __name__ == "__main__":
    main()
