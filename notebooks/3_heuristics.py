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
# Set up a position, write a rule, play on from there, and see on every turn what each rule said
# about each move, and the policy's probability for it. Then try the same position on a running
# server. The page about heuristics says what rules can do.
#
# **Time:** about 5 minutes on two busy cores, nearly all for the 800 games at its end.

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
# A rule is a function of what the snake sees. It returns four booleans to ban moves, or four
# numbers to prefer some. `%%writefile` saves the cell to a file. After a change, run the cell again
# and press **play from here**, which reads the file anew.


# %%
# %%writefile my_rule.py
def middle(me):
    """Stay off the edge."""
    steps = [me.ahead(move) for move in range(4)]
    return [
        p is not None and 0 < p[0] < me.width - 1 and 0 < p[1] < me.height - 1
        for p in steps
    ]


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
# Name players as in all commands: a file of rules, alone or on top of another agent
# (`my_rule.py+flood`, `my_rule.py+runs/…`), a built-in snake, a run, or a URL.
#
# * **Above**, choose a tool (food, hazard, snake, eraser) and click on the board. For a snake,
#   click on its head first, then along its body. You can also paste a move request as JSON, as an
#   engine sends it.
# * **Below**, ◄ and ► step, ▶ plays, and the slider jumps. Beside the board are each snake's
#   colour, health, move, cause of death and probabilities, and what each rule said: ✗ is a ban, a
#   number is a preference, added to the log-probability.
# * **copy this frame** copies a turn into the JSON field. **arrange this frame** lets you play on
#   from that turn.

# %%
bench = Workbench(
    ["my_rule.py", "my_rule.py+flood", "greedy"], width=9, height=9, seed=3
)
display(bench)

# %% [markdown]
# You can also set up a position in code. Here the first snake is one cell from the left edge, and
# food is three cells ahead of it. The bench above shows the game. What the rules said on its first
# three turns is printed below.

# %%
model = bench.bench
model.clear()
for y in (2, 1, 0):
    model.click(1, y, "snake", "snake 1")
for x in (6, 7, 8):
    model.click(x, 6, "snake", "snake 2")
model.click(1, 5, "food")
turns = model.play(max_turns=20)
bench.show()


def in_words(said):
    """What a rule said of a move: whether it allows it, or how much it prefers it."""
    return (
        {True: "allowed", False: "banned"}[said]
        if isinstance(said, bool)
        else f"{said:.1f}"
    )


for turn in turns[:3]:
    seen = turn.snakes[0]
    print(f"turn {turn.board['turn']}: {seen.move}")
    for rule, moves in seen.rules.items():
        print(
            f"  {rule}:",
            ", ".join(f"{move} {in_words(said)}" for move, said in moves.items()),
        )

# %% [markdown]
# ## From a recorded game
#
# You can open a recording at any turn, such as the one on which your snake made its mistake. It may
# come from procsnake, the official command line or the arena. The bench above then plays on from
# there.

# %%
players = [agents.make(name) for name in ("my_rule.py", "flood", "greedy")]
referee = Referee(
    players, width=9, height=9, seed=5, recording="game.jsonl", max_turns=60
)
for _ in referee.play():
    pass
print(f"{referee.result.winner or 'nobody'} wins after {referee.result.turns} turns")
model.open("game.jsonl", turn=max(0, referee.result.turns - 5))
model.play()
bench.show()

# %% [markdown]
# ## Against the running server
#
# Serve the rule, and ask the server which move it plays on a turn of the workbench. In the bench
# above, the button **what would it do?** asks for the turn that you see.

# %%
server = Background("my_rule.py", "--no-games")
bench.player.value = server.url
bench.ask.click()
print(f"{server.url} plays {model.ask(server.url, turn=0).move}")

# %%
server.stop()

# %% [markdown]
# ## Is it any good?
#
# On top of a player, the rules choose the best move that they don't ban, and never certain death. A
# ban can still cost games. Compare `my_rule.py+flood` with `flood` alone to see how many.

# %%
for name in ("my_rule.py", "my_rule.py+flood", "flood", "classics"):
    print(f"\n{name}")
    print(
        table(
            evaluate(
                agents.make(name), [["greedy"], ["flood"]], num_games=6 if FAST else 100
            )
        )
    )

# %% [markdown]
# ## Next
#
# * Ban fewer moves, and measure again, until `my_rule.py+flood` is at least as strong as `flood`.
# * `procsnake match my_rule.py+flood flood --watch` shows a game in the terminal. Type it in the
#   folder `workshop`, where the rule is.
# * Notebook 1 trains a snake. You can put rules on top of it, too.
