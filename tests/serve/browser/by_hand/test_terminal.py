"""A person at a terminal: what keys send, and what is played and shown."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES
from serve.browser.by_hand import terminal
from serve.browser.by_hand.keys import GO_ON, HINT, NEW, QUIT, UNDO, Keyboard, next_action
from serve.browser.by_hand.terminal import Session
from tests.serve.browser.by_hand.games import DOWN, LEFT, RIGHT, UP, arrays, game_of, same

ROOT = Path(__file__).parents[4]
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE_S = 60


class Pressed:
    """Stands for a keyboard: these keys, one after the other; None where the time passes first.
    Keeps the timeouts.
    """

    def __init__(self, *keys: str | None) -> None:
        self.keys = list(keys)
        self.timeouts = []

    def read(self, timeout=None):
        self.timeouts.append(timeout)
        return self.keys.pop(0)


def press(session: Session, *keys: str | None) -> Pressed:
    pressed = Pressed(*keys)
    while pressed.keys:
        assert session.step(pressed)
    return pressed


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("wasd", ["up", "left", "down", "right"]),
        ("WASD", ["up", "left", "down", "right"]),
        ("\x1b[A\x1b[B\x1b[D\x1b[C", ["up", "down", "left", "right"]),
        ("\x1bOA\x1bOB\x1bOD\x1bOC", ["up", "down", "left", "right"]),
        (" hHuUnN", [GO_ON, HINT, HINT, UNDO, UNDO, NEW, NEW]),
        ("qQ\x04", [QUIT] * 3),
        # Home, Ctrl-Up, F1, Delete, Page up and Escape hold letters, too; none of them is a key of
        # the game.
        ("\x1b[H\x1b[1;5A\x1bOP\x1b[3~\x1b[5~\x1b", [None] * 6),
        ("xyé1\t\x00", [None] * 6),
    ],
)  # fmt: skip
def test_keys_are_what_terminals_send(text, actions):
    found = []
    while text:
        action, text = next_action(text)
        found.append(action)
    assert found == actions


def test_keys_that_are_held_while_others_think_stay_what_they_are(monkeypatch):
    """More than is read at once is waiting then, and the last arrow is cut in two, whose second
    half ends in a letter.
    """
    leader, follower = pty.openpty()
    with os.fdopen(leader, "wb", buffering=0) as held, os.fdopen(follower) as screen:
        monkeypatch.setattr(sys, "stdin", screen)
        with Keyboard() as keys:
            held.write(b"\x1b[A" * 30 + b"\x1bOB" * 30 + b"\x1b[1;5C" * 30 + b"q")
            assert [keys.read(PATIENCE_S / 6) for _ in range(61)] == ["up"] * 30 + ["down"] * 30 + [
                QUIT
            ]
            held.write(b"\x1b")
            assert keys.read(0.0) is None


def test_ctrl_c_is_heard_before_the_next_key_even_if_it_does_not_end_the_waiting(monkeypatch):
    # A signal that another thread gets leaves `select` waiting, as one does that comes just before
    # it begins to wait.
    heard = threading.Event()
    pressed = []

    def interrupt() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if not heard.wait(PATIENCE_S / 6):
            pressed.append(os.write(leader, b"h"))

    def read_interrupted(keys: Keyboard) -> None:
        thread.start()
        keys.read()

    leader, follower = pty.openpty()
    with os.fdopen(leader, "wb"), os.fdopen(follower) as screen:
        monkeypatch.setattr(sys, "stdin", screen)
        before = termios.tcgetattr(screen)
        thread = threading.Thread(target=interrupt)
        with Keyboard() as keys:
            # Whenever it comes: an interrupt that is raised outside would end all tests.
            with pytest.raises(KeyboardInterrupt):
                read_interrupted(keys)
            heard.set()
            thread.join()
        assert termios.tcgetattr(screen) == before
    assert not pressed
    assert signal.set_wakeup_fd(-1) == -1


def test_every_key_is_a_turn_and_undo_and_new_games_are_the_games(tmp_path):
    game = game_of(tmp_path, "circles", "flood", width=11, height=11)
    session = Session(game)
    first = arrays(game)
    press(session, "up", "right", GO_ON)
    assert [moves[0] for moves in game.moves] == [UP, RIGHT, RIGHT]
    press(session, UNDO, UNDO, UNDO)
    assert same(arrays(game), first)
    press(session, UNDO)
    assert "there is no move to take back on turn 0" in session.picture()
    press(session, NEW)
    assert game.setup.seed == 2
    assert not session.step(Pressed(QUIT))


def test_the_picture_tells_keys_hints_refusals_and_the_end(tmp_path):
    game = game_of(tmp_path, "circles", "circles", width=11, height=11, seed=2)
    session = Session(game)
    press(session, HINT)
    lines = session.picture().splitlines()
    assert "H hint" in lines[0]
    assert lines[1].startswith(f"alphabeta would go {MOVE_NAMES[game.hint(turn=0).move]}")
    assert lines[2].startswith("╭ turn 0 ")
    assert "A you" in session.picture()
    press(session, "up", "down")
    assert "down leads into your own neck" in session.picture()
    assert game.turn == 1
    while game.is_alive:
        press(session, GO_ON)
    assert (
        session.picture().splitlines()[1]
        == "You are out. You left the board on turn 10. The others play on."
    )


def test_with_a_clock_turns_come_by_themselves_and_the_last_key_counts(tmp_path):
    game = game_of(tmp_path, width=11, height=11, seed=3)
    session = Session(game, clock_s=30.0)
    assert press(session, "left").timeouts == [None]
    assert (session.is_running, game.turn) == (True, 0)
    # The clock has begun: the first turn is due at once, the next one after 30 s.
    waited = press(session, None, "up", "down", "right", None).timeouts
    assert waited[0] == 0
    assert all(20 < seconds <= 30 for seconds in waited[1:])
    assert [moves[0] for moves in game.moves] == [LEFT, DOWN]
    assert press(session, None).timeouts[0] > 20
    assert [moves[0] for moves in game.moves] == [LEFT, DOWN, DOWN]
    press(session, GO_ON)
    assert press(session, HINT).timeouts == [None]
    assert not session.is_running


def test_the_clock_stops_when_the_person_dies_and_the_rest_can_be_watched(tmp_path):
    game = game_of(tmp_path, "circles", "circles", width=11, height=11, seed=2)
    session = Session(game, clock_s=30.0)
    press(session, GO_ON)
    while session.is_running:
        press(session, None)
    died = game.turn
    assert (game.is_alive, game.is_over) == (False, False)
    press(session, GO_ON, None)
    waited = press(session, None).timeouts[0]
    assert waited <= terminal._WATCHING_S
    assert game.turn == died + 2
    press(session, UNDO)
    assert (game.is_alive, session.is_running) == (True, False)


class Terminal:
    """A command on a terminal of 100 columns, whose screen is read and whose keys are pressed."""

    def __init__(self, *arguments: str) -> None:
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.before = termios.tcgetattr(self.leader)
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ("COLUMNS", "LINES", "FORCE_COLOR", "BROWSER")
        }
        command = [sys.executable, "-m", "procsnake", *arguments]
        settings = clean | {"TERM": "xterm-256color", "NO_COLOR": "1"}
        self.child = subprocess.Popen(
            command, stdin=follower, stdout=follower, stderr=follower, env=settings, cwd=ROOT
        )
        os.close(follower)
        self.shown = ""

    def press(self, keys: str) -> None:
        os.write(self.leader, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until this text is shown that wasn't before."""
        seen = len(self.shown)
        deadline = time.monotonic() + PATIENCE_S
        while text not in SEQUENCE.sub("", self.shown[seen:]):
            assert time.monotonic() < deadline, self.shown
            if select.select([self.leader], [], [], 1.0)[0]:
                self.shown += os.read(self.leader, 65536).decode("utf-8", "replace")

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self.leader)


def test_a_game_at_a_real_terminal(tmp_path):
    record = tmp_path / "mine.jsonl"
    size = ["--width", "7", "--height", "7", "--seed", "1"]
    screen = Terminal("play", "--terminal", "--against", "me=flood", *size, "--record", str(record))
    try:
        screen.wait_for(" turn 0 ")
        screen.press("\x1b[A")
        screen.wait_for(" turn 1 ")
        screen.press("d")
        screen.wait_for(" turn 2 ")
        screen.press("a")
        screen.wait_for("left leads into your own neck")
        screen.press("h")
        screen.wait_for("alphabeta would go ")
        screen.press("u")
        screen.wait_for(" turn 1 ")
        screen.child.send_signal(signal.SIGINT)  # Ctrl-C
        screen.wait_for("recording of a game that isn't over")
        assert screen.child.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(screen.leader)[3] == screen.before[3], (
            "the terminal is left as it was found"
        )
    finally:
        screen.close()
    assert "The game was left on turn 1." in screen.shown
    recording = Recording.read(f"{record}.part")
    you = recording.requests[0]["you"]["id"]
    assert recording.decisions(0)[you]["move"] == "up"
    assert [snake["name"] for snake in recording.boards()[0]["snakes"]] == ["you", "me"]
