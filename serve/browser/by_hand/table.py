"""Sets up a person's games: the seats, the rules, and the referee who plays them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agents.agent import Agent
from agents.measure.evaluation.referee import Frame, Referee
from agents.player import Player
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.rules import is_over
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import UP, State
from envs.common.errors import ConfigError, ProcsnakeError
from serve.browser.viewer.hosted_game import HostedGame

YOU = 0
NAME = "you"
"""The person's slot and name."""
OPPONENTS = ("champion-standard", "flood")
"""The opponents of a person who names none."""
MAX_TURNS = 5000
Moves = list[int | None]
"""The moves of one turn by slot; None for dead snakes."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The opponents, rules, board and seed with which a game begins."""

    opponents: tuple[str, ...] = OPPONENTS
    """Agents or URLs, as commands take them: PLAYER or NAME=PLAYER. Without any, the game is played
    solo.
    """
    settings: Settings = field(default_factory=Settings)
    width: int = 11
    height: int = 11
    seed: int = 0


class Person(Agent):
    """The person's seat. It plays `move`, 0..3, whatever the board."""

    name = NAME

    def __init__(self) -> None:
        self.move = UP

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return np.full(len(boards), self.move, np.int8)


@dataclass(frozen=True)
class RunningGame:
    """A game that is being played."""

    setup: Setup
    referee: Referee
    hosted: HostedGame
    frames: Generator[Frame, None, None]
    path: Path

    def end_if_over(self) -> None:
        """Let the referee finish a game that is over, instead of asking for moves."""
        state = self.referee.state
        if is_over(state.arrays, 0, state.rules) or state.arrays.turn[0] >= MAX_TURNS:
            for _ in self.frames:
                pass


class Table:
    """Starts games. Opponents have no state between games, so each is made once; `make` makes one
    from its spec.
    """

    def __init__(
        self, *, make: Callable[[str], Agent], adviser: Agent, timeout_ms: int, tell_deadline: bool
    ) -> None:
        self._make = make
        self._adviser = adviser
        self._timeout_ms = timeout_ms
        self._tell_deadline = tell_deadline
        self._agents = dict[str, Agent]()
        self.person = Person()

    def begin(self, setup: Setup, path: Path, moves: Sequence[Moves] = ()) -> RunningGame:
        """Return a game whose first turns are given by `moves`, and that is recorded to `path`.

        Raises what `HumanGame.new` raises.
        """
        referee = self._referee(setup, path, moves)
        if not moves:
            self._try_out(referee)
        hosted = HostedGame(referee, path)
        game = RunningGame(setup, referee, hosted, hosted.play(), path)
        for _ in range(len(moves) + 1):
            next(game.frames)
        game.end_if_over()
        return game

    def _referee(self, setup: Setup, path: Path, moves: Sequence[Moves]) -> Referee:
        opponents = [Player.parse(text) for text in setup.opponents]
        return Referee(
            [self.person, *(self._seat(player.spec) for player in opponents)],
            names=[NAME, *(player.name for player in opponents)],
            settings=setup.settings,
            width=setup.width,
            height=setup.height,
            seed=setup.seed,
            timeout_ms=self._timeout_ms,
            tell_deadline=self._tell_deadline,
            max_turns=MAX_TURNS,
            recording=path,
            opening=np.array([_without_gaps(row) for row in moves], np.int8),
        )

    def _seat(self, spec: str) -> Agent | str:
        if "://" in spec:
            return spec
        if spec not in self._agents:
            self._agents[spec] = self._make(spec)
        return self._agents[spec]

    def _try_out(self, referee: Referee) -> None:
        """Have all play a turn beside the game: who doesn't know such boards says so now, and all
        kernels are compiled.
        """
        state = referee.state.copy()
        running = start_games(state)
        for slot, seat in enumerate(referee.seats):
            if not isinstance(seat, str):
                _try_out_seat(seat, state.copy(), slot)
        with suppress(ProcsnakeError):  # whoever asks for a hint is told then
            self._adviser.act(state.copy(), YOU)
        play_turn(state, np.zeros((1, len(referee.seats)), np.int8), running)


def _without_gaps(moves: Moves) -> list[int]:
    """The moves of one turn, with one for each dead snake, too: any will do."""
    return [UP if move is None else move for move in moves]


def _try_out_seat(agent: Agent, state: State, slot: int) -> None:
    try:
        agent.act(state, slot)
    except ProcsnakeError:
        raise
    except Exception as error:  # rules of the user's own may raise anything
        raise ConfigError(
            f"{agent.name} can't play: its first move failed ({type(error).__name__}: {error})"
        ) from error
