"""Plays a tournament, with parallel games but a limit per snake server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, count
from urllib.parse import urlsplit

from agents.measure.tournament.game import Fixture, check_urls
from agents.measure.tournament.schedule import games_of_round
from agents.measure.tournament.settings import Game, Match, Tournament
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import GameWorkers, InThreads, MakeWorkers

OnGame = Callable[[list[Game]], None]
"""A function that is called with all games so far, whenever a game has ended."""


def play_tournament(
    tournament: Tournament,
    store: Store[Tournament],
    *,
    concurrency: int = 1,
    per_server: int = 1,
    workers: MakeWorkers = InThreads,
    on_game: OnGame | None = None,
) -> list[Game]:
    """Play the games that haven't been played yet. Returns all games in the order of the schedule.

    If all games have been played, the players needn't exist any more.

    `concurrency` is the number of games at the same time, `per_server` the number of those with
    snakes behind one host and port. `workers` says where games are played
    (`agents.measure.tournament.workers`). A snake behind a URL that hangs, closes or answers
    nonsense affects only its own game. A local agent that raises ends the tournament; finished
    games stay in the store. Raises `SnakeUnreachableError` if a snake doesn't answer at the very
    beginning, and `ConfigError` for a player that has changed since the games in the store were
    played."""
    store.begin(tournament)
    games = store.games()

    def keep(game: Game) -> None:
        store.add(game)
        games.append(game)
        if on_game:
            on_game(games)

    rounds = _pending(tournament, games)
    first = next(rounds, None)
    if first:
        store.refuse_changed(tournament)
        check_urls(tournament)
        with workers(tournament, concurrency) as places:
            for pending in chain([first], rounds):
                play_side_by_side(tournament, pending, keep, places, per_server=per_server)
    return sorted(games, key=lambda game: (game.round, game.number))


def _pending(tournament: Tournament, games: Sequence[Game]) -> Iterator[list[Fixture]]:
    """Yield the games that each unfinished round lacks. Before the next round is asked for, `games`
    must have got those of all earlier ones.
    """
    for round_ in count():
        if round_ >= tournament.rounds and tournament.form != "bracket":
            return
        earlier = [game for game in games if game.round < round_]
        schedule = games_of_round(tournament, round_, earlier)
        if not schedule:
            return
        finished = {game.number for game in games if game.round == round_}
        pending = [
            Fixture(round_, number, tournament.game_seed(round_, number), group)
            for number, group in enumerate(schedule)
            if number not in finished
        ]
        if pending:
            yield pending


def play_side_by_side(
    match: Match,
    fixtures: Iterable[Fixture],
    keep: Callable[[Game], bool | None],
    workers: GameWorkers,
    *,
    per_server: int,
) -> None:
    """Play these games, as many at the same time as `workers` can, but at most `per_server` of them
    with snakes behind one host and port.

    `keep` is called with each game that has ended, in this thread. If it returns True, no further
    games are played. Then, and if anything raises, games under way are broken off."""
    busy = Counter[str]()
    running = dict[Future[Game], set[str]]()
    to_come = iter(fixtures)
    passed_over = list[Fixture]()
    ended = False

    def servers_of(fixture: Fixture) -> set[str]:
        players = [match.players[number] for number in fixture.group]
        return {urlsplit(player.spec).netloc for player in players if player.is_remote}

    def has_room(fixture: Fixture) -> bool:
        return all(busy[server] < per_server for server in servers_of(fixture))

    def next_fixture() -> Fixture | None:
        """Take the first game whose servers have room, of those that were passed over before first
        of all.
        """
        for fixture in passed_over:
            if has_room(fixture):
                passed_over.remove(fixture)
                return fixture
        for fixture in to_come:
            if has_room(fixture):
                return fixture
            passed_over.append(fixture)
        return None

    with ThreadPoolExecutor(workers.count) as pool:
        try:
            while not ended:
                while len(running) < workers.count:
                    fixture = next_fixture()
                    if fixture is None:
                        break
                    servers = servers_of(fixture)
                    busy.update(servers)
                    running[pool.submit(workers.play, fixture)] = servers
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    busy.subtract(running.pop(future))
                    ended = bool(keep(future.result())) or ended
        finally:
            if running:
                workers.stop()
