"""Imports point down the plan of the house, and never in a circle. Imports inside functions count,
too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BELOW = {
    "procsnake_packages": set(),
    "envs": set(),
    "agents": {"envs", "procsnake_packages"},
    "train": {"agents", "envs", "procsnake_packages"},
    "serve": {"agents", "envs", "procsnake_packages"},
    "procsnake": {"agents", "envs", "procsnake_packages", "serve", "train"},
}
"""What each top-level room may import besides itself."""
HEAVY = {"torch", "ray"}
LIGHT_AT_LOAD = ("envs", "agents", "serve")
"""Rooms that can be imported where neither torch nor Ray is installed."""
HEAVY_ONES = (
    "agents.networks.",
    "agents.measure.tournament.on_cluster",
    "agents.search.tuning.on_cluster",
)
"""The networks and the play on Ray's workers, which nothing imports at load."""
TEMPLATE = "serve/aicrowd/template"
"""Files of another repository, which never run among ours."""
Imported = set[tuple[str, bool]]
"""Names of modules, and whether each is imported at load."""


def sources(root: Path) -> dict[str, Path]:
    """Return the files of our modules by the modules' names."""
    files = (path.relative_to(root) for room in BELOW for path in root.glob(f"{room}/**/*.py"))
    ours = [path for path in files if not path.is_relative_to(TEMPLATE)]
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): root / path for path in ours
    }


def statements(node: ast.AST, at_load: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the import statements below `node`, but those that only type checkers execute."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_load
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from statements(
                child, at_load and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            )


def imported(path: Path, modules: Mapping[str, Path]) -> Imported:
    """Return what a file imports; of `from a import b` it is `a.b` where that is a module of ours,
    otherwise `a`.
    """
    found: Imported = set()
    for statement, at_load in statements(ast.parse(path.read_text()), at_load=True):
        if isinstance(statement, ast.Import):
            found |= {(alias.name, at_load) for alias in statement.names}
        else:
            assert statement.module, f"{path}: a relative import"
            names = (f"{statement.module}.{alias.name}" for alias in statement.names)
            found |= {(name if name in modules else statement.module, at_load) for name in names}
    return found


def graph(root: Path = ROOT) -> dict[str, Imported]:
    modules = sources(root)
    return {name: imported(path, modules) for name, path in modules.items()}


def circle(modules: Mapping[str, Imported]) -> list[str]:
    """Return the modules along a circle of imports, or an empty list if there is none."""
    try:
        TopologicalSorter(
            {name: {other for other, _ in found} - {name} for name, found in modules.items()}
        ).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def upward(modules: Mapping[str, Imported]) -> list[str]:
    """Return the imports that point to a room that doesn't lie below."""
    rooms = {room: set(BELOW) - below - {room} for room, below in BELOW.items()}
    pairs = [(name, other) for name, found in modules.items() for other, _ in found]
    return [
        f"{name} → {other}"
        for name, other in pairs
        if other.partition(".")[0] in rooms[name.partition(".")[0]]
    ]


def heavy(modules: Mapping[str, Imported], room: str) -> list[str]:
    """Return how the modules of a room reach torch or Ray by what they import at load."""
    ways = [
        [name]
        for name in modules
        if name.partition(".")[0] == room and not name.startswith(HEAVY_ONES)
    ]
    seen = {way[0] for way in ways}
    for way in ways:
        for other in sorted(
            {other for other, at_load in modules.get(way[-1], ()) if at_load} - seen
        ):
            seen.add(other)
            ways.append([*way, other])
    return [" → ".join(way) for way in ways if way[-1].partition(".")[0] in HEAVY]


@pytest.fixture(scope="module")
def ours() -> dict[str, Imported]:
    modules = graph()
    assert len(modules) > 300
    return modules


def test_no_modules_import_each_other_in_a_circle(ours):
    assert circle(ours) == []


def test_every_import_points_down(ours):
    assert upward(ours) == []


@pytest.mark.parametrize("room", LIGHT_AT_LOAD)
def test_neither_torch_nor_ray_is_imported_at_load(ours, room):
    assert heavy(ours, room) == []


def test_floors_are_small():
    """A reader looks through a folder's files before opening one."""
    files = Counter(path.parent for path in sources(ROOT).values())
    assert {str(folder): count for folder, count in files.items() if count > 16} == {}


def test_envs_knows_neither_torch_nor_ray_anywhere(ours):
    pairs = [
        (name, other)
        for name, found in ours.items()
        if name.partition(".")[0] == "envs"
        for other, _ in found
    ]
    assert [f"{name} → {other}" for name, other in pairs if other.partition(".")[0] in HEAVY] == []


def test_each_fault_is_found(tmp_path):
    for room, text in {
        "envs": "def lazy():\n    import agents.b",
        "agents": "from envs import b",
        "serve": "import agents.b\nfrom train import b",
        "train": "import typing\nif typing.TYPE_CHECKING:\n    import serve.b\nimport torch.nn",
    }.items():
        (tmp_path / room).mkdir()
        (tmp_path / room / "b.py").write_text(text)
    modules = graph(tmp_path)
    assert set(circle(modules)) == {"envs.b", "agents.b"}
    assert upward(modules) == ["envs.b → agents.b", "serve.b → train.b"]
    assert heavy(modules, "serve") == ["serve.b → train.b → torch.nn"]
    assert heavy(modules, "envs") == []
