"""No file of ours imports what Windows' Python lacks without saying what happens there. (Nothing
was ever run on Windows.)
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_ON_WINDOWS = {
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
}
"""Of Python's library reference: the modules with "Availability: Unix"."""
ROOMS = ("envs", "agents", "train", "serve", "procsnake")


def unguarded(tree: ast.AST) -> set[str]:
    """The modules that are imported outside of any `try` and `if`."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Try | ast.If):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        found |= unguarded(node)
    return found


def test_no_file_imports_what_windows_lacks() -> None:
    files = [
        ROOT / "procsnake_packages.py",
        *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))),
    ]
    lacking = {
        str(file.relative_to(ROOT)): unguarded(ast.parse(file.read_bytes())) & NOT_ON_WINDOWS
        for file in files
    }
    assert {file: modules for file, modules in lacking.items() if modules} == {}
