"""Pays for novelty, by random network distillation (Burda et al. 2018, arXiv 1810.12894). It works
for every trainer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from envs.api import BatchEnv
from envs.common.errors import ConfigError
from envs.wrappers import BatchWrapper
from train.rollouts.reward_scaling import RewardScaler

_CLIP = 5.0
_FEATURES = 128
_LEARNED = ("target", "predictor", "optimizer")


class NoveltyBonus:
    """The error with which a trained network predicts a fixed random one: large on new pictures,
    small on known ones.

    Observations [B, H, W, C] are brought to mean 0 and deviation 1 by running statistics of each
    value, and clipped to ±5, as in the paper. `errors` are not scaled. `learn` makes one step of
    Adam on the share `proportion` of the batch, so that with many games the network doesn't learn
    too fast."""

    def __init__(
        self,
        observation_shape: tuple[int, int, int],
        *,
        learning_rate: float = 1e-4,
        proportion: float = 0.25,
        seed: int = 0,
    ) -> None:
        if not 0 < proportion <= 1:
            raise ConfigError(f"rnd: proportion is {proportion}; it must be above 0 and at most 1")
        if len(observation_shape) != 3 or min(observation_shape[:2]) < 12:
            raise ConfigError(
                f"rnd works on pictures (H, W, C) of at least 12 × 12, not on {observation_shape}"
            )
        self.proportion = proportion
        self._generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.target = _network(observation_shape).requires_grad_(False)
            self.predictor = nn.Sequential(
                _network(observation_shape), nn.ReLU(), nn.Linear(_FEATURES, _FEATURES), nn.ReLU(),
                nn.Linear(_FEATURES, _FEATURES),
            )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=learning_rate)
        self._count = 0.0
        self._mean = torch.zeros(observation_shape)
        self._squares = torch.zeros(observation_shape)

    def take_in(self, observations: np.ndarray) -> None:
        """Update the running statistics."""
        # In self-play there are steps on which opponents alone act.
        if not len(observations):
            return
        batch = torch.from_numpy(observations).float()
        mean = batch.mean(0)
        count = float(len(batch))
        shift = mean - self._mean
        total = self._count + count
        self._squares += ((batch - mean) ** 2).sum(0) + shift**2 * (self._count * count / total)
        self._mean += shift * (count / total)
        self._count = total

    def errors(self, observations: np.ndarray) -> np.ndarray:
        """Return the mean squared error of the prediction, float32 (B,)."""
        with torch.inference_mode():
            return self._errors(self._normalised(observations)).numpy()

    def learn(self, observations: np.ndarray) -> None:
        """Learn to predict these observations a little better."""
        is_drawn = torch.rand(len(observations), generator=self._generator) < self.proportion
        if not is_drawn.any():
            return
        # Env runners step their worlds in inference mode.
        with torch.inference_mode(False), torch.enable_grad():
            loss = self._errors(self._normalised(observations[is_drawn.numpy()])).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def progress(self) -> dict[str, Any]:
        """Return what was learned: weights, optimiser, statistics."""
        parts = {name: getattr(self, name).state_dict() for name in _LEARNED}
        return {**parts, "count": self._count, "mean": self._mean, "squares": self._squares}

    def carry_on(self, progress: dict[str, Any]) -> None:
        """Go on from `progress`."""
        for name in _LEARNED:
            getattr(self, name).load_state_dict(progress[name])
        self._count = progress["count"]
        self._mean = progress["mean"]
        self._squares = progress["squares"]

    def _errors(self, inputs: torch.Tensor) -> torch.Tensor:
        return (self.predictor(inputs) - self.target(inputs)).square().mean(1)

    def _normalised(self, observations: np.ndarray) -> torch.Tensor:
        deviation = (self._squares / max(self._count, 1.0)).sqrt().clamp_min(1.0)
        inputs = (torch.from_numpy(observations).float() - self._mean) / deviation
        return inputs.clamp(-_CLIP, _CLIP).permute(0, 3, 1, 2)


def _network(shape: tuple[int, int, int]) -> nn.Sequential:
    body = nn.Sequential(
        nn.Conv2d(shape[2], 16, 8, 4),
        nn.LeakyReLU(),
        nn.Conv2d(16, 32, 4, 2, 1),
        nn.LeakyReLU(),
        nn.Flatten(),
    )
    with torch.no_grad():
        inputs = body(torch.zeros(1, shape[2], *shape[:2])).shape[1]
    body.append(nn.Linear(inputs, _FEATURES))
    for layer in body:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            assert layer.bias is not None
            nn.init.orthogonal_(layer.weight, 2**0.5)
            nn.init.zeros_(layer.bias)
    return body


class CuriousWorld(BatchWrapper):
    """Adds to each row's reward `coef` times the novelty of the picture to which its action led.

    The novelty is the error of `NoveltyBonus`, divided by the running deviation of its discounted
    return. At an ending the picture of `final_observations` counts. `drain_episodes` stays the
    world's own: its returns don't include the bonus.

    * `coef`: The weight of the novelty in the reward, at least 0.
    * `gamma`: The discount factor of the novelty's return, 0 to 1 (.99 in the paper).
    * `most`: The limit of the scaled novelty, above 0 (2, as LARS had it).
    * `episodic`: Begin the novelty's return anew with each episode. The paper lets it continue,
      because what can be discovered doesn't end with an episode.
    * `learning_rate`: The predictor's learning rate.
    * `proportion`: The share of a batch from which the predictor learns, above 0 to 1.
    * `seed`: Decides the predictor's first weights."""

    def __init__(
        self,
        world: BatchEnv,
        *,
        coef: float = 1.0,
        gamma: float = 0.99,
        most: float = 2.0,
        episodic: bool = False,
        learning_rate: float = 1e-4,
        proportion: float = 0.25,
        seed: int = 0,
    ) -> None:
        if coef < 0 or most <= 0 or not 0 <= gamma < 1:
            raise ConfigError(
                f"rnd: coef {coef} must be at least 0, most {most} above 0, gamma {gamma} in 0..1"
            )
        shape = world.single_observation_space.shape
        self.novelty = NoveltyBonus(
            shape,  # type: ignore[arg-type]
            learning_rate=learning_rate,
            proportion=proportion,
            seed=seed,
        )
        super().__init__(world)
        self.coef = coef
        self.most = most
        self.episodic = episodic
        self._scaler = RewardScaler(self.num_envs, gamma)
        self.bonus = np.zeros(self.num_envs, np.float32)
        """What the last step paid for novelty, before `coef`, float32 (R,)."""

    def progress(self) -> dict[str, Any]:
        """Return `novelty`, what `NoveltyBonus` has learned, and `scaler`, the running scale of the
        bonus.
        """
        return {"novelty": self.novelty.progress(), "scaler": self._scaler.get_state()}

    def carry_on(self, progress: dict[str, Any], network: nn.Module) -> None:
        """Continue with what was learned. `network` isn't used."""
        self.novelty.carry_on(progress["novelty"])
        self._scaler.set_state(progress["scaler"])

    def advance(self, actions: np.ndarray) -> None:
        rows = np.flatnonzero(self.world.valid)
        super().advance(actions)
        ended = self.terminated | self.truncated
        is_final = ended[:, None, None, None]
        pictures = np.where(is_final, self.final_observations, self.observations)[rows]
        self.novelty.take_in(pictures)
        errors = self.novelty.errors(pictures)
        self.novelty.learn(pictures)
        restarted = ended[rows] if self.episodic else np.zeros(len(rows), bool)
        self.bonus[:] = 0
        self.bonus[rows] = np.minimum(self._scaler.scale(errors, rows, restarted), self.most)
        self.rewards = self.rewards + np.float32(self.coef) * self.bonus
