"""Draws in the terminal what is played: a referee's game with its ending, or an episode of another
world than Battlesnake.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import envs
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.terminal import columns, draw_all, wants_color
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import (
    print_json,
    progress_on_stderr,
    refuse_game_options,
    refuse_given,
)

if TYPE_CHECKING:
    import numpy as np

    from agents.measure.evaluation.episodes import ShownEpisode

TURN_S = 0.12
_STEPS_PER_SECOND = 8
"""Of films and episodes of worlds that don't say it (`metadata["render_fps"]`)."""


def watch(referee: Any, delay: float | Callable[[], float]) -> None:
    """Draw the game of a `Referee` as it is played, `delay` seconds per turn as `draw_all` takes
    it, and tell how it ended.
    """
    from envs.battlesnake.render.ansi import draw

    def picture(frame: Any) -> str:
        names = referee.names
        looks = referee.customizations
        return draw(
            frame.state, 0, names, color=wants_color(), columns=columns(), customizations=looks
        )

    draw_all(map(picture, referee.play()), delay)
    tell_ending(referee)


def episode_to_watch(options: argparse.Namespace) -> ShownEpisode | None:
    """The episode for `procsnake play WORLD [PLAYER]` or `procsnake play BUNDLE`, or None if the
    players are snakes.

    Raises `ConfigError` for more players than one, a policy of another world and options that the
    world refuses."""
    from agents.measure.evaluation.episodes import (
        RANDOM,
        ShownEpisode,
        as_measured,
        at_random,
        bundle_of_a_world,
        world_of,
    )

    first, *others = options.players
    named = first in set(envs.names()) - {"battlesnake"} or (
        first.startswith("procgen/") and not os.path.exists(first)
    )
    player = (others.pop(0) if others else RANDOM) if named else first
    bundle = None if player == RANDOM else bundle_of_a_world(player)
    world = first if named else bundle.card.environment["name"] if bundle else None
    if world is None:
        refuse_given(
            options,
            ("levels", "mode"),
            "games of Procgen, and these players play Battlesnake; leave it out",
        )
        return None
    if others:
        raise ConfigError(
            f"a policy of the world {world!r} plays alone, not with {' '.join(others)}"
        )
    what_for = f"games of Battlesnake, and this is an episode of {world}; leave it out"
    refuse_given(options, ("nodes", "time", "position", "turn"), what_for)
    refuse_game_options(options, what_for)
    given = {"levels": options.levels, "distribution_mode": options.mode}
    chosen = {"num_games": 1, **{name: value for name, value in given.items() if value is not None}}
    if world.startswith("procgen/"):
        chosen["render_mode"] = "rgb_array"
    if bundle is None:
        if player != RANDOM:
            raise ConfigError(
                f"{player} is no policy that plays {world}: {RANDOM}, a run folder or a policy"
                f" bundle can. Find out what can be trained: {shell_command('train', '--list')}"
            )
        return ShownEpisode(envs.make(world, **chosen), at_random(options.seed), seed=options.seed)
    if bundle.card.environment["name"] != world:
        own = bundle.card.environment["name"]
        raise ConfigError(
            f"{player} was trained in {own}, not in {world}. Try:"
            f" {shell_command('play', own, player)}"
        )
    own_world = world_of(bundle, **chosen)
    return ShownEpisode(
        own_world, as_measured(bundle, own_world, seed=options.seed), seed=options.seed
    )


def play_episode(episode: ShownEpisode, options: argparse.Namespace) -> int:
    """Draw the episode as it is played, and write it as a film if `options.record` names a file.
    Returns the exit code.
    """
    from envs.common.films import check_format, write_film

    fps = episode.world.metadata.get("render_fps", _STEPS_PER_SECOND)
    delay = 1 / fps if options.delay is None else options.delay
    try:
        if options.record is not None:
            check_format(options.record)
            make_folder_of(Path(options.record))
        with progress_on_stderr(options):
            shown = _watch_episode(episode, delay, keep=options.record is not None)
            print(episode)
    finally:
        episode.world.close()
    if options.record is not None:
        write_film(options.record, iter(shown), fps=fps)
    if options.json:
        print_json(
            {"return": episode.episode_return, "length": episode.length, "ended": episode.ended}
        )
    return 0


def _watch_episode(episode: ShownEpisode, delay: float, *, keep: bool) -> list[np.ndarray]:
    """Draw an episode as it is played, `delay` seconds per step. Returns its pictures if they are
    to be kept.
    """
    from envs.pictures import as_text

    kept: list[np.ndarray] = []

    def drawn() -> Iterator[str]:
        for picture in episode.pictures():
            if keep:
                kept.append(picture)
            yield as_text(picture, color=wants_color(), columns=columns())

    draw_all(drawn(), delay)
    return kept


def tell_ending(referee: Any) -> None:
    """Print which snakes' answers failed, and who won."""
    for slot, failures in sorted(referee.failures.items()):
        moves = f"{len(failures)} move" + "s" * (len(failures) > 1)
        print(
            f"{referee.names[slot]}: {moves} failed, so the last one was played again. The first:"
            f" {failures[0]}"
        )
    result = referee.result
    alone = "the game ended" if len(referee.seats) == 1 else "a draw"
    print(
        f"{alone if result.winner is None else f'{result.winner} wins'} after {result.turns} turns"
    )
