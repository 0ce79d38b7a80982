"""The settings of the readable DQN in MXNet (`train.mxnet_dqn`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from train.settings.algorithm import AlgorithmSettings, NetworkSettings, registered
from train.settings.limits import require


@registered("mxnet_dqn", trainer="train.mxnet_dqn:MXNetDQN", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class MXNetDQNSettings(AlgorithmSettings):
    """The readable DQN in MXNet, with the SageMaker starter pack's names and defaults where they
    exist.
    """

    buffer_size: int = 5000
    """Decisions remembered."""
    update_every: int = 20
    """Decisions for each batch that is learned from."""
    batch_size: int = 64
    """Decisions in a batch."""
    lr_start: float = 5e-4
    """First step size of Adam."""
    lr_step: int = 500_000
    """Updates between two changes of the step size."""
    lr_factor: float = 0.5
    """What the step size is then multiplied by."""
    gamma: float = 0.95
    """Discount factor, 0..1."""
    tau: float = 1e-3
    """How far the target network goes towards the network after each update, 0..1 (soft)."""
    target_update_every: int = 0
    """0: soft, by `tau`; otherwise the target network is copied after so many updates (hard)."""
    eps_start: float = 1.0
    """First probability of a random action."""
    eps_end: float = 0.01
    """Least probability of a random action."""
    eps_decay: float = 0.995
    """What the probability is multiplied by after each game."""
    warmup: int = 0
    """Decisions taken before learning starts; a batch's size at least."""
    mask_actions: bool = True
    """Never take actions that the world says are no use (certain death), nor expect them to be
    taken.
    """
    num_steps: int = 100
    """Steps of every game between two rows of progress.csv."""

    def __post_init__(self) -> None:
        for name in ("buffer_size", "update_every", "batch_size", "lr_step", "num_steps"):
            require(self, self.algorithm, name, 1)
        for name in ("lr_start", "lr_factor", "gamma", "tau", "eps_start", "eps_end", "eps_decay"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("target_update_every", "warmup"):
            require(self, self.algorithm, name, 0)

    def network_for(
        self, network: NetworkSettings, world: str, options: Mapping[str, Any]
    ) -> NetworkSettings:
        return NetworkSettings(
            name="starter-pack", options={"kind": network.name, **network.options}
        )
