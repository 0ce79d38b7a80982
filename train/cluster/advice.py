"""Says before a run is paid for what speaks against its size: processes that would wait, a batch that nobody tuned for."""

from __future__ import annotations

import math

from train.algorithm_settings import PPOSettings
from train.cluster.sizes import sized, steps_per_update
from train.cluster.speeds import expected_stages, fullest, measured_like
from train.config import Experiment

_FAR = 2.0


def warnings(experiment: Experiment) -> list[str]:
    """Return a sentence for each thing that speaks against the experiment's scale; an empty list if nothing is known to."""
    after = sized(experiment)
    return [text for text in (_too_many_env_runners(after), _too_large_a_batch(experiment, after)) if text]


def _too_many_env_runners(after: Experiment) -> str:
    through = expected_stages(after)
    if through is None or fullest(through) == "play":
        return ""
    full = fullest(through)
    enough = math.ceil(through[full] * max(1, after.num_env_runners) / through["play"])
    text = (
        f"{after.num_env_runners} env runners play {through['play']:,.0f} decisions per second, but {_FULL[full]} "
        f"{through[full]:,.0f}, for which {enough} would do; the others are paid for and wait (measured for "
        f"{measured_like(after)} on another machine: docs/cluster.md)"
    )
    return f"{text}. A GPU learns faster than the one thread that was measured" if after.num_gpus_per_learner else text


_FULL = {
    "learn": "the learner, counted as one CPU thread for each process that learns, goes through",
    "network": "a network link of 10 Gbit/s carries",
    "receive": "the main process takes in",
    "shards": "the shards of replay take in",
}


def _too_large_a_batch(before: Experiment, after: Experiment) -> str:
    if not isinstance(after.settings, PPOSettings):
        return ""
    tuned, now = steps_per_update(before), steps_per_update(after)
    if now <= _FAR * tuned:
        return ""
    return (
        f"a batch of {now:,} game steps is {now / tuned:.0f} times the {tuned:,} for which the experiment was tuned, so it may "
        "learn worse from the same number of decisions; take fewer instances, or fewer env runners: --set scale.workers=…"
    )
