"""Plays a tournament: several games at a time, but at each snake's server no more than it can
take.
"""

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

    If none are left to play, the players needn't exist any more.

    `concurrency` is the number of games at the same time, `per_server` the number of those with
    snakes behind one host and port. `workers` says where games are played
    (`agents.measure.tournament.workers`). A snake behind a URL that hangs, closes or answers nonsense loses
    only its own game by it. One that doesn't answer at the very beginning raises
    `SnakeUnreachableError`. A local agent that raises ends the tournament; finished games are kept.
    A player that has changed since the games in the store were played raises `ConfigError`."""
    store.begin(tournament)
    games = store.games()

    def keep(game: Game) -> None:
        store.add(game)
        games.append(game)
        if on_game:
            on_game(games)

    rounds = _pending(tournament, games)
    if first := next(rounds, None):
        store.refuse_changed(tournament)
        check_urls(tournament)
        with workers(tournament, concurrency) as places:
            for pending in chain([first], rounds):
                play_side_by_side(tournament, pending, keep, places, per_server=per_server)
    return sorted(games, key=lambda game: (game.round, game.number))


def _pending(tournament: Tournament, games: Sequence[Game]) -> Iterator[list[Fixture]]:
    """Yield the games that each unfinished round lacks. `games` has to have those of all earlier
    rounds by the time.
    """
    for round_ in count() if tournament.form == "bracket" else range(tournament.rounds):
        schedule = games_of_round(
            tournament, round_, [game for game in games if game.round < round_]
        )
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
    """Play these games, as many at the same time as `workers` can, of them `per_server` with snakes
    behind one host and port.

    `keep` gets each game as it ends, in this thread, and ends it all by returning True. If it does,
    or if anything raises, games under way are broken off."""
    busy = Counter[str]()
    running = dict[Future[Game], set[str]]()
    to_come = iter(fixtures)
    passed_over = list[Fixture]()
    ended = False

    def servers_of(fixture: Fixture) -> set[str]:
        return {
            urlsplit(player.spec).netloc
            for place in fixture.group
            if (player := match.players[place]).is_remote
        }

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

    with ThreadPoolExecutor(workers.count) as pool:
        try:
            while not ended:
                while len(running) < workers.count and (fixture := next_fixture()) is not None:
                    busy.update(servers := servers_of(fixture))
                    running[pool.submit(workers.play, fixture)] = servers
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    busy.subtract(running.pop(future))
                    ended = bool(keep(future.result())) or ended
        finally:
            if running:
                workers.stop()
