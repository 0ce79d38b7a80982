"""Lists what can be set in an experiment: every key with its default and meaning, from the
dataclasses of `train.config`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from train.config import Experiment, experiment_text
from train.keys.option_keys import docstrings_of, network_options, value_of, world_options
from train.settings import ALGORITHMS, AlgorithmSettings


@dataclass(frozen=True)
class Key:
    """A key of an experiment, in the form that `--set KEY=VALUE` takes."""

    key: str
    default: Any
    """The value that it has if an experiment doesn't name it, or "required" if every experiment
    must name it.
    """
    value: Any
    """Its value in this experiment, or None within a section that this experiment leaves out."""
    meaning: str


def keys(experiment: Experiment) -> list[Key]:
    """Return all keys of an experiment, with only its own algorithm's section.

    The options of its world and network are listed one by one if they are built in."""
    options = {
        "env.options": (experiment.env.options, world_options(experiment.env.name)),
        "network.options": (experiment.network.options, network_options(experiment.network.name)),
    }
    listed: list[Key] = []
    for key in _keys_of(Experiment, experiment, ""):
        values, own_options = options.get(key.key, ({}, []))
        listed += [
            Key(f"{key.key}.{one.name}", one.default, value_of(values, one), one.meaning)
            for one in own_options
        ] or [key]
    return listed


def about(name_or_path: str) -> str:
    """Return in one line what an experiment is: the comment with which its YAML begins.

    Raises what `experiment_text` raises.
    """
    lines = experiment_text(name_or_path).splitlines()
    first = next(
        (number for number, line in enumerate(lines) if not line.startswith("#")), len(lines)
    )
    return " ".join(line.lstrip("# ").rstrip() for line in lines[:first])


def table(listed: list[Key]) -> str:
    """Return two lines per key: the key, and its meaning indented."""
    return "\n".join(f"{_head(key)}\n{_wrapped(key.meaning)}" for key in listed)


def _head(key: Key) -> str:
    assignment = f"{key.key}={key.value}"
    if key.default == "required" or key.value == key.default:
        return assignment
    return f"{assignment}  (default: {key.default})"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="    ")


def _keys_of(kind: type, section: Any, prefix: str) -> Iterator[Key]:
    hints = typing.get_type_hints(kind)
    meanings = field_docstrings(kind)
    for field in dataclasses.fields(kind):
        value = getattr(section, field.name, None)
        key = f"{prefix}{field.name}"
        if isinstance(value, AlgorithmSettings):
            meaning = (
                f"The algorithm that trains: {', '.join(ALGORITHMS)}. The section with its name has"
                " its settings."
            )
            yield Key("algorithm", _default(field).algorithm, value.algorithm, meaning)
            yield from _keys_of(type(value), value, f"{value.algorithm}.")
            continue
        inner = _sections(hints[field.name])
        if not inner:
            yield Key(key, _default(field), value, meanings.get(field.name, ""))
        elif len(inner) == 1:
            inner_section = value if isinstance(value, inner[0]) else None
            yield from _keys_of(inner[0], inner_section, f"{key}.")
        else:
            yield from _keys_of_kinds(inner, value, _default(field), f"{key}.")


def _keys_of_kinds(kinds: list[Any], section: Any, default: Any, prefix: str) -> Iterator[Key]:
    """The keys of all kinds of a section, each once: what it means for the kind that is chosen, or
    else for the first.
    """
    yield Key(f"{prefix}kind", default.kind, section.kind, field_docstrings(type(section))["kind"])
    taken_by: dict[str, list[str]] = {}
    by_name: dict[str, Key] = {}
    for kind in sorted(kinds, key=lambda kind: not isinstance(section, kind)):
        own_section = section if isinstance(section, kind) else None
        for key in _keys_of(kind, own_section, prefix):
            taken_by.setdefault(key.key, []).append(kind.kind)
            by_name.setdefault(key.key, key)
    del by_name[f"{prefix}kind"]
    for name, key in by_name.items():
        among = " or ".join(kind.kind for kind in kinds if kind.kind in taken_by[name])
        yield replace(key, meaning=f"With {prefix}kind={among}: {key.meaning}")


def _sections(hint: Any) -> list[type]:
    """The dataclasses that a field may hold; none if it holds a plain value."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = typing.get_args(hint)
    else:
        kinds = (hint,)
    return [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is dataclasses.MISSING:
        return "required"
    return field.default_factory()


def field_docstrings(kind: type) -> dict[str, str]:
    """Return the docstring that follows each field of a dataclass in the source, also for the
    fields of its parents.
    """
    docstrings: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(one):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(tree, ast.ClassDef)
        docstrings |= docstrings_of(tree)
    return docstrings
