"""The command `procsnake tournament`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from envs.common.outputs import make_place_for
from envs.common.strangers.printable import printable
from envs.common.terminal import Redrawn, columns, wants_color
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import at_least, print_json, refuse_given
from procsnake.cli.effort_options import tell_own_efforts
from procsnake.cli.measure.match_options import (
    add_match_options,
    chosen_workers,
    match_settings,
    refuse_strangers_rules,
    with_given_settings,
)

HELP = """\
A player is a built-in agent, a run folder, a policy bundle, a file of rules, or the URL of any
Battlesnake server. NAME=PLAYER renames it. Games are stored in --store as they end, so repeating
the command continues the tournament.

examples:
  procsnake tournament flood greedy classics alphabeta --games 10
  procsnake tournament mine=http://127.0.0.1:8000 flood alphabeta mcts --seats 4 \\
     --report report.html
  procsnake tournament old=runs/a new=runs/b flood --form ladder --rounds 5 --jobs 2
  # single elimination, best of three
  procsnake tournament alphabeta flood greedy classics random --form bracket --games 3
  procsnake tournament --rounds 10    # continue it
"""
_BETWEEN_TABLES_S = 0.5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "players", nargs="*", metavar="PLAYER", help="players (default: the store's)"
    )
    parser.add_argument(
        "--form",
        default="round-robin",
        help="round-robin, swiss, ladder or bracket (default: %(default)s)",
    )
    parser.add_argument(
        "--seats", type=int, default=2, help="snakes per game, 2 to 8 (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds",
        type=at_least(1),
        help="number of rounds (default: 1; swiss: 5; ladder: one per player)",
    )
    games = (
        "games per group and round (default: 2); in a bracket, games per match, best of N"
        " (default: 3)"
    )
    parser.add_argument("--games", type=at_least(1), help=games)
    parser.add_argument("--report", metavar="FILE", help="write an HTML page")
    parser.add_argument(
        "--replays",
        type=at_least(0),
        default=10,
        help="animated games in the report (default: %(default)s)",
    )
    think = "let local agents think until the timeout; short for --time TIMEOUT --wall"
    parser.add_argument("--think", action="store_true", help=think)
    parser.add_argument(
        "--replay", metavar="ROUND/NUMBER", help="show a stored game, or write it to --out"
    )
    parser.add_argument("--out", metavar="FILE", help="with --replay: .jsonl, .gif, .svg or .mp4")
    add_match_options(parser, store="tournament.db", jobs="1")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake tournament`. Returns the exit code."""
    from agents.measure.tournament.play import play_tournament
    from agents.measure.tournament.report import write_report
    from agents.measure.tournament.settings import Tournament
    from agents.measure.tournament.store import Store

    if options.json and options.replay:
        raise ConfigError("--json prints the standings; leave it out to see a game by --replay")
    if options.replay:
        refuse_given(options, ("report",), "the standings; leave it out to see a game by --replay")
    else:
        refuse_given(options, ("out",), "--replay; leave it out, or name a game: --replay 0/3")
    if not options.players and not os.path.isfile(options.store):
        raise ConfigError(
            f"there is no {options.store} to continue, and no players to start with. Name two"
            " players or more"
        )
    make_place_for(options.store)
    with Store(options.store, Tournament) as store:
        if options.replay:
            return _replay(store, options)
        tournament = _tournament(store, options)
        store.games()  # a damaged file is told before anything else
        if options.report:
            make_folder_of(Path(options.report))
        print(f"the tournament is kept in {options.store}", file=sys.stderr)
        tell_own_efforts(tournament.effort, tournament.names_and_specs)
        with _LiveStandings(tournament) as live, chosen_workers(options, 1) as (workers, jobs):
            games = play_tournament(
                tournament,
                store,
                concurrency=jobs,
                per_server=options.per_server,
                workers=workers,
                on_game=live,
            )
    _tell(tournament, games, as_json=options.json)
    if options.report:
        print(
            "report:"
            f" {write_report(tournament, games, Path(options.report), replays=options.replays)}",
            file=sys.stderr,
        )
    return 0


def _tell(tournament: Any, games: Sequence[Any], *, as_json: bool) -> None:
    """Print the standings, and a bracket's matches before them."""
    from agents.measure.tournament import bracket
    from agents.measure.tournament.standings import standings, table

    rows = standings(tournament, games)
    is_bracket = tournament.form == "bracket"
    if as_json:
        plain_rows = [asdict(row) for row in rows]
        if is_bracket:
            print_json({**bracket.as_json(tournament, games), "standings": plain_rows})
        else:
            print_json(plain_rows)
        return
    if is_bracket:
        print(f"{bracket.table(tournament, games)}\n")
    print(table(rows))


def _tournament(store: Any, options: argparse.Namespace) -> Any:
    """The tournament that is asked for, or the store's, perhaps with more rounds."""
    from dataclasses import replace

    from agents.measure.tournament.settings import Player

    if options.players:
        request = _asked_for(options, tuple(Player.parse(text).named() for text in options.players))
        # Whoever names a player means what it is now, also where no games are left to play.
        store.refuse_changed(request)
        return request
    stored = store.load()
    if stored is None:
        raise ConfigError(f"{options.store} holds no tournament. Name two players or more")
    refuse_strangers_rules(store, stored, options)
    continued = with_given_settings(
        stored, options, add_options, lambda parsed: _asked_for(parsed, stored.players)
    )
    if options.rounds is None:
        return continued
    return replace(continued, rounds=options.rounds)


def _asked_for(options: argparse.Namespace, players: Sequence[Any]) -> Any:
    from agents.measure.tournament.settings import Tournament

    settings = match_settings(options)
    is_bracket = options.form == "bracket"
    if is_bracket and options.rounds:
        raise ConfigError("a bracket's number of players sets its rounds; leave out --rounds")
    rounds = options.rounds or {"swiss": 5, "ladder": len(players)}.get(options.form, 1)
    return Tournament(
        players=tuple(players),
        form=options.form,
        seats=options.seats,
        rounds=rounds,
        games=options.games or (3 if is_bracket else 2),
        **{**settings, "tell_deadline": options.think or settings["tell_deadline"]},
    )


def _replay(store: Any, options: argparse.Namespace) -> int:
    import tempfile

    from agents.measure.tournament.game import record
    from envs.battlesnake.render.animation import save_animation
    from envs.battlesnake.render.ansi import draw_board
    from envs.common.terminal import draw_all

    tournament = store.load()
    games = [game for game in store.games() if f"{game.round}/{game.number}" == options.replay]
    if not games:
        raise ConfigError(
            f"{options.store} holds no game {options.replay!r}; name one as ROUND/NUMBER, such"
            " as 0/3"
        )
    target = Path(options.out) if options.out else None
    if target is not None and target.suffix == ".jsonl":
        record(tournament, games[0], target)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            recording = record(tournament, games[0], Path(scratch) / "game.jsonl")
        if target is None:
            draw_all(
                (
                    draw_board(board, color=wants_color(), columns=columns())
                    for board in recording.boards()
                ),
                0.12,
            )
            return 0
        save_animation(recording, target)
    print(f"written: {target}")
    return 0


class _LiveStandings:
    """A context manager that shows the standings during the games: redrawn on a terminal, else a
    line per game on stderr.
    """

    def __init__(self, tournament: Any) -> None:
        self.tournament = tournament
        self.shown = 0.0
        self._screen = Redrawn(sys.stderr)

    def __enter__(self) -> _LiveStandings:
        self._screen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.__exit__()

    def __call__(self, games: Sequence[Any]) -> None:
        from agents.measure.tournament.standings import standings, table

        game = games[-1]
        if not self._screen.live:
            if game.winner is None:
                winner = "a draw"
            else:
                winner = f"{self.tournament.names[game.winner]} wins"
            print(
                f"game {game.round}/{game.number}: {printable(winner)} after {game.turns} turns",
                file=sys.stderr,
            )
            return
        if time.monotonic() - self.shown < _BETWEEN_TABLES_S:
            return
        if self.tournament.form == "bracket":
            of = ""
        else:
            of = f" of {self.tournament.rounds}"
        head = f"round {game.round + 1}{of}, {len(games)} games"
        self._screen.show(f"{head}\n{table(standings(self.tournament, games))}")
        self.shown = time.monotonic()
