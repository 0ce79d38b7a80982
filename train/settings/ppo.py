"""The settings of proximal policy optimisation (`train.ppo`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from envs.common.errors import ConfigError, UnknownNameError
from train.settings.algorithm import NetworkSettings, RolloutSettings, registered
from train.settings.limits import require, require_schedule
from train.settings.schedule import Knots

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self

OPTIMIZERS = ("adam", "muon")
_LEAST_STEPS = 16
_LEAST_GAMES = 16


@registered("ppo", trainer="train.ppo:PPOConfig")
@dataclass(frozen=True, kw_only=True)
class PPOSettings(RolloutSettings):
    """Proximal policy optimisation, with CleanRL's names and defaults."""

    can_begin_with_weights: ClassVar[bool] = True
    learns_from_rollouts: ClassVar[bool] = True

    learning_rate: float | Knots = 2.5e-4
    """Step size of the optimiser: a number, or knots [[0, value], [agent steps, value], …] of a
    line.
    """
    optimizer: str = "adam"
    """"adam" (epsilon 1e-5), or "muon" for the weights of hidden layers and Adam for all others
    (`train.compute.muon`).
    """
    anneal_lr: bool = False
    """Bring the learning rate to 0 linearly over the run's budget, whatever it is otherwise."""
    num_steps: int = 128
    """Steps of every game between two updates."""
    gamma: float = 0.99
    """Discount factor, 0..1."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation, 0..1."""
    num_minibatches: int = 4
    """Parts that each epoch over the batch is split into; each is one step of the optimiser."""
    num_epochs: int = 4
    """Passes over each batch."""
    norm_adv: bool = True
    """Bring the advantages of each minibatch to mean 0 and standard deviation 1."""
    clip_coef: float = 0.2
    """How far the policy ratio may move from 1 before its gradient is cut off."""
    clip_vloss: bool = False
    """Also clip the value loss, with the same coefficient."""
    vf_coef: float = 0.5
    """Weight of the value loss, which is half the mean squared error."""
    ent_coef: float | Knots = 0.01
    """Weight of the entropy bonus: a number or knots, as `learning_rate`."""
    max_grad_norm: float = 0.5
    """Largest global norm of a gradient; longer ones are scaled down. 0: no limit. With muon, the
    gradient of what Muon steps and that of what Adam steps are limited each by itself."""
    target_kl: float | None = None
    """Leave out the remaining epochs of a batch once the approximate KL divergence is above
    this.
    """
    kl_coef: float = 0.0
    """First weight of a penalty on KL(policy of the rollout ‖ policy), besides clipping; 0: no
    penalty.
    """
    kl_target: float = 0.01
    """KL divergence that the weight of the penalty is doubled and halved for (section 4 of the
    paper).
    """
    norm_reward: bool = False
    """Divide rewards by the running standard deviation of the discounted return, then clip them to
    ±10.
    """
    symmetries: bool = False
    """Show each decision a random one of the world's equivalent views (a snake's board mirrored or
    turned).
    """
    lstm_units: int = 0
    """Units of a memory (LSTM) between the network's layers and its heads; 0: none. No server plays
    such policies.
    """
    value_epochs: int = 0
    """Passes over each batch of a network of its own for values; 0: the policy's network has a head
    for them. With it, the policy's network predicts advantages (DAAC: Raileanu and Fergus 2021,
    arXiv 2102.10330), and `vf_coef` has no effect.
    """
    value_freq: int = 1
    """With `value_epochs`: values are learned from every so many batches."""
    adv_coef: float = 0.25
    """With `value_epochs`: weight of the mean squared error of the predicted advantages."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are
    float32 in any case.
    """
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last
    digits of sums). With `concurrency` on a CPU, threads that share each minibatch; None: half of
    the cores, but two to four.
    """
    concurrency: bool = False
    """Play the next rollout while learning from the last one: each is played with weights one
    update older (Huang et al. 2023, arXiv 2310.00036) and clipped around the newest (Hilton et al.
    2021, arXiv 2110.00641). Where env runners or learners have processes of their own, it has no
    effect."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise UnknownNameError(f"{self.algorithm}.optimizer", str(self.optimizer), OPTIMIZERS)
        require_schedule(self, self.algorithm, "learning_rate", 1.0)
        require_schedule(self, self.algorithm, "ent_coef")
        for name in ("num_steps", "num_minibatches", "num_epochs", "num_threads", "value_freq"):
            require(self, self.algorithm, name, 1)
        if self.lstm_units and self.symmetries:
            raise ConfigError(
                f"{self.algorithm}.symmetries turns each decision's view at random, which a memory"
                " can't follow (lstm_units); set one to 0"
            )
        if self.lstm_units and self.value_epochs:
            raise ConfigError(
                f"{self.algorithm}.value_epochs gives values a network of their own, and lstm_units"
                " one memory to both; set one to 0"
            )
        for name in ("gamma", "gae_lambda"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in (
            "lstm_units",
            "value_epochs",
            "adv_coef",
            "clip_coef",
            "vf_coef",
            "max_grad_norm",
            "target_kl",
            "kl_coef",
            "kl_target",
        ):
            require(self, self.algorithm, name, 0.0)

    @property
    def is_recurrent(self) -> bool:
        return self.lstm_units > 0

    def network_for(
        self, network: NetworkSettings, world: str, options: Mapping[str, Any]
    ) -> NetworkSettings:
        body = {"body": network.name, "body_options": network.options}
        if self.value_epochs:
            return NetworkSettings(name="separate-value", options=body)
        if not self.is_recurrent:
            return network
        return NetworkSettings(name="recurrent", options={**body, "units": self.lstm_units})

    @property
    def uses_per_decision(self) -> float:
        return self.num_epochs

    def for_env_runners(
        self, num_env_runners: int, *, tuned_for: int, num_games: int
    ) -> tuple[Self, int]:
        """Keep the size of a batch: by shorter fragments first, then by fewer games. Where they can
        be no smaller, the batch grows, and each minibatch keeps its size.
        """
        fragments = self.fragments_per_update(num_env_runners)
        batch = self.fragments_per_update(tuned_for) * self.num_steps * num_games
        least_steps = min(_LEAST_STEPS, self.num_steps)
        steps = max(least_steps, math.ceil(batch / (num_games * fragments)))
        least_games = min(_LEAST_GAMES, num_games)
        games = min(num_games, max(least_games, math.ceil(batch / (steps * fragments))))
        grown = self.num_minibatches * fragments * steps * games / batch
        minibatches = max(1, round(grown))
        return replace(self, num_steps=steps, num_minibatches=minibatches), games

    def describe_batch(self, game_steps: int, *, tuned_for: int) -> str:
        return (
            f"{game_steps} game steps an update (tuned for: {tuned_for}) in {self.num_minibatches}"
            " minibatches"
        )
