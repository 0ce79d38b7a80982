"""Plays a tournament: several games at a time, but at each snake's server no more than it can take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from agents.agent import Agent, Decision
from agents.evaluation.referee import Referee, RemoteSnake
from agents.registry import make, options_of
from agents.tournament.schedule import games_of_round
from agents.tournament.settings import Game, Match, Player, Seat, Tournament
from agents.tournament.store import Store, StoreError
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, UP, State

OnGame = Callable[[list[Game]], None]
"""A function that is called with all games so far, whenever a game has ended."""
_NO_MOVE = -1
_WARM_UP_MS = 100


@dataclass(frozen=True)
class Fixture:
    """A game that is to be played."""

    round: int
    number: int
    seed: int
    group: tuple[int, ...]
    """Players in slot order."""
    opening: np.ndarray | None = field(default=None, compare=False)
    """Moves int8 (turns, seats) that are made before anybody is asked."""


class _StoppedError(Exception):
    """The tournament was broken off."""


def seat_players(players: Sequence[Player], *, timeout_ms: int, options: Mapping[str, Any] | None = None) -> list[Agent | str]:
    """Return each player in the form that a referee takes. `options` are given to those agents that have them.

    Raises what `agents.make` raises, and `SnakeUnreachableError` if a URL doesn't answer.
    """
    for player in players:
        if player.is_remote:
            snake = RemoteSnake(player.spec, timeout_ms)
            try:
                snake.check()
            finally:
                snake.close()
    return [player.spec if player.is_remote else _make(player.spec, options or {}) for player in players]


def _make(spec: str, options: Mapping[str, Any]) -> Agent:
    known = options_of(spec)
    return make(spec, **{name: value for name, value in options.items() if name in known})


def play_tournament(
    tournament: Tournament,
    store: Store[Tournament],
    *,
    concurrency: int = 1,
    per_server: int = 1,
    on_game: OnGame | None = None,
) -> list[Game]:
    """Play the games that haven't been played yet. Returns all games in the order of the schedule.

    `concurrency` is the number of games at the same time, `per_server` the number of those with snakes behind one host and
    port. A snake behind a URL that hangs, closes or answers nonsense loses only its own game by it. One that doesn't answer at
    the very beginning raises `SnakeUnreachableError`. A local agent that raises ends the tournament; finished games are kept.
    """
    store.begin(tournament)
    seated = seat_players(tournament.players, timeout_ms=tournament.timeout_ms)
    warm_up(tournament, seated)
    games = store.games()
    for round_ in range(tournament.rounds):
        schedule = games_of_round(tournament, round_, [game for game in games if game.round < round_])
        finished = {game.number for game in games if game.round == round_}
        pending = [
            Fixture(round_, number, tournament.game_seed(round_, number), group)
            for number, group in enumerate(schedule)
            if number not in finished
        ]

        def keep(game: Game) -> None:
            store.add(game)
            games.append(game)
            if on_game:
                on_game(games)

        play_side_by_side(tournament, pending, seated, keep, concurrency=concurrency, per_server=per_server)
    return sorted(games, key=lambda game: (game.round, game.number))


def warm_up(match: Match, seated: Sequence[Agent | str]) -> None:
    """A turn of every agent against itself: what is compiled while a game runs would count as its thinking."""
    short = replace(match, max_turns=1, timeout_ms=_WARM_UP_MS)
    for player, seat in enumerate(seated):
        if not isinstance(seat, str):
            for _ in _referee(short, [seat] * short.seats, [player] * short.seats, seed=0).play():
                pass


def play_side_by_side(
    match: Match,
    fixtures: Iterable[Fixture],
    seated: Sequence[Agent | str],
    keep: Callable[[Game], bool | None],
    *,
    concurrency: int,
    per_server: int,
) -> None:
    """Play these games, `concurrency` at the same time, of them `per_server` with snakes behind one host and port.

    `keep` gets each game as it ends, in this thread, and ends it all by returning True: games under way are broken off.
    """
    stop, busy, running = threading.Event(), Counter[str](), dict[Future[Game], set[str]]()
    to_come, passed_over, ended = iter(fixtures), list[Fixture](), False

    def servers_of(fixture: Fixture) -> set[str]:
        return {urlsplit(seat).netloc for player in fixture.group if isinstance(seat := seated[player], str)}

    def next_fixture() -> Fixture | None:
        """The first whose servers have room."""
        waiting = len(passed_over)
        for place, fixture in enumerate(chain(list(passed_over), to_come)):
            new = place >= waiting
            if all(busy[server] < per_server for server in servers_of(fixture)):
                if not new:
                    passed_over.remove(fixture)
                return fixture
            if new:
                passed_over.append(fixture)
        return None

    with ThreadPoolExecutor(concurrency) as pool:
        try:
            while not ended:
                while len(running) < concurrency and (fixture := next_fixture()) is not None:
                    busy.update(servers := servers_of(fixture))
                    running[pool.submit(play_game, match, fixture, seated, stop)] = servers
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    busy.subtract(running.pop(future))
                    ended = bool(keep(future.result())) or ended
        finally:
            stop.set()


def play_game(match: Match, fixture: Fixture, seated: Sequence[Agent | str], stop: threading.Event | None = None) -> Game:
    """Play one game. `seated` has each player in the form that a referee takes."""
    group = fixture.group
    referee = _referee(match, [seated[player] for player in group], group, fixture.seed, opening=fixture.opening)
    moves: list[list[int]] = []
    latencies: list[list[float]] = [[] for _ in group]
    cpu: list[list[float]] = [[] for _ in group]
    failures: list[list[str]] = [[] for _ in group]
    for frame in referee.play():
        if stop is not None and stop.is_set():
            raise _StoppedError
        if frame.state.arrays.turn[0]:
            moves.append([_NO_MOVE if move is None else move for move in frame.moves])
        for slot in range(len(group)):
            if (latency := frame.latencies_ms[slot]) is not None:
                latencies[slot].append(latency)
            if slot in frame.failures:
                failures[slot].append(frame.failures[slot])
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
            raise StoreError(f"the stored moves end on turn {turn}, before the game does: they are not those of its seed")
        move = int(self.moves[turn])
        return Decision(UP if move == _NO_MOVE else move)


def record(match: Match, game: Game, path: Path) -> Recording:
    """Play a game's moves again and write it as a recording."""
    group = [seat.player for seat in game.seats]
    scripts = [Scripted(game.moves[:, slot]) for slot in range(len(group))]
    for _ in _referee(match, scripts, group, game.seed, recording=path).play():
        pass
    return Recording.read(path)
