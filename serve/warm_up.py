"""Compiles ahead of time what players, servers and trainers would compile at first use: `procsnake
warm-up`.

Every part runs its later work once in miniature, so no list of functions is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import agents
import envs
from agents.agent import Agent
from agents.player import Player
from envs.common.errors import ProcsnakeError

PLAYERS = {
    "flood": 45.0,
    "random": 1.0,
    "greedy": 2.0,
    "starter-pack": 0.1,
    "classics": 22.0,
    "alphabeta": 77.0,
    "mcts": 30.0,
}
"""The built-in players, each with the CPU-seconds that it takes to compile after those before it.

They are the times of one run, divided by the number of programs that shared the core: rough, but
the estimate mends itself. """
POLICY = "champion-standard"
"""The player that stands for all policies."""
POLICY_COST = 16.0
TRAINING_COST = 44.0
TRAINING = "training"
"""The name that stands for the world in which trainers train."""
SIDES = (11, 7, 19)
"""Sides of the boards on which a player is tried, until it plays on one: a policy may know boards
of one size only.
"""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of work that is compiled by running it once."""

    name: str
    cost: float
    """How many CPU-seconds it takes where nothing is compiled yet; only the ratios between parts
    count.
    """
    run: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What a part took."""

    name: str
    functions: int
    """The number of functions that were compiled. It is 0 if all of them were found in the
    cache.
    """
    seconds: float


def parts_of(players: Sequence[str]) -> list[Part]:
    """Return the parts of these players, one of which may be `TRAINING`; without any, all built-in
    parts.
    """
    named = list(players) or [*PLAYERS, POLICY, TRAINING]
    training = Part(name=TRAINING, cost=TRAINING_COST, run=step_worlds)
    return [
        (
            training
            if name == TRAINING
            else Part(name=name, cost=PLAYERS.get(name, POLICY_COST), run=partial(play, name))
        )
        for name in named
    ]


def compile_parts(parts: Sequence[Part], say: Callable[[str], None]) -> list[Compiled]:
    """Compile the parts in sequence, and print an estimate of the remaining time before each.

    The estimate assumes the machine's speed so far. Raises what `agents.make` raises."""
    done: list[Compiled] = []
    with _counting() as count:
        for number, part in enumerate(parts):
            say(f"{number + 1} of {len(parts)}: {part.name}, {_left(parts, done)}")
            before = count()
            began = time.monotonic()
            part.run()
            done.append(
                Compiled(
                    name=part.name,
                    functions=count() - before,
                    seconds=round(time.monotonic() - began, 1),
                )
            )
    return done


def _left(parts: Sequence[Part], done: Sequence[Compiled]) -> str:
    rest = sum(part.cost for part in parts[len(done) :])
    if not done:
        return f"at most about {rest:.0f} s of processor time for all"
    pace = sum(one.seconds for one in done) / sum(part.cost for part in parts[: len(done)])
    return f"about {rest * pace:.0f} s left"


@contextmanager
def _counting() -> Iterator[Callable[[], int]]:
    """Yields a function that tells how many functions have been compiled since. What comes out of
    the cache doesn't count.
    """
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield lambda: sum(one.is_start for _, one in recorder.buffer)


def play(text: str) -> None:
    """Let a player play two turns with four snakes and in a duel, in one game and in many at once,
    and answer for a server.
    """
    player = Player.parse(text)
    agent = agents.make(player.spec)
    problem: ProcsnakeError | None = None
    for side in SIDES:
        try:
            _play_on(agent, side)
            break
        except ProcsnakeError as error:
            problem = problem or error
    else:
        assert problem is not None
        raise problem
    if find_spec("uvicorn"):
        from serve.server import warm_up

        warm_up({player.name or player.spec: agent})


def _play_on(agent: Agent, side: int) -> None:
    from agents.measure.evaluation import play_games
    from agents.measure.evaluation.referee import Referee

    for seats in (4, 2):
        for _ in Referee(
            [agent] * seats, width=side, height=side, max_turns=2, tell_deadline=False
        ).play():
            pass
        play_games([agent] * seats, num_games=2, width=side, height=side, max_turns=2)


def step_worlds() -> None:
    """Advance the training world by a step, with the observations of our experiments."""
    import numpy as np

    for observation in (
        {"view": "window", "radius": 5, "rotate": True},
        {"type": "bordered-num", "own_first": True},
    ):
        world = envs.make("battlesnake", num_games=2, num_snakes=4, observation=observation)
        world.restart(0)
        world.advance(np.zeros(world.num_envs, np.int64))
        world.close()
