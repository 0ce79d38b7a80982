"""From an experiment of procsnake to one of Ray 0.8.6, key by key: what has no counterpart there is refused, never dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.card import Card
from envs.errors import ProcsnakeError, UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.levels import Levels
from serve.aicrowd.rules import CORES, MAX_STEPS, NUM_LEVELS

TRACKS = tuple(NUM_LEVELS)
FRAMEWORKS = ("tf", "torch")
WEIGHTS = "weights/policy.npz"
_SHARE_OF_GPU = 0.4
_NO_LIMIT = 1.0e6
"""A limit of the value's change that no value reaches: Ray always clips the value loss."""
_OTHER_RUNTIME = "is a matter of the old machine there"


class NoCounterpartError(ProcsnakeError):
    """An experiment that Ray 0.8.6 or the competition has no counterpart for. The message says what to change."""


@dataclass
class Translation:
    """An experiment on the legacy stack."""

    name: str
    """The key of the YAML file, and its name."""
    body: dict[str, Any]
    """What stands under it."""
    notes: list[str] = field(default_factory=list)
    """What is the same in purpose but not to the letter, one sentence each."""


class Section:
    """A section of the experiment that is taken key by key; what is left over in the end is refused."""

    def __init__(self, key: str, values: Mapping[str, Any]) -> None:
        self.key, self._left = key, dict(values)
        self.refusals: list[str] = []

    def take(self, name: str, default: Any = None) -> Any:
        """The value, which is hereby translated."""
        return self._left.pop(name, default)

    def require(self, name: str, allowed: Any, why: str) -> None:
        """Refuse any value but `allowed`."""
        value = self._left.pop(name, allowed)
        if value != allowed:
            self.refuse(name, value, why, f"{self.key}.{name}={'null' if allowed is None else str(allowed).lower()}")

    def refuse(self, name: str, value: Any, why: str, setting: str) -> None:
        """Note why a value can't be kept, and the setting that can."""
        self.refusals.append(f"{self.key}.{name} is {value!r}: {why}; train with --set {setting}")

    def finish(self) -> list[str]:
        """All refusals, one for each key that nobody took, too."""
        for name, value in self._left.items():
            self.refusals.append(f"{self.key}.{name} is {value!r}: it has no counterpart there; train without it")
        return self.refusals


def translate(card: Card, *, track: str, framework: str, weights: str | None = None) -> Translation:
    """The experiment of a bundle's card on Ray 0.8.6. `weights`: the .npz that the model starts from.

    Raises `UnknownNameError` for a track or framework that doesn't exist and `NoCounterpartError`, which lists all that can't
    be kept.
    """
    if track not in NUM_LEVELS:
        raise UnknownNameError("track", track, TRACKS)
    if framework not in FRAMEWORKS:
        raise UnknownNameError("framework", framework, FRAMEWORKS)
    if not card.config or "env" not in card.config:
        raise NoCounterpartError("the bundle's card has no configuration; export that of a run: procsnake export aicrowd RUN")
    return _Translator(card, track, framework, weights).result()


class _Translator:
    def __init__(self, card: Card, track: str, framework: str, weights: str | None) -> None:
        config = card.config
        self.track, self.framework, self.weights = track, framework, weights
        self.algorithm, self.config = config["algorithm"], config
        self.env = Section("env.options", config["env"].get("options", {}))
        self.network = Section("network.options", config["network"].get("options", {}))
        self.settings = Section(self.algorithm, config[self.algorithm])
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.card = card

    def result(self) -> Translation:
        name = str(self.config["name"])
        if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
            self.refusals.append(f"name is {name!r}: run.sh reads it with grep, so it may hold letters, digits, _ . - only")
        env_config = self._env_config()
        self._share_out_games()
        config = {
            "env_config": env_config,
            **(self._ppo() if self.algorithm == "ppo" else self._q_learning()),
            "model": self._model(),
            "use_pytorch": self.framework == "torch",
            **self._resources(),
            "seed": self.config["seed"],
            "evaluation_config": self._evaluation_config(env_config),
        }
        self._note_what_only_runs_here()
        for section in (self.env, self.network, self.settings):
            self.refusals += section.finish()
        if self.refusals:
            raise NoCounterpartError(f"{name} can't be exported. " + ". ".join(self.refusals))
        trainer = {"ppo": "ProcsnakePPO", "dqn": "DQN", "apex": "APEX"}[self.algorithm]
        body = {
            "env": "procsnake_env",
            "run": trainer,
            "disable_evaluation_worker": True,
            "stop": {"timesteps_total": self.budget},
            "checkpoint_freq": 25,
            "checkpoint_at_end": True,
            "keep_checkpoints_num": int(self.config["checkpoints"]["keep"]),
            "config": config,
        }
        return Translation(name, body, self.notes)

    # The world.

    def _env_config(self) -> dict[str, Any]:
        env, world = self.env, str(self.config["env"]["name"])
        game = world.removeprefix("procgen/")
        if not world.startswith("procgen/") or game not in GAMES:
            self.refusals.append(f"env.name is {world!r}: the competition plays Procgen; train with --set env.name=procgen/coinrun")
        if self.config["env"].get("imports"):
            self.refusals.append("env.imports: a world of your own isn't part of the competition; train without it")
        env.require("distribution_mode", "easy", "the competition plays easy games")
        self._note_levels(str(env.take("levels", "all")))
        self.repeat = int(env.take("action_repeat", 1))
        self.num_games = int(env.take("num_games", 64))
        options = {
            "env_name": game,
            "num_levels": NUM_LEVELS[self.track],
            "start_level": 0,
            "distribution_mode": "easy",
            **{name: env.take(name, default) for name, default in _SWITCHES.items()},
            **{name: env.take(name) for name in _OTHER_SWITCHES if name in self.config["env"].get("options", {})},
        }
        own = {name: env.take(name) for name in ("frame_stack", "gap_stack")}
        options |= {name: value for name, value in own.items() if value}
        if self.repeat > 1:
            options["action_repeat"] = self.repeat
            self.notes.append(
                f"Each action is repeated {self.repeat} times, also there. An episode begins with its first frame there; here a"
                f" batch lets up to {self.repeat - 1} frames pass before a game that has just ended is asked again."
            )
        if env.take("shape_rewards", False):
            options["shape_rewards"] = True
        env.require("rnd", None, "random network distillation has no counterpart there")
        env.require("render_mode", None, "pictures are drawn by the grader")
        env.require("debug_mode", 0, "it is for debugging")
        for name in ("num_threads", "seed"):
            if env.take(name) is not None:
                self.notes.append(f"env.options.{name} {_OTHER_RUNTIME}.")
        self._budget()
        return options

    def _note_levels(self, levels: str) -> None:
        num = NUM_LEVELS[self.track]
        if Levels.parse(levels) != Levels.parse(f"train:{num}" if num else "all"):
            what = f"the first {num} levels" if num else "all levels"
            self.notes.append(f"It was trained on levels {levels!r}; the track {self.track} trains on {what}.")

    def _budget(self) -> None:
        wanted, allowed = self.config["budget"]["total_agent_steps"], MAX_STEPS // self.repeat
        self.budget = min(int(wanted or allowed), allowed)
        if wanted and wanted > allowed:
            self.notes.append(f"The budget was {wanted:,} steps; the competition ends after {allowed:,}.")
        if self.config["budget"].get("max_minutes") is not None:
            self.notes.append("The limit in minutes is left to the competition, which has one of 2 hours.")

    def _share_out_games(self) -> None:
        """As many workers as share the games evenly; one core is left for the trainer."""
        total = self.num_games * max(1, int(self.config["num_env_runners"]))
        least = 2 if self.algorithm == "apex" else 1
        shares = [workers for workers in range(least, CORES) if total % workers == 0]
        if not shares:
            self.refusals.append(
                f"there are {total} games, which {least} to {CORES - 1} workers can't share evenly; train with --set env.options.num_games=64"
            )
        self.workers = max(shares, default=1)
        self.games_a_worker = total // self.workers

    def _evaluation_config(self, env_config: dict[str, Any]) -> dict[str, Any]:
        """Rollouts are paid in the game's own rewards."""
        raw = {"shape_rewards": False, "norm_reward": None}
        changed = {name: value for name, value in raw.items() if name in env_config}
        evaluation: dict[str, Any] = {} if self.algorithm == "ppo" else {"explore": False}
        return {**evaluation, "env_config": changed} if changed else evaluation

    # The network.

    def _model(self) -> dict[str, Any]:
        network = self.network
        if self.config["network"]["name"] != "impala":
            name = self.config["network"]["name"]
            self.refusals.append(f"network.name is {name!r}: only impala has a twin there; train with --set network.name=impala")
        width = int(network.take("width", 1))
        options = {
            "depths": [int(depth) * width for depth in network.take("depths", (16, 32, 32))],
            "blocks": int(network.take("blocks", 2)),
            "pooling": network.take("pooling", "flatten"),
            "hidden": int(network.take("hidden", 256)),
            "offset": float(network.take("offset", 0.0)),
        }
        scales = network.take("scales")
        if scales is not None:
            options["scales"] = [float(scale) for scale in scales]
        if self.weights:
            options["weights"] = self.weights
        kind = "impala" if self.algorithm == "ppo" else "q"
        return {"custom_model": f"procsnake_{kind}_{self.framework}", "custom_options": options}

    def _resources(self) -> dict[str, Any]:
        return {
            "num_workers": self.workers,
            "num_envs_per_worker": self.games_a_worker,
            "num_cpus_per_worker": 1,
            "num_gpus": _SHARE_OF_GPU,
            "num_gpus_per_worker": int((1 - _SHARE_OF_GPU) / self.workers * 100) / 100,
        }

    # The algorithms.

    def _ppo(self) -> dict[str, Any]:
        ppo, games = self.settings, self.workers * self.games_a_worker
        num_steps, parts = int(ppo.take("num_steps")), int(ppo.take("num_minibatches"))
        batch = games * num_steps
        if batch % parts:
            ppo.refuse("num_minibatches", parts, f"{batch} steps don't split into that many equal parts", "ppo.num_minibatches=8")
        ppo.require("norm_adv", True, "Ray 0.8.6 always standardises advantages")
        ppo.require("target_kl", None, "Ray 0.8.6 has no early end of an update")
        ppo.require("symmetries", False, "it has no counterpart there")
        clip, gamma = float(ppo.take("clip_coef")), float(ppo.take("gamma"))
        kl_coef = float(ppo.take("kl_coef"))
        if kl_coef:
            self.notes.append("The KL penalty is adapted by the mean over the last pass; here it is by the last minibatch.")
        self._norm_reward(bool(ppo.take("norm_reward")), gamma)
        # Ray's value loss lacks the half.
        value_weight = float(ppo.take("vf_coef")) / 2
        return {
            "gamma": gamma,
            "lambda": float(ppo.take("gae_lambda")),
            **self._learning_rate(anneal=bool(ppo.take("anneal_lr"))),
            "num_sgd_iter": int(ppo.take("num_epochs")),
            "sgd_minibatch_size": batch // parts,
            "train_batch_size": batch,
            "rollout_fragment_length": num_steps,
            "batch_mode": "truncate_episodes",
            "clip_param": clip,
            "vf_clip_param": clip if ppo.take("clip_vloss") else _NO_LIMIT,
            "vf_loss_coeff": value_weight,
            "vf_share_layers": True,
            **_scheduled("entropy_coeff", ppo.take("ent_coef")),
            "kl_coeff": kl_coef,
            "kl_target": float(ppo.take("kl_target")),
            "grad_clip": float(ppo.take("max_grad_norm")),
        }

    def _norm_reward(self, wanted: bool, gamma: float) -> None:
        if wanted:
            self.env_extra = {"norm_reward": gamma}
            self.notes.append("Rewards are divided by the deviation of returns, which each worker measures on its own games.")

    def _learning_rate(self, *, anneal: bool = False) -> dict[str, Any]:
        value = self.settings.take("learning_rate")
        if not anneal:
            return _scheduled("lr", value)
        if isinstance(value, list):
            key = self.settings.key
            self.settings.refuse("anneal_lr", True, "a schedule can't be annealed on top there", f"{key}.anneal_lr=false")
            return _scheduled("lr", value)
        return _scheduled("lr", [[0, value], [self.budget, 0.0]])
