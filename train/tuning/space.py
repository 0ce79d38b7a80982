"""Search spaces: a range or a choice of values for a key of the experiment, and the experiment with
such values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_yaml
from train.config import Experiment
from train.settings import ALGORITHMS

_GOLDEN_RATIO = 0.618034
Scale = Literal["", "log", "discount"]
"""What is drawn evenly: the numbers themselves, their logarithms, or the logarithms of 1 − number,
which suit discounts.
"""
_PBT_FACTOR = 1.2
"""By what population-based training multiplies a value (Jaderberg et al. 2017), or divides it."""
_PBT_SHARE = 1 / 5
"""The largest part of a range by which it changes a value, so that values of a narrow range don't
all end at its ends.
"""


@dataclass(frozen=True)
class NumberRange:
    """The numbers from `low` to `high`, both included, drawn evenly on a `scale`; `whole` allows
    integers only.
    """

    low: float
    high: float
    scale: Scale
    whole: bool

    def domain(self) -> Any:
        """Return the space in Ray Tune's form."""
        from ray import tune

        is_log = self.scale == "log"
        if self.whole:
            whole_numbers = tune.lograndint if is_log else tune.randint
            return whole_numbers(int(self.low), int(self.high) + 1)
        if self.scale == "discount":
            from train.tuning.discounts import discounts

            return discounts(self.low, self.high)
        numbers = tune.loguniform if is_log else tune.uniform
        return numbers(self.low, self.high)

    def examples(self) -> tuple[Any, ...]:
        """Return both ends and, unless only integers are drawn, a number between them that isn't
        whole.
        """
        ends = self.nearest(self.low), self.nearest(self.high)
        if self.whole:
            return ends
        return (*ends, self.low + (self.high - self.low) * _GOLDEN_RATIO)

    def nearest(self, value: Any) -> Any:
        """Return the number in the range that is nearest to `value`."""
        inside = min(max(value, self.low), self.high)
        if self.whole:
            return round(inside)
        return float(inside)

    def moved(self, value: Any, *, up: bool) -> Any:
        """Return a number of the range a step above or below `value`, for population-based
        training.

        A step is a fifth of the range on its scale, and on the logarithmic scales no more than a
        factor of 1.2."""
        step = (self._place(self.high) - self._place(self.low)) * _PBT_SHARE
        if self.scale:
            step = min(step, math.log(_PBT_FACTOR))
        direction = 1 if up else -1
        moved = self.nearest(self._at(self._place(value) + direction * step))
        if self.whole and moved == value:
            return self.nearest(value + direction)
        return moved

    def _place(self, value: float) -> float:
        """Where a number is on the scale, so that larger numbers have larger places."""
        if self.scale == "discount":
            return -math.log(1 - value)
        if self.scale == "log":
            return math.log(value)
        return value

    def _at(self, place: float) -> float:
        if self.scale == "discount":
            return 1 - math.exp(-place)
        if self.scale == "log":
            return math.exp(place)
        return place


@dataclass(frozen=True)
class Choice:
    """A choice between several values."""

    values: tuple[Any, ...]

    def domain(self) -> Any:
        """Return the space in Ray Tune's form."""
        from ray import tune

        return tune.choice(list(self.values))

    def examples(self) -> tuple[Any, ...]:
        """Return all values."""
        return self.values


Space = NumberRange | Choice


def parse_space(key: str, text: Any) -> Space:
    """Read the values to try for `key`: "low..high", "low..high:log", "low..high:discount", "a,b,c"
    or a list.

    Raises `ConfigError` for anything else.
    """
    if isinstance(text, list) and text:
        return Choice(tuple(map(_number_if_it_is_one, text)))
    if isinstance(text, str) and ".." in text:
        return _parse_range(key, text)
    if isinstance(text, str) and "," in text:
        return Choice(
            tuple(_number_if_it_is_one(_parsed(key, text, part)) for part in text.split(","))
        )
    raise ConfigError(
        f"search {key}={text!r} is neither low..high[:log] nor a,b,c; e.g."
        " ppo.learning_rate=1e-4..1e-2:log"
    )


def _parsed(key: str, text: str, part: str) -> Any:
    try:
        return parse_yaml(part)
    except ValueError as error:
        raise ConfigError(
            f"search {key}={text!r}: {part!r} between two commas is not YAML ({error}). Values with"
            f" commas in them are given as a list: --set 'tune.search={{{key}: [[64, 64], [128,"
            " 128]]}'"
        ) from error


def _number_if_it_is_one(value: Any) -> Any:
    """YAML 1.1 reads 3e-4 and 1e5 as text."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    if _is_whole(value):
        return int(number)
    return number


def _is_whole(number: str) -> bool:
    """Whether it is meant as a whole number, as 1e5 is. A point says that others are meant, too:
    1.0..2.0.
    """
    return float(number).is_integer() and "." not in number


def _parse_range(key: str, text: str) -> NumberRange:
    bounds, _, scale = text.partition(":")
    ends = bounds.split("..")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = math.nan
        high = math.nan
    is_range = -math.inf < low < high < math.inf
    if is_range and scale == "":
        return NumberRange(low, high, "", whole=all(map(_is_whole, ends)))
    if is_range and scale == "log" and low > 0:
        return NumberRange(low, high, "log", whole=all(map(_is_whole, ends)))
    if is_range and scale == "discount" and high < 1:
        return NumberRange(low, high, "discount", whole=False)
    raise ConfigError(
        f"search {key}={text!r} is not a range; e.g. 1e-4..1e-2:log or 0.9..0.999:discount, the"
        " lower end first, above 0 for log and below 1 for discount"
    )


def applying(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that apply to a trial, without those of other algorithms' sections."""
    algorithm = values.get("algorithm")
    if algorithm is None:
        return dict(values)
    return {key: value for key, value in values.items() if algorithm_of(key) in (None, algorithm)}


def algorithm_of(key: str) -> str | None:
    """Return the algorithm in whose section a dotted key lies; None if it lies in no
    algorithm's.
    """
    section, dot, _ = key.partition(".")
    if dot and section in ALGORITHMS:
        return section
    return None


def with_values(experiment: Experiment, values: Mapping[str, Any]) -> Experiment:
    """Return the experiment with those `values`, given by dotted key, that apply to its algorithm
    (`applying`).

    Raises `ConfigError` or `UnknownNameError`.
    """
    return experiment.override(
        f"{key}={json.dumps(value)}" for key, value in applying(values).items()
    )
