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
# Play a game, train a snake by self-play, measure it, serve it, and watch it play against a baseline in the browser. About
# six minutes on two cores, four of them for the engine to compile and the snake to train.
#
# Every notebook here has the switch `FAST`: with the environment variable `FAST=1` it does the same in miniature, as the
# tests do.

# %%
import os
import time
from pathlib import Path

from IPython.display import Image, display

import agents
from agents.evaluation import evaluate, table
from agents.evaluation.referee import Referee
from envs.battlesnake.render.animation import save_animation
from serve.background import Background
from train.config import Experiment
from train.run import train

FAST = os.environ.get("FAST") == "1"
DELAY_S = 0.0 if FAST else 0.2

# %% [markdown]
# ## Play
#
# The built-in snakes: `random` avoids only certain death, `greedy` runs for food, `flood` stays where there is room,
# `alphabeta` and `mcts` look ahead. A game is recorded in the official command line's format. The first game waits for the
# rules to be compiled, about a minute; that happens once.


# %%
def film(players: list, path: str, seed: int = 1, delay: float = 0.0) -> Image:
    """Play a game, with `delay` seconds between turns, and return it as a moving picture."""
    referee = Referee(players, seed=seed, recording=path, max_turns=60 if FAST else 500)
    for _ in referee.play():
        time.sleep(delay)
    result = referee.result
    print(f"{result.winner or 'nobody'} wins after {result.turns} turns")
    return Image(data=save_animation(path, Path(path).with_suffix(".gif")).read_bytes())


film([agents.make(name) for name in ("flood", "greedy", "greedy", "random")], "first-game.jsonl")

# %% [markdown]
# ## Train
#
# One network plays all four snakes of 256 games at once and learns from every one of them (PPO through Ray RLlib). All that
# the run is stands in one file, `train/experiments/battlesnake-ppo.yaml`; any of it can be changed here or with `--set`.

# %%
changes = ["budget.total_agent_steps=30000", "env.options.num_games=32"] if FAST else ["budget.max_minutes=3"]
experiment = Experiment.load("battlesnake-ppo", changes)
run = train(experiment)
print(run.path)

# %% [markdown]
# The run's folder holds the curve, checkpoints to go on from, `report.html`, and the policy: a *bundle* of ONNX, weights and
# a card. Below, the bundle alone plays, without torch and Ray.
#
# ## Measure
#
# Win rates with 95 % Wilson intervals. By chance a game of four would be won in 25 %, a duel in 50 %; a draw is not a win.

# %%
snake = agents.make(run.path)
print(table(evaluate(snake, num_games=20 if FAST else 200)))

# %% [markdown]
# ## Serve
#
# The same command serves it on the internet (see the page on deploying). **Open the address in a browser on this machine**, and
# keep it beside the notebook: it shows the games.

# %%
server = Background(str(run.path))
print(f"the snake answers at {server.url}")

# %% [markdown]
# Play a game against it over HTTP, as the official engine would, slowly enough to follow it at that address. Click on the board
# there: what the snake expects of each move stands beside it. When the game is over, it can be gone through turn by turn.

# %%
opponents = [agents.make(name) for name in ("flood", "greedy", "greedy")]
display(film([server.url, *opponents], "over-http.jsonl", seed=2, delay=DELAY_S))

# %% [markdown]
# To enter the arena give <https://arena.battlesnake.com> an address that the internet reaches. Before that, let `procsnake
# doctor URL` check it as a platform would.
#
# The server goes on, and its games can be watched, until this notebook's kernel is shut down or you call `server.stop()`.
