"""The options of a search that can be tuned, with the ranges that it declares for them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from agents.registry import SEARCHES, is_search, options_given
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import Weights, crowd_weights_of, weights_of
from agents.search.mcts.agent import MCTS
from agents.search.options import Range, ranges_of
from envs.common.columns import in_columns
from envs.common.errors import ConfigError, UnknownNameError

SEARCH_CLASSES: dict[str, type] = {"alphabeta": AlphaBeta, "mcts": MCTS}
WEIGHTS = "weights"
_GROUPS = (WEIGHTS, "crowd_weights")
ALL = "all"
R_END = 0.002
"""Fishtest's usual `r_end`, which is meant for tunings of tens of thousands of pairs."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An option that is tuned. Raises `ConfigError` for impossible values."""

    name: str
    """The option's name as in a player's name: `near`, or `weights.cell`."""
    start: float
    low: float
    high: float
    is_integer: bool
    c_end: float
    """How far the option is moved up and down in the last pair of games."""
    r_end: float = R_END
    """The step after the last pair, as a fraction of `c_end`, for each game that is won more than
    lost.
    """

    def __post_init__(self) -> None:
        if not self.low <= self.start <= self.high:
            raise ConfigError(
                f"{self.name} starts at {self.start:g}; it must be from {self.low:g} to"
                f" {self.high:g}"
            )
        if not 0 < self.c_end <= self.high - self.low:
            raise ConfigError(
                f"c_end of {self.name} is {self.c_end:g}; it must be above 0, and at most"
                f" {self.high - self.low:g}"
            )
        if not 0 < self.r_end < float("inf"):
            raise ConfigError(
                f"r_end of {self.name} is {self.r_end:g}; it must be a number above 0"
            )

    def plain(self, value: float) -> int | float:
        """Return the value in the form that the option takes, which may be an integer."""
        if self.is_integer:
            return round(value)
        return round(float(value), 6)


def search_of(player: str) -> str | None:
    """Return the name of the search in a player such as `runs/first+mcts?near=9`, or None if the
    player is no search.
    """
    if is_search(player):
        return player.partition("?")[0].rpartition("+")[2]
    return None


def declared(search: str) -> Mapping[str, Range]:
    """Return the ranges of a search's options, including the weights of its evaluation."""
    weights = {
        f"{group}.{name}": found
        for group in _groups(search)
        for name, found in ranges_of(Weights).items()
    }
    return {**ranges_of(vars(SEARCH_CLASSES[search])["__init__"]), **weights}


def _groups(search: str) -> list[str]:
    """The options of a search that are weights of the evaluation, by name."""
    return [
        group for group in _GROUPS if group in inspect.signature(SEARCH_CLASSES[search]).parameters
    ]


def parameters_of(player: str) -> dict[str, Parameter]:
    """Return all parameters of a search by name, each starting at the value that `player` gives it.

    Raises `UnknownNameError` for a player that is no search.
    """
    search = search_of(player)
    if search is None:
        raise UnknownNameError("search", player, SEARCHES)
    _, given = options_given(player)
    arguments = inspect.signature(SEARCH_CLASSES[search]).parameters
    values: dict[str, Any] = {name: argument.default for name, argument in arguments.items()}
    values |= flat(given)
    for group in _groups(search):
        if group == WEIGHTS:
            weights = weights_of(given.get(WEIGHTS))
        else:
            weights = crowd_weights_of(given.get(WEIGHTS), given.get(group))
        values |= {f"{group}.{name}": value for name, value in weights._asdict().items()}
    return {
        name: Parameter(
            name=name,
            start=_number(name, values[name]),
            low=found.low,
            high=found.high,
            is_integer=type(
                Weights()._asdict().get(name.partition(".")[2], _default(arguments, name))
            )
            is int,
            c_end=found.step,
        )
        for name, found in declared(search).items()
    }


def _default(arguments: Mapping[str, inspect.Parameter], name: str) -> Any:
    return arguments[name].default if name in arguments else None


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise ConfigError(f"{name} is {value!r}; it must be a number")
    return float(value)


def choose(
    known: Mapping[str, Parameter], asked: Iterable[str], *, r_end: float | None = None
) -> tuple[Parameter, ...]:
    """Return the parameters asked for: `NAME`, `NAME:C_END`, `NAME:C_END:R_END`, `weights` or
    `crowd_weights`, or `all`.

    `r_end` is that of those that don't say. Raises `UnknownNameError` and `ConfigError`.
    """
    found: dict[str, Parameter] = {}
    for text in asked:
        name, c_end, own_r_end = _read(text)
        for one in [
            one for one in known if name == ALL or (name in _GROUPS and one.startswith(f"{name}."))
        ] or [name]:
            if one not in known:
                raise UnknownNameError("parameter", one, [*known, ALL, *_GROUPS])
            usual = known[one]
            step = next(value for value in (own_r_end, r_end, usual.r_end) if value is not None)
            found[one] = replace(usual, c_end=usual.c_end if c_end is None else c_end, r_end=step)
    if not found:
        raise ConfigError(
            f"nothing to tune: name parameters, as in --parameters {next(iter(known))},weights,"
            " or all"
        )
    return tuple(found.values())


def _read(text: str) -> tuple[str, float | None, float | None]:
    """The name, c_end and r_end in a text such as `NAME:C_END`."""
    name, *numbers = text.split(":")
    try:
        c_end, r_end = [*map(float, numbers), None, None][:2]
        if len(numbers) > 2:
            raise ValueError("there are too many numbers")
    except ValueError as error:
        raise ConfigError(
            f"{text!r} can't be read; a parameter looks like NAME, NAME:C_END or NAME:C_END:R_END"
        ) from error
    return name, c_end, r_end


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name as the options that `agents.make` takes, with weights in mappings of
    their own.
    """
    plain = {name: value for name, value in values.items() if "." not in name}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        group, dot, entry = name.partition(".")
        if dot:
            groups.setdefault(group, {})[entry] = value
    return {**plain, **groups}


def flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name from which `nested` made these options. Raises as `weights_of`
    does.
    """
    plain = {name: value for name, value in options.items() if name not in _GROUPS}
    for group in _GROUPS:
        weights_of(options.get(group))
    weights = {
        f"{group}.{name}": value
        for group in _GROUPS
        for name, value in (options.get(group) or {}).items()
    }
    return {**plain, **weights}


def with_values(player: str, values: Mapping[str, Any]) -> str:
    """Return the player with these values instead of its own, as `agents.make` takes it. It then
    reads no file of options.
    """
    name, given = options_given(player)
    # Names of players write truth as JSON does: "True" would be a text.
    options = {
        k: json.dumps(v) if isinstance(v, bool) else v for k, v in {**flat(given), **values}.items()
    }
    return f"{name}?{urlencode(options)}" if options else name


def table(known: Mapping[str, Parameter]) -> str:
    """Return one line per parameter: its name, default, range, and usual `c_end`."""
    rows = [
        (one.name, f"{one.start:g}", f"from {one.low:g} to {one.high:g}, c_end {one.c_end:g}")
        for one in known.values()
    ]
    return in_columns(rows, indent="  ")
