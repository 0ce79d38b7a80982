"""The command `procsnake replay`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from envs.common.errors import ConfigError
from envs.common.strangers.printable import printable
from envs.common.terminal import columns, draw_all, wants_color
from envs.common.whole_files import write_whole
from procsnake.cli.command_line import (
    Commands,
    add_json,
    at_least,
    pause,
    print_json,
)

if TYPE_CHECKING:
    from envs.battlesnake.recording import Recording


HELP = """\
A recording is a file of `procsnake match --record` or `battlesnake play --output`, a log of /move
requests (one per line), a single request, or the frames of a game of Arena or its predecessor.

examples:
  procsnake replay show game.jsonl                    # --turn 40 shows one board
  procsnake replay animate game.jsonl --out game.gif  # or .svg, or .mp4
  procsnake replay to-test game.jsonl --turn 40 --snake me --out tests/test_turn_40.py
  procsnake replay ask request.json --agent champion-standard
  procsnake replay to-test request.json --allow up,left --agent champion-standard
  procsnake replay show frames.json --width 11 --height 11      # frames lack the board's size
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    show = _with_recording(
        add(
            "show",
            run_show,
            "Show a game in the terminal.",
            "examples:\n  procsnake replay show game.jsonl\n",
        )
    )
    show.add_argument("--turn", type=at_least(0), help="show only this turn")
    show.add_argument(
        "--delay",
        type=pause,
        default=0.12,
        help="seconds between two turns (default: %(default)s)",
    )
    animate = _with_recording(
        add(
            "animate",
            run_animate,
            "Animate a game as .gif, .svg or .mp4.",
            "examples:\n  procsnake replay animate game.jsonl --out game.gif\n",
        )
    )
    animate.add_argument(
        "--out", metavar="FILE", help="file to write, .gif, .svg or .mp4 (default: .gif)"
    )
    ask = _with_recording(
        add(
            "ask",
            run_ask,
            "Ask an agent for its move, and why.",
            "examples:\n  procsnake replay ask game.jsonl --turn 40 --snake me --agent alphabeta\n",
        )
    )
    ask.add_argument("--turn", type=at_least(0), help="turn to ask about")
    ask.add_argument("--snake", help="id or name of the snake (default: the one in the request)")
    ask.add_argument("--agent", default="flood", help="agent to ask (default: %(default)s)")
    add_json(ask)
    test = _with_recording(
        add(
            "to-test",
            run_to_test,
            "Turn a position into a test.",
            "examples:\n  procsnake replay to-test game.jsonl --turn 40 --snake me\n",
        )
    )
    test.add_argument("--turn", type=at_least(0), help="turn to test")
    test.add_argument(
        "--snake", help="id or name of the snake to test (default: the first to die on this turn)"
    )
    test.add_argument("--agent", default="flood", help="agent to test (default: %(default)s)")
    test.add_argument("--allow", metavar="MOVES", help="moves that pass, such as up,left")
    test.add_argument("--out", metavar="FILE", help="file to write (default: print it)")


def _with_recording(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("recording", help="file of the recorded game")
    for side in ("width", "height"):
        parser.add_argument(
            f"--{side}",
            type=at_least(1),
            help=f"board {side}, for arena frames without it",
        )
    return parser


def _recording(options: argparse.Namespace) -> Recording:
    from agents.opened_recording import open_recording

    recording = open_recording(options.recording, width=options.width, height=options.height)
    for side in ("width", "height"):
        side_option = getattr(options, side)
        recorded = recording.boards()[0][side]
        if side_option not in (None, recorded):
            raise ConfigError(
                f"--{side} is {side_option}, but the recording says {recorded}; leave it out"
            )
    return recording


def run_show(options: argparse.Namespace) -> int:
    """Run `procsnake replay show`. Returns the exit code."""
    from envs.battlesnake.render.ansi import draw_board

    recording = _recording(options)
    if options.turn is None:
        boards = recording.boards()
    else:
        boards = [recording.board(options.turn)]
    pictures = (draw_board(board, color=wants_color(), columns=columns()) for board in boards)
    draw_all(pictures, options.delay)
    return 0


def run_animate(options: argparse.Namespace) -> int:
    """Run `procsnake replay animate`. Returns the exit code."""
    from envs.battlesnake.render.animation import save_animation

    out = options.out or Path(options.recording).with_suffix(".gif")
    print(f"written: {save_animation(_recording(options), out)}")
    return 0


def run_ask(options: argparse.Namespace) -> int:
    """Run `procsnake replay ask`. Returns the exit code."""
    from agents.asking import ask, in_words
    from agents.opened_recording import position_of, turn_of
    from agents.workbench.bench import make_player

    recording = _recording(options)
    position = position_of(recording, turn_of(recording, options.turn), snake=options.snake)
    answer = ask(make_player(options.agent), position)
    print_json(answer) if options.json else print(printable(in_words(answer), keep="\n"))
    return 0


def run_to_test(options: argparse.Namespace) -> int:
    """Run `procsnake replay to-test`. Returns the exit code."""
    from agents.opened_recording import turn_of
    from envs.battlesnake.recording import to_test

    recording = _recording(options)
    turn = turn_of(recording, options.turn)
    allowed = None if options.allow is None else options.allow.split(",")
    test = to_test(recording, turn, snake=options.snake, agent=options.agent, allowed=allowed)
    if options.out:
        write_whole(Path(options.out), test)
        print(f"written: {options.out}")
    else:
        print(test, end="")
    return 0
