"""The sections that every experiment may have, whatever algorithm trains: the world, the budget,
checkpoints, evaluation, a target, and the search of `procsnake tune`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from envs.common.errors import ConfigError
from train.settings.limits import require, require_plain


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """The world to train in."""

    name: str
    """The world's name, as `envs.make` knows it."""
    options: dict[str, Any] = field(default_factory=dict)
    """The world's own options. `num_games` is the number of games of each env runner."""
    imports: list[str] = field(default_factory=list)
    """Python modules that every process imports first, because they register worlds or other parts
    of your own.
    """

    def __post_init__(self) -> None:
        require_plain(self.options, "env.options")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When a run ends. If both limits are set, the one that is reached first ends it."""

    total_agent_steps: int | None = None
    """The number of decisions that all rows take together."""
    max_minutes: float | None = None
    """Minutes of training. The sessions of a resumed run are added up."""

    def __post_init__(self) -> None:
        require(self, "budget", "total_agent_steps", 1)
        require(self, "budget", "max_minutes", 0.0)
        if self.total_agent_steps is None and self.max_minutes is None:
            raise ConfigError(
                "budget sets neither total_agent_steps nor max_minutes, so the run would never end;"
                " set one"
            )

    @property
    def in_words(self) -> str:
        """The budget as text: "3 minutes", "8,000,000 decisions or 60 minutes"."""
        limits = []
        if self.total_agent_steps:
            limits.append(f"{self.total_agent_steps:,} decisions")
        if self.max_minutes is not None:
            limits.append(f"{self.max_minutes:g} minutes")
        return " or ".join(limits)


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """How often the run is saved."""

    every_minutes: float = 1.0
    """Minutes of training between two checkpoints. One more is written at the end of each
    session.
    """
    keep: int = 3
    """How many of the newest checkpoints are kept."""
    best_metric: str | None = None
    """A column of progress.csv, e.g. win_rate. The checkpoint with its highest value is kept, too,
    and becomes the policy.
    """

    def __post_init__(self) -> None:
        require(self, "checkpoints", "every_minutes", 0.0)
        require(self, "checkpoints", "keep", 1)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Games that measure the policy during training (`train.runs.sessions.evaluation`). They train
    nothing and use up no budget.
    """

    every_minutes: float | None = None
    """Minutes of training between two evaluations."""
    every_iterations: int | None = None
    """Iterations between two evaluations. If both are set, whichever comes first. One more takes
    place at the budget's end.
    """
    games: int = 100
    """Games against each group of opponents. In other worlds than Battlesnake it is the number of
    episodes.
    """
    opponents: list[list[str]] = field(default_factory=lambda: [["random"], ["greedy"]])
    """For Battlesnake: groups of agents, as `agents.make` knows them. The policy meets each group
    in games of its own.
    """
    ratings: dict[str, float] = field(default_factory=dict)
    """For Battlesnake: the Elo ratings of all opponents, by name. With them there is a column
    `elo`.
    """
    env_options: dict[str, Any] = field(default_factory=dict)
    """For other worlds: options that differ from those of training, e.g. levels that training never
    shows.
    """

    def __post_init__(self) -> None:
        require(self, "evaluation", "every_minutes", 0.0)
        require(self, "evaluation", "every_iterations", 1)
        require(self, "evaluation", "games", 1)
        if self.every_minutes is None and self.every_iterations is None:
            raise ConfigError(
                "evaluation sets neither every_minutes nor every_iterations, so it never takes"
                " place; set one"
            )
        if not self.opponents or not all(
            isinstance(group, list) and group for group in self.opponents
        ):
            raise ConfigError(
                f"evaluation.opponents is {self.opponents!r}; it must be lists of names as"
                " [[random], [flood]]"
            )
        unrated = set().union(*self.opponents) - set(self.ratings)
        if self.ratings and unrated:
            raise ConfigError(
                f"evaluation.ratings lacks {', '.join(sorted(unrated))}; rate each opponent, or"
                " leave out ratings"
            )


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A target that ends the run before its budget does."""

    metric: str
    """A column of progress.csv, e.g. episode_return_mean or win_rate."""
    at_least: float
    """The run ends with the first iteration whose metric has at least this value."""


@dataclass(frozen=True, kw_only=True)
class Tune:
    """The search for better values of the experiment's keys that `procsnake tune` makes
    (`train.tuning.tune`).
    """

    search: dict[str, Any] = field(default_factory=dict)
    """For each key, the values to try: "low..high", "low..high:log", "low..high:discount" (1 −
    value is drawn on a log scale), "a,b,c" or a list. Bounds that are whole and have no point give
    whole numbers."""
    metric: str = "episode_return_mean"
    """A column of progress.csv. Its last value says how good a trial is."""
    mode: Literal["max", "min"] = "max"
    """Whether high or low values of the metric are good."""
    searcher: Literal["random", "optuna"] = "random"
    """What chooses a trial's values. With random, chance does. With optuna, Optuna's
    tree-structured Parzen estimator does (Bergstra et al. 2011): chance draws the first third of
    the trials, and later ones are near those that scored well."""
    scheduler: Literal["random", "asha", "pbt"] = "random"
    """With random, every trial uses up its budget. With asha, the worse two thirds of the trials
    are stopped at 11 and at 33 % of it (Li et al. 2020). With pbt, after every 20 % of it the worst
    quarter copies the best quarter and changes its values (Jaderberg et al. 2017)."""
    trials: int = 8
    """The number of trials."""
    concurrent: int = 1
    """How many trials run at the same time. Each keeps as many cores busy as a run of its own. With
    pbt they take turns; on a Ray cluster, as many then run as it has room for."""

    def __post_init__(self) -> None:
        require(self, "tune", "trials", 1)
        require(self, "tune", "concurrent", 1)
