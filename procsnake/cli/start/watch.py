"""The command `procsnake watch`: an episode of another world than Battlesnake."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import envs
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.terminal import columns, draw_all, wants_color
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import (
    add_imports,
    add_json,
    add_seed,
    pause,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.worlds import register_worlds

if TYPE_CHECKING:
    import numpy as np

    from agents.measure.evaluation.episodes import ShownEpisode

HELP = """\
A policy is random, a run folder or a policy bundle.

examples:
  procsnake watch procgen/coinrun                    # random play
  procsnake watch procgen/coinrun runs/coinrun-… --levels test:100 --record film.mp4
  procsnake watch runs/corridor-… --record film.mp4  # your own world
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "world",
        metavar="WORLD|POLICY",
        help="world to watch, or policy to watch in its own world",
    )
    parser.add_argument(
        "player", nargs="?", metavar="POLICY", help="who plays in the world (default: random)"
    )
    parser.add_argument("--delay", type=pause, help="seconds per frame (default: the world's)")
    parser.add_argument("--record", metavar="FILE", help="also write a film: .mp4, .gif or .webp")
    parser.add_argument(
        "--levels",
        help=(
            "Procgen: all, train:N, test:N or start:num (default: all, or as the policy was"
            " trained)"
        ),
    )
    parser.add_argument(
        "--mode", help="Procgen: distribution mode (default: easy, or as the policy was trained)"
    )
    add_seed(parser)
    add_json(parser)
    add_imports(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake watch`. Returns the exit code."""
    for player in filter(None, (options.world, options.player)):
        register_worlds(player, options.imports)
    return play_episode(episode_to_watch(options), options)


_STEPS_PER_SECOND = 8
"""Of films and episodes of worlds that don't say it (`metadata["render_fps"]`)."""


def episode_to_watch(options: argparse.Namespace) -> ShownEpisode:
    """Return the episode of `procsnake watch`.

    Raises `ConfigError` for a policy of Battlesnake or of a different world, and for options that
    the world refuses."""
    from agents.measure.evaluation.episodes import (
        RANDOM,
        ShownEpisode,
        as_measured,
        at_random,
        bundle_of_a_world,
        world_of,
    )

    named = options.world in set(envs.names()) or (
        options.world.startswith("procgen/") and not os.path.exists(options.world)
    )
    player = (options.player or RANDOM) if named else options.world
    bundle = None if player == RANDOM else bundle_of_a_world(player)
    if named:
        world = options.world
    elif bundle is not None:
        world = bundle.card.environment["name"]
    else:
        world = "battlesnake"
    if world == "battlesnake":
        match = shell_command("match", *filter(None, (player, options.player)), "--watch")
        raise ConfigError(f"snakes play each other: {match}")
    if options.player and not named:
        raise ConfigError(f"a policy of the world {world!r} plays alone, not with {options.player}")
    level_options = {"levels": options.levels, "distribution_mode": options.mode}
    world_options = {
        "num_games": 1,
        **{name: value for name, value in level_options.items() if value is not None},
    }
    if world.startswith("procgen/"):
        world_options["render_mode"] = "rgb_array"
    if bundle is None:
        if player != RANDOM:
            raise ConfigError(
                f"{player} is not a policy that plays {world}: {RANDOM}, a run folder or a policy"
                f" bundle can. Find out what can be trained: {shell_command('train', '--list')}"
            )
        return ShownEpisode(
            envs.make(world, **world_options), at_random(options.seed), seed=options.seed
        )
    if bundle.card.environment["name"] != world:
        own = bundle.card.environment["name"]
        raise ConfigError(
            f"{player} was trained in {own}, not in {world}. Try:"
            f" {shell_command('watch', own, player)}"
        )
    own_world = world_of(bundle, **world_options)
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
            pictures = _watch_episode(episode, delay, keep=options.record is not None)
            print(episode)
    finally:
        episode.world.close()
    if options.record is not None:
        write_film(options.record, iter(pictures), fps=fps)
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

    pictures: list[np.ndarray] = []

    def drawn() -> Iterator[str]:
        for picture in episode.pictures():
            if keep:
                pictures.append(picture)
            yield as_text(picture, color=wants_color(), columns=columns())

    draw_all(drawn(), delay)
    return pictures
