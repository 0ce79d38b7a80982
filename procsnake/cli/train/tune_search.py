"""The command `procsnake tune-search`: a search's options are tuned by games, and its weights by
recorded results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from agents.measure.sprt.page import verdict_in_words, write_page
from agents.measure.sprt.play import SprtProgress, play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InProcesses, InThreads
from agents.options_file import OptionsFile, OptionsFileError
from agents.player import OPTIONS_FILE, Player
from agents.search.tuning.gate import figures_of, seed_of_gate
from agents.search.tuning.parameters import (
    Parameter,
    choose,
    flat,
    nested,
    parameters_of,
    search_of,
    table,
    with_values,
)
from agents.search.tuning.play import TuningProgress, movement, play_tuning
from agents.search.tuning.regression import regress
from agents.search.tuning.settings import Tuning
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from envs.common.shell_command import shell_command
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import (
    Commands,
    add_game_options,
    add_json,
    add_seed,
    at_least,
    game_settings,
    print_json,
)
from procsnake.cli.effort_options import add_effort, tell_own_efforts
from procsnake.cli.live import Live
from procsnake.cli.measure.sprt import line as sprt_line
from procsnake.cli.train.learn import run_learn

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
_GAME = (
    *(
        "snakes",
        "width",
        "height",
        "ruleset",
        "map",
        "food_spawn_chance",
        "minimum_food",
        "hazard_damage_per_turn",
    ),
    *("shrink_every_n_turns", "opening_turns", "max_turns"),
)
"""The options that say which games are played; a file of options keeps them."""
_SAME_IN_THE_TEST = ("nodes", "time", *_GAME)
"""The options that `sprt` and `tune-search accept` take as well.

The seed isn't among them: a test has other starts.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    _add_parameters(add("parameters", _list_parameters, "List what can be tuned.", ""))
    _add_games(add("games", _play, "Tune by games, with SPSA.", ""))
    _add_results(
        add("results", _regress, "Tune weights by recorded games, with Texel's method.", "")
    )
    _add_accept(add("accept", _accept, "Play the test that a tuned file has to pass.", ""))
    _add_learn(add("learn", run_learn, "Learn an evaluation of duels from self-play.", ""))


def _add_player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "player",
        help="the search; NAME?option=value&... gives it fixed options, and starting values",
    )


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add the options under which games are played."""
    add_effort(parser, wall=False)
    parser.add_argument(
        "--opening-turns",
        type=at_least(0),
        default=4,
        help="random turns at the start (default: %(default)s)",
    )
    parser.add_argument(
        "--max-turns", type=at_least(1), default=5000, help="turns after which a game is drawn"
    )
    parser.add_argument(
        "--snakes",
        type=int,
        default=2,
        help="snakes per game, 2 or 4 (default: %(default)s)",
    )
    add_game_options(parser)


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
    _add_conditions(parser)


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
    _add_conditions(parser)


def _add_learn(parser: argparse.ArgumentParser) -> None:
    _add_player(parser)
    parser.add_argument("out", metavar="FILE", help="file of the evaluation to write")
    parser.add_argument(
        "--nodes", type=at_least(1), default=300, help="nodes per move (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=at_least(2), default=2400, help="games to play (default: %(default)s)"
    )
    parser.add_argument(
        "--opening-turns",
        type=at_least(0),
        default=4,
        help="random turns at the start (default: %(default)s)",
    )
    parser.add_argument(
        "--max-turns", type=at_least(1), default=5000, help="turns after which a game is drawn"
    )
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


def _list_parameters(options: argparse.Namespace) -> int:
    print(table(parameters_of(options.player)))
    return 0


def _play(options: argparse.Namespace) -> int:
    """Tune by games, with SPSA."""
    tuning = _tuning(options)
    out = _place_for_options(options)
    path = options.store or kept_at(f"tune-{search_of(options.player)}.db")
    make_place_for(path)
    with Store(path, Tuning) as store:
        print(f"the games are kept in {path}", file=sys.stderr)
        tell_own_efforts(tuning.effort, [(tuning.player, tuning.player)])
        with Live(line) as live:
            progress = play_tuning(
                tuning, store, concurrency=options.jobs or usable_cores(), on_game=live
            )
    record = {**progress.to_dict(), **{name: getattr(options, name) for name in _GAME}}
    _write(options, out, progress.values, record)
    if options.json:
        print_json({**record, "options": str(out)})
        return 0
    print(line(progress))
    _tell(options, out, tuning.parameters, progress.values)
    return 0


def _tuning(options: argparse.Namespace) -> Tuning:
    parameters = parameters_of(options.player)
    return Tuning(
        players=(Player("plus", options.player), Player("minus", options.player)),
        parameters=choose(parameters, options.parameters.split(","), r_end=options.r_end),
        pairs=options.pairs,
        batch=options.batch,
        **_conditions(options),
    )


def _conditions(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a `Match` under which the games of a tuning are played, and those of
    its acceptance test.
    """
    return {
        "seats": options.snakes,
        "nodes": options.nodes,
        "cpu_ms": options.time,
        "opening_turns": options.opening_turns,
        "width": options.width,
        "height": options.height,
        "settings": game_settings(options),
        "seed": options.seed,
        "max_turns": options.max_turns,
    }


def _regress(options: argparse.Namespace) -> int:
    """Tune by recorded games, with Texel's method."""
    out = _place_for_options(options)
    stores = [Path(path) for path in options.recorded]
    most = options.games or sys.maxsize
    regression = regress(
        options.player, options.parameters.split(","), stores, every=options.every, most=most
    )
    figures = regression.to_dict()
    fit = regression.fit
    _write(options, out, regression.values, figures)
    if options.json:
        print_json({**figures, "options": str(out)})
        return 0
    print(
        f"{figures['games']} games, {figures['positions']} positions, K {fit.scale:.0f}, loss"
        f" {fit.loss_before:.4f} → {fit.loss:.4f}"
    )
    _tell(options, out, regression.parameters, regression.values)
    return 0


def _place_for_options(options: argparse.Namespace) -> Path:
    """Where the file of options goes, tried before the games.

    Raises `ConfigError` for a place where none can be, and for the file from which the player has
    its own: a test of the new options against the player would be one against themselves."""
    out = Path(options.out or kept_at(f"tuned-{search_of(options.player)}.yaml"))
    make_place_for(str(out))
    make_folder_of(out)
    own = Player.of(options.player).own_options.get(OPTIONS_FILE)
    if own is not None and Path(str(own)).resolve() == out.resolve():
        raise ConfigError(
            f"{options.player} begins with the options in {out}, which must stay there; name"
            " another --out"
        )
    return out


def _write(
    options: argparse.Namespace, out: Path, values: dict[str, Any], tuning: dict[str, Any]
) -> None:
    """Write the file of options: the player's own, with the tuned values instead of its old
    ones.
    """
    tuned = nested({**flat(Player.of(options.player).options), **values})
    options_file = OptionsFile(
        agent=search_of(options.player) or "", options=tuned, against=options.player, tuning=tuning
    )
    _with_verdict_of(out, options_file).write(out)


def _with_verdict_of(path: Path, options_file: OptionsFile) -> OptionsFile:
    """Return `found` with the verdict of the file that it replaces, if a test has judged the same
    options there.
    """
    try:
        there = OptionsFile.read(path)
    except OptionsFileError:
        return options_file
    if there.is_of_the_same_test(options_file):
        return replace(options_file, accepted=there.accepted, test=there.test)
    return options_file


def _tell(
    options: argparse.Namespace, out: Path, parameters: Sequence[Parameter], values: dict[str, Any]
) -> None:
    for one in parameters:
        print(f"  {one.name}  {one.plain(one.start):g} → {values[one.name]:g}")
    games = _same_games(options)
    both = (f"tuned={_with_file(options.player, out)}", f"before={options.player}")
    seed = seed_of_gate(options.seed)
    test = shell_command("sprt", *both, *games, f"--seed={seed}")
    accept = shell_command(
        "tune-search", "accept", options.player, out, *games, f"--seed={options.seed}"
    )
    if OptionsFile.read(out).accepted:
        print(f"written: {out}, which a sequential test has accepted before")
        return
    print(f"written: {out}, not accepted until a sequential test has found it better: {test}")
    print(f"or, with the verdict in the file: {accept}")


def _same_games(options: argparse.Namespace) -> list[str]:
    """The options with which a test plays the games that were tuned, without those that have their
    default.
    """
    defaults = argparse.ArgumentParser()
    _add_conditions(defaults)
    conditions = {
        name: getattr(options, name) for name in _SAME_IN_THE_TEST if hasattr(options, name)
    }
    return [
        f"{_flag(name)}={value}"
        for name, value in conditions.items()
        if value != defaults.get_default(name)
    ]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _with_file(player: str, path: Path) -> str:
    """The player, with its options from a file."""
    query = urlencode({OPTIONS_FILE: str(path)}, safe="/")
    return f"{Player.of(player).made}?{query}"


def _accept(options: argparse.Namespace) -> int:
    """Test a file of options sequentially against the player that it is to replace, and write the
    verdict into the file.
    """
    path = Path(options.file)
    tuned = OptionsFile.read(path)
    if tuned.agent != search_of(options.player):
        raise ConfigError(f"{path} has options of {tuned.agent!r}, not of {options.player!r}")
    for name in _GAME:
        was = tuned.tuning.get(name)
        condition = getattr(options, name)
        if was not in (None, condition):
            flag = _flag(name)
            raise ConfigError(
                f"{path} was tuned by games with {flag} {was},"
                f" and this test would have {condition}. Add {flag} {was}"
            )
    test = _test(tuned, options)
    _refuse_strangers_rules(path, test, options)
    store_path = options.store or kept_at(f"{path.stem}-test.db")
    make_place_for(store_path)
    jobs = options.jobs or usable_cores()
    places = InThreads if jobs == 1 else InProcesses
    with Store(store_path, Sprt) as store, Live(sprt_line) as live:
        stored = store.load()
        # A test that commit e685437 or one before it began has the tuning's own seed, and goes on
        # with that.
        if stored is None or stored.seed != options.seed:
            test = replace(test, seed=seed_of_gate(options.seed))
        store.refuse_changed(test)
        tell_own_efforts(test.effort, test.names_and_specs)
        progress = play_sprt(
            test, store, concurrency=jobs, workers=places, max_games=options.games, on_game=live
        )
    page = write_page(progress, Path(store_path).with_suffix(".html"))
    (
        print_json(progress.to_dict())
        if options.json
        else print(f"{sprt_line(progress)}\n{verdict_in_words(progress)}")
    )
    print(f"the games are in {store_path}, the report is {page}", file=sys.stderr)
    _write_verdict(path, tuned, progress)
    print(f"the verdict is in {path}", file=sys.stderr)
    return 0


def _write_verdict(path: Path, tested: OptionsFile, progress: SprtProgress) -> None:
    """Write the verdict into the file as it is now, because a tuning may have gone on while the
    test was played.
    """
    now = OptionsFile.read(path)
    if not now.is_of_the_same_test(tested):
        raise ConfigError(
            f"{path} has changed while its test was played, so the verdict is not written into it:"
            " another tuning may have written other options there. Test the file as it is now,"
            " with another --store"
        )
    replace(now, accepted=progress.verdict == "H1", test=figures_of(progress)).write(path)


def _refuse_strangers_rules(path: Path, test: Sprt, options: argparse.Namespace) -> None:
    """Raise `ConfigError` if a player of the test would run files of rules that the user hasn't
    typed.

    The players' names come from the file, which may be a stranger's.
    """
    named_player = Player.of(options.player)
    for player in test.players:
        if player.runs_code and player.made != named_player.made:
            raise ConfigError(
                f"{path} is to be tested against {player.spec!r}, which is a file of rules that"
                f" would be executed, and not the player {options.player!r} that you named. If you"
                f" trust it, name it instead of {options.player!r}"
            )


def _test(tuned: OptionsFile, options: argparse.Namespace) -> Sprt:
    # The values themselves are the player's name, so that a file that changes meanwhile is another
    # test.
    own = with_values(tuned.against, flat(tuned.options))
    return Sprt(
        players=(Player("tuned", own), Player("before", tuned.against)),
        hypotheses=Hypotheses(elo0=options.elo0, elo1=options.elo1),
        **_conditions(options),
    )


def line(progress: TuningProgress) -> str:
    """Return the present state of a tuning in one line: the parameters, and how far they have moved
    in units of their c_end.
    """
    gone = zip(progress.values.items(), movement(progress), strict=True)
    values = " ".join(f"{name}={value:g} ({moved:+.1f} c)" for (name, value), moved in gone)
    return f"pair {progress.pairs} of {progress.tuning.pairs} · games {progress.games} · {values}"
