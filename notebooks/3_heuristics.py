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
# # 3. Writing a snake by hand
#
# Set up a position, write a rule, play on from there, and look at every turn: what each rule said
# of each move and how likely the policy thought it. Then try the same position on a running server.
# What rules may do is on the page about heuristics.
#
# **Time:** about 1 minute in miniature, on two busy cores. We haven't timed the whole notebook.

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

set_up("serve")

# %%
import os

from IPython.display import display

import agents
from agents.measure.evaluation import evaluate, table
from agents.measure.evaluation.referee import Referee
from agents.workbench.widget import Workbench
from serve.background import Background

FAST = os.environ.get("FAST") == "1"

# %% [markdown]
# ## A rule
#
# A function of what the snake sees. Four booleans ban moves, four numbers prefer some.
# `%%writefile` saves the cell; edit and run it again, then press **play from here**: the file is
# read anew each time.


# %%
# %%writefile my_rule.py
def middle(me):
    """Stay off the edge."""
    steps = [me.ahead(move) for move in range(4)]
    return [p is not None and 0 < p[0] < me.width - 1 and 0 < p[1] < me.height - 1 for p in steps]


def towards_food(me):
    """Nearer food is better."""
    if not me.food:
        return [0.0] * 4
    return [
        -0.3 * min((me.distance(p, food) for food in me.food), default=0)
        if (p := me.ahead(move))
        else -9.0
        for move in range(4)
    ]


# %% [markdown]
# ## The bench
#
# Players are named as everywhere: a file of rules, one on top of another agent (`my_rule.py+flood`,
# `my_rule.py+runs/…`), built-in snakes, runs, URLs.
#
# * **Above:** choose a tool and click points: food, hazards, snakes (head first, then along the
#   body), the eraser. Or paste a game's JSON: a move request, as an engine sends it and the viewer
#   shows it.
# * **Below:** ◄ ► step, ▶ plays, the slider jumps. Beside the board: each snake's colour, health,
#   move, cause of death, what each rule said (✗ bans, numbers are preferences, in units of
#   log-probability), and probabilities.
# * **copy this frame** puts a turn into the JSON field; **arrange this frame** makes it the
#   position to play on from.

# %%
bench = Workbench(["my_rule.py", "my_rule.py+flood", "greedy"], width=9, height=9, seed=3)
display(bench)

# %% [markdown]
# All that can be clicked can also be written. A corridor for the first snake, food at its end:

# %%
model = bench.bench
model.clear()
for y in (2, 1, 0):
    model.click(4, y, "snake", "snake 1")
for x in (2, 1, 0):
    model.click(x, 6, "snake", "snake 2")
model.click(4, 5, "food")
turns = model.play(max_turns=20)
bench.show()


def in_words(said):
    """What a rule said of a move: whether it allows it, or how much it prefers it."""
    return {True: "allowed", False: "banned"}[said] if isinstance(said, bool) else f"{said:.1f}"


for turn in turns[:3]:
    seen = turn.snakes[0]
    print(f"turn {turn.board['turn']}: {seen.move}")
    for rule, moves in seen.rules.items():
        print(f"  {rule}:", ", ".join(f"{move} {in_words(said)}" for move, said in moves.items()))

# %% [markdown]
# ## From a recorded game
#
# Any recording, ours, the official command line's or the arena's, opens at any turn: the one on
# which your snake made its mistake.

# %%
players = [agents.make(name) for name in ("my_rule.py", "flood", "greedy")]
referee = Referee(players, width=9, height=9, seed=5, recording="game.jsonl", max_turns=60)
for _ in referee.play():
    pass
print(f"{referee.result.winner or 'nobody'} wins after {referee.result.turns} turns")
model.open("game.jsonl", turn=max(0, referee.result.turns - 5))
model.play()
bench.show()

# %% [markdown]
# ## Against the running server
#
# Serve the rule, and ask the server what it does on a turn of the bench (**what would it do?** is
# the same button).

# %%
server = Background("my_rule.py", "--no-games")
bench.player.value = server.url
bench.ask.click()
print(server.url, model.ask(server.url, turn=0).move, bench.message.value)

# %%
server.stop()

# %% [markdown]
# ## Is it any good?
#
# On top of a player the rules leave it its best move that they don't ban, and never a certain
# death. A ban can still cost games: `flood` alone, beside `my_rule.py+flood`, shows how many.

# %%
for name in ("my_rule.py", "my_rule.py+flood", "flood", "classics"):
    print(f"\n{name}")
    print(table(evaluate(agents.make(name), [["greedy"], ["flood"]], num_games=6 if FAST else 100)))

# %% [markdown]
# ## Next
#
# * Ban less, and measure again until `my_rule.py+flood` is no weaker than `flood`.
# * `procsnake match my_rule.py+flood flood --watch` shows a game in the terminal. Type it in the
#   folder `workshop`, where the rule is.
# * Notebook 1 trains a snake; rules go on top of it, too.
