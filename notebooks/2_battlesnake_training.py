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
# # 2. Training snakes: what they see, what they are paid, who teaches them
#
# This notebook shows observations and rewards. Then it trains PPO, DQN and APEX on the same board
# for the same time, draws their curves, and lets the three play each other.
#
# **Time:** 16 minutes on two busy cores, 9 of them training. We haven't timed it on Colab or
# Kaggle.

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
from PIL import Image

import agents
import envs
from agents.measure.evaluation import play_games, wilson_interval
from agents.measure.evaluation.referee import Referee
from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import draw
from envs.battlesnake import EgocentricPlanes, Rewards
from envs.battlesnake.observations import PLANES
from envs.battlesnake.observing.starter_pack import KINDS
from envs.battlesnake.render.notebook import LivePicture
from envs.battlesnake.render.rgb import rgb_array
from envs.battlesnake.rewards import EVENTS, PRESETS
from train.config import Experiment
from train.run import train
from train.runs.curves.history import read_columns
from train.runs.report.charts import causes

FAST = os.environ.get("FAST") == "1"
MINUTES = 3.0

# %% [markdown]
# ## A batch of games
#
# An environment plays many games at once. A row is one snake: row = game × snakes + slot. Let all
# snakes choose at random among the moves that aren't certain death, and look at game 0.

# %%
world = envs.make(
    "battlesnake",
    num_games=64,
    num_snakes=4,
    observation=EgocentricPlanes(radius=5, rotate=True),
)
observations, info = world.reset(seed=0)
generator = np.random.default_rng(0)
for _ in range(25):
    scores = generator.random(info["action_mask"].shape) * info["action_mask"]
    observations, rewards, terminated, truncated, info = world.step(
        scores.argmax(axis=1)
    )
print(
    f"{world.num_envs} rows, observations {observations.shape} {observations.dtype},"
    f" {int(info['valid'].sum())} snakes alive"
)
Image.fromarray(rgb_array(world.state, 0, panel=True))

# %% [markdown]
# ## What a snake sees
#
# A snake sees twelve planes around its own head, turned so that it heads up. Brighter cells have
# higher values. Most planes are empty most of the time, so the next cell plays games on a map with
# hazards until a snake sees something on as many planes as possible. The experiment
# `battlesnake-ppo` adds four planes about what the snake can reach (`reach=True`).


# %%
def fullest_view(turns: int = 40) -> np.ndarray:
    """Return the observation, in games with hazards, that fills the most planes."""
    world = envs.make(
        "battlesnake",
        num_games=64,
        map="hz_islands_bridges",
        observation=EgocentricPlanes(radius=5, rotate=True),
    )
    world.restart(0)
    fullest = np.zeros(world.single_observation_space.shape, np.uint8)
    for _ in range(turns):
        shown = world.observations[world.valid]
        counts = shown.any(axis=(1, 2)).sum(axis=1)
        if counts.max() > fullest.any(axis=(0, 1)).sum():
            fullest = shown[counts.argmax()].copy()
        scores = generator.random(world.action_mask.shape) * world.action_mask
        world.advance(scores.argmax(axis=1))
    return fullest


view = fullest_view()
figure, tiles = plt.subplots(3, 4, figsize=(9, 7.2), layout="constrained")
for k, (tile, name) in enumerate(zip(tiles.flat, PLANES, strict=True)):
    tile.imshow(view[..., k], cmap="gray", vmin=0, vmax=max(1, view[..., k].max()))
    tile.set_title(name, fontsize=10)
    tile.set(xticks=[], yticks=[])
print(f"{view.any(axis=(0, 1)).sum()} of {len(PLANES)} planes show something")

# %% [markdown]
# The six observation types of the SageMaker starter pack keep their names:

# %%
for kind in KINDS:
    old = envs.make("battlesnake", num_games=1, observation=kind)
    print(
        f"{kind:<18} {old.single_observation_space.shape},"
        f" {old.single_action_space.n} actions"
    )

# %% [markdown]
# ## What it is paid
#
# Rewards are weights of events, a preset, or a function of your own that turns event counts into
# rewards. Below, `hunter` rewards only kills.

# %%
for name, preset in PRESETS.items():
    print(f"{name:<14} {preset.options()}")


def hunter(events: np.ndarray) -> np.ndarray:
    """+1 for each snake that died on this one or lost head to head against it."""
    kills = (
        events[:, EVENTS.index("ate_another_snake")]
        + events[:, EVENTS.index("other_snake_hit_body")]
    )
    return kills.astype(np.float32)


kinds = {
    "win": "win",
    "food and death": Rewards(ate_food=0.1, died=-1.0),
    "hunter": hunter,
}
print("\nall snakes of 64 games at random for 30 turns are paid:")
for name, rewards in kinds.items():
    world = envs.make("battlesnake", num_games=64, rewards=rewards)
    world.reset(seed=0)
    paid = 0.0
    for _ in range(30):
        scores = generator.random(world.action_mask.shape) * world.action_mask
        world.advance(scores.argmax(axis=1))
        paid += float(world.rewards.sum())
    print(f"{name:<14} {paid:+.1f} in all")

# %% [markdown]
# ## PPO, DQN, APEX
#
# All three train in the same environment with the same network. APEX plays in separate processes
# (`num_env_runners`); it is made for more than two cores.
#
# A run checks its budget after each iteration, so it exceeds a small budget: with `FAST`, APEX once
# made 30,509 decisions instead of 8,000. The match below prints each run's decisions.

# %%
SMALL = {
    "ppo": ["budget.total_agent_steps=40000", "env.options.num_games=32"],
    "dqn": [
        "budget.total_agent_steps=8000",
        "env.options.num_games=32",
        "dqn.learning_starts=2000",
        "dqn.train_batch_size=256",
    ],
    "apex": [
        "budget.total_agent_steps=8000",
        "env.options.num_games=32",
        "apex.learning_starts=2000",
        "num_env_runners=1",
    ],
}
runs = {}
for algorithm, small in SMALL.items():
    experiment = Experiment.load(
        f"battlesnake-{algorithm}", small if FAST else [f"budget.max_minutes={MINUTES}"]
    )
    runs[algorithm] = train(experiment).path

# %% [markdown]
# ## Curves
#
# In self-play, the return says little, because the opponents learn as well. How long snakes live
# says more. Games against fixed opponents say most (`evaluation` in the experiment, see the page on
# runs). APEX's curve includes env runners that explore a lot.

# %%
curves = {name: read_columns(path) for name, path in runs.items()}
lines = [
    Line(name=name, x=c["minutes"], y=c["episode_len_mean"])
    for name, c in curves.items()
]
chart = Chart(
    title="How long snakes live in self-play",
    x_label="minutes of training",
    y_label="turns",
    lines=lines,
    from_zero=True,
)
draw(plt.figure(figsize=(9, 3.5), layout="constrained"), [chart])

# %% [markdown]
# The shares of each cause of death among PPO's snakes:

# %%
draw(plt.figure(figsize=(9, 3.5), layout="constrained"), causes(curves["ppo"]))

# %% [markdown]
# Each run's report shows all of this and more:

# %%
for name, path in runs.items():
    print(f"{name}: {path / 'report.html'}")

# %% [markdown]
# ## A match among the three
#
# Each game has one snake of each algorithm. Brackets show 95 % Wilson intervals; by chance alone,
# each would win a third. The table also shows how many minutes and decisions each has used. One run
# of each shows which of these three snakes is strongest, but not which algorithm is best.

# %%
games = 60 if FAST else 600
results = play_games([agents.make(path) for path in runs.values()], num_games=games)
for name, wins in zip(runs, results.wins, strict=True):
    low, high = wilson_interval(int(wins), games)
    minutes, decisions = curves[name]["minutes"][-1], curves[name]["agent_steps"][-1]
    print(
        f"{name:<5} won {wins / games:>6.1%} ({low:.1%} to {high:.1%}),"
        f" {minutes:.1f} minutes, {decisions:,.0f} decisions"
    )

# %%
players = [agents.make(path) for path in runs.values()]
referee = Referee(
    players,
    names=list(runs),
    seed=1,
    recording="three.jsonl",
    max_turns=60 if FAST else 300,
)
for _ in referee.play():
    pass
LivePicture().replay("three.jsonl")
print(f"{referee.result.winner or 'nobody'} wins after {referee.result.turns} turns")

# %% [markdown]
# ## Next
#
# * `procsnake benchmark battlesnake` trains several seeds of each algorithm and draws them with
#   intervals.
# * Notebook 8 builds a DQN from scratch. Notebook 7 compares ways to keep a learner from bad moves.
