"""Rules about the entry's Python: 3.7 must read it, all its imports must exist, and games must be
the competition's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from serve.aicrowd.submission import Breach, Submission, nodes, parse, strings

_STARTS = (
    "train.py",
    "rollout.py",
    "callbacks.py",
    "algorithms/__init__.py",
    "algorithms/registry.py",
    "preprocessors/__init__.py",
    "utils/loader.py",
    "utils/rollout_on_ray_086.py",
)
"""Files that are run or imported by every experiment. The files of envs/ and models/ are imported,
too.
"""
_GRADERS = {
    "callbacks": ("CustomCallbacks",),
    "algorithms": ("CUSTOM_ALGORITHMS",),
    "preprocessors": ("CUSTOM_PREPROCESSORS",),
    "utils.loader": ("load_envs", "load_models", "load_algorithms", "load_preprocessors"),
    "aicrowd_helpers.config": ("EASY_GAME_RANGES",),
}
"""By module, the names that the grader's train.py imports. The grader replaces the entry's train.py
by its own.
"""
_OWN_FOLDERS = {
    "aicrowd_helpers",
    "algorithms",
    "callbacks",
    "envs",
    "models",
    "preprocessors",
    "utils",
}
_BASE = "envs/procgen_env_wrapper.py"
_WORDS = {"train.py": ("--config-file",), "rollout.py": ("--run", "--env", "--episodes")}
"""By script, the options that run.sh gives to it."""


@dataclass(frozen=True)
class _Import:
    """One import: `from module import name`, or `import module`, which has no name."""

    module: str
    name: str | None = None
    is_relative_outside: bool = False


def sources(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each file that Python 3.7 can't read, that uses `__file__` where it is
    executed without one, or that lacks an option of run.sh."""
    for path in submission.files:
        if not path.endswith(".py"):
            continue
        try:
            tree = parse(submission.text(path))
        except (SyntaxError, ValueError) as error:
            yield Breach(
                path, f"Python 3.7 can't read it ({error})", "Write it in the older language"
            )
            continue
        executed = Path(path).parent in (Path("envs"), Path("models"))
        if executed and any(
            isinstance(node, ast.Name) and node.id == "__file__" for node in nodes(tree)
        ):
            yield Breach(
                path,
                "it uses __file__, which it doesn't have there",
                "Use os.getcwd(), which is the repository",
            )
    for path, words in _WORDS.items():
        missing = [
            word
            for word in words
            if submission.text(path).strip() and word not in submission.text(path)
        ]
        if missing:
            yield Breach(
                path, f"it doesn't know {', '.join(missing)}, which run.sh gives it", "Export again"
            )


def imports(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each module or name of the entry that a file imports, but that doesn't
    exist.

    Imports are followed from file to file, beginning with the files that are run.
    """
    roots = _roots(submission)
    visited = set[str]()
    reported: set[tuple[str, str | None]] = {
        (module, name) for module, names in _GRADERS.items() for name in names
    }
    waiting = [*_STARTS, *submission.files_below("envs"), *submission.files_below("models")]
    while waiting:
        path = waiting.pop()
        if path in visited or path not in submission.files:
            continue
        visited.add(path)
        for one in _imports(submission.tree(path), path):
            if one.is_relative_outside:
                fix = "Import it by its full name"
                yield Breach(
                    path, "it imports relatively, but is executed as no part of a package", fix
                )
            elif one.module.split(".")[0] in roots and (one.module, one.name) not in reported:
                reported.add((one.module, one.name))
                yield from _missing(submission, one, path)
                waiting += [place for place in _places(one) if place in submission.files]


def contract(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each name that the grader's train.py imports, but that doesn't exist."""
    for module, names in _GRADERS.items():
        for name in names:
            faults = list(_missing(submission, _Import(module, name), "train.py"))
            yield from faults
            if faults and faults[0].what.startswith("it isn't there"):
                break


def base_environment(submission: Submission) -> Iterator[Breach]:
    """Yield a breach for each file that makes games itself, because all games must go through the
    competition's environment.
    """
    name = str(submission.body.get("env"))
    for path in submission.files_below("envs"):
        if path == _BASE:
            continue
        tree = submission.tree(path)
        around = "ProcgenEnvWrapper" in submission.text(path) or "procgen_env_wrapper" in strings(
            tree
        )
        fix = f"Wrap ProcgenEnvWrapper of {_BASE}, which the grader puts its own in the place of"
        if makers := sorted(_makers(tree)):
            yield Breach(
                path,
                f"it makes games itself by {' and '.join(makers)}, past the competition's"
                " environment",
                fix,
            )
        elif name in strings(tree) and not around:
            yield Breach(path, f"it registers {name} without the competition's environment", fix)
    if submission.text(_BASE).strip() and "procgen_env_wrapper" not in strings(
        submission.tree(_BASE)
    ):
        yield Breach(
            _BASE,
            "it doesn't register procgen_env_wrapper",
            "Take it from another export; it may not be edited",
        )


def _makers(tree: ast.Module) -> set[str]:
    makers = set()
    for node in nodes(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "make"
            and isinstance(node.value, ast.Name)
        ):
            if node.value.id in ("gym", "gym3"):
                makers.add(f"{node.value.id}.make")
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
            "gym",
            "procgen",
        ):
            imported = {"make", "ProcgenEnv", "ProcgenGym3Env"} & {
                alias.name for alias in node.names
            }
            makers |= {f"{node.module}.{name}" for name in imported}
        if isinstance(node, ast.Attribute) and node.attr in ("ProcgenEnv", "ProcgenGym3Env"):
            makers.add(node.attr)
    return makers


def _roots(submission: Submission) -> set[str]:
    """The first parts of the names of the entry's own modules."""
    return _OWN_FOLDERS | {
        Path(path).parts[0].removesuffix(".py") for path in submission.files if path.endswith(".py")
    }


def _imports(tree: ast.Module, path: str) -> Iterator[_Import]:
    package = list(Path(path).parent.parts)
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (_Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            parts = [*above, node.module or ""]
            module = ".".join(filter(None, parts))
            outside = bool(node.level) and (
                package[:1] in (["envs"], ["models"]) or len(package) < node.level
            )
            yield from (_Import(module, alias.name, outside) for alias in node.names)


def _places(one: _Import) -> list[str]:
    """Files that an import may run."""
    base = one.module.replace(".", "/")
    parents = [f"{parent}/__init__.py" for parent in map(str, Path(base).parents) if parent != "."]
    if one.name:
        below = [f"{base}/{one.name}.py", f"{base}/{one.name}/__init__.py"]
    else:
        below = []
    return [f"{base}.py", f"{base}/__init__.py", *below, *parents]


def _missing(submission: Submission, one: _Import, importer: str) -> Iterator[Breach]:
    base = one.module.replace(".", "/")
    files = submission.files
    fix = "Export again, or take the file from another export"
    file = next((place for place in (f"{base}/__init__.py", f"{base}.py") if place in files), None)
    is_folder = any(path.startswith(f"{base}/") for path in files)
    if one.name and any(
        path.startswith((f"{base}/{one.name}/", f"{base}/{one.name}.py")) for path in files
    ):
        return
    if file is None:
        if one.name or not is_folder:
            place = f"{base}/__init__.py" if is_folder else f"{base}.py"
            yield Breach(
                place,
                f"it isn't there, and {importer} imports {one.name or one.module} from it",
                fix,
            )
    elif one.name and one.name != "*" and not _binds(submission.tree(file), one.name):
        if not submission.text(file).strip():
            empty = "is empty"
        else:
            empty = f"has no {one.name}"
        yield Breach(file, f"it {empty}, and {importer} imports {one.name} from it", fix)


def _binds(tree: ast.Module, name: str) -> bool:
    """Whether a module has this name after it was imported, as far as its source shows."""
    for node in _outermost(tree.body):
        if isinstance(
            node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
        ) and node.name in (name, "__getattr__"):
            return True
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            if names & {name, "*"}:
                return True
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
            stored = (
                name_node
                for name_node in ast.walk(node)
                if isinstance(name_node, ast.Name) and isinstance(name_node.ctx, ast.Store)
            )
            if any(name_node.id == name for name_node in stored):
                return True
    return False


def _outermost(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module that aren't in a function or class, including those inside
    conditions and loops.
    """
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.For | ast.With | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _outermost(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _outermost(handler.body)
