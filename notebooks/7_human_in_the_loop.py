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
# The rewards are the paper's: 0.01 per turn, 5 for winning, −5 for dying. So are the boards: 7×7
# with 3 snakes, 11×11 with 5, and 19×19 with 7. The rule to teach: don't move into a wall, into a
# body part that stays, or into your own neck (`envs.battlesnake.safety`).
#
# **Time:** 73 minutes on two very busy cores, 40 of them training: 1.5 minutes each for three
# learners, three boards and three seeds. Fewer `BOARDS` or `SEEDS` take less. Let nothing else run
# meanwhile, because the learners get equal minutes.

# %% [markdown]
# Run the first cell before all others. It installs procsnake if it is missing, as on Colab, Kaggle
# and SageMaker Studio. It keeps the installed NumPy, so the kernel needs no restart. Outside a
# clone, first set where procsnake comes from: `%env PROCSNAKE_SOURCE=git+https://…`. This notebook
# writes its files to the folder `workshop`.

# %%
import os
import subprocess
import sys
from importlib.metadata import distributions

if not any(distributions(name="procsnake")):
    places = ("..", ".", "./procsnake")
    clones = [at for at in places if os.path.exists(f"{at}/procsnake_packages.py")]
    source = os.environ.get("PROCSNAKE_SOURCE") or next(iter(clones), "procsnake")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", source]
    subprocess.run(pip, check=True)
from procsnake.notebook import set_up

set_up("serve,train")

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
from train.rllib.ray_runtime import running_ray
from train.run import train
from train.runs.curves.history import read_columns
from train.runs.curves.statistics import mean_line

FAST = os.environ.get("FAST") == "1"
MINUTES, SEEDS = 1.5, 1 if FAST else 3
BOARDS = {7: 3, 11: 5} if FAST else {7: 3, 11: 5, 19: 7}  # side: snakes
PAPER = {"another_turn": 0.01, "won": 5.0, "died": -5.0}
PUNISHED = {"hit_wall": -1.0, "hit_other_snake": -1.0, "hit_self": -1.0}

# %% [markdown]
# ## A world without a mask
#
# The engine tells every learner which actions are certain death. To take that away, we write an
# environment of our own without a mask (`action_mask = None`), and register it under a name that
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
# Everything else is equal: board, network, PPO, time. The observations have four moves, so turning
# back is possible, and the learner must learn to avoid it. A snake that breaks the rule gets −1 in
# addition to the −5 for dying. `forbidden_move` isn't in the list, because turning back also counts
# as `hit_self` and would be punished twice.

# %%
ARMS = {
    "vanilla": ("battlesnake-unmasked", PAPER),
    "masking": ("battlesnake", PAPER),
    "reward manipulation": ("battlesnake-unmasked", {**PAPER, **PUNISHED}),
}


def experiment(arm: str, side: int, seed: int) -> Experiment:
    """The experiment of one learner on one board."""
    world, rewards = ARMS[arm]
    options = {
        "num_games": 32 if FAST else 256,
        "width": side,
        "height": side,
        "num_snakes": BOARDS[side],
        "observation": {"radius": 5, "reach": True},
        "rewards": rewards,
    }
    changes = {
        "name": f"study-{arm.replace(' ', '-')}-{side}",
        "budget": {"total_agent_steps": 30_000} if FAST else {"max_minutes": MINUTES},
        "seed": seed,
        "env": {"name": world, "options": options},
    }
    return Experiment.from_dict(
        {**Experiment.load("battlesnake-ppo").to_dict(), **changes}
    )


with running_ray(1):  # once for all runs, which would otherwise each start it
    runs = {
        (side, arm): [train(experiment(arm, side, seed)).path for seed in range(SEEDS)]
        for side in BOARDS
        for arm in ARMS
    }

# %% [markdown]
# ## What came of it
#
# The chart shows how many turns a snake lives in training, that is, in self-play with exploration.
# Lines are means over the seeds, and bands are 95 % bootstrap intervals; with three seeds, a band
# reaches from the lowest to the highest. The chart doesn't show how strong a snake is; for that,
# see the games below.

# %%
curves = {key: [read_columns(path) for path in paths] for key, paths in runs.items()}
charts = [
    Chart(
        title=f"How long snakes live in self-play, {side}×{side} with {snakes}",
        x_label="decisions",
        y_label="turns",
        lines=[
            mean_line(arm, curves[side, arm], "episode_len_mean", by="agent_steps")
            for arm in ARMS
        ],
        from_zero=True,
    )
    for side, snakes in BOARDS.items()
]
draw(plt.figure(figsize=(9, 3.2 * len(charts)), layout="constrained"), charts)

# %% [markdown]
# The next table shows the causes of death in the last tenth of training, over all seeds. Masking
# leaves only deaths that aren't certain one move ahead: heads that meet, dead ends, hunger. A snake
# that survived won the game or reached its last turn.


# %%
def last(columns: dict, name: str) -> float:
    """The mean over the last tenth of a run; 0 if that never happened."""
    values = columns.get(name, np.zeros(1))
    values = values[np.isfinite(values)]
    return float(values[-max(1, len(values) // 10) :].mean()) if len(values) else 0.0


def mean_last(side: int, name: str) -> list[float]:
    """For each learner, the mean of `last` over the seeds."""
    return [
        float(np.mean([last(columns, name) for columns in curves[side, arm]]))
        for arm in ARMS
    ]


for side, snakes in BOARDS.items():
    print(
        f"\n{f'{side}×{side} with {snakes}':<22}"
        + "".join(f"{arm:>22}" for arm in ARMS)
    )
    turns = mean_last(side, "episode_len_mean")
    print(f"{'turns':<22}" + "".join(f"{value:>22.1f}" for value in turns))
    shares = {
        name or "survived": mean_last(side, f"mean_cause_{code}")
        for code, name in enumerate(CAUSE_NAMES)
    }
    shares["together"] = [sum(column) for column in zip(*shares.values(), strict=True)]
    for name, by_arm in shares.items():
        if any(by_arm):
            print(f"{name:<22}" + "".join(f"{share:>22.1%}" for share in by_arm))

# %% [markdown]
# ## Who wins?
#
# In play, all three avoid certain death, because a policy's answer is masked (`agents.policy`), as
# it is for the paper's served snakes. So they differ only in what they have learned. On each board,
# the three learners of one seed play each other, with one snake each. Intervals are 95 % Wilson
# intervals over all games. They don't include the spread between seeds, which is printed beside
# them.

# %%
games = 30 if FAST else 201
for side in BOARDS:
    wins = np.array(
        [
            play_games(
                [agents.make(runs[side, arm][seed]) for arm in ARMS],
                num_games=games,
                width=side,
                height=side,
            ).wins
            for seed in range(SEEDS)
        ]
    )
    print(f"\n{side}×{side}")
    for arm, by_seed in zip(ARMS, wins.T, strict=True):
        low, high = wilson_interval(int(by_seed.sum()), games * SEEDS)
        seeds = ", ".join(f"{count / games:.1%}" for count in by_seed)
        share = by_seed.sum() / (games * SEEDS)
        print(f"{arm:<22} {share:>6.1%}   {low:.1%} to {high:.1%}   by seed: {seeds}")

# %% [markdown]
# ## Next
#
# * If the order changes from seed to seed, it shows nothing. `MINUTES = 10` shows whether the
#   learners that start slowly catch up.
# * Teach the learner another rule: `forbidden_move` alone, or a mask of your own (see the page
#   about your own parts).
# * Notebook 8 shows what is inside a learner.
