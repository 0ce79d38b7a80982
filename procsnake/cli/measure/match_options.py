"""The options that `procsnake tournament` and `procsnake sprt` share: how long players think, and
where games are played.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from envs.common.errors import ConfigError
from envs.common.outputs import kept_at
from procsnake.cli.command_line import add_game_options, add_json, at_least, game_settings
from procsnake.cli.effort_options import add_effort, effort_of

if TYPE_CHECKING:
    from agents.measure.tournament.settings import Match
    from agents.measure.tournament.store import Store
    from agents.measure.tournament.workers import MakeWorkers

M = TypeVar("M", bound="Match")


def add_match_options(parser: argparse.ArgumentParser, *, store: str, jobs: str) -> None:
    """Add the options. `store` is the default file's name, and `jobs` describes the default number
    of parallel games.
    """
    add_effort(parser)
    parser.add_argument(
        "--timeout",
        type=at_least(1),
        default=500,
        help="milliseconds for a URL's move (default: %(default)s)",
    )
    default = f"{jobs}; with --cluster: one per CPU"
    parser.add_argument("--jobs", type=at_least(1), help=f"parallel games (default: {default})")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="play on this Ray cluster; auto: the one that this machine is in",
    )
    parser.add_argument(
        "--per-server",
        type=at_least(1),
        default=1,
        help="parallel games per server (default: %(default)s)",
    )
    parser.add_argument(
        "--max-turns", type=at_least(1), default=5000, help="turns after which a game is drawn"
    )
    parser.add_argument(
        "--store", default=kept_at(store), metavar="FILE", help="SQLite file (default: %(default)s)"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="execute the files of rules that a store from another machine names",
    )
    add_json(parser)
    add_game_options(parser)


def match_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a `Match` that these options describe. Raises `ConfigError` if they
    contradict each other.
    """
    effort = effort_of(options)
    return {
        "nodes": effort.nodes,
        "cpu_ms": effort.cpu_ms,
        "tell_deadline": options.wall,
        "timeout_ms": round(options.time) if options.wall else options.timeout,
        "width": options.width,
        "height": options.height,
        "settings": game_settings(options),
        "seed": options.seed,
        "max_turns": options.max_turns,
    }


def with_given_settings(
    stored: M,
    options: argparse.Namespace,
    add_options: Callable[[argparse.ArgumentParser], None],
    asked_for: Callable[[argparse.Namespace], M],
) -> M:
    """Return the store's match, with the settings that differ from the command's defaults in
    `options`.

    Without named players, the store's continue. Given settings still count, and the store
    refuses changed ones. `add_options` adds the command's options, and `asked_for` makes a match
    of them. Raises what that raises."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    request = asked_for(options)
    default = asked_for(parser.parse_args([]))
    values = {one.name: getattr(request, one.name) for one in fields(stored)}
    return replace(
        stored, **{name: value for name, value in values.items() if value != getattr(default, name)}
    )


def refuse_strangers_rules(store: Store[Any], stored: Match, options: argparse.Namespace) -> None:
    """Raise `ConfigError` if a store from another machine would execute files of rules, unless the
    user trusts it.

    Players on the command line need no trust, because the user named them. A store may name
    anything."""
    rules = [player.spec for player in stored.players if player.runs_code]
    if rules and not options.trust and not store.is_own():
        raise ConfigError(
            f"{options.store} comes from another machine, and its player {rules[0]!r} is a file"
            " of rules, which would be executed. If you trust it, add --trust"
        )


@contextmanager
def chosen_workers(
    options: argparse.Namespace, default_jobs: int
) -> Iterator[tuple[MakeWorkers, int]]:
    """Yield the maker of the workers that play the games, and the number of games at the same time.

    The caller's `join_cluster` joins a Ray cluster, because that code belongs to the trainers."""
    from agents.measure.tournament.workers import InProcesses, InThreads

    if options.cluster:
        from train.rllib.ray_runtime import running_ray

        with running_ray(0, options.cluster):
            from agents.measure.tournament.on_cluster import OnCluster, cluster_cpus

            yield OnCluster, options.jobs or cluster_cpus()
        return
    jobs = options.jobs or default_jobs
    yield (InThreads if jobs == 1 else InProcesses), jobs
