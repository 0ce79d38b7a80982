"""Translates an experiment of procsnake into one of Ray 0.8.6, in the competition's terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.common.errors import UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.levels import Levels
from serve.aicrowd import algorithms
from serve.aicrowd.competition import CORES, MAX_STEPS, NUM_LEVELS
from serve.aicrowd.section import NoCounterpartError, Refusal, Section

TRACKS = tuple(NUM_LEVELS)
FRAMEWORKS = ("tf", "torch")
_SETTINGS = {"ppo": algorithms.ppo, "dqn": algorithms.dqn, "apex": algorithms.apex}
_SHARE_OF_GPU = 0.4
_TRANSLATED = (
    "name",
    "env",
    "network",
    "algorithm",
    *_SETTINGS,
    "budget",
    "seed",
    "checkpoints",
    "num_env_runners",
)
_HERE_ONLY = (
    *(
        "mxnet_dqn",
        "imitation",
        "cloning",
        "learned_evaluation",
        "init_from",
        "evaluation",
        "stop",
        "tune",
    ),
    *("num_learners", "num_gpus_per_learner", "scale"),
)
"""Keys that say how the run was watched and on which machines, which the entry doesn't need."""
_KNOWN = {*_TRANSLATED, *_HERE_ONLY}
_KIT_SWITCHES = {
    "center_agent": True,
    "paint_vel_info": False,
    "use_generated_assets": False,
    "use_sequential_levels": False,
}
"""Options of the games that the kit's environment names, with the games' own defaults."""
_OTHER_SWITCHES = ("use_backgrounds", "use_monochrome_assets", "restrict_themes")


@dataclass(frozen=True)
class Translation:
    """An experiment on the legacy stack."""

    name: str
    """The experiment's key in the YAML file."""
    body: dict[str, Any]
    """The content below that key."""
    notes: list[str]
    """Sentences about what isn't exactly the same on the legacy stack."""
    algorithm: str
    """ppo, dqn or apex."""

    @property
    def has_weights(self) -> bool:
        """Whether it starts from weights instead of from scratch."""
        return "weights" in self.body["config"]["model"]["custom_options"]


def translate(
    config: Mapping[str, Any], *, track: str, framework: str, weights: str | None = None
) -> Translation:
    """Translate an experiment's settings for Ray 0.8.6. `weights` is the path, in the package, of
    an .npz to start from.

    Raises `UnknownNameError` for a track or framework that doesn't exist, and `NoCounterpartError`
    with everything that can't be kept."""
    for kind, name, known in (("track", track, TRACKS), ("framework", framework, FRAMEWORKS)):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    if "env" not in config:
        raise NoCounterpartError(
            "the bundle's card doesn't say how it was trained; export the bundle of a run:"
            " RUN/bundle"
        )
    try:
        _require_procgen(config)
        if config.get("algorithm") not in _SETTINGS:
            why = "Ray 0.8.6 doesn't have it; ppo, dqn and apex are there"
            refusal = Refusal("algorithm", config.get("algorithm"), why, "ppo")
            raise NoCounterpartError.of(str(config.get("name")), [refusal])
        return _translation(config, track, framework, weights)
    except (KeyError, TypeError, AttributeError) as error:
        why = (
            f"the bundle's card describes a run of another version ({type(error).__name__}:"
            f" {error})"
        )
        raise NoCounterpartError(f"{why}; train it again with this one") from error


def _require_procgen(config: Mapping[str, Any]) -> None:
    world = str(config["env"]["name"])
    if world not in {f"procgen/{game}" for game in GAMES}:
        raise NoCounterpartError(
            f"{config['name']} is trained in {world}, and the competition plays Procgen; export a"
            " run of one of its games, such as procgen/coinrun"
        )


def _translation(
    config: Mapping[str, Any], track: str, framework: str, weights: str | None
) -> Translation:
    algorithm = config["algorithm"]
    notes = [*_notes_on_the_run(config)]
    world = Section("env.options", config["env"]["options"])
    network = Section("network.options", config["network"]["options"])
    settings = Section(algorithm, config[algorithm])
    refusals = _refused_names(config)
    env_config = _env_config(world, config, track, notes)
    budget = _budget(config["budget"], env_config.get("action_repeat", 1), notes)
    scale = _scale(world, config, budget, framework, refusals)
    if settings.take("norm_reward", False):
        env_config["norm_reward"] = float(config[algorithm]["gamma"])
        notes.append(
            "Rewards are divided by the deviation of returns, which each worker measures in its own"
            " games."
        )
    for name in ("bf16", "num_threads"):
        if settings.take(name) is not None:
            notes.append(
                f"{algorithm}.{name} is for procsnake's own trainer; Ray 0.8.6 computes in float32."
            )
    body = {
        "env": "procsnake_env",
        "run": _trainer(algorithm, framework),
        "disable_evaluation_worker": True,
        "stop": {"timesteps_total": budget},
        "checkpoint_freq": 25,
        "checkpoint_at_end": True,
        "keep_checkpoints_num": config["checkpoints"]["keep"],
        "config": {
            "env_config": env_config,
            **_SETTINGS[algorithm](settings, scale, notes),
            "model": _model(network, algorithm, framework, weights),
            "use_pytorch": framework == "torch",
            **_resources(scale.workers),
            "num_envs_per_worker": scale.games_a_worker,
            "seed": config["seed"],
            "evaluation_config": _evaluation_config(algorithm, env_config),
        },
    }
    for section in (world, network, settings):
        refusals += section.refusals()
    if refusals:
        raise NoCounterpartError.of(config["name"], refusals)
    return Translation(config["name"], body, notes, algorithm)


def _trainer(algorithm: str, framework: str) -> str:
    """The trainer's name. On TensorFlow these are Ray's own DQN and APEX. On torch those crash, so
    mended ones are exported.
    """
    name = algorithm.upper()
    if algorithm == "ppo" or framework == "torch":
        return f"Procsnake{name}"
    return name


def _refused_names(config: Mapping[str, Any]) -> list[Refusal]:
    refusals = []
    name = str(config["name"])
    if not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
        why = "run.sh finds it by grep, so it is of letters, digits and _ . -"
        refusals.append(Refusal("name", name, why, plain if plain[:1].isalpha() else "entry"))
    network = str(config["network"]["name"])
    if config["env"].get("imports"):
        refusals.append(
            Refusal(
                "env.imports", config["env"]["imports"], "the competition has its own world", []
            )
        )
    if network != "impala":
        refusals.append(Refusal("network.name", network, "only impala has a twin there", "impala"))
    return refusals


def _notes_on_the_run(config: Mapping[str, Any]) -> list[str]:
    """Notes about settings that say how a run was watched rather than what was learned."""
    notes = []
    if config.get("evaluation"):
        notes.append("Evaluation during training is left to the grader.")
    if config.get("stop"):
        notes.append("The run's own target to stop at is left away: the budget is always used up.")
    if config.get("init_from"):
        notes.append(
            f"The weights of {config['init_from']}, with which the run began, are left out:"
            " training starts from scratch."
        )
    if config["checkpoints"].get("best_metric"):
        notes.append("The last checkpoint is the policy, not the best one.")
    notes += [
        f"{key} is left away: there is no such thing there." for key in config if key not in _KNOWN
    ]
    return notes


def _env_config(
    world: Section, config: Mapping[str, Any], track: str, notes: list[str]
) -> dict[str, Any]:
    levels = str(world.take("levels", "all"))
    num = NUM_LEVELS[track]
    if Levels.parse(levels) != Levels.parse(f"train:{num}" if num else "all"):
        notes.append(
            f"It was trained on levels {levels!r}; this track trains on"
            f" {f'the first {num}' if num else 'all'}."
        )
    mode = world.take("distribution_mode", "hard")
    if mode != "easy":
        world.refuse("distribution_mode", mode, "the competition plays easy games", "easy")
    world.require("rnd", None, "pay for novelty has no twin there")
    world.require("render_mode", None, "the grader draws what it wants to see")
    world.require("debug_mode", 0, "it is for debugging")
    for name in ("num_threads", "seed"):
        if world.take(name) is not None:
            notes.append(f"env.options.{name} is for procsnake's batches.")
    options = {
        "env_name": config["env"]["name"].removeprefix("procgen/"),
        "num_levels": num,
        "start_level": 0,
        "distribution_mode": "easy",
        **{name: world.take(name, default) for name, default in _KIT_SWITCHES.items()},
    }
    wrapped = {
        name: world.take(name)
        for name in (*_OTHER_SWITCHES, "frame_stack", "gap_stack", "action_repeat", "augment")
    }
    options |= {name: value for name, value in wrapped.items() if value is not None}
    if world.take("shape_rewards", False):
        options["shape_rewards"] = True
    if options.get("action_repeat", 1) > 1:
        notes.append(
            "An episode's first decision is about its first frame; procsnake's batches may let some"
            " pass before."
        )
    return options


def _budget(budget: Mapping[str, Any], repeat: int, notes: list[str]) -> int:
    """The budget in decisions. What is left out or lowered is added to `notes`."""
    wanted = budget["total_agent_steps"]
    allowed = MAX_STEPS // repeat
    if budget["max_minutes"] is not None:
        notes.append(
            f"The budget of {budget['max_minutes']:g} minutes is left away; the competition gives"
            " two hours."
        )
    if wanted is not None and wanted > allowed:
        notes.append(
            f"The budget was {wanted:,} decisions; the competition ends after {allowed:,}."
        )
    return allowed if wanted is None else min(wanted, allowed)


def _scale(
    world: Section, config: Mapping[str, Any], budget: int, framework: str, refusals: list[Refusal]
) -> algorithms.Scale:
    """Choose the number of workers so that they share all games evenly. The trainer has a core of
    its own.
    """
    games = world.take("num_games", 64) * max(1, config["num_env_runners"])
    fewest = 2 if config["algorithm"] == "apex" else 1
    possible = [workers for workers in range(fewest, CORES) if games % workers == 0]
    if not possible:
        why = f"{games} games in all, which {fewest} to {CORES - 1} workers can't share evenly"
        refusals.append(
            Refusal("env.options.num_games", games // max(1, config["num_env_runners"]), why, 64)
        )
    workers = max(possible, default=fewest)
    return algorithms.Scale(workers, max(1, games // workers), budget, framework)


def _model(network: Section, algorithm: str, framework: str, weights: str | None) -> dict[str, Any]:
    width = network.take("width", 1)
    options = {
        "depths": [depth * width for depth in network.take("depths", (16, 32, 32))],
        "blocks": network.take("blocks", 2),
        "pooling": network.take("pooling", "flatten"),
        "hidden": network.take("hidden", 256),
        "stem_stride": network.take("stem_stride", 1),
        "offset": float(network.take("offset", 0.0)),
    }
    scales = network.take("scales")
    if scales is not None:
        options["scales"] = [float(scale) for scale in scales]
    if weights:
        options["weights"] = weights
    if algorithm == "ppo":
        return {"custom_model": f"procsnake_impala_{framework}", "custom_options": options}
    return {
        "custom_model": f"procsnake_q_{framework}",
        "fcnet_hiddens": [options["hidden"]],
        "custom_options": options,
    }


def _resources(workers: int) -> dict[str, Any]:
    """The settings that share the one GPU. Shares are rounded down, so that their sum stays below
    1.
    """
    share = int(100 * (1 - _SHARE_OF_GPU) / workers) / 100
    return {
        "num_workers": workers,
        "num_cpus_per_worker": 1,
        "num_gpus": _SHARE_OF_GPU,
        "num_gpus_per_worker": share,
    }


def _evaluation_config(algorithm: str, env_config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of rollouts, which show plain pictures and pay the games' own rewards.

    With Q values the best action is played. With PPO, actions are drawn from the policy.
    """
    plain = {"augment": None, "shape_rewards": False, "norm_reward": None}
    changed = {name: value for name, value in plain.items() if name in env_config}
    return {"explore": algorithm == "ppo", **({"env_config": changed} if changed else {})}
