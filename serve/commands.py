"""`procsnake play` and `procsnake serve`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from envs.command_line import Commands, add_game_options, at_least, draw_all, game_settings

PLAY_HELP = """\
A player is the name of a built-in agent, a run folder, a policy bundle, or the URL of any Battlesnake server.

examples:
  procsnake play runs/battlesnake-ppo-… flood greedy greedy
  procsnake play flood http://127.0.0.1:8000 --record game.jsonl --seed 7
"""
SERVE_HELP = """\
examples:
  procsnake serve runs/battlesnake-ppo-… --port 8000 --color '#3E338F' --head evil
  procsnake serve flood greedy                        two snakes on one server, at /snakes/flood and /snakes/greedy
  battlesnake play -u http://127.0.0.1:8000 -n me …   the official engine plays against it
"""


def add_commands(command: Commands) -> None:
    """Add this floor's commands."""
    _add_play(command("play", run_play, "Play one game in the terminal, with local agents and over HTTP.", PLAY_HELP))
    _add_serve(command("serve", run_serve, "Serve snakes to any Battlesnake engine over HTTP.", SERVE_HELP))


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("players", nargs="+", help="two to sixteen players, or one for a solo game")
    parser.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")
    parser.add_argument("--timeout", type=at_least(1), default=500, help="milliseconds a player has for a move")
    parser.add_argument("--record", metavar="FILE", help="write the game as JSON lines, as the official command line does")
    add_game_options(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="+", help="agents to serve; the first answers at /")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s; 0.0.0.0: all)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0: any free one (default: %(default)s)")
    parser.add_argument("--color", default="#128a7a", help="colour of the snake, #RRGGBB (default: %(default)s)")
    parser.add_argument("--head", default="bendr", help="head of the snake (default: %(default)s)")
    parser.add_argument("--tail", default="freckled", help="tail of the snake (default: %(default)s)")
    parser.add_argument("--author", default="", help="who made it")


def run_play(options: argparse.Namespace) -> int:
    """`procsnake play`."""
    import agents
    from serve.referee import Referee

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


def run_serve(options: argparse.Namespace) -> int:
    """`procsnake serve`."""
    import agents
    from serve.arena import Look, create_app
    from serve.server import listen, warm_up

    look = Look(color=options.color, head=options.head, tail=options.tail, author=options.author)
    served = {agent.name: agent for agent in map(agents.make, options.agents)}
    server = listen(create_app(served, look=look), host=options.host, port=options.port)
    print("warming up …", flush=True)
    warm_up(served)
    print(f"serving {', '.join(served)} at {server.url} (Ctrl-C stops)", flush=True)
    server.run()
    return 0


def watch(referee: Any, delay: float) -> None:
    """Draw a referee's game as it is played."""
    from envs.battlesnake.render.ansi import draw

    frames = referee.play()
    draw_all((draw(frame.state, 0, names=referee.names, color=sys.stdout.isatty()) for frame in frames), delay)
    result = referee.result
    ending = "a draw" if result.winner is None else f"{result.winner} wins"
    print(f"{ending} after {result.turns} turns")
