"""The commands `procsnake play`, `match`, `serve` and `games`, and those of analysis, doctor, Arena
and the exports.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError, UnknownNameError, reason
from envs.common.outputs import kept_at, make_place_for
from envs.common.printable import printable
from procsnake.cli.command_line import (
    Commands,
    add_game_options,
    add_imports,
    add_json,
    at_least,
    between,
    pause,
    port,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.compete.arena import ARENA_HELP, add_arena
from procsnake.cli.compete.doctor import DOCTOR_HELP, add_doctor, run_doctor
from procsnake.cli.compete.export import EXPORT_HELP, add_export
from procsnake.cli.database_option import add_database
from procsnake.cli.effort_options import add_effort
from procsnake.cli.measure.analyse import ANALYSE_HELP, add_analyse, run_analyse
from procsnake.cli.position_options import add_position
from procsnake.cli.start.by_hand import add_by_hand, play_by_hand, refuse_without_a_person
from procsnake.cli.start.match import (
    MATCH_HELP,
    add_match,
    as_json,
    make_referee,
    no_part_left,
    run_match,
)
from procsnake.cli.start.warm_up import add_warm_up
from procsnake.cli.start.watching import TURN_S, episode_to_watch, play_episode, watch
from procsnake.cli.worlds import register_worlds
from serve.archive.option import SQLITE, without_password

if TYPE_CHECKING:
    from serve.archive.reader import GameArchive

PLAY_HELP = """\
A player is the name of a built-in agent, a run folder, a policy bundle, or the URL of any Battlesnake server; NAME=PLAYER
gives it another name. A policy of another world than Battlesnake plays an episode of its own world. After the name of a world
comes who plays an episode in it: random (default), a run folder or a policy bundle.

examples:
  procsnake play runs/battlesnake-ppo-… flood greedy greedy
  procsnake play flood http://127.0.0.1:8000 --record game.jsonl --seed 7
  procsnake play runs/corridor-… --record film.mp4                # an episode of another world, with a film
  procsnake play procgen/coinrun                                  # random play in one of Procgen's games
  procsnake play procgen/coinrun runs/coinrun-… --levels test:100 --record film.mp4
  procsnake play --human                                          # you play against two good snakes, in the browser
  procsnake play --human battlesnake --against alphabeta --clock 0.5 --record mine.jsonl
  procsnake play --human --terminal --against flood --map royale --width 7 --height 7
  procsnake play procgen/coinrun --human --levels train:200       # a game of Procgen by keyboard, in a window
"""
SERVE_HELP = """\
An agent is the name of a built-in one, a run folder or a policy bundle (folder, zip or hf://user/name); NAME=AGENT gives it
another name.

examples:
  procsnake serve runs/battlesnake-ppo-… --port 8000 --color '#3E338F' --head evil
  procsnake serve flood slow=greedy --color flood='#3E338F'      # two snakes, at /snakes/flood and /snakes/slow
  procsnake serve flood --workers 2 --host 0.0.0.0               # what a server on the internet runs
  battlesnake play -u http://127.0.0.1:8000 -n me …              # the official engine plays against it

Games are kept in outputs/games.db and shown at http://127.0.0.1:8000 to browsers on this machine; to others with --viewer-token
"""
GAMES_HELP = """\
examples:
  procsnake games list
  procsnake games export games/                       # every finished game as a recording, to look at or to learn from
"""
_MOST_DAYS = 1_000_000
_MOST_MIB = 1 << 40
"""Bounds that mean "for ever" and "all", and whose seconds and bytes any database can compute
with.
"""
LOOK_PARTS = {"color": "colour, #RRGGBB", "head": "head", "tail": "tail", "author": "who made it"}


def add_commands(command: Commands) -> None:
    """Add the commands of `serve`."""
    _add_play(
        command(
            "play",
            run_play,
            "Play one game in the terminal, with local agents and over HTTP.",
            PLAY_HELP,
        )
    )
    add_match(
        command(
            "match",
            run_match,
            "Play one game: told, or watched in terminal or browser.",
            MATCH_HELP,
        )
    )
    _add_serve(
        command("serve", run_serve, "Serve snakes to any Battlesnake engine over HTTP.", SERVE_HELP)
    )
    _add_games(
        command("games", run_games, "List or export the games that a server has kept.", GAMES_HELP)
    )
    add_analyse(
        command(
            "analyse",
            run_analyse,
            "Find out what the moves of a game were worth, and where it was lost.",
            ANALYSE_HELP,
        )
    )
    add_doctor(
        command(
            "doctor",
            run_doctor,
            "Check a snake's URL as a platform would, before it does.",
            DOCTOR_HELP,
        )
    )
    add_warm_up(command)
    # What runs is the subcommand's.
    add_arena(
        command(
            "arena", None, "Enter a snake on Arena, follow it, and fetch its games.", ARENA_HELP
        )
    )
    add_export(
        command(
            "export",
            None,
            "Write policies in other forms, and entries to the AIcrowd competition.",
            EXPORT_HELP,
        )
    )


def _add_play(parser: argparse.ArgumentParser) -> None:
    players = (
        "two to sixteen players, or one for a solo game or an episode of its world; or a world and"
        " who plays in it"
    )
    parser.add_argument("players", nargs="*", help=players)
    parser.add_argument(
        "--delay",
        type=pause,
        help=f"seconds between two turns on screen (default: {TURN_S}; elsewhere the world's)",
    )
    parser.add_argument(
        "--timeout", type=at_least(1), default=500, help="milliseconds a player has for a move"
    )
    add_effort(parser)
    add_position(parser)
    record = (
        "write the game as JSON lines, as the official command line does; an episode of another"
        " world as .mp4, .gif or .webp"
    )
    parser.add_argument("--record", metavar="FILE", help=record)
    add_json(parser)
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
    add_imports(parser)
    add_game_options(parser)
    add_by_hand(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agents", nargs="+", metavar="AGENT", help="agents to serve; the first answers at /"
    )
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
    for part, what in LOOK_PARTS.items():
        told = (
            f"{what}: VALUE for all snakes, NAME=VALUE for one; may be repeated (default: as the"
            " bundle says)"
        )
        kind = _color if part == "color" else str
        parser.add_argument(
            f"--{part}", action="append", default=[], type=kind, metavar="VALUE", help=told
        )
    secret = "first part of the snakes' paths, to keep strangers out (default: PROCSNAKE_SECRET)"
    _add_secret(parser, "secret", "PROCSNAKE_SECRET", "SECRET", secret)
    parser.add_argument(
        "--rate-limit",
        type=float,
        metavar="N",
        help=(
            "requests per second that one address may send to each of the --workers (default: no"
            " limit)"
        ),
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help=(
            "proxy, or network of proxies, whose X-Forwarded-For says who calls; may be repeated"
            " (default: none)"
        ),
    )
    parser.add_argument(
        "--drain",
        type=between(0, 300),
        default=0,
        metavar="SECONDS",
        help=(
            "answer on for so long after SIGTERM while /health says 503, so that a proxy moves on"
            " (default: %(default)s)"
        ),
    )
    think = (
        "the most milliseconds that one call may think, whatever a game's time-out is (default:"
        " %(default)s)"
    )
    parser.add_argument(
        "--max-think-ms", type=at_least(100), default=1000, metavar="MS", help=think
    )
    token = (
        "whoever has this token may watch games and read metrics from elsewhere (default:"
        " PROCSNAKE_TOKEN)"
    )
    _add_secret(parser, "viewer-token", "PROCSNAKE_TOKEN", "TOKEN", token)
    add_imports(parser)
    parser.add_argument(
        "--log-json",
        action="store_true",
        help="log as JSON, one object per line (default: as text)",
    )
    parser.add_argument("--no-games", action="store_true", help="keep no games and show none")
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
        help=f"file with the {value.lower()}, which then shows in no `ps`",
    )


def _read_secrets(options: argparse.Namespace) -> list[str]:
    """Put the contents of the files where the values would be; what to tell whoever shows them to
    others.

    Raises `ConfigError` for a file that can't be read.
    """
    shown = []
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
            shown.append(
                f"the list of processes shows {flag} to all users of this machine; {variable} and"
                f" {flag}-file don't"
            )
    return shown


def _add_games(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "export"), help="what to do")
    parser.add_argument(
        "directory",
        nargs="?",
        default=kept_at("games"),
        help="where to export to (default: %(default)s)",
    )
    parser.add_argument("--snake", help="only what this snake of ours played")
    add_json(parser)
    add_database(parser)


def run_play(options: argparse.Namespace) -> int:
    """Run `procsnake play`. Returns the exit code."""
    if options.human:
        return play_by_hand(options)
    refuse_without_a_person(options)
    if not options.players:
        raise ConfigError("nobody plays; name two to sixteen players, or play yourself: --human")
    for player in options.players:
        register_worlds(player, options.imports)
    if episode := episode_to_watch(options):
        return play_episode(episode, options)
    referee = make_referee(options)
    with progress_on_stderr(options), no_part_left(options.record):
        watch(referee, TURN_S if options.delay is None else options.delay)
    if options.json:
        print_json(as_json(referee))
    return 0


def run_serve(options: argparse.Namespace) -> int:
    """Run `procsnake serve`: in worker processes under gunicorn, or in this process where gunicorn
    can't run.
    """
    from serve import processes
    from serve.monitoring import logs
    from serve.server import begin_to_listen, bind, url_of, warm_up

    logs.configure(as_json=options.log_json)
    for agent in options.agents:
        register_worlds(agent, options.imports)
    shown = _read_secrets(options)
    forks = processes.can_fork()
    if options.workers > 1 and not forks:
        raise ConfigError(
            f"--workers {options.workers} needs gunicorn and a system that can fork; leave it away"
        )
    with bind(options.host, options.port) as listener:
        print("warming up …", flush=True)
        warm_up({})
        served = {} if forks else _ready(options, at_start=True)
        if forks:
            evaluations = processes.in_child(lambda: _evaluations(_ready(options, at_start=True)))
        else:
            evaluations = _evaluations(served)
        for notice in shown:
            print(notice, file=sys.stderr, flush=True)
        url = url_of(listener)
        # What a terminal shows can be pasted into the platform's form; a log is to hold no secret.
        path = f"/{options.secret}" if options.secret and sys.stdout.isatty() else ""
        text = f"serving {', '.join(evaluations)} at {url}{path} (Ctrl-C stops)"
        text += "".join(
            f"\n{name} evaluates positions by: {told}" for name, told in evaluations.items() if told
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
    with closing(GameArchive(options.database)) as archive:
        # A worker that takes a dead one's place serves whatever has become of the database.
        if at_start and not options.no_games:
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

    chosen = {
        name: {part: _chosen(getattr(options, part), part, name, served) for part in LOOK_PARTS}
        for name in served
    }
    return create_app(
        served,
        look={name: Look.of(agent, chosen[name]) for name, agent in served.items()},
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
    found = None
    for text in values:
        name, is_named, value = text.partition("=")
        if is_named and name not in served:
            raise UnknownNameError(f"snake in --{part}", name, served)
        if not is_named or name == snake:
            found = value if is_named else text
    return found


def _store(options: argparse.Namespace) -> Any:
    from serve.archive.store import GameStore

    if options.no_games:
        return None
    return GameStore(
        options.database, max_bytes=options.keep_mib << 20, max_age_s=86400.0 * options.keep_days
    )


def run_games(options: argparse.Namespace) -> int:
    """Run `procsnake games`. Returns the exit code: 1 if games had to be left out of an export."""
    from serve.archive.reader import GameArchive, GamesUnavailableError

    with closing(GameArchive(options.database)) as archive:
        if not archive.exists:
            raise GamesUnavailableError(
                f"there is no {options.database}; procsnake serve keeps its games in one,"
                " --database says which"
            )
        return _export_or_list(archive, options)


def _export_or_list(archive: GameArchive, options: argparse.Namespace) -> int:
    if options.action == "export":
        return _export(archive, options)
    if options.json:
        print_json(
            [game for game in archive.every_game() if options.snake in (None, game["snake"])]
        )
        return 0
    rows = [
        _listed(game) for game in archive.every_game() if options.snake in (None, game["snake"])
    ]
    if rows:
        print(in_columns(rows, ("began", "snake", "result", "turns", "cause", "game")))
    else:
        whose = "" if options.snake is None else f" of the snake {options.snake!r}"
        print(
            printable(f"{without_password(options.database)} has no games{whose}"), file=sys.stderr
        )
    return 0


def _export(archive: GameArchive, options: argparse.Namespace) -> int:
    left_out: list[str] = []

    def leave_out(told: str) -> None:
        left_out.append(told)
        print(told, file=sys.stderr, flush=True)

    count = sum(
        1 for _ in archive.export(options.directory, snake=options.snake, leave_out=leave_out)
    )
    if options.json:
        print_json({"games": count, "directory": options.directory, "left_out": left_out})
    else:
        told = f"{count} game{'s' * (count != 1)} exported to {options.directory}"
        print(told + (f", {len(left_out)} left out" if left_out else ""))
    return 1 if left_out else 0


def _listed(game: Mapping[str, Any]) -> tuple[str, ...]:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(game["started"]))
    how = "being played" if game["ended"] is None else game["result"] or "over"
    if game["is_check"]:
        # The doctor asks for single moves, too, and such games have no end.
        how = "check"
    return began, game["snake"], how, str(game["turns"]), game["cause"] or "", game["id"]
