"""The options of a search that can be tuned, with the ranges that it declares for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from agents.player import SEARCHES, Player
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import Weights, crowd_weights_of, weights_of
from agents.search.mcts.agent import MCTS
from agents.search.options import Range, ranges_of
from envs.common.columns import in_columns
from envs.common.errors import ConfigError, UnknownNameError

SEARCH_CLASSES: dict[str, type[AlphaBeta | MCTS]] = {"alphabeta": AlphaBeta, "mcts": MCTS}
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
    player is not a search.
    """
    return Player.of(player).search


def tuned_ranges(search: str) -> dict[str, Range]:
    """Return the ranges of a search's options that can be tuned, with those of the weights of its
    evaluation, such as `weights.cell`.
    """
    options = SEARCH_CLASSES[search]
    ranges = dict(ranges_of(options))
    for group in _groups(search):
        for name, declared in ranges_of(Weights).items():
            ranges[f"{group}.{name}"] = declared
    return {name: declared for name, declared in ranges.items() if declared.step is not None}


def _groups(search: str) -> list[str]:
    """Return the names of a search's options that are weights of the evaluation."""
    names = {field.name for field in fields(SEARCH_CLASSES[search])}
    return [group for group in _GROUPS if group in names]


def parameters_of(player: str) -> dict[str, Parameter]:
    """Return all parameters of a search by name, each starting at the value that `player` gives it.

    Raises `UnknownNameError` for a player that is not a search.
    """
    search = search_of(player)
    if search is None:
        raise UnknownNameError("search", player, SEARCHES)
    starts = _starts(search, Player.of(player).options)
    parameters = {}
    for name, declared in tuned_ranges(search).items():
        low, high = declared.tuned_ends
        assert declared.step is not None
        parameters[name] = Parameter(
            name=name,
            start=_number(name, starts[name]),
            low=low,
            high=high,
            is_integer=declared.is_whole,
            c_end=declared.step,
        )
    return parameters


def _starts(search: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all options of a search with these options, weights by their names."""
    starts: dict[str, Any] = {field.name: field.default for field in fields(SEARCH_CLASSES[search])}
    starts |= flat(options)
    for group in _groups(search):
        weights = weights_of(options.get(WEIGHTS))
        if group != WEIGHTS:
            weights = crowd_weights_of(options.get(WEIGHTS), options.get(group))
        starts |= {f"{group}.{name}": value for name, value in weights._asdict().items()}
    return starts


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise ConfigError(f"{name} is {value!r}; it must be a number")
    return float(value)


def choose(
    parameters: Mapping[str, Parameter], texts: Iterable[str], *, r_end: float | None = None
) -> tuple[Parameter, ...]:
    """Return the parameters for which `texts` ask: `NAME`, `NAME:C_END`, `NAME:C_END:R_END`,
    `weights` or `crowd_weights`, or `all`.

    `r_end` is that of those that don't say. Raises `UnknownNameError` and `ConfigError`.
    """
    selection: dict[str, Parameter] = {}
    for text in texts:
        word, c_end, own_r_end = _read(text)
        for name in _meant(word, parameters):
            usual = parameters[name]
            step = next(value for value in (own_r_end, r_end, usual.r_end) if value is not None)
            if c_end is not None:
                usual = replace(usual, c_end=c_end)
            selection[name] = replace(usual, r_end=step)
    if not selection:
        raise ConfigError(
            "nothing to tune: name parameters, such as --parameters"
            f" {next(iter(parameters))},weights, or all"
        )
    return tuple(selection.values())


def _meant(word: str, names: Collection[str]) -> list[str]:
    """Return the parameters for which a word stands. Raises `UnknownNameError` if it is none."""
    if word == ALL:
        return list(names)
    if word in _GROUPS:
        return [name for name in names if name.startswith(f"{word}.")]
    if word not in names:
        raise UnknownNameError("parameter", word, [*names, ALL, *_GROUPS])
    return [word]


def _read(text: str) -> tuple[str, float | None, float | None]:
    """Return the name, c_end and r_end in a text such as `NAME:C_END`; None for what it
    leaves out.
    """
    name, *numbers = text.split(":")
    try:
        c_end, r_end = [*map(float, numbers), None, None][:2]
        if len(numbers) > 2:
            raise ValueError("there are too many numbers")
    except ValueError as error:
        raise ConfigError(
            f"{text!r} can't be read; write a parameter as NAME, NAME:C_END or NAME:C_END:R_END"
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
    values = {name: value for name, value in options.items() if name not in _GROUPS}
    for group in _GROUPS:
        weights = options.get(group)
        weights_of(weights)
        for name, value in (weights or {}).items():
            values[f"{group}.{name}"] = value
    return values


def with_values(player: str, values: Mapping[str, Any]) -> str:
    """Return the player with these values instead of its own, as `agents.make` takes it. It then
    reads no file of options.
    """
    base = Player.of(player)
    options = {**flat(base.options), **values}
    if not options:
        return base.made
    # Names of players write truth as JSON does: "True" would be a text.
    query = {
        name: json.dumps(value) if isinstance(value, bool) else value
        for name, value in options.items()
    }
    return f"{base.made}?{urlencode(query)}"


def table(parameters: Mapping[str, Parameter]) -> str:
    """Return one line per parameter: its name, default, range, and usual `c_end`."""
    rows = [
        (one.name, f"{one.start:g}", f"from {one.low:g} to {one.high:g}, c_end {one.c_end:g}")
        for one in parameters.values()
    ]
    return in_columns(rows, indent="  ")
