"""Plays one game of a match, such as a tournament, and plays the moves of a finished game again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agents.agent import Agent, Decision
from agents.measure.evaluation.referee import Frame, Referee
from agents.measure.evaluation.remote_snake import RemoteSnake
from agents.measure.tournament.settings import Game, Match, Seat
from agents.measure.tournament.store import StoreError
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, UP, State
from envs.common.errors import ProcsnakeError

_NO_MOVE = -1
_NEVER = 1 << 30
_WARM_UP_MS = 100
_MAX_REASON = 200
"""Characters of a failure's reason that are kept."""


@dataclass(frozen=True)
class Fixture:
    """A game that is to be played."""

    round: int
    number: int
    seed: int
    group: tuple[int, ...]
    """The numbers of the players, in slot order."""
    opening: np.ndarray | None = field(default=None, compare=False)
    """The moves of the first turns, int8 (turns, seats), for which no player is asked."""


class BrokenOffError(ProcsnakeError):
    """A game was broken off, because its match has ended. The error is never shown to anybody."""


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
    seats: list[Agent | str] = []
    for player in match.players:
        if player.is_remote:
            seats.append(player.spec)
        else:
            seats.append(match.effort.make(player.spec))
    return seats


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
    notes = [_SeatNotes() for _ in group]
    for frame in referee.play():
        if stop is not None and stop.is_set():
            raise BrokenOffError(f"game {fixture.round}/{fixture.number} was broken off")
        # The first frame shows the start, which no moves have led to.
        if frame.state.arrays.turn[0]:
            moves.append([_NO_MOVE if move is None else move for move in frame.moves])
        for slot, seat_notes in enumerate(notes):
            seat_notes.add(frame, slot)

    places = _places(referee.state)
    seats = tuple(
        notes[slot].seat(referee.state, slot, player=player, place=places[slot])
        for slot, player in enumerate(group)
    )
    all_moves = np.array(moves, np.int8).reshape(-1, len(group))
    return Game(fixture.round, fixture.number, fixture.seed, len(moves), seats, all_moves)


@dataclass
class _SeatNotes:
    """What one seat's moves cost during a game, and what went wrong with them."""

    latencies_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    excused: int = 0

    def add(self, frame: Frame, slot: int) -> None:
        """Note what a turn has cost this seat."""
        latency_ms = frame.latencies_ms[slot]
        if latency_ms is not None:
            self.latencies_ms.append(latency_ms)
        cpu_ms = frame.cpu_ms[slot]
        if cpu_ms is not None:
            self.cpu_ms.append(cpu_ms)
        if slot in frame.failures:
            self.failures.append(frame.failures[slot])
        self.excused += slot in frame.excused

    def seat(self, state: State, slot: int, *, player: int, place: int) -> Seat:
        """Return the seat's result in a game that has ended in this state."""
        a = state.arrays
        return Seat(
            player=player,
            place=place,
            cause=CAUSE_NAMES[a.cause[0, slot]],
            died=int(a.death_turn[0, slot]),
            length=int(a.length[0, slot]),
            latency_ms=round(float(np.median(self.latencies_ms or [0.0])), 3),
            slowest_ms=round(max(self.latencies_ms, default=0.0), 3),
            failures=len(self.failures),
            failure="".join(self.failures[:1])[:_MAX_REASON],
            cpu_ms=round(float(np.mean(self.cpu_ms or [0.0])), 3),
            excused=self.excused,
        )


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
        # With a fixed effort, a busy machine mustn't decide a game. Where everybody thinks until
        # the time-out, lateness is a part of the game.
        excuse_bursts=bool(match.effort.options),
    )


def _places(state: State) -> list[int]:
    """The place of each slot: 1 plus the number of snakes that outlived it."""
    a = state.arrays
    last_turns = np.where(a.cause[0] == ALIVE, _NEVER, a.death_turn[0])
    return [1 + int((last_turns > own).sum()) for own in last_turns]


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
