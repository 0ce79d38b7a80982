"""Whatever the four packages import is asked for by setup.py, and the extra that brings it is the
one that a message names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envs.common.errors import MissingDependencyError
from serve.deploy.lock_requirements import setup_keywords

ROOT = Path(__file__).parents[1]
ABOUT = setup_keywords()
OWN = {"procsnake", "procsnake_packages", "envs", "agents", "train", "serve"}
COME_WITH = {
    "botocore": "boto3",
    "gym3": "procgen",
    "httpx2": "huggingface_hub",
    "IPython": "ipywidgets",
    "werkzeug": "flask",
}
"""Modules that are imported only beside another one, which can't be had without them."""
BY_NAME = {"pygame"}
"""What a user installs by itself, as the message says: no extra has it."""


def sources() -> Iterator[Path]:
    yield ROOT / "procsnake_packages.py"
    for package in sorted(OWN - {"procsnake_packages"}):
        yield from (path for path in (ROOT / package).rglob("*.py") if "template" not in path.parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """The top-level names of the modules that a file imports when it runs; those for type checkers
    alone are left out.
    """
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return
    if isinstance(tree, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in tree.names)
    elif isinstance(tree, ast.ImportFrom) and tree.level == 0 and tree.module:
        yield tree.module.partition(".")[0]
    for child in ast.iter_child_nodes(tree):
        yield from imported(child)


def distributions(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """By imported module, the distributions that bring it; its own name, where it isn't
    installed.
    """
    names = {
        name for path in sources() for name in imported(ast.parse(path.read_text(encoding="utf-8")))
    }
    modules = names - OWN - BY_NAME - COME_WITH.keys() - sys.stdlib_module_names
    by_module = metadata.packages_distributions()
    return {
        module: set(map(canonicalize_name, by_module.get(module, [module]))) for module in modules
    }


def test_no_module_is_imported_that_only_another_package_asks_for(imports):
    extras = [texts for name, texts in ABOUT["extras_require"].items() if name != "dev"]
    asked_for = distributions(ABOUT["install_requires"]).union(*map(distributions, extras))
    assert len(imports) > 25
    assert [module for module, names in imports.items() if names.isdisjoint(asked_for)] == []


def test_the_message_of_a_missing_module_names_an_extra(imports):
    plain = distributions(ABOUT["install_requires"])
    missing = [module for module, names in imports.items() if names.isdisjoint(plain)]
    messages = {
        module: MissingDependencyError.of_extra(ModuleNotFoundError(name=module), feature="x")
        for module in missing
    }
    assert [module for module, message in messages.items() if message is None] == []
