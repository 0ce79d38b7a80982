"""`procsnake match`: one game, watched in the terminal or in the browser, or only told."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.command_line import add_game_options, at_least, game_settings
from envs.errors import ConfigError

MATCH_HELP = """\
A player is the name of a built-in agent or a champion, a run folder, a policy bundle, a file of rules, or the URL of any
Battlesnake server.

examples:
  procsnake match flood greedy alphabeta mcts                 who wins, and how everybody fared
  procsnake match flood my_rule.py+flood --watch              in the terminal
  procsnake match champion-standard flood flood flood --browser
"""


def add_match(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("players", nargs="+", help="two to sixteen players, or one for a solo game")
    parser.add_argument("--watch", action="store_true", help="draw the game in the terminal")
    parser.add_argument("--browser", action="store_true", help="show it in the browser, turn by turn; Ctrl-C ends the show")
    parser.add_argument("--delay", type=float, default=0.12, help="seconds between two turns that are watched")
    parser.add_argument("--timeout", type=at_least(1), default=500, help="milliseconds a player has for a move")
    parser.add_argument("--record", metavar="FILE", help="write the game as JSON lines, as the official command line does")
    add_game_options(parser)


def run_match(options: argparse.Namespace) -> int:
    """`procsnake match`."""
    import agents

    seats = [player if "://" in player else agents.make(player) for player in options.players]
    if options.browser:
        return _in_the_browser(options, seats)
    referee = _referee(options, seats)
    if options.watch:
        from serve.commands import watch

        watch(referee, options.delay)
    else:
        for _ in referee.play():
            pass
        _tell(referee)
    return 0


def _referee(options: argparse.Namespace, seats: Sequence[Any], **more: Any) -> Any:
    from agents.referee import Referee

    return Referee(
        seats,
        settings=game_settings(options),
        width=options.width,
        height=options.height,
        seed=options.seed,
        timeout_ms=options.timeout,
        recording=options.record,
        **more,
    )


def _tell(referee: Any) -> None:
    from envs.battlesnake.state import CAUSE_NAMES

    result, a = referee.result, referee.state.arrays
    for slot, name in enumerate(referee.names):
        fate = CAUSE_NAMES[result.causes[slot]]
        how = f"{fate} on turn {a.death_turn[0, slot]}" if fate else "alive"
        print(f"{name:<24} {how:<32} length {a.length[0, slot]:>3}, {a.food_eaten[0, slot]} eaten")
    print(f"{'a draw' if result.winner is None else f'{result.winner} wins'} after {result.turns} turns")


def _in_the_browser(options: argparse.Namespace, seats: list[Any]) -> int:
    """The first local agent plays from behind a server of ours, whose viewer shows its games as they are played."""
    import time

    from agents.referee import Referee
    from serve.arena import create_app
    from serve.games import GameStore
    from serve.server import running, warm_up

    slot = next((k for k, seat in enumerate(seats) if not isinstance(seat, str)), None)
    if slot is None:
        raise ConfigError("the browser shows games from a local player's point of view, but all are behind URLs; try --watch")
    agent = seats[slot]
    names = Referee(seats).names
    warm_up({agent.name: agent})
    with tempfile.TemporaryDirectory() as scratch:
        store = GameStore(f"sqlite:///{Path(scratch) / 'games.db'}")
        with running(create_app({"match": agent}, store=store)) as url:
            seats[slot] = url
            print(f"the game is shown at {url} (Ctrl-C ends the show)", flush=True)
            webbrowser.open(url)
            referee = _referee(options, seats, names=names)
            try:
                for _ in referee.play():
                    time.sleep(options.delay)
                _tell(referee)
                while True:
                    time.sleep(1)
            except KeyboardInterrupt:
                print()
            finally:
                store.close()
    return 0
