"""What `procsnake tune-search games` and `results` do: tune a search's options, and write them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from agents.measure.tournament.store import Store
from agents.options_file import OptionsFile, OptionsFileError
from agents.player import OPTIONS_FILE, Player
from agents.search.tuning.gate import seed_of_gate
from agents.search.tuning.parameters import (
    Parameter,
    choose,
    flat,
    nested,
    parameters_of,
    search_of,
)
from agents.search.tuning.play import TuningProgress, movement, play_tuning
from agents.search.tuning.regression import regress
from agents.search.tuning.settings import Tuning
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from envs.common.shell_command import shell_command
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import print_json
from procsnake.cli.effort_options import tell_own_efforts
from procsnake.cli.live import Live
from procsnake.cli.train.tuning_conditions import GAME, conditions, same_games


def run_games(options: argparse.Namespace) -> int:
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
    record = {**progress.to_dict(), **{name: getattr(options, name) for name in GAME}}
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
        **conditions(options),
    )


def run_results(options: argparse.Namespace) -> int:
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
    games = same_games(options)
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


def _with_file(player: str, path: Path) -> str:
    """The player, with its options from a file."""
    query = urlencode({OPTIONS_FILE: str(path)}, safe="/")
    return f"{Player.of(player).made}?{query}"


def line(progress: TuningProgress) -> str:
    """Return the current state of a tuning in one line: the parameters, and how far they have moved
    in units of their c_end.
    """
    gone = zip(progress.values.items(), movement(progress), strict=True)
    values = " ".join(f"{name}={value:g} ({moved:+.1f} c)" for (name, value), moved in gone)
    return f"pair {progress.pairs} of {progress.tuning.pairs} · games {progress.games} · {values}"
