"""Playing a tournament: games side by side, no more at a snake's server than it can take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from agents.agent import Agent, Decision
from agents.referee import Referee, RemoteSnake
from agents.registry import make
from agents.tournament.rules import Game, Player, Seat, Tournament
from agents.tournament.schedule import games_of_round
from agents.tournament.store import Store
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, UP, State

OnGame = Callable[[list[Game]], None]
"""Gets all games so far, whenever one has ended."""
_NO_MOVE = -1
_WARM_UP_MS = 100


class _StoppedError(Exception):
    """The tournament was broken off."""


def seat_players(players: Sequence[Player], *, timeout_ms: int) -> list[Agent | str]:
    """Each player as a referee takes it. Raises what `agents.make` raises; `SnakeUnreachableError` if a URL doesn't answer."""
    for player in players:
        if player.is_remote:
            snake = RemoteSnake(player.spec, timeout_ms)
            try:
                snake.check()
            finally:
                snake.close()
    return [player.spec if player.is_remote else make(player.spec) for player in players]


def play_tournament(
    tournament: Tournament,
    store: Store,
    *,
    concurrency: int = 1,
    per_server: int = 1,
    on_game: OnGame | None = None,
) -> list[Game]:
    """Play what is still to be played; returns all games in the order of the schedule.

    `concurrency`: games at the same time; `per_server`: of those, with snakes behind one host and port. A snake behind a URL
    that hangs, closes or talks nonsense loses its own game by it and no more; one that doesn't answer at the very beginning
    raises `SnakeUnreachableError`. An agent here that raises ends the tournament; finished games are kept.
    """
    store.begin(tournament)
    seated = seat_players(tournament.players, timeout_ms=tournament.timeout_ms)
    _warm_up(tournament, seated)
    games = store.games()
    for round_ in range(tournament.rounds):
        schedule = games_of_round(tournament, round_, [game for game in games if game.round < round_])
        finished = {game.number for game in games if game.round == round_}
        pending = [(number, group) for number, group in enumerate(schedule) if number not in finished]

        def keep(game: Game) -> None:
            store.add(game)
            games.append(game)
            if on_game:
                on_game(games)

        _play_round(tournament, round_, pending, seated, concurrency, per_server, keep)
    return sorted(games, key=lambda game: (game.round, game.number))


def _warm_up(tournament: Tournament, seated: Sequence[Agent | str]) -> None:
    """A turn of every agent against itself: what is compiled while a game runs would count as its thinking."""
    short = replace(tournament, max_turns=1, timeout_ms=_WARM_UP_MS)
    for player, seat in enumerate(seated):
        if not isinstance(seat, str):
            for _ in _referee(short, [seat] * short.seats, [player] * short.seats, seed=0).play():
                pass


def _play_round(
    tournament: Tournament,
    round_: int,
    pending: list[tuple[int, tuple[int, ...]]],
    seated: Sequence[Agent | str],
    concurrency: int,
    per_server: int,
    keep: Callable[[Game], None],
) -> None:
    stop, busy, running = threading.Event(), Counter[str](), dict[Future[Game], set[str]]()
    with ThreadPoolExecutor(concurrency) as pool:
        try:
            while pending or running:
                for number, group in list(pending):
                    if len(running) == concurrency:
                        break
                    servers = {urlsplit(seat).netloc for player in group if isinstance(seat := seated[player], str)}
                    if all(busy[server] < per_server for server in servers):
                        pending.remove((number, group))
                        busy.update(servers)
                        running[pool.submit(play_game, tournament, round_, number, group, seated, stop)] = servers
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    busy.subtract(running.pop(future))
                    keep(future.result())
        finally:
            stop.set()


def play_game(
    tournament: Tournament,
    round_: int,
    number: int,
    group: Sequence[int],
    seated: Sequence[Agent | str],
    stop: threading.Event | None = None,
) -> Game:
    """One game of the players `group`, in slot order."""
    seed = tournament.game_seed(round_, number)
    referee = _referee(tournament, [seated[player] for player in group], group, seed)
    moves, latencies, failures = [], [[] for _ in group], [[] for _ in group]
    for frame in referee.play():
        if stop is not None and stop.is_set():
            raise _StoppedError
        if frame.state.arrays.turn[0]:
            moves.append([_NO_MOVE if move is None else move for move in frame.moves])
        for slot in range(len(group)):
            if frame.latencies_ms[slot] is not None:
                latencies[slot].append(frame.latencies_ms[slot])
            if slot in frame.failures:
                failures[slot].append(frame.failures[slot])
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
        )
        for slot, player in enumerate(group)
    )
    return Game(round_, number, seed, len(moves), seats, np.array(moves, np.int8).reshape(-1, len(group)))


def _referee(
    tournament: Tournament, seats: Sequence[Agent | str], group: Sequence[int], seed: int, recording: Path | None = None
) -> Referee:
    return Referee(
        seats,
        settings=tournament.settings,
        width=tournament.width,
        height=tournament.height,
        seed=seed,
        timeout_ms=tournament.timeout_ms,
        max_turns=tournament.max_turns,
        names=[tournament.names[player] for player in group],
        tell_deadline=tournament.tell_deadline,
        must_answer=False,
        recording=recording,
    )


def _places(state: State) -> list[int]:
    """By slot: 1 plus how many outlived it."""
    a = state.arrays
    lasted = np.where(a.cause[0] == ALIVE, 1 << 30, a.death_turn[0])
    return [1 + int((lasted > own).sum()) for own in lasted]


class Scripted(Agent):
    """Plays moves that are known: one for each turn."""

    name = "scripted"

    def __init__(self, moves: np.ndarray) -> None:
        self.moves = moves

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return self.moves[state.arrays.turn[boards]]

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        move = int(self.moves[state.arrays.turn[0]])
        return Decision(UP if move == _NO_MOVE else move)


def record(tournament: Tournament, game: Game, path: Path) -> Recording:
    """Play a game's moves again and write it as a recording."""
    group = [seat.player for seat in game.seats]
    scripts = [Scripted(game.moves[:, slot]) for slot in range(len(group))]
    for _ in _referee(tournament, scripts, group, game.seed, recording=path).play():
        pass
    return Recording.read(path)
