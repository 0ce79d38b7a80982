"""The settings of deep Q-learning (`train.dqn`), and what APEX shares with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from envs.common.errors import ConfigError
from envs.procgen.scores import highest_return
from train.settings.algorithm import NetworkSettings, RolloutSettings, registered
from train.settings.limits import require, require_schedule
from train.settings.schedule import Knots

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class QSettings(RolloutSettings):
    """What DQN and APEX share: Q-learning from prioritised replay."""

    learning_rate: float | Knots = 5e-4
    """Step size of Adam: a number, or knots [[agent steps, value], …] of a piecewise linear
    schedule.
    """
    adam_epsilon: float = 1e-8
    """Epsilon of Adam."""
    num_steps: int = 4
    """Steps of every game in a rollout."""
    gamma: float = 0.99
    """Discount factor, 0..1."""
    n_step: int = 3
    """Rewards that a target sums up before it relies on the network."""
    train_batch_size: int = 256
    """Decisions in a batch; each batch is one step of the optimiser."""
    replay_ratio: float = 8.0
    """How often each decision is learned from, on average: sizes of all batches together per agent
    step.
    """
    replay_capacity: int = 200_000
    """Decisions remembered, over all env runners; those of rows that wait for their game's end take
    room, too.
    """
    learning_starts: int = 10_000
    """Decisions taken before learning starts, also after a resume: checkpoints don't hold the
    memory.
    """
    double_q: bool = True
    """Let the network choose the next action and the target network value it."""
    dueling: bool = True
    """Separate heads for the state's value and the actions' advantages."""
    num_atoms: int = 1
    """Atoms of the distribution of returns that is learned (C51 has 51); 1: its mean alone."""
    v_min: float | None = None
    """Lowest atom: the least return that can be told apart. None: a quarter of `v_max` below 0."""
    v_max: float | None = None
    """Highest atom. None: the highest return that the game can pay, which is known for
    Procgen's.
    """
    noisy: bool = False
    """Explore by learned noise in the heads' weights, too; then `epsilon` may be 0."""
    sigma0: float = 0.5
    """First size of that noise."""
    priority_alpha: float = 0.6
    """Exponent of the priorities, 0..1; 0: every decision is replayed with equal probability."""
    priority_beta: float | Knots = 0.4
    """Exponent of the weights that make up for it, 0..1: a number or knots, as `learning_rate`."""
    target_update_freq: int = 500
    """Updates between two updates of the target network."""
    tau: float = 1.0
    """How far the target network then goes towards the network, 0..1; 1: it is copied."""
    max_grad_norm: float = 10.0
    """Largest global norm of a gradient; longer ones are scaled down. 0: no limit."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are
    float32 in any case.
    """
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last
    digits of sums).
    """

    def __post_init__(self) -> None:
        require_schedule(self, self.algorithm, "learning_rate", 1.0)
        require_schedule(self, self.algorithm, "priority_beta", 1.0)
        counts = (
            "num_steps",
            "n_step",
            "train_batch_size",
            "replay_capacity",
            "learning_starts",
            "num_atoms",
        )
        for name in (*counts, "target_update_freq", "num_threads"):
            require(self, self.algorithm, name, 1)
        for name in ("gamma", "priority_alpha", "tau"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("adam_epsilon", "replay_ratio", "sigma0", "max_grad_norm"):
            require(self, self.algorithm, name, 0.0)
        if self.v_min is not None and self.v_max is not None and self.v_min >= self.v_max:
            raise ConfigError(
                f"{self.algorithm}.v_min is {self.v_min:g}; it must be less than v_max,"
                f" {self.v_max:g}"
            )

    def network_for(
        self, network: NetworkSettings, world: str, options: Mapping[str, Any]
    ) -> NetworkSettings:
        v_min, v_max = self.atoms(world, options)
        return NetworkSettings(
            name="q-network",
            options={
                "body": network.name,
                "body_options": network.options,
                "dueling": self.dueling,
                "num_atoms": self.num_atoms,
                "noisy": self.noisy,
                "sigma0": self.sigma0,
                "v_min": v_min,
                "v_max": v_max,
            },
        )

    @property
    def uses_per_decision(self) -> float:
        return self.replay_ratio

    def describe_batch(self, game_steps: int, *, tuned_for: int) -> str:
        return f"{self._batch_in_words()}; each is learned from {self.replay_ratio:g} × on average"

    def _batch_in_words(self) -> str:
        return f"{self.train_batch_size} decisions an update"

    def completed_for(self, world: str, options: Mapping[str, Any]) -> Self:
        """Set the atoms, which else follow from the world."""
        v_min, v_max = self.atoms(world, options)
        return replace(self, v_min=v_min, v_max=v_max)

    def atoms(self, world: str, options: Mapping[str, Any]) -> tuple[float, float]:
        """Return the lowest and the highest atom: `v_min` and `v_max`, or else by what a world with
        these options can pay.

        Raises `ConfigError` if they aren't set and the world's returns aren't known."""
        v_max = self.v_max
        if v_max is None:
            v_max = self._highest_return(world, options)
        v_min = self.v_min
        if v_min is None:
            v_min = -abs(v_max) / 4
        if v_min >= v_max:
            raise ConfigError(
                f"{self.algorithm}.v_min is {v_min:g}; it must be less than v_max, {v_max:g}"
            )
        return v_min, v_max

    def _highest_return(self, world: str, options: Mapping[str, Any]) -> float:
        if self.num_atoms == 1:
            return 1.0
        highest = highest_return(world, options)
        if highest is None:
            raise ConfigError(
                f"{self.algorithm}.num_atoms is {self.num_atoms}, and what {world} can pay isn't"
                " known; set the lowest and the highest return that can be told apart: --set"
                f" {self.algorithm}.v_min=… --set {self.algorithm}.v_max=…"
            )
        return highest


@registered("dqn", trainer="train.dqn:DQNConfig")
@dataclass(frozen=True, kw_only=True)
class DQNSettings(QSettings):
    """Deep Q-learning: rollouts and updates take turns."""

    epsilon: float | Knots = field(default_factory=lambda: [[0, 1.0], [50_000, 0.05]])
    """Probability of a random action: a number, or knots [[agent steps, value], …]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_schedule(self, self.algorithm, "epsilon", 1.0)
