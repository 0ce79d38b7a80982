"""What `procsnake tune-search learn` does: self-play, a fit, and the file of a learned
evaluation.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from agents.player import Player
from agents.search.tuning.gate import seed_of_gate
from agents.search.tuning.learning import Fitting, Learned, learn
from agents.search.tuning.parameters import with_values
from agents.search.tuning.self_play import GAMES_PER_BLOCK, SelfPlay, collect
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at, make_place_for
from envs.common.shell_command import shell_command
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import print_json
from procsnake.cli.live import duration

_BETWEEN_LINES_S = 10.0


def run_learn(options: argparse.Namespace) -> int:
    """Learn an evaluation. Returns the exit code.

    Raises `ConfigError` if there is no folder for the file, and whatever `collect` and `learn`
    raise."""
    settings = SelfPlay(
        player=options.player,
        nodes=options.nodes,
        opening_turns=options.opening_turns,
        max_turns=options.max_turns,
        width=options.width,
        height=options.height,
        seed=options.seed,
    )
    folder = Path(options.store or kept_at("learn-alphabeta"))
    out = Path(options.out)
    make_place_for(str(out))
    own = Player.of(options.player).options.get("evaluation")
    if own is not None and Path(str(own)).resolve() == out.resolve():
        raise ConfigError(
            f"{options.player} plays with the evaluation in {out}, which must stay there; name"
            " another file"
        )
    if not out.parent.is_dir():
        raise ConfigError(
            f"there is no folder {out.parent} for {out.name}; make it, or choose another place"
        )
    make_folder_of(out)
    print(f"the positions are kept in {folder}", file=sys.stderr)
    views = collect(
        settings,
        folder,
        options.games,
        jobs=options.jobs or usable_cores(),
        on_block=_Told(),
    )
    learned = learn(views, settings, Fitting())
    learned.evaluation.write(out)
    if options.json:
        print_json({**_figures(learned), "evaluation": str(out)})
        return 0
    _tell(options, learned, out)
    return 0


def _figures(learned: Learned) -> dict[str, Any]:
    return {
        name: getattr(learned, name)
        for name in ("games", "positions", "scale", "loss_before", "loss", "least_loss")
    }


def _tell(options: argparse.Namespace, learned: Learned, out: Path) -> None:
    losses = (
        f"loss {learned.loss_before:.5f} → {learned.loss:.5f}, at least {learned.least_loss:.5f}"
    )
    print(f"{learned.games} games, {learned.positions} positions, K {learned.scale:.0f}, {losses}")
    player = f"learned={with_values(options.player, {'evaluation': str(out)})}"
    sides = {"width": options.width, "height": options.height}
    board = [
        f"--{side}={length}" for side, length in sides.items() if length != getattr(SelfPlay, side)
    ]
    test = shell_command(
        "sprt",
        player,
        f"before={options.player}",
        "--nodes=2000",
        "--elo1=15",
        *board,
        f"--seed={seed_of_gate(options.seed)}",
    )
    print(f"written: {out}, not accepted until a sequential test has found it better: {test}")


class _Told:
    """Prints to stderr how many blocks have been played, every ten seconds at most."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told = time.monotonic()
        self._first = -1

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first < 0:
            self._first = done
        elif now - self._told > _BETWEEN_LINES_S:
            seconds = (now - self._began) / (done - self._first) * (total - done)
            self._told = now
            games = f"game {done * GAMES_PER_BLOCK} of {total * GAMES_PER_BLOCK}"
            print(f"{games} · about {duration(seconds)} to go", file=sys.stderr)
