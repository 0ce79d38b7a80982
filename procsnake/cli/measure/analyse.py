"""The command `procsnake analyse`: it rates a recorded game's moves, finds where it was lost, and
counts a snake's causes of death.
"""

from __future__ import annotations

import argparse
import sys
import time
import webbrowser
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError
from envs.common.outputs import kept_at, make_place_for
from envs.common.strangers.printable import printable
from envs.common.terminal import Progress
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import add_json, at_least, print_json
from procsnake.cli.database_option import add_database
from serve.archive.option import without_password

if TYPE_CHECKING:
    from agents.measure.analysis.game import Analysis
    from agents.measure.analysis.win_probability import WinProbability
    from agents.parallel import Tell
    from envs.battlesnake.recording import Recording

HELP = """\
The search scores every move of every turn, and a fitted curve turns scores into win
probabilities. A move that costs 5 percentage points is an inaccuracy, 10 a mistake, 20 a
blunder. A game is a file written by `procsnake match --record`, `battlesnake play --output` or
`procsnake arena fetch`, a log of /move requests, a single request, or the id of a game that
was fetched or served here.

examples:
  procsnake analyse game.jsonl        # the turns that mattered, and where it was lost
  procsnake analyse game.jsonl --snake flood --all-turns
  procsnake analyse game.jsonl --browser        # beside the boards, for every snake
  procsnake analyse request.json                # the best move of a single request
  procsnake analyse game.jsonl --explain 31     # the terms of that turn's evaluation
  procsnake analyse --last 50 --snake flood     # how it died in the games that the server recorded
  procsnake analyse --last 20 outputs/arena-games
  procsnake analyse --fit outputs/duels.db outputs/fours.db --out curves.json
"""
_LAST_NODES = 20_000
_FIT_NODES = 5000
_FEW_POSITIONS = 40


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "games",
        nargs="*",
        metavar="GAME",
        help="file or id of a game; a folder with --last, stores with --fit",
    )
    parser.add_argument(
        "--snake",
        metavar="NAME",
        help=(
            "name or id of the snake to analyse (default: the one for which the game was recorded)"
        ),
    )
    parser.add_argument(
        "--all-snakes", action="store_true", help="analyse every snake, one report per snake"
    )
    parser.add_argument(
        "--browser",
        action="store_true",
        help="show the analysis in the browser; without GAME, open a page to drop files on",
    )
    nodes = (
        f"search nodes per turn (default: 50000; {_LAST_NODES} with --last, {_FIT_NODES} with"
        " --fit)"
    )
    parser.add_argument("--nodes", type=at_least(100), help=nodes)
    parser.add_argument(
        "--last",
        type=at_least(1),
        metavar="N",
        help="summarise the last N games of the archive or of a folder",
    )
    parser.add_argument(
        "--all-turns", action="store_true", help="show every turn, not only the ones that mattered"
    )
    parser.add_argument(
        "--explain",
        type=at_least(0),
        metavar="TURN",
        help="show the terms of this turn's evaluation",
    )
    parser.add_argument(
        "--jobs",
        type=at_least(1),
        help="parallel processes (default and maximum: one per core)",
    )
    parser.add_argument(
        "--curves",
        metavar="FILE",
        help="file of win probabilities that --fit wrote (default: the built-in ones)",
    )
    parser.add_argument(
        "--fit",
        action="store_true",
        help="fit win probabilities to tournament stores, and write --out",
    )
    out_help = f"file that --fit writes (default: {_fitted()})"
    parser.add_argument("--out", metavar="FILE", help=out_help)
    add_database(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake analyse`. Returns the exit code."""
    _check(options)
    if options.fit:
        return _fit(options)
    if options.browser:
        return _in_the_browser(options)
    if options.last is not None:
        return _sum_up(options)
    if options.explain is None:
        return _analyse_one(options)
    return _explain(options)


def _explain(options: argparse.Namespace) -> int:
    from agents.measure.analysis.shares import explain, in_words
    from agents.measure.analysis.snake_game import game_of
    from serve.recorded_games import find_game

    game = game_of(*find_game(options.games[0], options.database, options.snake))
    position = next((one for one in game.positions if one.turn == options.explain), None)
    if position is None:
        first = game.positions[0].turn
        last = game.positions[-1].turn
        raise ConfigError(
            f"--explain {options.explain}: {game.name} chose no move on that turn; choose one"
            f" from {first} to {last}"
        )
    explanation = explain(*position.state())
    answer = {"snake": game.name, "turn": position.turn, **explanation.to_dict()}
    (
        print_json(answer)
        if options.json
        else print(
            printable(f"{game.name}, turn {position.turn}: {in_words(explanation)}", keep="\n")
        )
    )
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that exclude each other, and for a number of games that can't
    be.
    """
    # Turn 0 can be explained, and 0 == False.
    ways = {name: getattr(options, name) for name in ("fit", "last", "browser", "explain")}
    chosen_ways = [name for name, value in ways.items() if value is not None and value is not False]
    if len(chosen_ways) > 1:
        raise ConfigError(
            f"--{chosen_ways[0]} and --{chosen_ways[1]} exclude each other; leave one out"
        )
    if options.all_snakes and (chosen_ways or options.snake):
        raise ConfigError(
            f"--all-snakes and --{(chosen_ways or ['snake'])[0]} exclude each other; leave one out"
        )
    if options.out is not None and not options.fit:
        raise ConfigError(f"--out is {options.out}, but only --fit writes a file; leave it out")
    if options.browser and options.json:
        raise ConfigError(
            "--json prints the analysis; leave out --browser, which shows it until Ctrl-C"
        )
    if (
        not set(chosen_ways) & {"fit", "last"}
        and not len(options.games) == 1
        and not (options.browser and not options.games)
    ):
        raise ConfigError(
            f"analyse takes one game, not {len(options.games)}; to summarise several, use --last N"
        )


def _analyse_one(options: argparse.Namespace) -> int:
    from agents.measure.analysis.as_json import as_json
    from agents.measure.analysis.game import NODES, analyse
    from agents.measure.analysis.snake_game import game_of, game_of_each
    from agents.measure.analysis.words import in_words
    from agents.parallel import processes
    from serve.recorded_games import find_game

    recording, snake = find_game(options.games[0], options.database, options.snake)
    if options.all_snakes:
        parts = game_of_each(recording)
    else:
        parts = [game_of(recording, snake)]
    # Processes take seconds to start.
    if sum(len(part.positions) for part in parts) > _FEW_POSITIONS:
        jobs = _jobs(options)
    else:
        jobs = 1
    analyses = list[Any]()
    nodes = options.nodes or NODES
    curves = _curves(options)
    with processes(jobs) as pool:
        for part in parts:
            with _Progress("turn", len(part.positions)) as tell:
                one = analyse(part, nodes=nodes, curves=curves, pool=pool, tell=tell)
            analyses.append(
                as_json(one, pool=pool)
                if options.json
                else in_words(one, all_turns=options.all_turns)
            )
    if options.json:
        print_json({"analyses": analyses} if options.all_snakes else analyses[0])
    else:
        print(printable("\n\n".join(analyses), keep="\n"))
    return 0


def _in_the_browser(options: argparse.Namespace) -> int:
    """The viewer shows the game with its analysis, and analyses the files that are dropped on its
    pages.
    """
    from agents.measure.analysis.as_json import as_json
    from agents.measure.analysis.game import NODES, analyse
    from agents.measure.analysis.snake_game import game_of
    from agents.parallel import processes
    from serve.browser.review.reviews import Reviews
    from serve.browser.review.routes import PAGE, review_app
    from serve.recorded_games import find_game
    from serve.server import running

    nodes = options.nodes or NODES
    curves = _curves(options)

    def judge(recording: Recording, snake: str, tell: Tell) -> dict[str, Any]:
        return as_json(
            analyse(game_of(recording, snake), nodes=nodes, curves=curves, pool=pool, tell=tell),
            pool=pool,
        )

    reviews = Reviews(judge)
    path = PAGE
    if options.games:
        recording, snake = find_game(options.games[0], options.database, options.snake)
        first = str(game_of(recording, snake).snake["id"])
        review = reviews.open(recording, Path(options.games[0]).name, first=first)
        path = f"{review.path}?{urlencode({'you': first})}"
    with (
        processes(_jobs(options)) as pool,
        reviews.working(),
        running(review_app(reviews, curves=curves)) as url,
    ):
        print(f"the analysis is shown at {url}{path} (Ctrl-C ends the show)", flush=True)
        with suppress(KeyboardInterrupt):
            webbrowser.open(f"{url}{path}")
            while True:
                time.sleep(1)
    return 0


def _sum_up(options: argparse.Namespace) -> int:
    from agents.measure.analysis.summary import in_words, summary
    from agents.parallel import processes

    with processes(_jobs(options)) as pool, _Progress("game") as tell:
        analyses, left_out = _analyse_all(options, pool, tell)
    for reason in left_out:
        print(printable(reason), file=sys.stderr)
    if not analyses:
        raise ConfigError(
            "there is no game to summarise:"
            f" {printable(left_out[0]) if left_out else _no_games(options)}"
        )
    figures = summary(analyses)
    if options.json:
        print_json({**figures, "left_out": left_out})
    else:
        print(printable(in_words(figures), keep="\n"))
    return 0


def _no_games(options: argparse.Namespace) -> str:
    whose = f" of the snake {options.snake!r}" if options.snake else ""
    return (
        f"{options.games[0] if options.games else without_password(options.database)} has no"
        f" finished ones{whose}"
    )


def _analyse_all(
    options: argparse.Namespace, pool: ProcessPoolExecutor | None, tell: _Progress
) -> tuple[list[Analysis], list[str]]:
    """The analyses of the last games, and a sentence on each that can't be analysed."""
    from agents.measure.analysis.game import analyse
    from agents.measure.analysis.snake_game import game_of
    from agents.parallel import WorkerLostError
    from serve.recorded_games import last_games

    done = list[Any]()
    left_out = list[str]()
    curves = _curves(options)
    nodes = options.nodes or _LAST_NODES
    for name, recording, snake in last_games(options.games, options.database, options.snake):
        try:
            done.append(analyse(game_of(recording(), snake), nodes=nodes, curves=curves, pool=pool))
        except UnknownNameError:
            continue  # A game that this snake didn't play.
        except WorkerLostError:
            raise  # No game is at fault, and the processes that are left do nothing more.
        except ProcsnakeError as error:
            left_out.append(f"left out {name}: {error}")
        tell(len(done), options.last)
        if len(done) == options.last:
            break
    return done, left_out


def _fit(options: argparse.Namespace) -> int:
    from agents.measure.analysis.fitting import fit, table
    from agents.parallel import processes

    if not options.games:
        raise ConfigError(
            "--fit needs stores of procsnake tournament with duels on 11×11 and with four-snake"
            " games"
        )
    out = Path(options.out or _fitted())
    make_place_for(str(out))
    make_folder_of(out)
    with processes(_jobs(options)) as pool, _Progress("game") as tell:
        curves, measured = fit(
            list(map(Path, options.games)), nodes=options.nodes or _FIT_NODES, pool=pool, tell=tell
        )
    curves.write(out)
    if options.json:
        print_json(
            {
                group: {**asdict(curves.curves[group]), **asdict(one)}
                for group, one in measured.items()
            }
        )
    else:
        print(table(curves, measured))
    print(f"written: {out}", file=sys.stderr)
    return 0


def _fitted() -> str:
    return kept_at("win_probability.json")


def _jobs(options: argparse.Namespace) -> int:
    from envs.common.cores import usable_cores

    return min(options.jobs or usable_cores(), usable_cores())


def _curves(options: argparse.Namespace) -> WinProbability:
    from agents.measure.analysis.win_probability import WinProbability

    if options.curves:
        return WinProbability.read(options.curves)
    return WinProbability.shipped()


class _Progress(Progress):
    def __init__(self, unit: str, units: int | None = None) -> None:
        """`units` is how many there are, if they are done several at a time."""
        super().__init__()
        self._unit = unit
        self._units = units

    def __call__(self, done: int, of: int) -> None:
        units = self._units or of
        self.show(f"{self._unit} {done * units // of} of {units}")
