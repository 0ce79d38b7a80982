"""Warns about a run's size before it costs money: idle processes, or an untuned batch size."""

from __future__ import annotations

import math

from train.cluster.sizes import sized, steps_per_update
from train.cluster.speeds import expected_stages, fullest, measured_like
from train.config import Experiment
from train.settings.scale import Heterogeneous

_FAR = 2.0


def warnings(experiment: Experiment) -> list[str]:
    """Return a sentence on each problem with the experiment's scale."""
    after = sized(experiment)
    sentences = [
        _idle_gpus(after),
        _too_many_env_runners(after),
        _too_large_a_batch(experiment, after),
    ]
    return list(filter(None, sentences))


def _idle_gpus(after: Experiment) -> str:
    """A warning of GPUs in machines that only play, which they do on their CPUs; "" if none."""
    if not isinstance(after.scale, Heterogeneous) or not after.scale.rollout.gpus:
        return ""
    playing = after.scale.rollout
    learning = after.scale.learner
    return (
        f"{playing.gpus} GPUs of {playing.count} × {playing.instance} are paid for and never used,"
        " because these machines only play, on their CPUs; let them learn, too: --instances"
        f" '{playing.count}*{playing.instance}', or take a type without GPUs for playing beside"
        f" {learning.count} × {learning.instance}"
    )


def _too_many_env_runners(after: Experiment) -> str:
    through = expected_stages(after)
    if through is None:
        return ""
    on_gpus = bool(after.num_gpus_per_learner)
    if on_gpus:
        # How fast a GPU learns was never measured. Counted as one thread, it would make too many
        # env runners look superfluous.
        del through["learn"]
    full = fullest(through)
    if full == "play":
        return ""
    enough = math.ceil(through[full] * max(1, after.num_env_runners) / through["play"])
    text = (
        f"{after.num_env_runners} env runners play {through['play']:,.0f} decisions per second, but"
        f" {_FULL[full]} {through[full]:,.0f}, for which {enough} would do; the others are paid for"
        f" and wait (measured for {measured_like(after)} on another machine: docs/lab/cluster.md)"
    )
    if on_gpus:
        return f"{text}. How fast a GPU learns was not measured"
    return text


_FULL = {
    "learn": "the learner, counted as one CPU thread for each process that learns, goes through",
    "network": "a network link of 10 Gbit/s carries",
    "receive": "the main process takes in",
    "shards": "the shards of replay take in",
}


def _too_large_a_batch(before: Experiment, after: Experiment) -> str:
    if not after.settings.learns_from_rollouts:
        return ""
    tuned = steps_per_update(before)
    now = steps_per_update(after)
    if now <= _FAR * tuned:
        return ""
    return (
        f"a batch of {now:,} game steps is {now / tuned:.0f} times the {tuned:,} for which the"
        " experiment was tuned, so it may learn worse from the same number of decisions; take"
        " fewer instances, or fewer env runners: --set scale.workers=…"
    )
