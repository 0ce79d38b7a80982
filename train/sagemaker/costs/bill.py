"""Computes what a job cost: billed seconds, spot savings, and money at the user's prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.common.errors import ConfigError
from train.settings.instances import check_instance


@dataclass(frozen=True)
class Bill:
    """The bill of one job, as SageMaker describes it."""

    instances: tuple[tuple[str, int], ...]
    """(Type, count) of each group."""
    billed_seconds: int
    """The seconds for which each instance is billed."""
    training_seconds: int
    """The seconds that the job trained. Spot is billed for less."""

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Bill | None:
        """Read the bill from a job's description; None if it isn't there yet."""
        if "BillableTimeInSeconds" not in described:
            return None
        resources = described["ResourceConfig"]
        groups = resources.get("InstanceGroups") or [resources]
        instances = tuple((group["InstanceType"], group["InstanceCount"]) for group in groups)
        return cls(
            instances, described["BillableTimeInSeconds"], described.get("TrainingTimeInSeconds", 0)
        )

    @property
    def saving(self) -> float:
        """The fraction that spot saved, 0..1."""
        if self.training_seconds:
            return 1 - self.billed_seconds / self.training_seconds
        return 0.0

    def cost(self, prices: Mapping[str, float]) -> float | None:
        """Return the cost at prices per hour by instance type; None if a price is missing."""
        if any(kind not in prices for kind, _ in self.instances):
            return None
        per_hour = sum(count * prices[kind] for kind, count in self.instances)
        return per_hour * self.billed_seconds / 3600


def parse_prices(texts: Sequence[str]) -> dict[str, float]:
    """Read prices such as "ml.g5.xlarge=1.41", in dollars per hour, by instance type.

    Raises `ConfigError` for any other form, and what `check_instance` raises.
    """
    prices = {}
    for text in texts:
        kind, _, price = text.partition("=")
        try:
            prices[kind] = float(price)
        except ValueError:
            raise ConfigError(
                f"price {text!r} is not of the form INSTANCE=DOLLARS per hour, e.g."
                " ml.g5.xlarge=1.41"
            ) from None
        check_instance(kind)
        if not 0 < prices[kind] < math.inf:
            raise ConfigError(
                f"price {text!r} is not an amount of money per hour; it must be above 0"
            )
    return prices


def bill_lines(described: Sequence[Mapping[str, Any]], prices: Mapping[str, float]) -> list[str]:
    """Return a line on the bill of each job of a run, and one on the sum."""
    lines: list[str] = []
    costs: list[float | None] = []
    for one in described:
        bill = Bill.of(one)
        if bill is None:
            continue
        machines = " + ".join(f"{count} × {kind}" for kind, count in bill.instances)
        line = (
            f"{one['TrainingJobName']}: {machines}, {bill.billed_seconds} s billed of"
            f" {bill.training_seconds} s"
        )
        if one.get("EnableManagedSpotTraining"):
            line += f", {bill.saving:.0%} saved by spot"
        cost = bill.cost(prices)
        if cost is not None:
            line += f", ${cost:.2f}"
        lines.append(line)
        costs.append(cost)
    priced = [cost for cost in costs if cost is not None]
    if len(priced) < len(costs):
        lines.append(
            "what that costs depends on region and day: --price INSTANCE=DOLLARS per hour works"
            " it out"
        )
    elif len(priced) > 1:
        lines.append(f"together ${sum(priced):.2f}")
    return lines
