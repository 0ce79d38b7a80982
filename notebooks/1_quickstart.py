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
# # 1. From nothing to a snake in the arena
#
# Play a game, train a snake by self-play, measure it, serve it, and watch it play against a
# baseline.
#
# **Time:** about 7 minutes on two busy cores, and 3 for the installation. We haven't timed it on
# Colab or Kaggle.
#
# With the environment variable `FAST=1`, every notebook does the same in miniature. The tests run
# them this way.

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
import time

import agents
from agents.measure.evaluation import evaluate, table
from agents.measure.evaluation.referee import Referee
from envs.battlesnake.render.notebook import LivePicture
from envs.battlesnake.render.scene import scene
from serve.background import Background
from train.config import Experiment
from train.run import train

FAST = os.environ.get("FAST") == "1"
DELAY_S = 0.0 if FAST else 0.2

# %% [markdown]
# ## Play
#
# Of the built-in snakes, `random` avoids only certain death, `greedy` goes for food, `flood` stays
# where there is room, and `alphabeta` and `mcts` look ahead. Games are recorded in the format of
# the official command line. The first game waits about a minute while the rules are compiled; later
# games start at once.


# %%
def watch(players: list, path: str, seed: int = 1, delay: float = 0.0) -> None:
    """Play a game below this cell, with `delay` seconds between turns.

    Then show it as a moving picture.
    """
    referee = Referee(players, seed=seed, recording=path, max_turns=60 if FAST else 500)
    picture = LivePicture()
    for frame in referee.play():
        picture.show(scene(frame.state, 0, referee.names))
        time.sleep(delay)
    picture.replay(path)
    print(
        f"{referee.result.winner or 'nobody'} wins after {referee.result.turns} turns"
    )


watch(
    [agents.make(name) for name in ("flood", "greedy", "greedy", "random")],
    "first-game.jsonl",
)

# %% [markdown]
# ## Train
#
# One network plays all four snakes of 256 games at once and learns from all of them (PPO with Ray
# RLlib). The file `train/experiments/battlesnake-ppo.yaml` has all settings of the run; you can
# change each of them here or with `--set`.

# %%
changes = (
    ["budget.total_agent_steps=30000", "env.options.num_games=32"]
    if FAST
    else ["budget.max_minutes=3"]
)
experiment = Experiment.load("battlesnake-ppo", changes)
run = train(experiment)
print(run.path)

# %% [markdown]
# The run's folder has the learning curve, checkpoints from which the run can continue,
# `report.html`, and the policy: a *bundle* of an ONNX file, weights and a card. Below, the bundle
# alone plays, without torch and Ray.
#
# ## Measure
#
# The table shows win rates with 95 % Wilson intervals; a draw is not a win. By chance alone, a
# snake wins 25 % of four-snake games and 50 % of duels.

# %%
snake = agents.make(run.path)
print(table(evaluate(snake, num_games=20 if FAST else 200)))

# %% [markdown]
# ## Serve
#
# The next cell starts the snake's server on this machine. To put it on the internet, see the page
# on deploying.

# %%
server = Background(str(run.path))
print(f"the snake answers at {server.url}")

# %% [markdown]
# Now play a game against it over HTTP, as the official engine would, slowly enough to follow it
# below.
#
# On your own machine, you can also open the server's address in a browser. Click on the board to
# see the snake's probability for each move. When the game is over, you can step through it turn by
# turn. On a hosted notebook, your browser can't reach that page, but the workbench of notebook 3
# shows the same.

# %%
opponents = [agents.make(name) for name in ("flood", "greedy", "greedy")]
watch([server.url, *opponents], "over-http.jsonl", seed=2, delay=DELAY_S)

# %% [markdown]
# To enter the arena, give <https://arena.battlesnake.com> a public address of your snake. First let
# `procsnake doctor URL` check this address as a platform would.
#
# The server runs until you shut down this notebook's kernel or call `server.stop()`.
#
# ## Next
#
# * Notebook 2 explains the training: observations, rewards and three algorithms.
# * In notebook 3, you write a snake by hand. `my_rule.py+runs/…` puts a rule on top of this run.
# * To train longer, write `["budget.max_minutes=20"]` in the cell that trains.
