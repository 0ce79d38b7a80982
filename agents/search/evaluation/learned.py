"""A learned evaluation of duels: a correction of the hand-written score, linear in the features of
`learned_features`, to which hidden units that see the same features may add.

The file holds data, not code: `agents.make("alphabeta", evaluation="FILE.json")`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from agents.search.evaluation.learned_weights import (
    GROUPS,
    LARGEST_BIAS,
    LARGEST_INPUT,
    LARGEST_SUM,
    MOST_UNITS,
    HiddenUnit,
    LearnedEvaluationError,
    Phase,
    refuse_many_points,
)
from envs.battlesnake.state import State
from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError
from envs.common.plain_values import known_to_json
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole

HAND_WRITTEN = "hand-written"
"""The name of the evaluation without a correction."""
MOST = 20_000
"""The correction is never larger than this many points, so that no evaluation looks like a proven
win. (A kernel has it compiled in; the word keeps this file in the hash of its cache.)
"""
MAX_CELLS = 128
"""The most cells of a board: the fill on two words has no more."""
_FOLDER = Path(__file__).parent / "shipped"
_LINEAR = 1
"""The version of a file without hidden units."""
_NETWORK = 2
"""The version of a file with hidden units."""
_MAX_BYTES = 256 << 10
_MAX_PHASES = 16


@dataclass(frozen=True, kw_only=True)
class LearnedEvaluation:
    """What a file holds. It applies to duels under the rules of the standard game on boards of one
    size, without hazards.

    A duel is a game of two snakes. The last two snakes of a larger game aren't a duel here, as long
    as the state still holds the others; `AlphaBeta` leaves these out first."""

    width: int
    height: int
    phases: tuple[Phase, ...]
    """In the order of their `up_to`. At least one, and at most 16."""
    units: tuple[HiddenUnit, ...] = ()
    """The hidden units, at most `MOST_UNITS`; none in a linear evaluation."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How the weights were found, in JSON's types. Nothing is computed from it."""
    name: str = field(default="given", compare=False)
    """Its name for people: the built-in name, or the file's name. The file itself holds none.
    """

    def __post_init__(self) -> None:
        refuse_many_points(self.units)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LearnedEvaluation:
        """Read what `write` has written. Raises `LearnedEvaluationError` for anything else."""
        try:
            evaluation = _from_json(parse_json(read_text(path, _MAX_BYTES)))
        except OSError as error:
            names = " or ".join((*shipped_evaluations(), HAND_WRITTEN))
            raise LearnedEvaluationError(
                f"{path} can't be read: {error.strerror or error}. An evaluation is the path of a"
                f" file, or {names}"
            ) from error
        except (ValueError, ProcsnakeError) as error:
            raise LearnedEvaluationError(
                f"{path} is not a learned evaluation: {error}. To write one:"
                " procsnake tune-search learn alphabeta FILE"
            ) from error
        return replace(evaluation, name=Path(path).name)

    def write(self, path: Path) -> None:
        """Write the file as JSON. Raises `ConfigError` if it can't be written."""
        data = {
            "procsnake_evaluation": _NETWORK if self.units else _LINEAR,
            "width": self.width,
            "height": self.height,
            **self.weights,
            # A test that was won in every game has an infinite Elo, which JSON can't hold.
            "training": known_to_json(dict(self.training)),
        }
        write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")

    @property
    def weights(self) -> dict[str, Any]:
        """All weights in JSON's types, as the file holds them."""
        weights = {"phases": [{"up_to": phase.up_to, **asdict(phase)} for phase in self.phases]}
        if self.units:
            weights["units"] = [
                {"bias": unit.bias, "points": unit.points, **asdict(unit)} for unit in self.units
            ]
        return weights

    def applies_to(self, state: State) -> bool:
        """Return whether the evaluation is meant for board 0 of this state. Elsewhere a search uses
        the hand-written one.
        """
        return self.unfit_for(state) is None

    def unfit_for(self, state: State) -> str | None:
        """Return why the evaluation isn't meant for board 0 of this state; None if it is."""
        r = state.rules
        s = state.arrays
        for rule in ("wrapped", "constrictor", "solo", "royale"):
            if getattr(r, rule):
                return f"{rule} isn't the standard game"
        num_snakes = s.cause.shape[1]
        if num_snakes != 2:
            snakes = "snake" if num_snakes == 1 else "snakes"
            return f"the game has {num_snakes} {snakes}, and {self.name} is for duels"
        if s.num_alive[0] != 2:
            return "the game is over"
        if s.num_hazards[0]:
            return f"the board has hazards, and {self.name} was learned without"
        if (r.width, r.height) != (self.width, self.height):
            return (
                f"the board is {r.width}×{r.height}, and {self.name} is for"
                f" {self.width}×{self.height}"
            )
        return None

    @property
    def title(self) -> str:
        """Its kind and name, and whether a test has refused it or is still to be played."""
        if self.training.get("accepted") is False:
            return f"learned ({self.name}, not accepted by a test)"
        return f"learned ({self.name})"


def evaluation_in_words(learned: LearnedEvaluation | None, state: State | None) -> str:
    """Return which evaluation a search with `learned` uses on board 0 of `state`, and if it is the
    hand-written one, why.

    Without a state, it says for which games it uses which.
    """
    if learned is None:
        return f"{HAND_WRITTEN}, because that was asked for"
    if state is None:
        return (
            f"{learned.title} in duels of the standard game on {learned.width}×{learned.height},"
            f" {HAND_WRITTEN} elsewhere"
        )
    reason = learned.unfit_for(state)
    if reason:
        return f"{HAND_WRITTEN}, because {reason}"
    return learned.title


def shipped_evaluations() -> list[str]:
    """Return the names of the built-in learned evaluations, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def find_evaluation(
    evaluation: LearnedEvaluation | str | os.PathLike[str],
) -> LearnedEvaluation | None:
    """Return the evaluation itself, the built-in one of this name, or the one in the file at this
    path.

    `HAND_WRITTEN` stands for None. Raises `LearnedEvaluationError` for a bad file, and
    `ConfigError` for anything else."""
    if evaluation == HAND_WRITTEN:
        return None
    if isinstance(evaluation, LearnedEvaluation):
        return evaluation
    if not isinstance(evaluation, str | os.PathLike):
        raise ConfigError(
            f"evaluation is {evaluation!r}; it must be a name or a file, such as {HAND_WRITTEN!r}"
        )
    if evaluation in shipped_evaluations():
        return _shipped(str(evaluation))
    return LearnedEvaluation.read(evaluation)


@cache
def _shipped(name: str) -> LearnedEvaluation:
    return replace(LearnedEvaluation.read(_FOLDER / f"{name}.json"), name=name)


def _from_json(data: Any) -> LearnedEvaluation:
    """Return the evaluation in a file's JSON. Raises `ValueError` and `UnknownNameError`."""
    names = ("procsnake_evaluation", "width", "height", "phases", "units", "training")
    fields = _object("the file", data, names)
    version = _LINEAR
    if "units" in fields:
        version = _NETWORK
    if fields.get("procsnake_evaluation") != version:
        raise ValueError(
            f"procsnake_evaluation is {fields.get('procsnake_evaluation')!r:.50}; this procsnake"
            f" reads version {_LINEAR}, and {_NETWORK} with hidden units"
        )
    width = _whole("width", fields.get("width"), 3, 25)
    height = _whole("height", fields.get("height"), 3, 25)
    if width * height > MAX_CELLS:
        raise ValueError(f"the board has {width}×{height} cells, and {MAX_CELLS} are the most")
    training = fields.get("training", {})
    if not isinstance(training, dict):
        raise ValueError("training must be an object")
    return LearnedEvaluation(
        width=width,
        height=height,
        phases=_phases(fields.get("phases")),
        units=_units(fields["units"]) if "units" in fields else (),
        training=training,
    )


def _phases(data: Any) -> tuple[Phase, ...]:
    """Return the phases in a file's list. Raises `ValueError` and `UnknownNameError`."""
    if not isinstance(data, list) or not 1 <= len(data) <= _MAX_PHASES:
        raise ValueError(f"phases must be a list of 1 to {_MAX_PHASES} phases")
    last = len(data) - 1
    phases = tuple(
        _phase(f"phases[{number}]", phase, is_last=number == last)
        for number, phase in enumerate(data)
    )
    ends = [phase.up_to for phase in phases if phase.up_to is not None]
    if ends != sorted(set(ends)):
        raise ValueError(f"the phases end at {ends}; each must end later than the one before")
    return phases


def _phase(place: str, data: Any, *, is_last: bool) -> Phase:
    """Return one phase of a file. `place` says where it stands, for messages."""
    fields = _object(place, data, ("up_to", *GROUPS))
    up_to = fields.get("up_to")
    if (up_to is None) != is_last:
        raise ValueError(
            f"{place}.up_to is {up_to!r}; every phase but the last one must say where it ends"
        )
    if up_to is not None:
        up_to = _whole(f"{place}.up_to", up_to, 1, 256)
    return Phase(up_to=up_to, **_weights(place, fields, LARGEST_SUM))


def _units(data: Any) -> tuple[HiddenUnit, ...]:
    """Return the hidden units in a file's list. Raises `ValueError` and `UnknownNameError`."""
    if not isinstance(data, list) or not 1 <= len(data) <= MOST_UNITS:
        raise ValueError(f"units must be a list of 1 to {MOST_UNITS} hidden units")
    return tuple(_unit(f"units[{number}]", unit) for number, unit in enumerate(data))


def _unit(place: str, data: Any) -> HiddenUnit:
    """Return one hidden unit of a file. `place` says where it stands, for messages."""
    fields = _object(place, data, ("bias", "points", *GROUPS))
    return HiddenUnit(
        bias=_whole(f"{place}.bias", fields.get("bias"), -LARGEST_BIAS, LARGEST_BIAS),
        points=_whole(f"{place}.points", fields.get("points"), -LARGEST_SUM, LARGEST_SUM),
        **_weights(place, fields, LARGEST_INPUT),
    )


def _weights(place: str, fields: Mapping[str, Any], largest: int) -> dict[str, dict[str, int]]:
    """Return the weights of a phase or a unit by group and name."""
    groups: dict[str, dict[str, int]] = {}
    for group, names in GROUPS.items():
        weights = _object(f"{place}.{group}", fields.get(group, {}), names)
        for name, weight in weights.items():
            _whole(f"{place}.{group}.{name}", weight, -largest, largest)
        groups[group] = weights
    return groups


def _object(place: str, data: Any, names: Collection[str]) -> dict[str, Any]:
    """Return a JSON object. Raises `ValueError` if it is none, and `UnknownNameError` for a name
    that isn't among `names`.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{place} must be an object, not {data!r:.50}")
    for name in data:
        if name not in names:
            raise UnknownNameError(f"name in {place}", name, names)
    return data


def _whole(place: str, value: Any, low: int, high: int) -> int:
    """Return a value that is a whole number in its range. Raises `ValueError` otherwise."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(
            f"{place} is {value!r:.50}; it must be a whole number from {low} to {high}"
        )
    return value
