"""Hashes of source code that comments, docstrings and layout don't change: kernels needn't be
compiled anew for a word.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

from envs.common.whole_files import replace_whole

_LENGTH = 16


def code_hash(sources: Sequence[bytes], versions: str, known: Path) -> str:
    """Return 16 hexadecimal digits for the code of the files' contents and for `versions`.

    Parsing all files takes longer (0.1 to 0.2 s) than a process may take to start. So the result is
    kept in the folder `known`, in a file that is named by a hash of the exact contents."""
    exact = hashlib.sha256(versions.encode())
    for source in sources:
        exact.update(hashlib.sha256(source).digest())
    file = known / exact.hexdigest()
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="ascii")
        if re.fullmatch(f"[0-9a-f]{{{_LENGTH}}}", text):
            return text
    code = hashlib.sha256(versions.encode())
    for source in sources:
        code.update(hashlib.sha256(_code_of(source).encode()).digest())
    result = code.hexdigest()[:_LENGTH]
    # What can't be kept is found again by the next process.
    with suppress(OSError):
        known.mkdir(parents=True, exist_ok=True)
        replace_whole(file, result)
    return result


def _code_of(source: bytes) -> str:
    """Return the syntax tree as text, without lines, comments and strings that stand alone."""
    try:
        return _tree_of(source)
    except (SyntaxError, ValueError, RecursionError):
        # A file that somebody is writing, or one that is too deep to walk through.
        return repr(source)


def _tree_of(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        # The bodies of definitions, loops and branches; a lambda's is no list.
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, [each for each in statements if not _stands_alone(each)])
    return ast.dump(tree)


def _stands_alone(statement: ast.AST) -> bool:
    """Whether the statement is a docstring, or another string that nobody uses."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def function_hash(function: Callable[..., Any]) -> str:
    """Return a text that differs for functions of different code, whatever their lines and
    docstrings are.
    """
    parts = repr(_parts(function.__code__, function.__doc__))
    return hashlib.sha256(parts.encode()).hexdigest()[:_LENGTH]


def _parts(code: CodeType, docstring: str | None) -> tuple[Any, ...]:
    constants = list(code.co_consts)
    # Python keeps the docstring as the first constant, and up to 3.12 None if there is none.
    if constants[:1] == [docstring]:
        del constants[0]
    return (
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        [_parts(each, None) if isinstance(each, CodeType) else each for each in constants],
    )
