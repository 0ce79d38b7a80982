"""Compares instances for an experiment by the decisions that a dollar buys, at measured speeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from train.cluster.sizes import require_processes, sized
from train.cluster.speeds import expected_stages, fullest, measured_like
from train.config import Experiment
from train.sagemaker.costs.estimate import dollars_per_hour
from train.settings.scale import Local, machines, scale_overrides


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Instances on which the experiment could be trained."""

    instances: str
    """The instances, as `--instances` takes them."""
    dollars_per_hour: float
    """The price of all of them together."""
    decisions_per_second: float | None
    """The decisions that are expected to be played and learned from; None if no speed is known."""
    basis: str
    """The source of `decisions_per_second`, in words."""

    @property
    def decisions_per_dollar(self) -> float | None:
        """The decisions that a dollar pays for; None if no speed is known."""
        if self.decisions_per_second is None:
            return None
        return 3600 * self.decisions_per_second / self.dollars_per_hour

    def figures(self) -> dict[str, Any]:
        """Return the candidate as plain values, for JSON."""
        return {**dataclasses.asdict(self), "decisions_per_dollar": self.decisions_per_dollar}


def parse_speeds(texts: Sequence[str], default: str) -> dict[str, float]:
    """Read speeds such as "ml.g5.xlarge=41000", in decisions per second, by instances.

    One without instances, such as "41000", is for `default`. Raises `ConfigError` for other forms,
    and for numbers that aren't positive.
    """
    speeds = {}
    for text in texts:
        instances, _, number = text.rpartition("=")
        try:
            speed = float(number)
        except ValueError:
            speed = math.nan
        if not 0 < speed < math.inf:
            raise ConfigError(
                f"speed {text!r} is not of the form DECISIONS or INSTANCES=DECISIONS per second,"
                " above 0"
            )
        speeds[instances or default] = speed
    return speeds


def compared(
    experiment: Experiment,
    instances: Sequence[str],
    prices: Mapping[str, float],
    speeds: Mapping[str, float],
) -> list[Candidate]:
    """Return candidates: these instances, and one instance of each type that has a price.

    The cheapest per decision come first, and those of unknown speed last. `speeds` are decisions
    per second that the user measured, by instances. Raises `ConfigError` if there is nothing to
    compare, for a speed of other instances, for an algorithm without env runners, and what
    `scale_overrides` raises."""
    require_processes(experiment, "jobs")
    candidates = list(dict.fromkeys([*instances, *prices]))
    if not candidates:
        raise ConfigError(
            "nothing to compare; give prices per hour, e.g. --price ml.c5.xlarge=0.2 --price"
            " ml.g5.xlarge=1.4"
        )
    for name in speeds:
        if name not in candidates:
            raise ConfigError(
                f"--speed is of {name!r}, which isn't compared; it must be like"
                f" {candidates[0]}=41000"
            )
    results = [_candidate(experiment, text, prices, speeds.get(text)) for text in candidates]
    return sorted(results, key=lambda one: -(one.decisions_per_dollar or 0.0))


def _candidate(
    experiment: Experiment, text: str, prices: Mapping[str, float], measured: float | None
) -> Candidate:
    # The experiment's own scale may be of another kind, with other keys.
    there = dataclasses.replace(experiment, scale=Local()).override(scale_overrides(text))
    hourly = dollars_per_hour(there, prices)
    if hourly is None:
        assert not isinstance(there.scale, Local)
        missing = sorted({kind.instance for kind in machines(there.scale)} - prices.keys())
        options = " ".join(f"--price {kind}=DOLLARS" for kind in missing)
        raise ConfigError(f"{text} has no price; add {options} per hour")
    after = sized(there)
    through = expected_stages(after)
    if measured is not None:
        speed = measured
        basis = "your measurement"
    elif through is None:
        speed = None
        basis = "no speed was measured for an experiment like this one"
    else:
        speed = through[fullest(through)]
        basis = f"limit: {fullest(through)}, measured for {measured_like(after)}"
        if after.num_gpus_per_learner:
            basis += "; a GPU counted as one CPU thread, so it is more"
    return Candidate(
        instances=text, dollars_per_hour=hourly, decisions_per_second=speed, basis=basis
    )


def _or_unknown(number: float | None, number_format: str, *, per: float = 1.0) -> str:
    if number is None:
        return "?"
    return number_format.format(number / per)


def table(candidates: Sequence[Candidate]) -> str:
    """Return a line on each candidate, below one that names the columns."""
    rows = [
        (
            one.instances,
            f"{one.dollars_per_hour:,.3f}",
            _or_unknown(one.decisions_per_second, "{:,.0f}"),
            _or_unknown(one.decisions_per_dollar, "{:,.1f}", per=1e6),
            one.basis,
        )
        for one in candidates
    ]
    return in_columns(
        rows, ("instances", "$ per hour", "decisions per s", "millions per $", "based on")
    )
