"""Stable-Baselines3 on the Gymnasium environments, as its users call it. `make outside-clients`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import gymnasium
import numpy as np
import pytest

if find_spec("stable_baselines3") is None:
    pytest.skip("the clients' environment is not installed", allow_module_level=True)

from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env

import envs  # noqa: F401  # which registers the names

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
NAME = "procsnake/Battlesnake-v0"
SMALL = {"width": 7, "height": 7, "num_snakes": 2, "max_turns": 20}


@pytest.mark.parametrize("kind", [PPO, DQN, MaskablePPO])
def test_it_learns_saves_and_loads(kind: type, tmp_path: Path) -> None:
    env = make_vec_env(NAME, n_envs=2, env_kwargs=SMALL)
    options = (
        {"learning_starts": 50} if kind is DQN else {"n_steps": 64, "batch_size": 64, "n_epochs": 1}
    )
    model = kind("MlpPolicy", env, device="cpu", **options)
    model.learn(300)
    model.save(tmp_path / "model")
    seen = env.reset()
    again = kind.load(tmp_path / "model", device="cpu")
    assert np.array_equal(
        model.predict(seen, deterministic=True)[0], again.predict(seen, deterministic=True)[0]
    )


def test_maskable_ppo_never_chooses_certain_death() -> None:
    env = gymnasium.make(NAME, **SMALL)
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
    seen, info = env.reset(seed=0)
    for _ in range(100):
        action, _ = model.predict(seen, action_masks=env.unwrapped.action_masks())
        assert info["action_mask"][int(action)]
        seen, _, terminated, truncated, info = env.step(int(action))
        if terminated or truncated:
            seen, info = env.reset()
