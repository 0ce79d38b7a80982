"""The command `procsnake tune-search`: it tunes a search's options by games, and its weights by
recorded results.
"""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import Commands, add_json, add_seed, at_least
from procsnake.cli.train.tuning_conditions import add_conditions, add_opening_and_length

HELP = """\
games tunes by SPSA: it shifts all parameters at once in random directions, plays the two
shifted players against each other, and steps towards the better one. results fits weights to
recorded games by Texel's method. Both write a file of options. accept plays the sequential
test that such a file has to pass. learn fits alphabeta's evaluation of duels to self-play;
`procsnake train battlesnake-evaluation` does so over several generations, with tests. Games
are stored as they end, so repeating a command continues it.

examples:
  procsnake tune-search parameters alphabeta
  procsnake tune-search games alphabeta --parameters weights.length,weights.hunger \\
     --pairs 2000 --nodes 300
  procsnake tune-search results alphabeta outputs/sprt.db outputs/tournament.db --parameters weights
  procsnake tune-search accept alphabeta outputs/tuned-alphabeta.yaml --nodes 300
  procsnake tune-search learn alphabeta outputs/learned.json --games 2400 --nodes 300
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    _add_parameters(
        add(
            "parameters",
            _list_parameters,
            "List what can be tuned.",
            "examples:\n  procsnake tune-search parameters alphabeta\n",
        )
    )
    _add_games(
        add(
            "games",
            _by_games,
            "Tune by games, with SPSA.",
            "examples:\n  procsnake tune-search games alphabeta --parameters weights --nodes 300\n",
        )
    )
    _add_results(
        add(
            "results",
            _by_results,
            "Tune weights by recorded games, with Texel's method.",
            "examples:\n  procsnake tune-search results alphabeta STORE --parameters weights\n",
        )
    )
    _add_accept(
        add(
            "accept",
            _accept,
            "Play the test that a tuned file has to pass.",
            "examples:\n  procsnake tune-search accept alphabeta FILE --nodes 300\n",
        )
    )
    _add_learn(
        add(
            "learn",
            _learn,
            "Learn an evaluation of duels from self-play.",
            "examples:\n  procsnake tune-search learn alphabeta outputs/learned.json\n",
        )
    )


def _add_player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player",
        help="search to tune; NAME?option=value&... sets fixed options and starting values",
    )


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=at_least(1), help="parallel games (default: one per core)")


def _add_tuned(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameters",
        required=True,
        metavar="NAMES",
        help=(
            "parameters to tune, separated by commas (each NAME or NAME:C_END:R_END), or"
            " weights, or all"
        ),
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
        help="pairs per step (default: %(default)s)",
    )
    parser.add_argument(
        "--r-end",
        type=float,
        help="step after the last pair, as a fraction of c_end, for each game won more than lost"
        " (default: 0.002, for tens of thousands of pairs)",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="SQLite file of the games (default: outputs/tune-SEARCH.db)"
    )
    _add_jobs(parser)
    add_conditions(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument(
        "recorded", nargs="+", metavar="STORE", help="stores of tournaments or of tests"
    )
    _add_tuned(parser)
    parser.add_argument(
        "--every",
        type=at_least(1),
        default=3,
        help="turns between two positions (default: %(default)s)",
    )
    parser.add_argument(
        "--games", type=at_least(2), help="most games to use per store (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the suggested test")


def _add_accept(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument("file", metavar="FILE", help="tuned file of options")
    parser.add_argument(
        "--elo0",
        type=float,
        default=0.0,
        help="normalised Elo under H0 (default: %(default)s)",
    )
    parser.add_argument(
        "--elo1", type=float, default=10.0, help="normalised Elo under H1 (default: %(default)s)"
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
    parser.add_argument("out", metavar="FILE", help="evaluation file to write")
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
        help="folder for the positions (default: outputs/learn-alphabeta)",
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
