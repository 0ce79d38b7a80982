"""`procsnake play`, `procsnake serve` and `procsnake games`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from envs.command_line import Commands, add_game_options, at_least, draw_all, game_settings
from envs.errors import ConfigError, UnknownNameError
from serve.doctor.command import DOCTOR_HELP, add_doctor, run_doctor
from serve.export_commands import EXPORT_HELP, add_export
from serve.match import MATCH_HELP, add_match, run_match

PLAY_HELP = """\
A player is the name of a built-in agent, a run folder, a policy bundle, or the URL of any Battlesnake server.

examples:
  procsnake play runs/battlesnake-ppo-… flood greedy greedy
  procsnake play flood http://127.0.0.1:8000 --record game.jsonl --seed 7
  procsnake play procgen/coinrun --human --levels train:200       a game of Procgen by keyboard, in a window
"""
SERVE_HELP = """\
An agent is the name of a built-in one, a run folder or a policy bundle; NAME=AGENT gives it another name.

examples:
  procsnake serve runs/battlesnake-ppo-… --port 8000 --color '#3E338F' --head evil
  procsnake serve flood slow=greedy --color flood='#3E338F'      two snakes, at /snakes/flood and /snakes/slow
  procsnake serve flood --workers 2 --host 0.0.0.0               what a server on the internet runs
  battlesnake play -u http://127.0.0.1:8000 -n me …              the official engine plays against it

Games are kept in games.db and shown at http://127.0.0.1:8000 to browsers on this machine; elsewhere with --viewer-token.
"""
GAMES_HELP = """\
examples:
  procsnake games list
  procsnake games export games/                       every finished game as a recording, to look at or to learn from
"""
LOOK_PARTS = {"color": "colour, #RRGGBB", "head": "head", "tail": "tail", "author": "who made it"}


def add_commands(command: Commands) -> None:
    """Add this floor's commands."""
    _add_play(command("play", run_play, "Play one game in the terminal, with local agents and over HTTP.", PLAY_HELP))
    add_match(command("match", run_match, "Play one game: told, or watched in terminal or browser.", MATCH_HELP))
    _add_serve(command("serve", run_serve, "Serve snakes to any Battlesnake engine over HTTP.", SERVE_HELP))
    _add_games(command("games", run_games, "List or export the games that a server has kept.", GAMES_HELP))
    add_doctor(command("doctor", run_doctor, "Check a snake's URL as a platform would, before it does.", DOCTOR_HELP))
    # What runs is the subcommand's.
    add_export(command("export", None, "Write policies in other forms, and entries to the AIcrowd competition.", EXPORT_HELP))


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("players", nargs="+", help="two to sixteen players, or one for a solo game")
    parser.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")
    parser.add_argument("--timeout", type=at_least(1), default=500, help="milliseconds a player has for a move")
    parser.add_argument("--record", metavar="FILE", help="write the game as JSON lines, as the official command line does")
    parser.add_argument("--human", action="store_true", help="play a game of Procgen yourself, e.g. procgen/coinrun")
    parser.add_argument("--levels", default="all", help="Procgen: all, train:N, test:N or start:num (default: %(default)s)")
    parser.add_argument("--mode", default="easy", help="Procgen: distribution mode (default: %(default)s)")
    add_game_options(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="agents to serve; the first answers at /")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s; 0.0.0.0: all)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0: any free one (default: %(default)s)")
    parser.add_argument("--workers", type=at_least(1), default=1, help="worker processes (default: %(default)s)")
    for part, what in LOOK_PARTS.items():
        told = f"{what}: VALUE for all snakes, NAME=VALUE for one; may be repeated (default: as the bundle says)"
        parser.add_argument(f"--{part}", action="append", default=[], metavar="VALUE", help=told)
    secret = "first part of the snakes' paths, to keep strangers out (default: PROCSNAKE_SECRET)"
    parser.add_argument("--secret", default=os.environ.get("PROCSNAKE_SECRET") or None, help=secret)
    parser.add_argument("--rate-limit", type=float, metavar="N", help="requests a second from one address (default: no limit)")
    token = "whoever has it may watch games and read metrics from elsewhere (default: PROCSNAKE_TOKEN)"
    parser.add_argument("--viewer-token", default=os.environ.get("PROCSNAKE_TOKEN") or None, metavar="TOKEN", help=token)
    parser.add_argument("--no-games", action="store_true", help="keep no games and show none")
    parser.add_argument("--keep-days", type=at_least(1), default=30, help="days to keep games (default: %(default)s)")
    parser.add_argument("--keep-mib", type=at_least(1), default=1024, help="MiB of games to keep (default: %(default)s)")
    _add_database(parser)


def _add_games(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "export"), help="what to do")
    parser.add_argument("directory", nargs="?", default="games", help="where to export to (default: %(default)s)")
    parser.add_argument("--snake", help="only what this snake of ours played")
    _add_database(parser)


def _add_database(parser: argparse.ArgumentParser) -> None:
    which = "database of games: sqlite:///FILE or postgresql://… (default: DATABASE_URL, or else sqlite:///games.db)"
    parser.add_argument("--database", default=os.environ.get("DATABASE_URL") or "sqlite:///games.db", metavar="URL", help=which)


def run_play(options: argparse.Namespace) -> int:
    """`procsnake play`."""
    if options.human:
        return _play_by_hand(options)
    import agents
    from agents.referee import Referee

    seats = [player if "://" in player else agents.make(player) for player in options.players]
    referee = Referee(
        seats,
        settings=game_settings(options),
        width=options.width,
        height=options.height,
        seed=options.seed,
        timeout_ms=options.timeout,
        recording=options.record,
    )
    watch(referee, options.delay)
    return 0


def _play_by_hand(options: argparse.Namespace) -> int:
    from envs.procgen import keyboard

    world, _, game = options.players[0].rpartition("/")
    if len(options.players) > 1 or world != "procgen":
        raise ConfigError(f"--human plays one game of Procgen, not {' '.join(options.players)}; e.g. procgen/coinrun --human")
    print(keyboard.KEYS)
    keyboard.play(game, seed=options.seed, levels=options.levels, distribution_mode=options.mode)
    return 0


def run_serve(options: argparse.Namespace) -> int:
    """`procsnake serve`: on gunicorn, or where that can't run on waitress."""
    from serve import processes
    from serve.server import bind, url_of, warm_up

    forks = processes.can_fork()
    if options.workers > 1 and not forks:
        raise ConfigError(f"--workers {options.workers} needs gunicorn and a system that can fork; leave it away")
    with bind(options.host, options.port) as listener:
        if forks:
            processes.share_metrics()
        print("warming up …", flush=True)
        warm_up({})
        names = processes.in_child(lambda: list(_ready(options))) if forks else []
        served = {} if forks else _ready(options)
        print(f"serving {', '.join(names or served)} at {url_of(listener)} (Ctrl-C stops)", flush=True)
        if forks:
            processes.run(lambda: _make_app(options, _ready(options), _store(options)), listener, workers=options.workers)
        else:
            _run_here(_make_app(options, served, _store(options)), listener)
    return 0


def _ready(options: argparse.Namespace) -> dict[str, Any]:
    """The agents by name, warm. Whatever is wrong with the options is said here."""
    from serve.game_archive import GameArchive
    from serve.server import warm_up

    GameArchive(options.database).close()
    served = _served(options)
    _make_app(options, served)
    warm_up(served)
    return served


def _run_here(app: Any, listener: Any) -> None:
    from serve.arena import GAMES
    from serve.server import Server

    try:
        Server(app, listener).run()
    finally:
        if app.extensions[GAMES] is not None:
            app.extensions[GAMES].close()


def _served(options: argparse.Namespace) -> dict[str, Any]:
    """The agents by name."""
    import agents

    served: dict[str, Any] = {}
    for text in options.agents:
        name, is_named, path = text.partition("=")
        agent = agents.make(path if is_named else text)
        name = name if is_named else agent.name.replace("+", "-")
        if name in served:
            raise ConfigError(f"two snakes are called {name!r}; give one another name: {name}-2={path if is_named else text}")
        served[name] = agent
    return served


def _make_app(options: argparse.Namespace, served: dict[str, Any], store: Any = None) -> Any:
    from serve.arena import create_app
    from serve.cores import usable_cores
    from serve.look import Look
    from serve.viewer import Access

    chosen = {name: {part: _chosen(getattr(options, part), part, name, served) for part in LOOK_PARTS} for name in served}
    return create_app(
        served,
        look={name: Look.of(agent, chosen[name]) for name, agent in served.items()},
        store=store,
        access=Access(options.viewer_token),
        secret=options.secret,
        rate_limit=options.rate_limit,
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
    from serve.games import GameStore

    if options.no_games:
        return None
    return GameStore(options.database, max_bytes=options.keep_mib << 20, max_age_s=86400.0 * options.keep_days)


def run_games(options: argparse.Namespace) -> int:
    """`procsnake games`."""
    from serve.game_archive import GameArchive, GamesUnavailableError

    archive = GameArchive(options.database)
    if not archive.exists:
        raise GamesUnavailableError(
            f"there is no {options.database}; procsnake serve keeps its games in one, --database says which"
        )
    if options.action == "export":
        count = sum(1 for _ in archive.export(options.directory, snake=options.snake))
        print(f"{count} games exported to {options.directory}")
        return 0
    for game in archive.every_game():
        if options.snake in (None, game["snake"]):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(game["started"]))
            how = game["result"] or ("being played" if game["ended"] is None else "over")
            print(f"{when}  {game['snake']:<16.16} {how:<12} {game['turns']:>5} turns  {game['cause'] or '':<20} {game['id']}")
    return 0


def watch(referee: Any, delay: float) -> None:
    """Draw a referee's game as it is played."""
    from envs.battlesnake.render.ansi import draw

    frames = referee.play()
    draw_all((draw(frame.state, 0, names=referee.names, color=sys.stdout.isatty()) for frame in frames), delay)
    result = referee.result
    ending = "a draw" if result.winner is None else f"{result.winner} wins"
    print(f"{ending} after {result.turns} turns")
