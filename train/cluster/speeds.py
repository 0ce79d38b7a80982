"""The measured speed of each stage of a run, from playing to learning, for a run of any size."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from train.config import Experiment
from train.settings import RolloutSettings
from train.settings.scale import Heterogeneous, Homogeneous

NETWORK_BYTES_A_SECOND = 10e9 / 8
"""10 Gbit/s, which ml.c5.9xlarge and ml.g5.2xlarge have at most for long."""


@dataclass(frozen=True)
class Constants:
    """The work of one thread per second of its CPU time, and the bytes that it sends."""

    played_a_second: float
    """Decisions that an env runner plays."""
    bytes_a_decision: float
    """Bytes that an env runner sends to the machine that learns, which also has the shards of
    replay.
    """
    unpacked_a_second: float
    """Decisions that the receiving process takes in."""
    learned_a_second: float
    """Decisions that a learner goes through once."""
    uses: float
    """Number of times that each decision is learned from."""
    weight_bytes: float
    """Bytes of the network's weights, which every env runner fetches."""
    decisions_a_fetch: float
    """Decisions that an env runner plays with the same weights."""
    remembered_a_second: float
    """Decisions that a shard of replay takes in, and gives out as often as they are learned from.
    Infinite without replay.
    """


MEASURED = {
    "battlesnake-ppo": Constants(112_000, 1_963, 7.4e6, 159_000, 2, 2.1e6, 22_300, math.inf),
    "battlesnake-apex": Constants(103_000, 1_968, math.inf, 51_900, 1, 2.1e6, 2_900, 106_000),
}
"""The constants by the experiment for which they were measured, on one thread of an AMD EPYC:
`python -m tests.benchmarks.scaling plan`.
"""


def stages(
    constants: Constants, workers: int, *, learner_speed: float, shards: int, away: float = 1.0
) -> dict[str, float]:
    """Return the decisions per second that each stage can handle, for `workers` env runners of one
    CPU each.

    `learner_speed` is the learner's speed, in threads like the measured one. `away` is the
    share, 0..1, of env runners on other machines than the learner; only their experience crosses
    the network."""
    # With replay, the shards take in experience, and not the main process.
    has_replay = math.isfinite(constants.remembered_a_second)
    receive = math.inf if has_replay else constants.unpacked_a_second
    network = math.inf
    if away:
        weights = constants.weight_bytes / constants.decisions_a_fetch
        network = NETWORK_BYTES_A_SECOND / (away * (constants.bytes_a_decision + weights))
    return {
        "play": workers * constants.played_a_second,
        "receive": receive,
        "shards": shards * constants.remembered_a_second,
        "network": network,
        "learn": learner_speed * constants.learned_a_second / constants.uses,
    }


def fullest(through: dict[str, float]) -> str:
    """Return the slowest stage, which limits the others."""
    return min(through, key=lambda stage: through[stage])


def measured_like(experiment: Experiment) -> str | None:
    """Return the experiment of `MEASURED` with the same game, network and algorithm, or None."""
    for name in MEASURED:
        if _what_costs_time(Experiment.load(name)) == _what_costs_time(experiment):
            return name
    return None


def expected_stages(experiment: Experiment) -> dict[str, float] | None:
    """Return the `stages` of a sized experiment; None if none like it was measured.

    A learner counts as `num_threads` threads, or as one if that is left open. A GPU counts like one
    thread, because none was measured; it is faster."""
    name = measured_like(experiment)
    if name is None:
        return None
    settings = experiment.settings_as(RolloutSettings)
    return stages(
        dataclasses.replace(MEASURED[name], uses=settings.uses_per_decision),
        max(1, experiment.num_env_runners),
        learner_speed=max(1, experiment.num_learners) * (settings.num_threads or 1),
        shards=settings.num_receivers,
        away=_part_elsewhere(experiment),
    )


def _part_elsewhere(experiment: Experiment) -> float:
    """The part of the env runners, 0..1, that plays on other machines than the one that leads."""
    scale = experiment.scale
    if isinstance(scale, Heterogeneous):
        return 1.0
    if isinstance(scale, Homogeneous):
        return 1 - 1 / scale.count
    return 0.0


def _what_costs_time(experiment: Experiment) -> list[Any]:
    options = [
        experiment.env.options.get(name)
        for name in ("observation", "width", "height", "num_snakes")
    ]
    return [experiment.env.name, *options, experiment.policy_network, experiment.algorithm]
