"""Turns plain values, as YAML has them, into typed settings: dataclasses, with each key and type
checked.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from envs.common.errors import ConfigError, UnknownNameError


def convert_section(value: Any, kind: Any, key: str) -> Any:
    """Return the dataclass `kind` made of a mapping. `key` is the mapping's own key, for errors.

    Raises `UnknownNameError` for unknown keys, and `ConfigError` for missing keys and for values of
    another type.
    """
    kinds = field_types(kind)
    check_keys(value, kind, key, kinds)
    return kind(
        **{name: convert(item, kinds[name], f"{key}.{name}") for name, item in value.items()}
    )


_type_hints = lru_cache(typing.get_type_hints)
"""Cached, because reading them takes longer than all else of an experiment."""


def field_types(kind: Any) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = _type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def check_keys(value: Any, kind: Any, key: str, names: Iterable[str]) -> None:
    """Raise unless `value` is a mapping that has the fields which `kind` must have, and no others
    than `names`.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{key or 'the experiment'} is {value!r}, but it must be a mapping of keys to values"
        )
    prefix = f"{key}." if key else ""
    allowed = list(names)
    for name in value:
        if name not in allowed:
            raise UnknownNameError("key", f"{prefix}{name}", [f"{prefix}{one}" for one in allowed])
    for f in dataclasses.fields(kind):
        if (
            f.name not in value
            and f.default is dataclasses.MISSING
            and f.default_factory is dataclasses.MISSING
        ):
            raise ConfigError(f"the key {prefix}{f.name} is missing")


def convert(value: Any, kind: Any, key: str) -> Any:
    """Return `value` as the type `kind`. Raises `UnknownNameError` or `ConfigError`."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _convert_union(value, typing.get_args(kind), key)
    if origin is Literal:
        if value not in typing.get_args(kind):
            raise UnknownNameError(key, str(value), typing.get_args(kind))
        return value
    if dataclasses.is_dataclass(kind):
        return convert_section(value, kind, key)
    if kind is Any:
        return value
    return _convert_plain(value, origin or kind, typing.get_args(kind), key)


def _convert_union(value: Any, kinds: tuple[Any, ...], key: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    if all(map(dataclasses.is_dataclass, kinds)):
        return convert_section(value, _named_section(value, kinds, key), key)
    # A list is meant as the type that is one. All else is meant as the first type.
    lists = [kind for kind in kinds if typing.get_origin(kind) is list]
    if isinstance(value, list) and lists:
        return convert(value, lists[0], key)
    return convert(value, kinds[0], key)


def _convert_plain(value: Any, kind: type, arguments: tuple[Any, ...], key: str) -> Any:
    # YAML 1.1 reads 3e-4 as text, so text that is a number is taken where a number is due.
    if kind is float and isinstance(value, int | str) and not isinstance(value, bool):
        value = _number(value)
    if kind is int and isinstance(value, float | str):
        number = _number(value)
        if isinstance(number, float) and number.is_integer():
            value = int(number)
    if kind is list and isinstance(value, list) and arguments:
        return [convert(item, arguments[0], f"{key}[{k}]") for k, item in enumerate(value)]
    if kind is dict and isinstance(value, dict) and arguments:
        return {name: convert(item, arguments[1], f"{key}.{name}") for name, item in value.items()}
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{key} is {value!r}, but it must be of type {kind.__name__}")
    return value


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return value


def _named_section(value: Any, sections: Iterable[Any], key: str) -> Any:
    """Return the section that the key `kind` of `value` names."""
    by_name = {section.kind: section for section in sections}
    if not isinstance(value, Mapping) or "kind" not in value:
        raise ConfigError(
            f"{key} is {value!r}; it must be a mapping with the key kind, one of"
            f" {', '.join(sorted(by_name))}"
        )
    if value["kind"] not in by_name:
        raise UnknownNameError(f"{key}.kind", str(value["kind"]), by_name)
    return by_name[value["kind"]]
