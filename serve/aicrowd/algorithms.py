"""Translates the settings of PPO, DQN and APEX into those of Ray 0.8.6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from serve.aicrowd.section import Section

_NO_LIMIT = 1.0e6
"""A clipping range for the value loss that is never reached. Ray always clips, so this is how
clipping is switched off.
"""


@dataclass(frozen=True)
class Scale:
    """The processes and games over which a run is spread."""

    workers: int
    games_a_worker: int
    budget: int
    """The number of decisions."""
    framework: str

    @property
    def games(self) -> int:
        return self.workers * self.games_a_worker


def ppo(settings: Section, scale: Scale, notes: list[str]) -> dict[str, Any]:
    """Return the settings for the exported ProcsnakePPO."""
    num_steps = settings.take("num_steps")
    parts = settings.take("num_minibatches")
    batch = scale.games * num_steps
    if batch % parts:
        settings.refuse(
            "num_minibatches", parts, f"{batch} steps don't split into so many equal parts", 8
        )
    settings.require("norm_adv", True, "Ray 0.8.6 always standardises advantages")
    settings.require("target_kl", None, "Ray 0.8.6 can't end an update early")
    settings.require("symmetries", False, "Ray 0.8.6 has no place for it")
    settings.require("lstm_units", 0, "a memory has no twin there")
    settings.require("value_epochs", 0, "Ray 0.8.6 learns policy and values in one pass")
    for name in ("value_freq", "adv_coef"):
        settings.take(name, None)
    if (optimizer := settings.take("optimizer", "adam")) != "adam":
        notes.append(f"It trains with Adam, because Ray 0.8.6 has no {optimizer.capitalize()}.")
    clip_coef = float(settings.take("clip_coef"))
    kl_coef = float(settings.take("kl_coef"))
    if kl_coef:
        notes.append(
            "The KL penalty adapts to the mean KL of an update's last pass; in procsnake to that of"
            " its last minibatch."
        )
    return {
        "gamma": float(settings.take("gamma")),
        "lambda": float(settings.take("gae_lambda")),
        **_annealed(settings, scale),
        "num_sgd_iter": settings.take("num_epochs"),
        "sgd_minibatch_size": batch // parts,
        "train_batch_size": batch,
        "rollout_fragment_length": num_steps,
        "batch_mode": "truncate_episodes",
        "clip_param": clip_coef,
        "vf_clip_param": clip_coef if settings.take("clip_vloss") else _NO_LIMIT,
        # Half the mean squared error there isn't halved here.
        "vf_loss_coeff": float(settings.take("vf_coef")) / 2,
        "vf_share_layers": True,
        **_scheduled("entropy_coeff", settings.take("ent_coef")),
        "kl_coeff": kl_coef,
        "kl_target": float(settings.take("kl_target")),
        "grad_clip": float(settings.take("max_grad_norm")) or None,
    }


def dqn(settings: Section, scale: Scale, notes: list[str]) -> dict[str, Any]:
    """Return the settings for Ray's DQN, which plays on all workers between its updates."""
    batch = settings.take("train_batch_size")
    ratio = float(settings.take("replay_ratio"))
    updates = settings.take("target_update_freq")
    return {
        **_q_learning(settings, scale, notes),
        "train_batch_size": batch,
        "training_intensity": ratio * scale.games,
        # Counted in decisions there, in updates here.
        "target_network_update_freq": round(updates * batch / ratio) if ratio else updates,
        "exploration_config": {"type": "EpsilonGreedy", **_epsilon(settings)},
    }


def apex(settings: Section, scale: Scale, notes: list[str]) -> dict[str, Any]:
    """Return the settings for Ray's own APEX."""
    batch = settings.take("train_batch_size")
    ratio = float(settings.take("replay_ratio"))
    pushes = settings.take("weight_push_freq")
    settings.require("epsilon_base", 0.4, "Ray 0.8.6 has the paper's ladder of epsilons only")
    settings.require("epsilon_exponent", 7.0, "Ray 0.8.6 has the paper's ladder of epsilons only")
    settings.take("batches_per_request")
    notes.append("The ladder of epsilons has a rung for each worker; in procsnake for each game.")
    notes.append(
        "batches_per_request has no counterpart: Ray 0.8.6 keeps four requests to each replay shard"
        " under way."
    )
    return {
        **_q_learning(settings, scale, notes),
        "train_batch_size": batch,
        "training_intensity": ratio * scale.games_a_worker,
        # Counted in decisions learned from there, in updates here.
        "target_network_update_freq": settings.take("target_update_freq") * batch,
        "exploration_config": {"type": "PerWorkerEpsilonGreedy"},
        "worker_side_prioritization": True,
        "timesteps_per_iteration": 10_000,
        "min_iter_time_s": 10,
        "optimizer": {
            "num_replay_buffer_shards": settings.take("num_replay_shards"),
            # Counted in decisions of a worker there, in updates here.
            "max_weight_sync_delay": max(
                1, round(pushes * batch / max(ratio, 1e-9) / scale.workers)
            ),
        },
    }


def _q_learning(settings: Section, scale: Scale, notes: list[str]) -> dict[str, Any]:
    """The settings that DQN and APEX share."""
    num_steps = settings.take("num_steps")
    n_step = settings.take("n_step")
    # Ray cuts n-step returns off where fragments end; longer fragments have fewer ends.
    fragment = max(num_steps, 4 * n_step) if n_step > 1 else num_steps
    if n_step > 1:
        notes.append(
            f"Returns over {n_step} steps are cut off where fragments end, which are therefore"
            f" {fragment} steps long."
        )
    settings.require(
        "noisy", False, "the noise of Ray 0.8.6 can't be turned off when the policy plays for score"
    )
    settings.take("sigma0")
    settings.require("tau", 1.0, "Ray 0.8.6 copies the target network")
    beta = settings.take("priority_beta")
    if isinstance(beta, list):
        notes.append(
            f"priority_beta stays at {beta[0][1]:g}, its first value: Ray 0.8.6 keeps it constant."
        )
        beta = beta[0][1]
    atoms = settings.take("num_atoms")
    if atoms > 1 and scale.framework == "torch":
        settings.refuse(
            "num_atoms", atoms, "Ray 0.8.6 has distributions on TensorFlow only (--framework tf)", 1
        )
    learning_rate = settings.take("learning_rate")
    if isinstance(learning_rate, list) and scale.framework == "torch":
        why = "Ray 0.8.6's DQN follows schedules on TensorFlow only (--framework tf)"
        settings.refuse("learning_rate", learning_rate, why, learning_rate[0][1])
    if scale.framework == "tf":
        notes.append(
            "max_grad_norm limits each layer's gradient by itself; in procsnake all of them"
            " together."
        )
    capacity = settings.take("replay_capacity")
    alpha = float(settings.take("priority_alpha"))
    if not alpha:
        settings.refuse("priority_alpha", alpha, "Ray 0.8.6 demands that it is positive", 0.01)
    return {
        "gamma": float(settings.take("gamma")),
        **_scheduled("lr", learning_rate),
        "adam_epsilon": float(settings.take("adam_epsilon")),
        "n_step": n_step,
        "rollout_fragment_length": fragment,
        "double_q": settings.take("double_q"),
        "dueling": settings.take("dueling"),
        # The model brings its own heads; only if this isn't empty does Ray look at fcnet_hiddens
        # for what comes before them.
        "hiddens": [256],
        "noisy": False,
        "num_atoms": atoms,
        **_support(settings),
        "buffer_size": capacity,
        "learning_starts": settings.take("learning_starts"),
        "prioritized_replay": True,
        "prioritized_replay_alpha": alpha,
        "prioritized_replay_beta": float(beta),
        "grad_clip": float(settings.take("max_grad_norm")) or None,
    }


def _support(settings: Section) -> dict[str, float]:
    """The lowest and the highest atom. A card of a distributional network has both; with a single
    atom they mean nothing.
    """
    v_min = settings.take("v_min")
    v_max = settings.take("v_max")
    return {
        "v_min": -1.0 if v_min is None else float(v_min),
        "v_max": 1.0 if v_max is None else float(v_max),
    }


def _annealed(settings: Section, scale: Scale) -> dict[str, Any]:
    learning_rate = settings.take("learning_rate")
    if not settings.take("anneal_lr"):
        return _scheduled("lr", learning_rate)
    if isinstance(learning_rate, list):
        settings.refuse("anneal_lr", True, "Ray 0.8.6 can't anneal a schedule", False)
        return _scheduled("lr", learning_rate)
    return _scheduled("lr", [[0, learning_rate], [scale.budget, 0.0]])


def _scheduled(key: str, value: float | list[list[float]]) -> dict[str, Any]:
    """The setting as a number, or as Ray's schedule: both here and in Ray it is straight lines
    between knots over decisions.
    """
    if not isinstance(value, list):
        return {key: float(value)}
    knots = [[int(steps), float(height)] for steps, height in value]
    return {key: knots[0][1], f"{key}_schedule": knots}


def _epsilon(settings: Section) -> dict[str, Any]:
    """The settings of epsilon. Ray's own names hold a single straight line, and its schedule any
    number of lines.
    """
    epsilon = settings.take("epsilon")
    if isinstance(epsilon, list):
        knots = [[int(steps), float(height)] for steps, height in epsilon]
    else:
        knots = [[0, float(epsilon)]]
    if knots[0][0] > 0:
        knots.insert(0, [0, knots[0][1]])
    schedule = {
        "type": "ray.rllib.utils.schedules.PiecewiseSchedule",
        "endpoints": knots if len(knots) > 1 else [*knots, [1, knots[0][1]]],
        "outside_value": knots[-1][1],
    }
    return {"epsilon_schedule": schedule}
