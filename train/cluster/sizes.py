"""Works out the numbers of processes and the size of a batch from an experiment's `scale`."""

from __future__ import annotations

import dataclasses
from typing import Any

from envs.common.errors import ConfigError
from train.config import Experiment
from train.settings import RolloutSettings
from train.settings.scale import Heterogeneous, Local


def require_processes(experiment: Experiment, what: str) -> None:
    """Raise `ConfigError` if the experiment is trained by a single process.

    `what`, a plural, is what a single process can't use."""
    if not experiment.uses_ray:
        raise ConfigError(
            f"{experiment.algorithm} is a single process, which {what} aren't made for: train it"
            " where you are"
        )


def sized(experiment: Experiment) -> Experiment:
    """Return the experiment with the processes, fragments and batches that follow from its `scale`.

    A local scale changes nothing. An experiment was tuned for its own batch size, so PPO keeps it:
    first by shorter fragments, down to 16 steps, then by fewer games per env runner, down to 16.
    Beyond that the batch grows, and the number of minibatches with it, so that each minibatch keeps
    its size. APPO's batch doesn't need all env runners' fragments, so it grows later. For
    algorithms with replay, batches don't depend on the number of processes. Sizing an experiment
    twice changes nothing."""
    scale = experiment.scale
    if isinstance(scale, Local):
        return experiment
    workers = scale.workers or scale.derived_workers[0]
    learner = scale.learner
    return dataclasses.replace(
        with_workers(experiment, workers),
        num_learners=learner.num_learners,
        num_gpus_per_learner=min(1, learner.gpus),
    )


def with_workers(experiment: Experiment, workers: int) -> Experiment:
    """Return the experiment with this number of env runners."""
    env = experiment.env
    games_before = _games_per_env_runner(experiment)
    settings, games = experiment.settings.for_env_runners(
        workers, tuned_for=experiment.num_env_runners, num_games=games_before
    )
    if games != games_before:
        env = dataclasses.replace(env, options={**env.options, "num_games": games})
    return dataclasses.replace(experiment, env=env, settings=settings, num_env_runners=workers)


def figures(experiment: Experiment) -> dict[str, Any]:
    """Return the values that `sized` sets, by the experiment's names for them, and its `scale`."""
    after = sized(experiment)
    return {
        "scale": dataclasses.asdict(after.scale),
        "num_env_runners": after.num_env_runners,
        "num_learners": after.num_learners,
        "num_gpus_per_learner": after.num_gpus_per_learner,
        "env": {"options": {"num_games": after.env.options.get("num_games")}},
        after.algorithm: dataclasses.asdict(after.settings),
    }


def explanation(experiment: Experiment) -> list[tuple[str, str]]:
    """Return named lines that explain what `sized` changes in the experiment."""
    scale = experiment.scale
    after = sized(experiment)
    if isinstance(scale, Local):
        processes = (
            f"{experiment.num_env_runners}, learners {experiment.num_learners}, as the experiment"
            " says"
        )
        return [("scale", "local: nothing is derived"), ("env runners", processes)]
    reason = "scale.workers says so" if scale.workers else scale.derived_workers[1]
    return _lines(experiment, after, reason)


def _lines(before: Experiment, after: Experiment, reason: str) -> list[tuple[str, str]]:
    scale: Any = before.scale
    lines = [("scale", _describe(scale)), ("env runners", f"{after.num_env_runners} = {reason}")]
    learners = after.num_learners or "the main process"
    learning = f"{learners} on {scale.learner.count} × {scale.learner.instance}"
    if after.num_gpus_per_learner:
        learning += f", with {after.num_gpus_per_learner} GPU each"
    else:
        learning += " on the CPU"
    fragment = f"{_steps_and_games(after)} on every env runner"
    if after.settings.learns_from_rollouts:
        runners = max(1, before.num_env_runners)
        fragment += f" (tuned for: {_steps_and_games(before)} on {runners})"
    else:
        fragment += ", as the experiment says"
    batch = after.settings_as(RolloutSettings).describe_batch(
        steps_per_update(after), tuned_for=steps_per_update(before)
    )
    lines += [("learners", learning), ("fragment", fragment), ("batch", batch)]
    return lines


def _steps_and_games(experiment: Experiment) -> str:
    text = f"{experiment.settings_as(RolloutSettings).num_steps} steps"
    if games := experiment.env.options.get("num_games"):
        text += f" of {games} games"
    return text


def _describe(scale: Any) -> str:
    if isinstance(scale, Heterogeneous):
        learner = scale.learner
        rollout = scale.rollout
        jobs = "two jobs" if scale.mode == "two-jobs" else "one job, two groups"
        return (
            f"{learner.count} × {learner.instance} learn, {rollout.count} × {rollout.instance} play"
            f" ({jobs})"
        )
    return f"{getattr(scale, 'count', 1)} × {scale.instance}, playing and learning"


def steps_per_update(experiment: Experiment) -> int:
    """Return how many game steps env runners play between two updates."""
    settings = experiment.settings_as(RolloutSettings)
    fragments = settings.fragments_per_update(experiment.num_env_runners)
    return fragments * settings.num_steps * _games_per_env_runner(experiment)


def _games_per_env_runner(experiment: Experiment) -> int:
    return experiment.env.options.get("num_games", 1)
