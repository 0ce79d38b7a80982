"""Estimates the time and the cost of a job before it is created, and enforces a cost limit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.common.errors import ConfigError
from train.cluster.sizes import sized
from train.cluster.speeds import expected_stages, fullest, measured_like
from train.config import Experiment
from train.settings.scale import Local, machines


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The time and the cost that are expected of a job. Times are those of training; machines also
    take some minutes to start.
    """

    hours: float | None
    """Expected hours; None if neither the budget nor a measured speed tells them."""
    basis: str
    """The source of `hours`, or the reason why there is no such figure."""
    dollars_per_hour: float | None
    """The price of all instances together; None if a price is missing."""
    most_hours: float
    """Hours after which SageMaker stops the job."""
    prices: str = ""
    """The instances with the user's prices, in words."""

    @property
    def cost(self) -> float | None:
        """The expected cost in dollars, of the instances alone. None if hours or prices aren't
        known.
        """
        if self.hours is None or self.dollars_per_hour is None:
            return None
        return self.hours * self.dollars_per_hour

    @property
    def most_cost(self) -> float | None:
        """The cost in dollars of a job that runs until SageMaker stops it."""
        if self.dollars_per_hour is None:
            return None
        return self.most_hours * self.dollars_per_hour

    def figures(self) -> dict[str, Any]:
        """Return the estimate as plain values, for JSON."""
        return {**dataclasses.asdict(self), "cost": self.cost, "most_cost": self.most_cost}

    def lines(self) -> list[tuple[str, str]]:
        """Return lines on time and money, each with a name, as `train.cluster.sizes.explanation`
        has them.
        """
        return [("time", self._time()), ("cost", self._money())]

    def _time(self) -> str:
        if self.hours is None:
            return f"not known: {self.basis}"
        text = f"about {_hours(self.hours)} of training: {self.basis}"
        if self.hours > self.most_hours:
            text += (
                f". The job is stopped before that, after {_hours(self.most_hours)}: --max-hours"
            )
        return text

    def _money(self) -> str:
        if self.most_cost is None:
            return (
                "depends on region and day: --price INSTANCE=DOLLARS per hour for each instance"
                " works it out"
            )
        text = (
            f"${self.most_cost:,.2f} at most, if it runs until it is stopped after"
            f" {_hours(self.most_hours)}; by your prices ({self.prices}). Storage, and minutes in"
            " which files are copied, come on top"
        )
        if self.cost is not None:
            text = f"about ${self.cost:,.2f} for the training; {text}"
        return text


def estimate(
    experiment: Experiment,
    prices: Mapping[str, float],
    *,
    max_seconds: int,
    decisions_per_second: float | None = None,
) -> Estimate:
    """Return the estimate for an experiment with instances, at prices per hour by instance type.

    The hours follow from the budget: from its minutes, or from its decisions at the speed that the
    user measured (`decisions_per_second`) or that was measured for an experiment like it. If it has
    both, the smaller counts."""
    expectations = [
        *_by_minutes(experiment),
        *_by_decisions(sized(experiment), decisions_per_second),
    ]
    hours: float | None = None
    basis = _NO_BASIS
    if expectations:
        hours, basis = min(expectations)
    priced = [
        f"{kind.count} × {kind.instance} at ${prices.get(kind.instance, 0.0):g}"
        for kind in _machines(experiment)
    ]
    return Estimate(
        hours=hours,
        basis=basis,
        dollars_per_hour=dollars_per_hour(experiment, prices),
        most_hours=max_seconds / 3600,
        prices=", ".join(priced),
    )


_NO_BASIS = (
    "no speed was measured for an experiment like this one; --speed takes the"
    " agent_steps_per_second of a run of yours"
)


def _by_minutes(experiment: Experiment) -> list[tuple[float, str]]:
    minutes = experiment.budget.max_minutes
    if minutes is None:
        return []
    return [(minutes / 60, "the experiment's budget.max_minutes")]


def _by_decisions(after: Experiment, measured: float | None) -> list[tuple[float, str]]:
    decisions = after.budget.total_agent_steps
    if decisions is None:
        return []
    if measured:
        basis = f"{decisions:,} decisions at your {measured:,.0f} per second"
        return [(decisions / measured / 3600, basis)]
    through = expected_stages(after)
    if through is None:
        return []
    full = fullest(through)
    basis = (
        f"{decisions:,} decisions at {through[full]:,.0f} per second, where {full!r} is the limit;"
        f" measured for {measured_like(after)} on another machine, by CPU threads"
        " (docs/lab/cluster.md)"
    )
    if full == "learn" and after.num_gpus_per_learner:
        basis += ". A GPU counts as one such thread there; it is faster"
    return [(decisions / through[full] / 3600, basis)]


def dollars_per_hour(experiment: Experiment, prices: Mapping[str, float]) -> float | None:
    """Return the price of all instances of the experiment together; None if a price is missing."""
    kinds = _machines(experiment)
    if any(kind.instance not in prices for kind in kinds):
        return None
    return sum(kind.count * prices[kind.instance] for kind in kinds)


def affordable_seconds(
    experiment: Experiment,
    prices: Mapping[str, float],
    max_cost: float,
    *,
    max_seconds: int,
    keep_alive_seconds: int = 0,
    decisions_per_second: float | None = None,
) -> int:
    """Return the seconds after which the job must be stopped, so that its instances cost at most
    `max_cost` dollars.

    That is `max_seconds` if they cost less until then. The time of a warm pool counts as well.
    Raises `ConfigError` if a price is missing, or if the job is expected to cost more."""
    hourly = dollars_per_hour(experiment, prices)
    if hourly is None:
        missing = sorted({kind.instance for kind in _machines(experiment)} - prices.keys())
        options = " ".join(f"--price {instance}=DOLLARS" for instance in missing)
        raise ConfigError(f"--max-cost needs the price per hour of each instance; add {options}")
    paid_seconds = int(min(max_seconds + keep_alive_seconds, 3600 * max_cost / hourly))
    seconds = paid_seconds - keep_alive_seconds
    expected = estimate(
        experiment, prices, max_seconds=max_seconds, decisions_per_second=decisions_per_second
    )
    if seconds < 1 or (expected.hours is not None and 3600 * expected.hours > seconds):
        message = (
            f"${max_cost:,.2f} pay for {max(0, seconds) / 3600:.2g} hours of these instances, which"
            f" cost ${hourly:,.2f} per hour"
        )
        if expected.hours is not None:
            message += f", and {expected.hours:.2g} hours are expected ({expected.basis})"
        raise ConfigError(
            f"{message}; raise --max-cost, take fewer or smaller instances, or a smaller budget"
        )
    return seconds


def quotas(
    experiment: Experiment, *, spot: bool, keep_alive: bool = False
) -> list[tuple[str, int]]:
    """Return the names of the quotas under Service Quotas → Amazon SageMaker that the job uses, and
    how much of each.
    """
    uses = ["spot training job" if spot else "training job"]
    if keep_alive:
        uses.append("training warm pool")
    needed: dict[str, int] = {}
    for kind in _machines(experiment):
        for use in uses:
            name = f"{kind.instance} for {use} usage"
            needed[name] = needed.get(name, 0) + kind.count
    return list(needed.items())


def _hours(hours: float) -> str:
    if hours < 1:
        return f"{60 * hours:.3g} minutes"
    return f"{hours:.3g} hours"


def _machines(experiment: Experiment) -> list[Any]:
    if isinstance(experiment.scale, Local):
        return []
    return machines(experiment.scale)
