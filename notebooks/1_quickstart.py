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
# Every notebook here has the switch `FAST`: with the environment variable `FAST=1` it does the same
# in miniature, as the tests do.

# %% [markdown]
# The first cell installs procsnake where it isn't yet, as on Colab, Kaggle and SageMaker Studio; it
# leaves NumPy as it is. Run it before all others, and the kernel needs no restart. Outside a clone,
# say before it where procsnake comes from: `%env PROCSNAKE_SOURCE=git+https://…`. What this
# notebook writes goes to the folder `workshop`.

# %%
import os
import subprocess
import sys
from importlib.metadata import distributions

if not any(distributions(name="procsnake")):
    places = ("..", ".", "./procsnake")
    clones = [place for place in places if os.path.exists(f"{place}/procsnake_packages.py")]
    source = os.environ.get("PROCSNAKE_SOURCE") or next(iter(clones), "procsnake")
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", source], check=True)
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
# The built-in snakes: `random` avoids only certain death, `greedy` runs for food, `flood` stays
# where there is room, `alphabeta` and `mcts` look ahead. A game is recorded in the official command
# line's format. The first game waits for the rules to be compiled, about a minute; that happens
# once.


# %%
def watch(players: list, path: str, seed: int = 1, delay: float = 0.0) -> None:
    """Play a game below this cell, with `delay` seconds between turns, and show it as a moving
    picture when it is over.
    """
    referee = Referee(players, seed=seed, recording=path, max_turns=60 if FAST else 500)
    picture = LivePicture()
    for frame in referee.play():
        picture.show(scene(frame.state, 0, referee.names))
        time.sleep(delay)
    picture.replay(path)
    print(f"{referee.result.winner or 'nobody'} wins after {referee.result.turns} turns")


watch([agents.make(name) for name in ("flood", "greedy", "greedy", "random")], "first-game.jsonl")

# %% [markdown]
# ## Train
#
# One network plays all four snakes of 256 games at once and learns from every one of them (PPO
# through Ray RLlib). All that the run is stands in one file,
# `train/experiments/battlesnake-ppo.yaml`; any of it can be changed here or with `--set`.

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
# The run's folder holds the curve, checkpoints to go on from, `report.html`, and the policy: a
# *bundle* of ONNX, weights and a card. Below, the bundle alone plays, without torch and Ray.
#
# ## Measure
#
# Win rates with 95 % Wilson intervals; a draw is not a win. By chance alone a snake wins 25 % of
# four-snake games and 50 % of duels.

# %%
snake = agents.make(run.path)
print(table(evaluate(snake, num_games=20 if FAST else 200)))

# %% [markdown]
# ## Serve
#
# The same command serves it on the internet (see the page on deploying).

# %%
server = Background(str(run.path))
print(f"the snake answers at {server.url}")

# %% [markdown]
# Play a game against it over HTTP, as the official engine would, slowly enough to follow it in the
# picture below.
#
# On your own machine the server's address shows the game in the browser, too: click on the board
# there, and what the snake expects of each move stands beside it. When the game is over, it can be
# gone through turn by turn. On a hosted notebook that page isn't reached; the bench of notebook 3
# shows as much without it.

# %%
opponents = [agents.make(name) for name in ("flood", "greedy", "greedy")]
watch([server.url, *opponents], "over-http.jsonl", seed=2, delay=DELAY_S)

# %% [markdown]
# To enter the arena give <https://arena.battlesnake.com> an address that the internet reaches.
# Before that, let `procsnake doctor URL` check it as a platform would.
#
# The server goes on until this notebook's kernel is shut down or you call `server.stop()`.
#
# ## Next
#
# * Notebook 2 looks into the training: what snakes see, what they are paid, and who teaches them.
# * Notebook 3 writes a snake by hand. A rule on top of this run is `my_rule.py+runs/…`.
# * More minutes: `["budget.max_minutes=20"]` in the cell that trains.
