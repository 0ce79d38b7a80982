"""The command `procsnake tune-search`: a search's options are tuned by games, and its weights by
recorded results.
"""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import Commands, add_json, add_seed, at_least
from procsnake.cli.train.tuning_conditions import add_conditions, add_opening_and_length

HELP = """\
SPSA (games) moves all parameters at once, up or down by coins, plays the two sides against each
other, and steps towards the better one. Texel's method (results) fits weights to the results of
recorded games. Either way the result is a file of options, which is not accepted until a
sequential test has found it better: accept plays that test. learn fits many weights of
alphabeta's evaluation of duels to exploratory self-play, and writes a file for its option
evaluation; procsnake train battlesnake-evaluation is the same as a run with tests, generation
after generation. Games are kept as they end: the same command goes on.

examples:
  procsnake tune-search parameters alphabeta
  procsnake tune-search games alphabeta --parameters weights.length,weights.hunger \\
     --pairs 2000 --nodes 300
  # NAME:C_END:R_END
  procsnake tune-search games alphabeta --parameters near:2,weights.cell:1:0.01 --pairs 2000 \\
     --nodes 300
  procsnake tune-search results alphabeta outputs/sprt.db outputs/tournament.db --parameters weights
  procsnake tune-search accept alphabeta outputs/tuned-alphabeta.yaml --nodes 300
  procsnake tune-search learn alphabeta outputs/learned.json --games 2400 --nodes 300
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    _add_parameters(add("parameters", _list_parameters, "List what can be tuned.", ""))
    _add_games(add("games", _by_games, "Tune by games, with SPSA.", ""))
    _add_results(
        add("results", _by_results, "Tune weights by recorded games, with Texel's method.", "")
    )
    _add_accept(add("accept", _accept, "Play the test that a tuned file has to pass.", ""))
    _add_learn(add("learn", _learn, "Learn an evaluation of duels from self-play.", ""))


def _add_player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player",
        help="the search; NAME?option=value&... gives it fixed options, and starting values",
    )


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", type=at_least(1), help="games at the same time (default: as many as cores)"
    )


def _add_tuned(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameters",
        required=True,
        metavar="NAMES",
        help="what is tuned, with commas: names, weights, or all",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file of options to write (default: outputs/tuned-SEARCH.yaml)",
    )
    add_json(parser)


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)


def _add_games(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    _add_tuned(parser)
    parser.add_argument(
        "--pairs", type=at_least(1), default=1000, help="pairs of games (default: %(default)s)"
    )
    parser.add_argument(
        "--batch",
        type=at_least(1),
        default=8,
        help="pairs between two steps (default: %(default)s)",
    )
    parser.add_argument(
        "--r-end",
        type=float,
        help="last step as a part of c_end (default: 0.002, for tens of thousands)",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="SQLite file of the games (default: outputs/tune-SEARCH.db)"
    )
    _add_jobs(parser)
    add_conditions(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument(
        "recorded", nargs="+", metavar="STORE", help="stores of tournaments and of tests"
    )
    _add_tuned(parser)
    parser.add_argument(
        "--every",
        type=at_least(1),
        default=3,
        help="turns between positions (default: %(default)s)",
    )
    parser.add_argument("--games", type=at_least(2), help="games of a store at most (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the test that is suggested then")


def _add_accept(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument("file", metavar="FILE", help="the tuned file of options")
    parser.add_argument(
        "--elo0",
        type=float,
        default=0.0,
        help="normalised Elo under H0 (default: %(default)s)",
    )
    parser.add_argument(
        "--elo1", type=float, default=10.0, help="the same under H1 (default: %(default)s)"
    )
    parser.add_argument(
        "--games",
        type=at_least(2),
        help="games after which the test ends undecided (default: never)",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="SQLite file of the games (default: outputs/FILE-test.db)"
    )
    add_json(parser)
    _add_jobs(parser)
    add_conditions(parser)


def _add_learn(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument("out", metavar="FILE", help="file of the evaluation to write")
    parser.add_argument(
        "--nodes", type=at_least(1), default=300, help="nodes per move (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=at_least(2), default=2400, help="games to play (default: %(default)s)"
    )
    add_opening_and_length(parser)
    for side in ("width", "height"):
        parser.add_argument(
            f"--{side}", type=int, default=11, help=f"board {side} (default: %(default)s)"
        )
    add_seed(parser)
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="folder of the positions (default: outputs/learn-alphabeta)",
    )
    add_json(parser)
    _add_jobs(parser)


# Importing a search compiles nothing, but it imports Numba. Neither --help nor the shell's
# completion is to wait for that.


def _list_parameters(options: argparse.Namespace) -> int:
    from agents.search.tuning.parameters import parameters_of, table

    print(table(parameters_of(options.player)))
    return 0


def _by_games(options: argparse.Namespace) -> int:
    from procsnake.cli.train.tune_options import run_games

    return run_games(options)


def _by_results(options: argparse.Namespace) -> int:
    from procsnake.cli.train.tune_options import run_results

    return run_results(options)


def _accept(options: argparse.Namespace) -> int:
    from procsnake.cli.train.accept import run_accept

    return run_accept(options)


def _learn(options: argparse.Namespace) -> int:
    from procsnake.cli.train.learn import run_learn

    return run_learn(options)
