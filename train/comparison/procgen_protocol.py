"""What `procsnake benchmark procgen` trains and measures.

It is the protocol of Cobbe et al. 2020 (arXiv 1912.01588), or a part of it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.common.errors import ConfigError, UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.levels import NUM_SEEDS, Levels
from train.comparison.trainings import Training
from train.config import Experiment

STEPS_A_SECOND_AND_CORE: Mapping[str, tuple[float, float]] = {
    "procgen-ppo": (75.0, 370.0),
    "procgen-ppo-cpu": (400.0, 1500.0),
}
"""Decisions per second and core of the experiments that were measured, learning included, on
processors without and with bfloat16: docs/procgen.md, "Speed".
"""
_OWN: Mapping[str, str] = {
    "seed": "--seeds",
    "env.name": "--games",
    "env.options.levels": "--levels",
    "env.options.distribution_mode": "--mode",
    "budget.max_minutes": "--minutes",
    "budget.total_agent_steps": "--steps",
}
"""The settings that the protocol makes itself, so that results belong to the right game and seed,
each with the option that asks for it.
"""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The games, the levels and the length of trainings, and how the policies are measured."""

    games: tuple[str, ...]
    """Games of Procgen, without `procgen/`."""
    experiment: str = "procgen-ppo"
    """The experiment that each game is trained with; its game, levels, mode, seed and budget are
    the protocol's.
    """
    overrides: tuple[str, ...] = ()
    """Further KEY=VALUE of the experiment, the same for all games."""
    seeds: int = 3
    """Trainings of each game, with the seeds 0, 1, …"""
    distribution_mode: str = "easy"
    """The mode of the games: easy or hard."""
    levels: str = "train:200"
    """The levels of training. Scores are on all others, or on all if all are trained on."""
    minutes: float | None = None
    """Minutes of training each; or None for `steps`."""
    steps: int | None = None
    """Decisions of each training; or None for `minutes`."""
    episodes: int = 512
    """Episodes that each policy is measured by, on each set of levels."""

    def __post_init__(self) -> None:
        for game in self.games:
            if game not in GAMES:
                raise UnknownNameError("Procgen game", game, GAMES)
        if not self.games or len(set(self.games)) < len(self.games):
            raise ConfigError(
                f"games is {','.join(self.games)!r}; name each of one or more games once"
            )
        if (self.minutes is None) == (self.steps is None):
            raise ConfigError(
                f"minutes is {self.minutes} and steps is {self.steps}; give one of them"
            )
        start, num = Levels.parse(self.levels)
        if self.levels != "all" and start + num == NUM_SEEDS:
            raise ConfigError(
                f"levels is {self.levels!r}, which leaves none to measure on; take all, or train:N,"
                " e.g. train:200"
            )
        least = {
            "seeds": self.seeds,
            "minutes": self.minutes,
            "steps": self.steps,
            "episodes": self.episodes,
        }
        for name, value in least.items():
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value:g}; it must be above 0")

    @property
    def splits(self) -> tuple[str, ...]:
        """The sets of levels that policies are measured on. The last one's scores are the
        benchmark's.
        """
        if self.levels == "all":
            return ("all",)
        return ("train", "test")

    def trainings(self, num_threads: int) -> list[Training]:
        """Return the trainings, all games of a seed before the next seed. Raises `ConfigError` for
        wrong overrides.
        """
        trainings: list[Training] = []
        for seed in range(self.seeds):
            for game in self.games:
                number = len(trainings) + 1
                trainings.append(
                    Training(
                        f"{number} of {self.seeds * len(self.games)}: {game}, seed {seed}",
                        self._experiment_of(game, seed, num_threads),
                        num_threads,
                    )
                )
        return trainings

    def to_dict(self) -> dict[str, Any]:
        """Return the protocol as JSON has it."""
        return dataclasses.asdict(self)

    def _experiment_of(self, game: str, seed: int, num_threads: int) -> Experiment:
        whole = Experiment.load(self.experiment)
        if not whole.env.name.startswith("procgen/"):
            raise ConfigError(
                f"experiment is {self.experiment!r}, which is trained in {whole.env.name}; name one"
                " of Procgen"
            )
        own = [
            f"name={whole.name}-{game}",
            f"env.name=procgen/{game}",
            f"env.options.levels={self.levels}",
            f"env.options.distribution_mode={self.distribution_mode}",
            f"seed={seed}",
            f"budget.max_minutes={json.dumps(self.minutes)}",
            f"budget.total_agent_steps={json.dumps(self.steps)}",
            # What a run measures of itself on the way costs it time that another contender would
            # learn in.
            "evaluation=null",
        ]
        algorithm = Experiment.load(self.experiment, [*own, *self.overrides]).algorithm
        threads = f"{algorithm}.num_threads={num_threads}"
        experiment = Experiment.load(self.experiment, [*own, threads, *self.overrides])
        actual = experiment.to_dict()
        protocols = Experiment.load(self.experiment, own).to_dict()
        for key, option in _OWN.items():
            if _at(actual, key) != _at(protocols, key):
                raise ConfigError(
                    f"--set makes {key} {_at(actual, key)!r}, but the benchmark sets it to"
                    f" {_at(protocols, key)!r} itself; ask for it by {option}"
                )
        return experiment

    @property
    def measured_experiment(self) -> str:
        """Its experiment if that one's speed was measured, or else the default experiment."""
        return self.experiment if self.experiment in STEPS_A_SECOND_AND_CORE else "procgen-ppo"

    @property
    def steps_a_second_and_core(self) -> float:
        """The decisions per second and core of `measured_experiment`, on a processor like this
        one.
        """
        from train.compute.bfloat16 import has_fast_bfloat16

        return STEPS_A_SECOND_AND_CORE[self.measured_experiment][has_fast_bfloat16()]

    def hours(self, *, jobs: int, steps_per_second: float) -> float:
        """Return how many hours of wall time the trainings take, `jobs` at a time, each at
        `steps_per_second`.
        """
        if self.minutes is not None:
            each = self.minutes / 60
        else:
            each = (self.steps or 0) / steps_per_second / 3600
        return -(-len(self.games) * self.seeds // jobs) * each


def _at(settings: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key; None if there is none."""
    section, _, rest = key.partition(".")
    if rest:
        return _at(settings[section], rest)
    return settings.get(section)


PRESETS: Mapping[str, Protocol] = {
    "small": Protocol(games=("coinrun", "starpilot", "bigfish"), minutes=30.0),
    "easy": Protocol(games=tuple(sorted(GAMES)), steps=25_000_000),
    "hard": Protocol(
        games=tuple(sorted(GAMES)), distribution_mode="hard", levels="train:500", steps=200_000_000
    ),
    "all": Protocol(games=tuple(sorted(GAMES)), levels="all", steps=25_000_000),
}
"""`small` is for ablations. `easy` and `hard` are the paper's protocols for generalisation, `all`
is for sample efficiency.
"""


def preset(name: str, **changes: Any) -> Protocol:
    """Return a preset with some fields changed; `minutes` and `steps` replace each other.

    Raises `UnknownNameError` for an unknown preset, and `ConfigError` for impossible values."""
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    for one, other in (("minutes", "steps"), ("steps", "minutes")):
        if changes.get(one) is not None and changes.get(other) is None:
            changes[other] = None
    return dataclasses.replace(PRESETS[name], **changes)
