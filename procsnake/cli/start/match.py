"""The command `procsnake match`: one game, shown in the terminal or in the browser, or only its
result.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.terminal import Progress
from procsnake.cli.command_line import (
    add_game_options,
    add_imports,
    add_json,
    at_least,
    game_settings,
    pause,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.effort_options import add_effort, effort_of, tell_own_efforts
from procsnake.cli.position_options import add_position, chosen_position
from procsnake.cli.start.watching import tell_ending, watch
from procsnake.cli.worlds import register_worlds

HELP = """\
A player is a built-in agent, a champion, a run folder, a policy bundle, a file of rules, or the
URL of any Battlesnake server. NAME=PLAYER renames it.

examples:
  procsnake match flood greedy alphabeta mcts     # who wins, and how each snake died
  procsnake match flood my_rule.py+flood --watch  # in the terminal
  procsnake match me=http://127.0.0.1:8000 flood --map royale --shrinkEveryNTurns 10 \\
     --hazardDamagePerTurn 30
  procsnake match champion-standard flood flood flood --browser
  # continue from a /move request; the first player is its `you`
  procsnake match me=http://127.0.0.1:8000 flood --position request.json
  procsnake match flood greedy --position game.jsonl --turn 40
  procsnake match runs/battlesnake-ppo-… flood --record game.jsonl --seed 7
  # each search gets 20 ms of processor time per move
  procsnake match alphabeta mcts --time 20
"""
_ANIMATIONS = (".mp4", ".gif", ".svg")
_FILMS = (*_ANIMATIONS, ".webp")
"""What `replay animate` makes of a recording, and what else `watch --record` takes in other
worlds.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "players",
        nargs="+",
        metavar="PLAYER",
        help="two to sixteen players, or one to play solo",
    )
    add_imports(parser)
    parser.add_argument("--watch", action="store_true", help="draw the game in the terminal")
    result = parser.add_mutually_exclusive_group()
    add_json(result)
    result.add_argument(
        "--browser",
        action="store_true",
        help="show the game in the browser; Ctrl-C ends it",
    )
    parser.add_argument(
        "--delay", type=pause, default=0.12, help="with --watch or --browser: seconds per turn"
    )
    parser.add_argument("--timeout", type=at_least(1), default=500, help="milliseconds per move")
    add_effort(parser)
    add_position(parser)
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write the game as JSON lines, in the official format",
    )
    add_game_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake match`. Returns the exit code."""
    for player in options.players:
        register_worlds(player, options.imports)
    if options.browser:
        return _in_the_browser(options)
    referee = make_referee(options)
    with progress_on_stderr(options), no_part_left(options.record):
        if options.watch:
            watch(referee, options.delay)
        else:
            _play(referee, quiet=options.json)
            _tell(referee)
    if options.json:
        print_json(as_json(referee))
    return 0


def _play(referee: Any, *, quiet: bool) -> None:
    with Progress(lines=False) as progress:
        for frame in referee.play():
            if not quiet:
                progress.show(f"turn {frame.state.arrays.turn[0]}")


@contextmanager
def no_part_left(record: str | None) -> Iterator[None]:
    """Remove the partial recording of a game interrupted by Ctrl-C. After a failure it stays, to
    show where that happened.
    """
    try:
        yield
    except KeyboardInterrupt:
        if record is not None:
            from envs.battlesnake.recording import unfinished

            unfinished(record).unlink(missing_ok=True)
        raise


def check_record(record: str | None) -> None:
    """Raise `ConfigError` if a recording of Battlesnake would get the suffix of a film."""
    if record is not None and (suffix := Path(record).suffix.lower()) in _FILMS:
        lines = Path(record).with_suffix(".jsonl")
        film = Path(record)
        if suffix not in _ANIMATIONS:
            film = film.with_suffix(".gif")
        raise ConfigError(
            f"--record writes a game of Battlesnake as JSON lines, not as {suffix}. Record {lines},"
            f" and make the film of it: {shell_command('replay', 'animate', lines, '--out', film)}"
        )


def make_referee(options: argparse.Namespace) -> Any:
    """Return the `Referee` of the game that the options describe."""
    from agents.measure.evaluation.referee import Referee
    from agents.opened_recording import check_players
    from agents.player import Player

    check_record(options.record)
    players = [Player.parse(text) for text in options.players]
    names = [player.name for player in players]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two players are called {twice!r}; give one another name")
    position = chosen_position(options)
    if position is not None:
        check_players(position, len(players))
    effort = effort_of(options)
    tell_own_efforts(effort, ((player.name or player.spec, player.spec) for player in players))
    seats = [player.spec if player.is_remote else effort.make(player.spec) for player in players]
    referee = Referee(
        seats,
        names=names,
        settings=game_settings(options),
        width=options.width,
        height=options.height,
        seed=options.seed,
        timeout_ms=round(options.time) if options.wall else options.timeout,
        tell_deadline=not effort.options,
        recording=options.record,
        position=None if position is None else position.state,
    )
    tell_evaluations(referee)
    return referee


def tell_evaluations(referee: Any) -> None:
    """Print on stderr which evaluation each local search uses on the game's first board."""
    state = referee.first_board()
    for name, seat in zip(referee.names, referee.seats, strict=True):
        evaluation = None if isinstance(seat, str) else seat.evaluation_in_words(state)
        if evaluation:
            print(f"{name} evaluates positions by: {evaluation}", file=sys.stderr)


def _tell(referee: Any) -> None:
    from envs.battlesnake.state import CAUSE_NAMES

    result = referee.result
    a = referee.state.arrays
    rows = []
    for slot, name in enumerate(referee.names):
        fate = CAUSE_NAMES[result.causes[slot]]
        how = f"{fate} on turn {a.death_turn[0, slot]}" if fate else "alive"
        rows.append((name, how, str(a.length[0, slot]), str(a.food_eaten[0, slot])))
    print(in_columns(rows, ("snake", "fate", "length", "eaten")))
    tell_ending(referee)


def as_json(referee: Any) -> dict[str, Any]:
    """Return how the game ended: the winner (None for a draw), the number of turns, and each
    snake's result.
    """
    from envs.battlesnake.state import CAUSE_NAMES

    result = referee.result
    a = referee.state.arrays
    snakes = [
        {
            "name": name,
            "cause": CAUSE_NAMES[result.causes[slot]] or None,
            "death_turn": int(a.death_turn[0, slot]) if CAUSE_NAMES[result.causes[slot]] else None,
            "length": int(a.length[0, slot]),
            "food_eaten": int(a.food_eaten[0, slot]),
            "failures": referee.failures.get(slot, []),
        }
        for slot, name in enumerate(referee.names)
    ]
    return {"winner": result.winner, "turns": int(result.turns), "snakes": snakes}


def _in_the_browser(options: argparse.Namespace) -> int:
    """The viewer shows the game as the referee knows it: whole, with what every agent here
    thought.
    """
    from flask import Flask, redirect

    from serve.browser.viewer import viewer_blueprint
    from serve.browser.viewer.hosted_game import HostedGame
    from serve.server import running, warm_up
    from serve.transport.request_body import MAX_BODY_BYTES

    with tempfile.TemporaryDirectory() as scratch:
        if options.record is None:
            options.record = str(Path(scratch) / "game.jsonl")
        referee = make_referee(options)
        warm_up({seat.name: seat for seat in referee.seats if not isinstance(seat, str)})
        game = HostedGame(referee, options.record)
        app = Flask("procsnake", static_folder=None)
        app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
        app.register_blueprint(viewer_blueprint(game))
        app.get("/")(lambda: redirect(game.path))
        frames = game.play()
        next(frames)
        with running(app) as url:
            print(f"the game is shown at {url}{game.path} (Ctrl-C ends the show)", flush=True)
            webbrowser.open(f"{url}{game.path}")
            try:
                with no_part_left(options.record):
                    for _ in frames:
                        time.sleep(options.delay)
                _tell(referee)
                while True:
                    time.sleep(1)
            except KeyboardInterrupt:
                print()
    return 0
