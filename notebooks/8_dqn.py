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
# # 8. From a table to a deep network
#
# This notebook explains Q-learning in four steps: a table that learns a corridor, a board that is
# too large for a table, a network with a replay buffer and a target network, and what breaks
# without each of them. Then you can read `train/mxnet_dqn.py`, which does the same for any
# environment. Everything is NumPy except the last step, which needs MXNet and is skipped without
# it.
#
# **Time:** about 1 minute on two cores. We haven't timed it on Colab or Kaggle.

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
import ast
import os
import subprocess
import sys
from collections import deque
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot as plt

import envs
import train
from envs.battlesnake.observations import PLANE_SCALES

FAST = os.environ.get("FAST") == "1"

# %% [markdown]
# ## A table
#
# In a corridor of ten cells, action 0 goes left, action 1 goes right, and the last cell pays 1. An
# action is worth its reward plus γ (`GAMMA`) times the value of the best action in the next cell.
# That sum is the *target*, and each step moves the action's value towards it:
#
#     Q(s, a) ← Q(s, a) + α · (r + γ · max Q(s′, ·) − Q(s, a))

# %%
LENGTH, GAMMA, ALPHA = 10, 0.9, 0.5


def step(cell: int, action: int) -> tuple[int, float]:
    """The next cell, and what going there pays."""
    following = min(max(cell + (1 if action == 1 else -1), 0), LENGTH - 1)
    return following, float(following == LENGTH - 1)


def walk(table: np.ndarray, generator: np.random.Generator) -> None:
    """Walk at random from the first cell to the last one, and learn from every step."""
    cell = 0
    while cell < LENGTH - 1:
        action = int(generator.integers(2))
        following, reward = step(cell, action)
        # The table's last row stays 0, because nothing comes after the end.
        target = reward + GAMMA * table[following].max()
        table[cell, action] += ALPHA * (target - table[cell, action])
        cell = following


table, generator = np.zeros((LENGTH, 2)), np.random.default_rng(0)
truth = GAMMA ** np.arange(LENGTH - 2, -1, -1)
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
walks = 0
for until in (1, 3, 10, 100):
    while walks < until:
        walk(table, generator)
        walks += 1
    axes.plot(table[:-1, 1], marker="o", markersize=3, label=f"after {until} walks")
axes.plot(truth, color="black", linestyle=":", label="truth")
axes.set(
    xlabel="cell",
    ylabel="worth of going right",
    title="The value creeps back from the end",
)
axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
print(f"largest error after {walks} walks: {np.abs(table[:-1, 1] - truth).max():.3f}")

# %% [markdown]
# The walks were random, but the table still knows the best way: Q-learning learns the value of the
# best action, whichever action was taken.
#
# ## A board that no table holds
#
# One snake is alone on a 7×7 board and knows nothing about walls. It gets a reward of 1 for every
# turn that it lives, and sees a window of 5×5 cells around its head. How many of its observations
# has it seen before?

# %%
WINDOW = {"view": "window", "radius": 2, "rotate": True}


def new_world():
    """One game of one snake."""
    return envs.make(
        "battlesnake",
        num_games=1,
        num_snakes=1,
        width=7,
        height=7,
        rewards="starter-pack",
        observation=WINDOW,
    )


world = new_world()
world.restart(0)
seen, repeated, decisions = set(), 0, 500 if FAST else 5000
for _ in range(decisions):
    window = world.observations[0].tobytes()
    repeated += window in seen
    seen.add(window)
    safe = np.flatnonzero(world.action_mask[0])
    world.advance(generator.choice(safe, size=1))
print(
    f"of {decisions} decisions,"
    f" {1 - repeated / decisions:.0%} were in front of something new"
)

# %% [markdown]
# A table would need a row for each observation, and would hardly ever read a row twice. A network
# can answer for observations that it never saw, because it has learned what walls look like.
#
# ## A network, a replay buffer, a target network
#
# The network has one hidden layer. Its gradient is written by hand, and its optimiser is Adam.
# `update` moves the Q values of the actions taken towards their targets.


# %%
class Network:
    """Observations (B, N) → Q values (B, A)."""

    def __init__(
        self, inputs: int, actions: int, generator: np.random.Generator
    ) -> None:
        hidden = 64
        self.weights = [
            generator.normal(0, np.sqrt(2 / inputs), (inputs, hidden)).astype(
                np.float32
            ),
            np.zeros(hidden, np.float32),
            generator.normal(0, 0.01, (hidden, actions)).astype(np.float32),
            np.zeros(actions, np.float32),
        ]
        self.means = [np.zeros_like(weight) for weight in self.weights]
        self.squares = [np.zeros_like(weight) for weight in self.weights]
        self.updates = 0

    def hidden(self, seen: np.ndarray) -> np.ndarray:
        return np.maximum(seen @ self.weights[0] + self.weights[1], 0)

    def q_values(self, seen: np.ndarray) -> np.ndarray:
        return self.hidden(seen) @ self.weights[2] + self.weights[3]

    def update(
        self, seen: np.ndarray, actions: np.ndarray, targets: np.ndarray
    ) -> None:
        hidden, rows = self.hidden(seen), np.arange(len(seen))
        values = hidden @ self.weights[2] + self.weights[3]
        slope = np.zeros_like(values)
        # Huber's loss: no error pulls harder than an error of 1.
        slope[rows, actions] = np.clip(values[rows, actions] - targets, -1, 1) / len(
            seen
        )
        back = (slope @ self.weights[2].T) * (hidden > 0)
        self._adam([seen.T @ back, back.sum(0), hidden.T @ slope, slope.sum(0)])

    def _adam(self, gradients: list[np.ndarray], rate: float = 2e-3) -> None:
        self.updates += 1
        for weight, mean, square, gradient in zip(
            self.weights, self.means, self.squares, gradients, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            size = np.sqrt(square / (1 - 0.999**self.updates)) + 1e-8
            weight -= rate * mean / (1 - 0.9**self.updates) / size


# %% [markdown]
# **Why a replay buffer?** A snake that walks along a wall sees the wall for many turns. If the
# network learned from each decision once, as it comes, it would forget the rest of the board
# meanwhile. So the buffer stores thousands of decisions, and each update learns from 64 of them,
# drawn at random.
#
# **Why a target network?** The next position looks much like this one. An update that raises the
# value of this position also raises the value of the next one, and thereby its own target, so the
# values can grow without end. Therefore, targets come from a copy of the network that is renewed
# only every 100 updates.


# %%
class Decision(NamedTuple):
    """One decision and what followed."""

    seen: np.ndarray
    action: int
    reward: float
    following: np.ndarray
    terminated: bool


class Curve(NamedTuple):
    """What was noted of a training."""

    # What the network expects of the position, every 50 decisions.
    expected: list[float]
    # Turns of each game that ended in the last fifth of the training.
    lived: list[int]


def learn(*, replay: bool, target_every: int, seed: int) -> Curve:
    """Train one network for `DECISIONS` decisions, with one update for each."""
    generator, world = np.random.default_rng(seed), new_world()
    world.restart(seed)
    actions = int(world.single_action_space.n)
    scales = np.array(PLANE_SCALES, np.float32)

    def flat(shown: np.ndarray) -> np.ndarray:
        return (shown * scales).reshape(-1)

    network = Network(flat(world.observations[0]).size, actions, generator)
    target_weights = [weight.copy() for weight in network.weights]
    target_network = Network(1, actions, generator)
    target_network.weights = target_weights
    kept, curve, turns = deque(maxlen=20_000), Curve([], []), 0
    for k in range(DECISIONS):
        seen = flat(world.observations[0])
        values = network.q_values(seen[None])[0]
        explores = generator.random() < max(0.02, 1 - k / (0.4 * DECISIONS))
        action = int(generator.integers(actions)) if explores else int(values.argmax())
        world.advance(np.array([action]))
        ended = bool(world.terminated[0] or world.truncated[0])
        shown = world.final_observations[0] if ended else world.observations[0]
        kept.append(
            Decision(
                seen, action, world.rewards[0], flat(shown), bool(world.terminated[0])
            )
        )
        turns += 1
        if ended:
            curve.lived.extend([turns] if k > 0.8 * DECISIONS else [])
            turns = 0
        places = generator.integers(len(kept), size=64) if replay else [-1]
        batch = Decision(
            *map(np.array, zip(*[kept[place] for place in places], strict=True))
        )
        best = target_network.q_values(batch.following).max(axis=1)
        targets = batch.reward + LONG_GAMMA * np.where(batch.terminated, 0, best)
        network.update(batch.seen, batch.action, targets)
        if k % target_every == 0:
            target_network.weights = [weight.copy() for weight in network.weights]
        if k % 50 == 0:
            curve.expected.append(float(values.max()))
    return curve


# %% [markdown]
# ## What breaks without each
#
# Three learners train with three seeds each. A turn pays 1 and γ is 0.99, so no snake can earn more
# than 1 / (1 − 0.99) = 100 (the dotted line). A learner that expects more is wrong.

# %%
LONG_GAMMA, DECISIONS, SEEDS = 0.99, 600 if FAST else 8000, 1 if FAST else 3
LEARNERS = {
    "replay and target": {"replay": True, "target_every": 100},
    "no replay": {"replay": False, "target_every": 100},
    "no target network": {"replay": True, "target_every": 1},
}
figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
print(f"{'':<18}{'turns lived':>12}  {'by seed':<24}expects at most")
for k, (name, choice) in enumerate(LEARNERS.items()):
    curves = [learn(**choice, seed=seed) for seed in range(SEEDS)]
    for number, curve in enumerate(curves):
        smooth = np.convolve(curve.expected, np.full(5, 0.2), "valid")
        label = name if number == 0 else None
        axes.plot(50 * np.arange(len(smooth)), smooth, color=f"C{k}", label=label)
    lived = [float(np.mean(curve.lived)) if curve.lived else np.nan for curve in curves]
    by_seed = ", ".join(f"{turns:.0f}" for turns in lived)
    highest = max(max(curve.expected) for curve in curves)
    print(f"{name:<18}{np.nanmean(lived):>12.0f}  {by_seed:<24}{highest:.0f}")
axes.axhline(
    1 / (1 - LONG_GAMMA), color="black", linestyle=":", label="no snake earns more"
)
axes.set(xlabel="decisions", ylabel="expected reward", title="What the learners expect")
_ = axes.legend()

# %% [markdown]
# Without the target network, the values rise far above the line and come back only slowly. Even so,
# the snakes live nearly as long on this small board. Without the replay buffer, the values don't
# run away, but with most seeds the snakes die sooner. Three seeds show the kind of damage,
# not its exact size.
#
# ## The same in `train/mxnet_dqn.py`
#
# The file has the same parts for any environment and many games at once: `Replay`,
# `QLearner.targets`, `QLearner.update`, and `MXNetDQN.play`. Here are two of them, as in the file:

# %%
program = Path(train.__file__).with_name("mxnet_dqn.py").read_text(encoding="utf-8")
for node in ast.walk(ast.parse(program)):
    if isinstance(node, ast.FunctionDef) and node.name in ("sample", "targets"):
        print(ast.get_source_segment(program, node, padded=True), end="\n\n")

# %% [markdown]
# **Only this cell needs MXNet.** MXNet requires NumPy 1, so it needs a separate environment (see
# the page on the readable DQN). There, the cell trains four snakes on 11×11 for a minute.

# %%
if find_spec("mxnet") and np.lib.NumpyVersion(np.__version__) < "2.0.0":
    budget = "budget.total_agent_steps=3000" if FAST else "budget.max_minutes=1"
    command = ["-m", "procsnake", "train", "battlesnake-mxnet", "--set", budget]
    trained = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True
    )
    print(trained.stdout[-600:])
else:
    print("MXNet isn't here. In a clone: make .venv-mxnet/.installed, and then")
    print(".venv-mxnet/bin/python -m procsnake train battlesnake-mxnet --minutes 1")

# %% [markdown]
# ## Next
#
# * Try `target_every=1000`, and then `LONG_GAMMA = 0.9`. With which do the values rise less?
# * `procsnake benchmark battlesnake` compares this DQN with DQN with all its extensions, APEX and
#   PPO in the same time. The page about comparing trainers has our results.
# * Notebook 2 trains DQN, APEX and PPO on one board.
