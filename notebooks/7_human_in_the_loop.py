# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7. A study: telling a learner what not to do
#
# How should a person's knowledge ("never run into a wall") reach a learner? [arXiv
# 2007.10504](https://arxiv.org/abs/2007.10504) compares, on Battlesnake: **vanilla** (nothing is
# told), **action masking** (forbidden moves can't be taken), **reward manipulation** (they can be
# taken, and are punished). This notebook repeats the comparison with PPO by self-play.
#
# The rewards are the paper's: 0.01 a turn, 5 for winning, −5 for dying. Its boards are 7, 11 and 19
# with 3, 5 and 7 snakes; here 7×7 with 3, so that it takes minutes. The rule that is told: no wall,
# no body that stays, no neck (`envs.battlesnake.safety`).

# %% [markdown]
# The first cell installs procsnake where it isn't yet, as on Colab, Kaggle and SageMaker Studio; it
# leaves NumPy as it is. Run it before all others, and the kernel needs no restart.

# %%
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

if not find_spec("procsnake"):
    clone, pip = Path("..").resolve(), [sys.executable, "-m", "pip", "install"]
    source = os.environ.get("PROCSNAKE_SOURCE") or (
        clone.as_uri() if (clone / "procsnake_packages.py").exists() else None
    )
    wanted = "procsnake[serve,train]" + (f" @ {source}" if source else "")
    subprocess.run(
        [*pip, wanted, *([f"numpy=={version('numpy')}"] if find_spec("numpy") else [])], check=True
    )

# %%
import os

import numpy as np
from matplotlib import pyplot as plt

import agents
import envs
from agents.measure.evaluation import play_games, wilson_interval
from agents.measure.pages import Chart
from agents.measure.pages.figure import draw
from envs.battlesnake import BattlesnakeVectorEnv
from envs.battlesnake.state import CAUSE_NAMES
from train.config import Experiment
from train.run import train
from train.runs.curves.history import read_columns
from train.runs.curves.statistics import mean_line

FAST = os.environ.get("FAST") == "1"
MINUTES, SEEDS = 3.0, 3
PAPER = {"another_turn": 0.01, "won": 5.0, "died": -5.0}
PUNISHED = {"hit_wall": -1.0, "hit_other_snake": -1.0, "hit_self": -1.0, "forbidden_move": -1.0}

# %% [markdown]
# ## A world without a mask
#
# The engine tells every learner which actions are certain death. To take that away, a world of our
# own: `action_mask = None` is how a world says that it has none. It is registered under a name that
# experiments can use.


# %%
class Unmasked(BattlesnakeVectorEnv):
    """Battlesnake for learners that have to find out about walls themselves."""

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.action_mask = None


envs.register("battlesnake-unmasked", Unmasked)

# %% [markdown]
# ## Three learners
#
# Everything else is equal: board, network, PPO, time. Egocentric planes with four moves, so that
# turning back is possible and has to be learned.

# %%
ARMS = {
    "vanilla": ("battlesnake-unmasked", PAPER),
    "masking": ("battlesnake", PAPER),
    "reward manipulation": ("battlesnake-unmasked", {**PAPER, **PUNISHED}),
}
SEEN = {"radius": 5, "reach": True}
BOARD = {
    "num_games": 32 if FAST else 256,
    "width": 7,
    "height": 7,
    "num_snakes": 3,
    "observation": SEEN,
}


def experiment(arm: str, seed: int) -> Experiment:
    """The experiment of one learner."""
    world, rewards = ARMS[arm]
    base = Experiment.load("battlesnake-ppo").to_dict()
    budget = {"total_agent_steps": 30_000} if FAST else {"max_minutes": MINUTES}
    changes = {"name": f"study-{arm.replace(' ', '-')}", "budget": budget, "seed": seed}
    return Experiment.from_dict(
        {**base, **changes, "env": {"name": world, "options": {**BOARD, "rewards": rewards}}}
    )


runs = {
    arm: [train(experiment(arm, seed)).path for seed in range(1 if FAST else SEEDS)] for arm in ARMS
}

# %% [markdown]
# ## What came of it
#
# Turns that a snake lives in training: self-play, with exploration. Lines are means over the seeds,
# bands 95 % bootstrap intervals; of three seeds such an interval reaches from the lowest to the
# highest. It doesn't say how strong a snake is: that takes games between them, below.

# %%
curves = {arm: [read_columns(path) for path in paths] for arm, paths in runs.items()}
chart = Chart(
    title="How long snakes live in self-play",
    x_label="decisions",
    y_label="turns",
    lines=[
        mean_line(arm, many, "episode_len_mean", by="agent_steps") for arm, many in curves.items()
    ],
    from_zero=True,
)
draw(plt.figure(figsize=(9, 3.5), layout="constrained"), [chart])

# %% [markdown]
# What they die of in the last tenth of training. Masking leaves only deaths that can't be foreseen
# with certainty: heads that meet, dead ends, hunger.


# %%
def last(columns: dict, name: str) -> float:
    """The mean over the last tenth of a run; 0 if that never happened."""
    values = columns.get(name, np.zeros(1))
    values = values[np.isfinite(values)]
    return float(values[-max(1, len(values) // 10) :].mean()) if len(values) else 0.0


shares = {
    "turns": [
        f"{np.mean([last(c, 'episode_len_mean') for c in many]):.1f}" for many in curves.values()
    ]
}
for code, name in enumerate(CAUSE_NAMES):
    if name:
        shares[name] = [
            f"{np.mean([last(c, f'mean_cause_{code}') for c in many]):.1%}"
            for many in curves.values()
        ]
print(" " * 22 + "".join(f"{arm:>22}" for arm in curves))
for name, by_arm in shares.items():
    print(f"{name:<22}" + "".join(f"{share:>22}" for share in by_arm))

# %% [markdown]
# ## Who wins?
#
# In play all three avoid certain death: a policy's own answer is masked (`agents.policy`), as the
# paper's served snakes are. What differs is what they have learned. Each meets the two others,
# first seeds; intervals are 95 % Wilson.

# %%
names, games = list(ARMS), 60 if FAST else 600
results = play_games(
    [agents.make(runs[arm][0]) for arm in names], num_games=games, width=7, height=7
)
for arm, wins in zip(names, results.wins, strict=True):
    low, high = wilson_interval(int(wins), games)
    print(f"{arm:<22} {wins / games:>6.1%}   {low:.1%} to {high:.1%}")

# %% [markdown]
# One seed a learner says little. With `SEEDS = 3` and an hour you can see whether the order holds;
# change `BOARD` to 11×11 with 5 snakes, or 19×19 with 7, for the rest of the paper's study.
