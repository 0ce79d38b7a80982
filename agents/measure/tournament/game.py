"""Plays one game of a match, such as a tournament: who sits where, how it is played, and how its
moves are played again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agents.agent import Agent, Decision
from agents.measure.evaluation.referee import Referee, RemoteSnake
from agents.measure.tournament.settings import Game, Match, Seat
from agents.measure.tournament.store import StoreError
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, UP, State
from envs.common.errors import ProcsnakeError

_NO_MOVE = -1
_WARM_UP_MS = 100


@dataclass(frozen=True)
class Fixture:
    """A game that is to be played."""

    round: int
    number: int
    seed: int
    group: tuple[int, ...]
    """The numbers of the players, in slot order."""
    opening: np.ndarray | None = field(default=None, compare=False)
    """The moves of the first turns, int8 (turns, seats), on which nobody is asked."""


class BrokenOffError(ProcsnakeError):
    """A game was broken off, because its match has ended. Nobody is told of it."""


def check_urls(match: Match) -> None:
    """Raise `SnakeUnreachableError` if a player's URL doesn't answer."""
    for player in match.players:
        if player.is_remote:
            snake = RemoteSnake(player.spec, match.timeout_ms)
            try:
                snake.check()
            finally:
                snake.close()


def seat_players(match: Match) -> list[Agent | str]:
    """Return each player in the form that a referee takes, at the match's effort. Raises what
    `agents.make` raises.
    """
    return [
        player.spec if player.is_remote else match.effort.make(player.spec)
        for player in match.players
    ]


def ready_players(match: Match) -> list[Agent | str]:
    """Return what `seat_players` returns, after every agent has played a turn against itself.

    Without this turn, kernels would be compiled during a game, which would count as an agent's
    thinking."""
    seated = seat_players(match)
    short = replace(match, max_turns=1, timeout_ms=_WARM_UP_MS)
    for player, seat in enumerate(seated):
        if not isinstance(seat, str):
            for _ in _referee(short, [seat] * short.seats, [player] * short.seats, seed=0).play():
                pass
    return seated


def play_game(
    match: Match,
    fixture: Fixture,
    seated: Sequence[Agent | str],
    stop: threading.Event | None = None,
) -> Game:
    """Play one game. `seated` has each player in the form that a referee takes."""
    group = fixture.group
    referee = _referee(
        match, [seated[player] for player in group], group, fixture.seed, opening=fixture.opening
    )
    moves: list[list[int]] = []
    latencies: list[list[float]] = [[] for _ in group]
    cpu: list[list[float]] = [[] for _ in group]
    failures: list[list[str]] = [[] for _ in group]
    excused = [0] * len(group)
    for frame in referee.play():
        if stop is not None and stop.is_set():
            raise BrokenOffError(f"game {fixture.round}/{fixture.number} was broken off")
        if frame.state.arrays.turn[0]:
            moves.append([_NO_MOVE if move is None else move for move in frame.moves])
        for slot in range(len(group)):
            if (latency := frame.latencies_ms[slot]) is not None:
                latencies[slot].append(latency)
            if slot in frame.failures:
                failures[slot].append(frame.failures[slot])
            excused[slot] += slot in frame.excused
            if (cpu_ms := frame.cpu_ms[slot]) is not None:
                cpu[slot].append(cpu_ms)
    places = _places(referee.state)
    a = referee.state.arrays
    seats = tuple(
        Seat(
            player=player,
            place=places[slot],
            cause=CAUSE_NAMES[a.cause[0, slot]],
            died=int(a.death_turn[0, slot]),
            length=int(a.length[0, slot]),
            latency_ms=round(float(np.median(latencies[slot] or [0.0])), 3),
            slowest_ms=round(max(latencies[slot], default=0.0), 3),
            failures=len(failures[slot]),
            failure=failures[slot][0][:200] if failures[slot] else "",
            cpu_ms=round(float(np.mean(cpu[slot] or [0.0])), 3),
            excused=excused[slot],
        )
        for slot, player in enumerate(group)
    )
    played = np.array(moves, np.int8).reshape(-1, len(group))
    return Game(fixture.round, fixture.number, fixture.seed, len(moves), seats, played)


def _referee(
    match: Match,
    seats: Sequence[Agent | str],
    group: Sequence[int],
    seed: int,
    *,
    recording: Path | None = None,
    opening: np.ndarray | None = None,
) -> Referee:
    return Referee(
        seats,
        settings=match.settings,
        width=match.width,
        height=match.height,
        seed=seed,
        timeout_ms=match.timeout_ms,
        max_turns=match.max_turns,
        names=[match.names[player] for player in group],
        tell_deadline=match.tell_deadline,
        must_answer=False,
        recording=recording,
        opening=opening,
        # Where effort is by time-out, a busy machine costs everyone his time, and who is late loses
        # by it.
        excuse_bursts=bool(match.effort.options),
    )


def _places(state: State) -> list[int]:
    """By slot: 1 plus how many outlived it."""
    a = state.arrays
    lasted = np.where(a.cause[0] == ALIVE, 1 << 30, a.death_turn[0])
    return [1 + int((lasted > own).sum()) for own in lasted]


class Scripted(Agent):
    """An agent that plays given moves, one for each turn."""

    name = "scripted"

    def __init__(self, moves: np.ndarray) -> None:
        self.moves = moves

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return self.moves[state.arrays.turn[boards]]

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        turn = int(state.arrays.turn[0])
        if turn >= len(self.moves):
            raise StoreError(
                f"the stored moves end on turn {turn}, before the game does: they are not those of"
                " its seed"
            )
        move = int(self.moves[turn])
        return Decision(UP if move == _NO_MOVE else move)


def record(match: Match, game: Game, path: Path) -> Recording:
    """Play a game's moves again and write it as a recording."""
    group = [seat.player for seat in game.seats]
    scripts = [Scripted(game.moves[:, slot]) for slot in range(len(group))]
    for _ in _referee(match, scripts, group, game.seed, recording=path).play():
        pass
    return Recording.read(path)


def replayed(match: Match, game: Game) -> Iterator[tuple[int, State]]:
    """Play a game's moves again. Yield each turn's number and the state before its moves, which is
    one object that changes.
    """
    state = State(
        1,
        width=match.width,
        height=match.height,
        num_snakes=len(game.seats),
        settings=match.settings,
    )
    state.seed(game.seed)
    running = start_games(state)
    for turn, moves in enumerate(game.moves):
        yield turn, state
        play_turn(state, moves[None], running)
