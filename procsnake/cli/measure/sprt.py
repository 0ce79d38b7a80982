"""The command `procsnake sprt`, which finds out by a sequential test which of two players is
stronger.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from envs.common.outputs import make_place_for
from envs.common.strangers.printable import printable
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import at_least, print_json
from procsnake.cli.effort_options import tell_own_efforts
from procsnake.cli.live import Live
from procsnake.cli.measure.match_options import (
    add_match_options,
    chosen_workers,
    match_settings,
    refuse_strangers_rules,
    with_given_settings,
)

HELP = """\
H0: A is stronger than B by at most --elo0. H1: by at least --elo1. Both are normalised Elo: the
mean score in units of one game's standard deviation. The two games of a pair have the same start
and food, with seats swapped. The test stops as soon as the likelihoods of H0 and H1 differ
enough. It accepts H1 with probability at most alpha if elo0 is true, and H0 with probability at
most beta if elo1 is true. A clear difference takes dozens of pairs, 10 Elo about 3 000.

Players are those of `tournament`; NAME?option=value sets options. Both sides get the same --nodes
or --time per move. --time is processor time, so load doesn't matter, unless --wall is given.
Agents that don't search and snakes behind URLs ignore these limits. Games are stored in --store
as they end, so repeating the command continues the test.

examples:
  procsnake sprt new=alphabeta?near=9 alphabeta --nodes 2000    # 0 against 10 Elo
  procsnake sprt alphabeta mcts --time 20 --elo0 0 --elo1 30
  # one against three, in all four seats
  procsnake sprt alphabeta champion-standard --snakes 4 --nodes 2000
  # 500 openings to share; play them with --book book.jsonl
  procsnake sprt flood greedy --write-book book.jsonl --games 1000
  procsnake sprt                                              # continue the stored test
"""
_BETWEEN_LINES_S = 10.0
_BETWEEN_REDRAWS_S = 0.5
_BOOK_GAMES = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "players", nargs="*", metavar="PLAYER", help="A and B (default: the store's)"
    )
    parser.add_argument(
        "--elo0",
        type=float,
        default=0.0,
        help="normalised Elo of A over B under H0 (default: %(default)s)",
    )
    parser.add_argument(
        "--elo1",
        type=float,
        default=10.0,
        help="normalised Elo of A over B under H1 (default: %(default)s)",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        help="risk of accepting H1 if elo0 is true (default: %(default)s)",
    )
    parser.add_argument(
        "--beta",
        type=float,
        default=0.05,
        help="risk of accepting H0 if elo1 is true (default: %(default)s)",
    )
    parser.add_argument(
        "--snakes",
        type=int,
        default=2,
        help="snakes per game, 2 to 4: one A, the rest B (default: %(default)s)",
    )
    parser.add_argument(
        "--opening-turns",
        type=at_least(0),
        default=4,
        help="random turns at the start (default: %(default)s)",
    )
    book = parser.add_mutually_exclusive_group()
    book.add_argument(
        "--book",
        metavar="FILE",
        help="openings from this file instead; the test ends when they are used up",
    )
    book.add_argument(
        "--write-book",
        metavar="FILE",
        help="write openings for --games games, and exit",
    )
    parser.add_argument(
        "--games",
        type=at_least(2),
        help="games after which the test ends undecided (default: never)",
    )
    parser.add_argument(
        "--report", metavar="FILE", help="HTML page (default: the store's name with .html)"
    )
    add_match_options(parser, store="sprt.db", jobs="one per core")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake sprt`. Returns the exit code."""
    from agents.measure.sprt.page import verdict_in_words, write_page
    from agents.measure.sprt.play import play_sprt
    from agents.measure.sprt.settings import Sprt
    from agents.measure.tournament.store import Store
    from envs.common.cores import usable_cores

    if not options.players and not os.path.isfile(options.store):
        raise ConfigError(
            f"there is no {options.store} to continue, and no players to start with. Name two"
            " players"
        )
    if options.write_book:
        return _write_book(options)
    make_place_for(options.store)
    if options.report:
        report = Path(options.report)
    else:
        report = Path(options.store).with_suffix(".html")
    with Store(options.store, Sprt) as store:
        test = _test(store, options)
        store.games()  # a damaged file is told before anything else
        make_folder_of(report)
        print(f"the test is kept in {options.store}", file=sys.stderr)
        tell_own_efforts(test.effort, test.names_and_specs)
        with Live(line) as live, chosen_workers(options, usable_cores()) as (workers, jobs):
            progress = play_sprt(
                test,
                store,
                concurrency=jobs,
                per_server=options.per_server,
                workers=workers,
                max_games=options.games,
                on_game=live,
            )
    page = write_page(progress, report)
    (
        print_json(progress.to_dict())
        if options.json
        else print(f"{line(progress)}\n{printable(verdict_in_words(progress))}")
    )
    print(f"report: {page}", file=sys.stderr)
    return 0


def _test(store: Any, options: argparse.Namespace) -> Any:
    """The test that the options describe, or without players the store's."""
    if options.players:
        request = _asked_for(options, _named(options))
        # Whoever names a player means what it is now, also where no games are left to play.
        store.refuse_changed(request)
        return request
    stored = store.load()
    if stored is None:
        raise ConfigError(f"{options.store} holds no test. Name two players")
    refuse_strangers_rules(store, stored, options)
    return with_given_settings(
        stored, options, add_options, lambda parsed: _asked_for(parsed, stored.players)
    )


def _named(options: argparse.Namespace) -> Sequence[Any]:
    from agents.measure.tournament.settings import Player

    return tuple(Player.parse(text).named() for text in options.players)


def _asked_for(options: argparse.Namespace, players: Sequence[Any]) -> Any:
    from dataclasses import replace

    from agents.measure.sprt.openings import read_book
    from agents.measure.sprt.settings import Sprt
    from agents.measure.sprt.statistics import Hypotheses

    test = Sprt(
        players=tuple(players),
        hypotheses=Hypotheses(
            elo0=options.elo0, elo1=options.elo1, alpha=options.alpha, beta=options.beta
        ),
        seats=options.snakes,
        opening_turns=options.opening_turns,
        **match_settings(options),
    )
    if options.book:
        return replace(test, book=read_book(Path(options.book), test))
    return test


def _write_book(options: argparse.Namespace) -> int:
    from agents.measure.sprt.openings import openings, write_book

    test = _asked_for(options, _named(options))
    blocks = max(1, (options.games or _BOOK_GAMES) // test.seats)
    count = write_book(Path(options.write_book), test, openings(test, blocks))
    print(f"written: {options.write_book}, {count} openings", file=sys.stderr)
    return 0


def line(progress: Any) -> str:
    """Return the current state of a test in one line."""
    from agents.measure.sprt.page import estimate_in_words

    hypotheses = progress.test.hypotheses
    strength = progress.strength()
    low, high = hypotheses.bounds
    ratio = (
        f"LLR {progress.ratio:.2f} ({low:.2f} … {high:.2f}) [{hypotheses.elo0:g},"
        f" {hypotheses.elo1:g}]"
    )
    if strength is None:
        return f"no {'pair' if progress.test.seats == 2 else 'block'} yet · {ratio}"
    games = progress.blocks * progress.test.seats
    elo = estimate_in_words(strength.elo)
    return f"games {games} · score {strength.score.value:.1%} · Elo {elo} · {ratio}"
