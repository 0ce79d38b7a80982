"""The command `procsnake serve`."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError, UnknownNameError, reason
from envs.common.outputs import make_place_for
from procsnake.cli.command_line import (
    add_imports,
    at_least,
    between,
    port,
)
from procsnake.cli.database_option import add_database
from procsnake.cli.worlds import register_worlds
from serve.archive.option import SQLITE

HELP = """\
An agent is a built-in one, a run folder or a policy bundle (folder, zip or hf://user/name).
NAME=AGENT renames it.

examples:
  procsnake serve runs/battlesnake-ppo-… --port 8000 --color '#3E338F' --head evil
  # two snakes, at /snakes/flood and /snakes/slow
  procsnake serve flood slow=greedy --color flood='#3E338F'
  procsnake serve flood --workers 2 --host 0.0.0.0      # on the internet
  battlesnake play -u http://127.0.0.1:8000 -n me …  # the official engine plays against it

Games are kept in outputs/games.db and shown at http://127.0.0.1:8000 to browsers on this
machine; to others with --viewer-token
"""
_MOST_DAYS = 1_000_000
_MOST_MIB = 1 << 40
"""Bounds that mean "for ever" and "all", and whose seconds and bytes any database can compute
with.
"""
LOOK_PARTS = {"color": "colour, #RRGGBB", "head": "head", "tail": "tail", "author": "author"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake serve`."""
    parser.add_argument(
        "agents", nargs="+", metavar="AGENT", help="agents to serve, the first at /"
    )
    _add_address(parser)
    _add_look(parser)
    _add_limits(parser)
    add_imports(parser)
    parser.add_argument(
        "--log-json",
        action="store_true",
        help="log as JSON, one object per line (default: as text)",
    )
    _add_games(parser)


def _add_address(parser: argparse.ArgumentParser) -> None:
    """Where the server listens, and with how many processes."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s; 0.0.0.0: all)",
    )
    parser.add_argument(
        "--port",
        type=port,
        default=8000,
        help="port to listen on; 0: any free one (default: %(default)s)",
    )
    parser.add_argument(
        "--workers", type=at_least(1), default=1, help="worker processes (default: %(default)s)"
    )


def _add_look(parser: argparse.ArgumentParser) -> None:
    """How the snakes look."""
    for part, what in LOOK_PARTS.items():
        help_text = (
            f"{what}: VALUE for all snakes, NAME=VALUE for one; may be repeated (default: the"
            " bundle's)"
        )
        kind = _color if part == "color" else str
        parser.add_argument(
            f"--{part}", action="append", default=[], type=kind, metavar="VALUE", help=help_text
        )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Who may call, how often, and for how long a call may think."""
    secret = "secret first part of the snakes' paths (default: PROCSNAKE_SECRET)"
    _add_secret(parser, "secret", "PROCSNAKE_SECRET", "SECRET", secret)
    parser.add_argument(
        "--rate-limit",
        type=float,
        metavar="N",
        help="requests per second from one address to each worker (default: no limit)",
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="proxy or network whose X-Forwarded-For is trusted; may be repeated (default: none)",
    )
    parser.add_argument(
        "--drain",
        type=between(0, 300),
        default=0,
        metavar="SECONDS",
        help=(
            "seconds to keep answering after SIGTERM while /health returns 503, so that a proxy"
            " moves on (default: %(default)s)"
        ),
    )
    think = (
        "most milliseconds of thought per call, whatever the game's timeout (default: %(default)s)"
    )
    parser.add_argument(
        "--max-think-ms", type=at_least(100), default=1000, metavar="MS", help=think
    )
    token = "token that lets other machines watch games and read metrics (default: PROCSNAKE_TOKEN)"
    _add_secret(parser, "viewer-token", "PROCSNAKE_TOKEN", "TOKEN", token)


def _add_games(parser: argparse.ArgumentParser) -> None:
    """Which games are kept, for how long, and where."""
    parser.add_argument("--no-games", action="store_true", help="don't record or show games")
    days = between(1, _MOST_DAYS)
    mib = between(1, _MOST_MIB)
    parser.add_argument(
        "--keep-days", type=days, default=30, help="days to keep games (default: %(default)s)"
    )
    parser.add_argument(
        "--keep-mib", type=mib, default=1024, help="MiB of games to keep (default: %(default)s)"
    )
    add_database(parser)


def _color(text: str) -> str:
    """Parse --color, whose fault would otherwise be said after the agents are made."""
    from serve.customizations import Look

    _, is_named, value = text.partition("=")
    try:
        Look(color=value if is_named else text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _add_secret(
    parser: argparse.ArgumentParser, name: str, variable: str, value: str, what: str
) -> None:
    """An option whose value other users of the machine could read in the list of processes, and a
    file for it.
    """
    parser.add_argument(
        f"--{name}", default=os.environ.get(variable) or None, metavar=value, help=what
    )
    parser.add_argument(
        f"--{name}-file",
        metavar="FILE",
        help=f"file with the {value.lower()}, which `ps` then doesn't show",
    )


def _read_secrets(options: argparse.Namespace) -> list[str]:
    """Put the contents of the files where the values would be; what to tell whoever shows them to
    others.

    Raises `ConfigError` for a file that can't be read.
    """
    notices = []
    for flag, variable in (("--secret", "PROCSNAKE_SECRET"), ("--viewer-token", "PROCSNAKE_TOKEN")):
        name = flag[2:].replace("-", "_")
        file = getattr(options, f"{name}_file")
        value = getattr(options, name)
        if file is not None:
            try:
                setattr(options, name, Path(file).read_text(encoding="utf-8").strip())
            except (OSError, ValueError) as error:
                raise ConfigError(f"{flag}-file {file} can't be read: {reason(error)}") from error
        elif value not in (None, os.environ.get(variable)):
            notices.append(
                f"other users of this machine can see {flag} in the process list; use {variable}"
                f" or {flag}-file instead"
            )
    return notices


def run(options: argparse.Namespace) -> int:
    """Run `procsnake serve`: in worker processes under gunicorn, or in this process where gunicorn
    can't run.
    """
    from serve import processes
    from serve.monitoring import logs
    from serve.server import begin_to_listen, bind, url_of, warm_up

    logs.configure(as_json=options.log_json)
    for agent in options.agents:
        register_worlds(agent, options.imports)
    notices = _read_secrets(options)
    forks = processes.can_fork()
    if options.workers > 1 and not forks:
        raise ConfigError(
            f"--workers {options.workers} needs gunicorn and a system that can fork; leave it out"
        )
    with bind(options.host, options.port) as listener:
        print("warming up …", flush=True)
        warm_up({})
        served = {} if forks else _ready(options, at_start=True)
        if forks:
            evaluations = processes.in_child(lambda: _evaluations(_ready(options, at_start=True)))
        else:
            evaluations = _evaluations(served)
        for notice in notices:
            print(notice, file=sys.stderr, flush=True)
        url = url_of(listener)
        # What a terminal shows can be pasted into the platform's form; a log is to hold no secret.
        path = f"/{options.secret}" if options.secret and sys.stdout.isatty() else ""
        text = f"serving {', '.join(evaluations)} at {url}{path} (Ctrl-C stops)"
        text += "".join(
            f"\n{name} evaluates positions by: {evaluation}"
            for name, evaluation in evaluations.items()
            if evaluation
        )
        if not options.no_games and options.database.startswith(SQLITE):
            text += f"\ngames are kept in {options.database.removeprefix(SQLITE)}"
        if forks:
            # Two may have bound the port and warmed up; the other one's answer isn't to be told as
            # ours.
            begin_to_listen(listener)
            processes.announce(url, text)
            processes.run(
                lambda: _make_app(options, _ready(options), _store(options)),
                listener,
                workers=options.workers,
                drain_s=options.drain,
            )
        else:
            _run_here(_make_app(options, served, _store(options)), listener, text)
    return 0


def _ready(options: argparse.Namespace, *, at_start: bool = False) -> dict[str, Any]:
    """The agents by name, warm. Whatever is wrong with the options is said here."""
    from serve.archive.reader import GameArchive
    from serve.server import warm_up

    served = _served(options)
    _make_app(options, served)
    if not options.no_games:
        with closing(GameArchive(options.database)) as archive:
            # A worker that takes a dead one's place serves whatever has become of the database.
            if at_start:
                make_place_for(options.database.removeprefix(SQLITE))
                archive.check()
    warm_up(served)
    return served


def _evaluations(served: dict[str, Any]) -> dict[str, str | None]:
    """By which evaluation each agent plays where, by the agent's name."""
    return {name: agent.evaluation_in_words() for name, agent in served.items()}


def _run_here(app: Any, listener: Any, text: str) -> None:
    from serve.arena import GAMES
    from serve.server import Server, keep_from_garbage_search

    try:
        keep_from_garbage_search()
        server = Server(app, listener)
        server.open()
        server.announce(text)
        server.run()
    finally:
        if app.extensions[GAMES] is not None:
            app.extensions[GAMES].close()


def _served(options: argparse.Namespace) -> dict[str, Any]:
    """The agents by name."""
    import agents
    from agents.player import Player

    served: dict[str, Any] = {}
    for text in options.agents:
        player = Player.parse(text)
        agent = agents.make(player.spec)
        name = player.name or agent.name.replace("+", "-")
        if name in served:
            raise ConfigError(
                f"two snakes are called {name!r}; give one another name: {name}-2={player.spec}"
            )
        served[name] = agent
    return served


def _make_app(options: argparse.Namespace, served: dict[str, Any], store: Any = None) -> Any:
    from envs.common.cores import usable_cores
    from serve.arena import create_app
    from serve.browser.viewer import Access
    from serve.customizations import Look

    looks = {
        name: {part: _chosen(getattr(options, part), part, name, served) for part in LOOK_PARTS}
        for name in served
    }
    return create_app(
        served,
        look={name: Look.of(agent, looks[name]) for name, agent in served.items()},
        store=store,
        access=Access(options.viewer_token),
        secret=options.secret,
        rate_limit=options.rate_limit,
        trusted_proxies=options.trusted_proxy,
        drain_s=options.drain,
        max_think_ms=options.max_think_ms,
        cores=max(1, usable_cores() // options.workers),
    )


def _chosen(values: list[str], part: str, snake: str, served: dict[str, Any]) -> str | None:
    """The last of the values of a flag that is meant for a snake."""
    choice = None
    for text in values:
        name, is_named, value = text.partition("=")
        if is_named and name not in served:
            raise UnknownNameError(f"snake in --{part}", name, served)
        if not is_named or name == snake:
            choice = value if is_named else text
    return choice


def _store(options: argparse.Namespace) -> Any:
    from serve.archive.store import GameStore

    if options.no_games:
        return None
    return GameStore(
        options.database, max_bytes=options.keep_mib << 20, max_age_s=86400.0 * options.keep_days
    )
