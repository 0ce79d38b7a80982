"""Translates the original SageMaker kits' hyperparameters into an experiment's overrides.

They are RLlib's names of 2020 under `rl.training`, as `rl.training.config.num_workers`. One without
a counterpart is named in a note instead of being dropped silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envs.common.errors import ConfigError, UnknownNameError

_ROOT = "rl.training."
_EVERYWHERE = {
    "stop.timesteps_total": "budget.total_agent_steps",
    "config.num_workers": "num_env_runners",
    "config.num_envs_per_worker": "env.options.num_games",
    "config.seed": "seed",
    "config.env_config.rand_seed": "seed",
}
_BY_ALGORITHM = {
    "config.lr": "learning_rate",
    "config.gamma": "gamma",
    "config.rollout_fragment_length": "num_steps",
    "config.sample_batch_size": "num_steps",
    "config.grad_clip": "max_grad_norm",
}
_OF_PPO = {
    "config.lambda": "gae_lambda",
    "config.clip_param": "clip_coef",
    "config.vf_loss_coeff": "vf_coef",
    "config.entropy_coeff": "ent_coef",
    "config.num_sgd_iter": "num_epochs",
    "config.kl_coeff": "kl_coef",
    "config.kl_target": "kl_target",
}
_OF_Q = {
    "config.train_batch_size": "train_batch_size",
    "config.buffer_size": "replay_capacity",
    "config.learning_starts": "learning_starts",
    "config.n_step": "n_step",
    "config.num_atoms": "num_atoms",
    "config.v_min": "v_min",
    "config.v_max": "v_max",
    "config.dueling": "dueling",
    "config.double_q": "double_q",
    "config.noisy": "noisy",
    "config.sigma0": "sigma0",
    "config.adam_epsilon": "adam_epsilon",
    "config.prioritized_replay_alpha": "priority_alpha",
    "config.prioritized_replay_beta": "priority_beta",
    "config.optimizer.num_replay_buffer_shards": "num_replay_shards",
}
_UNUSED = {
    "env": "the experiment names its world",
    "checkpoint_freq": "checkpoints go by time: checkpoints.every_minutes",
    "checkpoint_at_end": "every run saves at its end",
    "checkpoint_score_attr": (
        "checkpoints.best_metric names the column whose best checkpoint is kept"
    ),
    "keep_checkpoints_num": "checkpoints.keep says how many are kept",
    "local_dir": "runs lie where SageMaker keeps checkpoints",
    "upload_dir": "SageMaker copies the checkpoints to S3 itself",
    "disable_evaluation_worker": "the experiment's evaluation says whether and when is measured",
    "config.use_gae": "PPO always does: ppo.gae_lambda",
    "config.vf_share_layers": "the network says what is shared: network.name",
    "config.vf_clip_param": "it is clipped by ppo.clip_vloss, if at all",
    "config.num_gpus": "it follows from the instances",
    "config.num_cpus_per_worker": "each env runner has one",
    "config.num_gpus_per_worker": "env runners play on the CPU",
    "config.batch_mode": "rollouts are cut at their length",
    "config.observation_filter": "networks scale what they see themselves",
    "config.monitor": "replays are files of their own",
    "config.use_pytorch": "it is always torch",
    "config.framework": "it is always torch",
    "config.eager": "it is always torch",
    "config.ignore_worker_failures": "env runners that die are restarted",
    "config.timesteps_per_iteration": "an iteration is a rollout",
    "config.target_network_update_freq": "here it counts updates, not steps: target_update_freq",
    "config.multiagent": "one network plays all snakes",
    "config.model": "networks have their own names: network.name, network.options",
    "stop.training_iteration": "budgets are steps or minutes: rl.training.stop.timesteps_total",
}
_ALGORITHMS = {"PPO": "ppo", "DQN": "dqn", "APEX": "apex"}


def translate(
    values: Mapping[str, Any], algorithm_of_experiment: Callable[[], str]
) -> tuple[dict[str, Any], list[str]]:
    """Return (overrides, notes on unused names) for decoded hyperparameters. Names that aren't the
    kits' stay as they are.

    `algorithm_of_experiment` is called if the kits' names are used and no hyperparameter names the
    algorithm. Raises `UnknownNameError` for `rl.…` names that the kits didn't have
    either."""
    overrides: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in values.items():
        if name.startswith("rl."):
            theirs[name.removeprefix(_ROOT)] = value
        else:
            overrides[name] = value
    if not theirs:
        return overrides, notes
    if "run" in theirs:
        overrides["algorithm"] = _algorithm(theirs.pop("run"))
    algorithm = overrides.get("algorithm") or algorithm_of_experiment()
    if levels := _levels(theirs):
        overrides["env.options.levels"] = levels
    batch = theirs.pop("config.train_batch_size", None)
    minibatch = theirs.pop("config.sgd_minibatch_size", None)
    if algorithm != "ppo" and batch is not None:
        theirs["config.train_batch_size"] = batch
    elif batch and minibatch:
        overrides["ppo.num_minibatches"] = max(1, round(_number(batch) / _number(minibatch)))
    elif batch or minibatch:
        notes.append(
            "rl.training.config.train_batch_size and sgd_minibatch_size mean something only"
            " together; neither is used"
        )
    for name, value in theirs.items():
        if (reason := _reason_not_used(name)) is not None:
            notes.append(f"{_ROOT}{name} is not used: {reason}")
        else:
            overrides |= _translated(name, value, algorithm)
    return overrides, notes


def _algorithm(run: Any) -> str:
    if run not in _ALGORITHMS:
        raise UnknownNameError(f"{_ROOT}run", str(run), _ALGORITHMS)
    return _ALGORITHMS[run]


def _levels(theirs: dict[str, Any]) -> str | None:
    """Take Procgen's choice of levels out of `theirs`. A number of 0 stood for all."""
    num = theirs.pop("config.env_config.num_levels", None)
    start = theirs.pop("config.env_config.start_level", None)
    if num is None and start is None:
        return None
    if num:
        return f"{int(_number(start or 0))}:{int(_number(num))}"
    return "all"


def _reason_not_used(name: str) -> str | None:
    for unused, reason in _UNUSED.items():
        if name == unused or name.startswith(f"{unused}."):
            return reason
    return None


def _translated(name: str, value: Any, algorithm: str) -> dict[str, Any]:
    if name == "stop.time_total_s":
        return {"budget.max_minutes": _number(value) / 60}
    if name == "stop.episode_reward_mean":
        return {"stop.metric": "episode_return_mean", "stop.at_least": value}
    if name == "config.env_config.env_name":
        return {"env.name": f"procgen/{value}"}
    if name in _EVERYWHERE:
        return {_EVERYWHERE[name]: value}
    if name.startswith("config.env_config."):
        return {f"env.options.{name.removeprefix('config.env_config.')}": value}
    of_algorithm = _OF_PPO if algorithm == "ppo" else _OF_Q
    settings = _BY_ALGORITHM | of_algorithm
    if name not in settings:
        others = ("run", "stop.time_total_s", "stop.episode_reward_mean")
        raise UnknownNameError(
            "hyperparameter",
            f"{_ROOT}{name}",
            [f"{_ROOT}{one}" for one in (*_EVERYWHERE, *settings, *_UNUSED, *others)],
            hint=f"These are the original kits' names for {algorithm}.",
        )
    return {f"{algorithm}.{settings[name]}": value}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"hyperparameter value {value!r} is no number") from None
