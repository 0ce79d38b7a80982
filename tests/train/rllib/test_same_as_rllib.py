"""PPO and DQN on the batched path learn as RLlib's own do, over several seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ray.tune.registry import register_env
from scipy.stats import ttest_ind

import envs
from tests.train.experiments import toy, toy_q
from tests.train.rllib.rllib_own import RowEnv, own_dqn, own_ppo
from tests.train.small_worlds import IdentityWorld, ToyWorld
from train.dqn import DQNConfig
from train.ppo import PPOConfig

# Two algorithms in one process share the name under which RLlib registers its environment.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*Overriding environment")]

SEEDS = range(10)
GAMES = 32
MODEL = {"name": "mlp", "options": {"hidden_sizes": [32]}, "bf16": False}
Q_SETTINGS = {
    "learning_rate": 5e-3,
    "gamma": 0.9,
    "n_step": 2,
    "train_batch_size": 64,
    "replay_ratio": 1,
    "replay_capacity": 20_000,
    "learning_starts": 500,
    "target_update_freq": 20,
    "epsilon": [[0, 1.0], [4000, 0.05]],
}


class Chain(ToyWorld):
    """Three cells. Action 1 goes on, 0 ends the episode; the step out of the last cell pays 1 and
    ends it, too.
    """

    length = 3

    def __init__(self, *, num_games: int = 32) -> None:
        super().__init__(num_games=num_games, rows_per_game=1, planes=self.length, num_actions=2)
        self.cells = np.zeros(num_games, np.int64)

    def restart(self, seed: int | None = None) -> None:
        self.cells[:] = 0
        super().restart(seed)

    def _show(self, rows: np.ndarray) -> None:
        self.observations[rows] = 0
        self.observations[rows, 0, 0, self.cells[rows]] = 255

    def advance(self, actions: np.ndarray) -> None:
        arrived = (actions == 1) & (self.cells == self.length - 1)
        self.rewards[:] = arrived
        self.terminated[:] = arrived | (actions == 0)
        self._book(self.valid)
        self.final_observations[:] = self.observations
        self.cells = np.where(self.terminated, 0, self.cells + 1)
        self._show(np.arange(self.num_envs))


envs.register("chain", Chain)


def returns(config: Any, seed: int, iterations: int) -> list[float]:
    """Mean return of each iteration."""
    algorithm = config.debugging(seed=seed, log_level="ERROR").build_algo()
    try:
        return [
            float(algorithm.train()["env_runners"]["episode_return_mean"])
            for _ in range(iterations)
        ]
    finally:
        algorithm.stop()


def curves(ours: Any, theirs: Any, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """[seeds, iterations] of both."""
    made = [
        np.array([returns(make(), seed, iterations) for seed in SEEDS]) for make in (ours, theirs)
    ]
    print(np.round([curve.mean(axis=0) for curve in made], 3))
    return made[0], made[1]


def check_equivalence(ours: np.ndarray, theirs: np.ndarray, *, margin: float) -> None:
    """Two one-sided t tests (Schuirmann 1987): that the means are `margin` or more apart is refuted
    at 5 %.
    """
    higher = ttest_ind(ours + margin, theirs, equal_var=False, alternative="greater")
    lower = ttest_ind(ours - margin, theirs, equal_var=False, alternative="less")
    assert max(higher.pvalue, lower.pvalue) < 0.05, (ours.mean(), theirs.mean())


def test_ppo(one_ray):
    register_env("identity-alone", lambda _: RowEnv(IdentityWorld(num_games=1)))
    steps = 16
    shared = {"lr": 1e-2, "gamma": 0.95, "lambda_": 0.95, "num_epochs": 4}
    settings = {
        "num_steps": steps,
        "num_minibatches": 4,
        "ent_coef": 0.01,
        "gamma": 0.95,
        "learning_rate": 1e-2,
    }
    # RLlib adds a masked step to each episode, which here is every other row: four minibatches an
    # epoch, as ours.
    own = {
        "rows": GAMES,
        "steps": steps,
        "minibatch_size": 2 * GAMES * steps // 4,
        "model": MODEL,
        **shared,
    }
    ours, theirs = curves(
        lambda: PPOConfig.from_experiment(
            toy("identity", options={"num_games": GAMES}, bf16=False, **settings)
        ),
        lambda: own_ppo("identity-alone", **own),
        iterations=14,
    )
    # Both begin at chance and learn it; what they reach and the areas under their curves are the
    # same.
    assert ours[:, 0].mean() == pytest.approx(0.25, abs=0.05)
    check_equivalence(ours[:, -3:].mean(axis=1), theirs[:, -3:].mean(axis=1), margin=0.02)
    check_equivalence(ours.mean(axis=1), theirs.mean(axis=1), margin=0.03)


def test_dqn(one_ray):
    register_env("chain-alone", lambda _: RowEnv(Chain(num_games=1)))
    steps = 4
    iterations = 70
    ours, theirs = curves(
        lambda: DQNConfig.from_experiment(
            toy_q("chain", options={"num_games": GAMES}, bf16=False, num_steps=steps, **Q_SETTINGS)
        ),
        lambda: own_dqn("chain-alone", rows=GAMES, steps=steps, settings=Q_SETTINGS, model=MODEL),
        iterations,
    )
    # Chance is 1/8; at the end half of the 5 % random actions end an episode, at each of three
    # steps. Curves can't be compared: RLlib's returns are means over its last hundred episodes,
    # ours over those of the iteration.
    assert ours[:, :3].mean() == pytest.approx(0.125, abs=0.08)
    assert ours[:, -10:].mean() == pytest.approx(0.975**3, abs=0.05)
    check_equivalence(ours[:, -10:].mean(axis=1), theirs[:, -10:].mean(axis=1), margin=0.05)
