"""Reads a folder to submit, without executing anything. Unreadable files count as empty."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_yaml, read_text
from serve.aicrowd.competition import LOCAL
from serve.aicrowd.git_files import listed_files, virtual_environments

_PYTHON = (3, 7)
_WEIGHT_FILES = (
    ".npz",
    ".npy",
    ".h5",
    ".hdf5",
    ".pt",
    ".pth",
    ".ckpt",
    ".onnx",
    ".safetensors",
    ".pb",
)


@dataclass(frozen=True)
class Breach:
    """A broken rule: the file, what is wrong, and how to fix it."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}"


class Submission:
    """The files of a folder to submit, and its experiment's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trees: dict[str, ast.Module] = {}

    @cached_property
    def files(self) -> list[str]:
        """The sorted paths of all files that git would submit, without virtual environments."""
        environments = set(self.virtual_environments)
        return [str(path) for path in self._listed if not environments & set(path.parents)]

    @cached_property
    def virtual_environments(self) -> list[Path]:
        """The folders with a Python environment that git doesn't ignore."""
        return virtual_environments(self.folder, self._listed)

    @cached_property
    def _listed(self) -> list[Path]:
        return listed_files(self.folder)

    def text(self, path: str) -> str:
        """Return the content of a file, which is empty if the file doesn't exist or isn't text."""
        try:
            return read_text(self.folder / path, MAX_YAML_BYTES)
        except (OSError, ValueError):
            return ""

    @cached_property
    def experiment_path(self) -> str:
        """The path of the experiment that run.sh runs by default, or "" if run.sh names none."""
        match = re.search(r"EXPERIMENT_DEFAULT=[\"']?([^\"'\s]+)", self.text("run.sh"))
        return match[1] if match else ""

    @cached_property
    def experiments(self) -> dict[str, Any]:
        """The experiments in the YAML file, by name; empty if the file can't be read."""
        try:
            if self.experiment_path:
                read = parse_yaml(self.text(self.experiment_path))
            else:
                read = None
        except ValueError:
            return {}
        if isinstance(read, dict):
            return {str(name): body for name, body in read.items() if isinstance(body, dict)}
        return {}

    @property
    def body(self) -> dict[str, Any]:
        """The first experiment of the YAML file, or {} if there is none."""
        return next(iter(self.experiments.values()), {})

    @property
    def config(self) -> dict[str, Any]:
        """The experiment's section `config`, or {}."""
        return _section(self.body, "config")

    @property
    def env_config(self) -> dict[str, Any]:
        """The section `env_config` of `config`, or {}."""
        return _section(self.config, "env_config")

    @property
    def is_local(self) -> bool:
        """Whether aicrowd.json says that the folder is a local package with weights, which is not
        for the competition.
        """
        return LOCAL in self.text("aicrowd.json")

    @property
    def model(self) -> dict[str, Any]:
        """The section `model` of `config`, or {}."""
        return _section(self.config, "model")

    @property
    def is_torch(self) -> bool:
        """Whether torch trains the experiment. Otherwise TensorFlow does."""
        return bool(self.config.get("use_pytorch")) or self.config.get("framework") == "torch"

    def files_below(self, folder: str) -> list[str]:
        """Return the paths of the Python files that lie directly in a folder. Those of envs and
        models run at start-up.
        """
        return [
            path for path in self.files if path.endswith(".py") and str(Path(path).parent) == folder
        ]

    def tree(self, path: str) -> ast.Module:
        """Return the syntax tree of a file, which is empty if Python 3.7 can't read the file."""
        if path not in self._trees:
            try:
                self._trees[path] = parse(self.text(path))
            except (SyntaxError, ValueError):
                self._trees[path] = ast.Module([], [])
        return self._trees[path]

    @cached_property
    def weights(self) -> list[str]:
        """The paths of the files that hold weights."""
        return [path for path in self.files if path.endswith(_WEIGHT_FILES) or is_checkpoint(path)]


def _section(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """The section of this name; empty if there is none."""
    section = settings.get(name)
    return section if isinstance(section, dict) else {}


def is_checkpoint(path: str) -> bool:
    """Return whether a path looks like a checkpoint or another pickle that Ray writes beside its
    results.
    """
    return bool(re.search(r"(^|/)checkpoint-\d+$", path)) or path.endswith(
        (".pkl", ".pickle", ".tune_metadata")
    )


@lru_cache(maxsize=128)
def parse(text: str) -> ast.Module:
    """Return the syntax tree that Python 3.7 would read, which isn't to be changed.

    Raises `ValueError` or `SyntaxError` if Python 3.7 can't read the text.
    """
    try:
        return ast.parse(text, feature_version=_PYTHON)
    except (RecursionError, MemoryError) as error:
        raise ValueError("it is nested too deeply") from error


@lru_cache(maxsize=128)
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return all nodes of a syntax tree."""
    return tuple(ast.walk(tree))


def strings(tree: ast.Module) -> set[str]:
    """Return all texts that occur as constants in a syntax tree."""
    return {
        node.value
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
