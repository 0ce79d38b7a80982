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
# # 4. Procgen: training, and what it is worth on levels never seen
#
# Procgen has sixteen games with generated levels (Cobbe et al. 2020, [arXiv
# 1912.01588](https://arxiv.org/abs/1912.01588)). You train an agent on 200 levels and measure it on
# all the others.
#
# **Time:** 10 minutes of training, and 800 episodes. We haven't timed the whole notebook.

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

set_up("serve,train,procgen-numpy2")

# %%
import os

import numpy as np
from IPython.display import Image as Picture
from IPython.display import display
from matplotlib import pyplot as plt
from PIL import Image

import envs
from agents.measure.evaluation.procgen import POLICY, evaluate, table
from agents.measure.evaluation.procgen_episodes import animation
from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import draw
from envs.procgen.games import GAMES
from train.config import Experiment
from train.run import train
from train.runs.curves.history import read_columns

FAST = os.environ.get("FAST") == "1"
GAME = "coinrun"

# %% [markdown]
# ## The games
#
# This is a level of each game after forty random steps, in the 64 × 64 pixels that the agent sees.


# %%
def after(game: str, steps: int = 40) -> np.ndarray:
    """What is seen after random steps, uint8 (64, 64, 3)."""
    world = envs.make(f"procgen/{game}", num_games=1, distribution_mode="easy")
    world.restart(1)
    generator = np.random.default_rng(0)
    for _ in range(steps):
        world.advance(generator.integers(world.single_action_space.n, size=1))
    picture = world.observations[0].copy()
    world.close()
    return picture


pictures = [after(game) for game in sorted(GAMES)]
print("  ".join(sorted(GAMES)))
Image.fromarray(np.vstack([np.hstack(pictures[k : k + 8]) for k in (0, 8)])).resize(
    (1024, 256), Image.Resampling.NEAREST
)

# %% [markdown]
# ## Train on 200 levels
#
# The benchmark uses PPO and the IMPALA network. Its 25 million steps would take half a day on two
# cores; ten minutes show the beginning of the curve.

# %%
if FAST:
    changes = [
        "budget.total_agent_steps=1024",
        "env.options.num_games=8",
        "ppo.num_steps=64",
        "ppo.num_epochs=1",
    ]
    changes += ["network.options.depths=[4, 8, 8]", "network.options.hidden=32"]
else:
    changes = ["budget.max_minutes=10"]
experiment = Experiment.load("procgen-ppo", [f"env.name=procgen/{GAME}", *changes])
run = train(Experiment.from_dict({**experiment.to_dict(), "evaluation": None}))

# %%
columns = read_columns(run.path)
name = "episode_return_mean"
if name in columns:
    line = Line(name="training", x=columns["agent_steps"], y=columns[name])
    chart = Chart(
        title=f"{GAME} in training",
        x_label="decisions",
        y_label="return of an episode",
        lines=[line],
    )
    draw(plt.figure(figsize=(9, 3.5), layout="constrained"), [chart])

# %% [markdown]
# ## The gap
#
# The table compares the policy's return on the 200 trained levels with that on all others. The
# difference (the generalisation gap) shows how much it learned by heart. A random agent plays the
# same levels. Intervals are 95 % bootstrap intervals over episodes.

# %%
played = evaluate(
    [str(run.bundle)],
    levels="train,test",
    episodes=8 if FAST else 200,
    seed=1,
    say=print,
)
print(table([one.score for one in played]))

# %% [markdown]
# ## Rollouts
#
# An episode is stored as its first state and its actions. The film is made by replaying them.

# %%
for one in played:
    if one.score.player == POLICY:
        shortest = min(one.episodes, key=lambda episode: episode.length)
        print(
            f"{one.score.split}: level {shortest.level},"
            f" return {shortest.episode_return:g} after {shortest.length} steps"
        )
        display(
            Picture(
                data=animation(one.world, one.options, shortest),
                format="gif",
                width=256,
            )
        )

# %% [markdown]
# ## Next
#
# * `procsnake levels RUN --levels train,test` writes a page with curves and films.
# * `procgen-ppo-lars` and other experiments are in `procsnake train --list`.
# * `procsnake levels RUN1 RUN2 …` summarises several games and seeds by interquartile means.
# * Notebook 6 writes an entry in the format of AIcrowd's competition.
