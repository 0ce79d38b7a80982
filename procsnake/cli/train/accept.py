"""What `procsnake tune-search accept` does: the sequential test that tuned options have to pass."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from agents.measure.sprt.page import verdict_in_words, write_page
from agents.measure.sprt.play import SprtProgress, play_sprt
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InProcesses, InThreads
from agents.options_file import OptionsFile
from agents.player import Player
from agents.search.tuning.gate import figures_of, seed_of_gate
from agents.search.tuning.parameters import flat, search_of, with_values
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import print_json
from procsnake.cli.effort_options import tell_own_efforts
from procsnake.cli.live import Live
from procsnake.cli.measure.sprt import line as sprt_line
from procsnake.cli.train.tuning_conditions import GAME, conditions, flag


def run_accept(options: argparse.Namespace) -> int:
    """Play the sequential test of a file of options against its previous player, and write the
    verdict into the file.
    """
    path = Path(options.file)
    tuned = OptionsFile.read(path)
    if tuned.agent != search_of(options.player):
        raise ConfigError(f"{path} has options of {tuned.agent!r}, not of {options.player!r}")
    for name in GAME:
        was = tuned.tuning.get(name)
        condition = getattr(options, name)
        if was not in (None, condition):
            option = flag(name)
            raise ConfigError(
                f"{path} was tuned by games with {option} {was},"
                f" and this test would have {condition}. Add {option} {was}"
            )
    test = _test(tuned, options)
    _refuse_strangers_rules(path, test, options)
    store_path = options.store or kept_at(f"{path.stem}-test.db")
    make_place_for(store_path)
    jobs = options.jobs or usable_cores()
    places = InThreads if jobs == 1 else InProcesses
    with Store(store_path, Sprt) as store, Live(sprt_line) as live:
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
        **{**conditions(options), "seed": seed_of_gate(options.seed)},
    )
