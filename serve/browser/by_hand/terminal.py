"""A person plays in the terminal: the board is redrawn after every key, or with every tick of the
clock.
"""

from __future__ import annotations

import sys
import time
from textwrap import fill
from typing import Protocol

from envs.battlesnake.render.ansi import draw
from envs.battlesnake.state import MOVE_NAMES
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.strangers.printable import printable
from envs.common.terminal import Redrawn, columns, wants_color
from serve.browser.by_hand.game import HumanGame
from serve.browser.by_hand.keys import GO_ON, HINT, NEW, QUIT, UNDO, Keyboard
from serve.browser.by_hand.words import advice, ending, news

HELP = "arrows or WASD move, space: straight on, H hint, U undo, N new game, Q quits"
HELP_WITH_CLOCK = (
    "arrows or WASD steer, space: start and pause, H hint, U undo, N new game, Q quits"
)
_WATCHING_S = 0.25
_WIDTH = 100


class Keys(Protocol):
    """A source of keys: a `Keyboard`, or a test."""

    def read(self, timeout: float | None = None) -> str | None:
        """Return the next key's action; None if `timeout` seconds pass first."""


def play_in_terminal(game: HumanGame, *, clock_s: float = 0.0) -> None:
    """Let the person at this terminal play until it quits.

    `clock_s` is how many seconds a turn takes; 0 waits for every move. Raises `ConfigError` without
    a terminal."""
    with Keyboard() as keys, Redrawn(sys.stdout) as screen:
        if not screen.live:
            raise ConfigError(
                "the game in the terminal needs a terminal that can be redrawn; try --browser"
            )
        session = Session(game, clock_s=clock_s)
        screen.show(session.picture())
        while session.step(keys):
            screen.show(session.picture())


class Session:
    """Handles a person's keys in sequence, and the screen."""

    def __init__(self, game: HumanGame, *, clock_s: float = 0.0) -> None:
        self._game = game
        self._clock_s = clock_s
        self._next_move: int | None = None
        self._due: float | None = None
        self._message = ""

    @property
    def is_running(self) -> bool:
        """Whether turns are played by the clock."""
        return self._due is not None

    def step(self, keys: Keys) -> bool:
        """Wait for a key or for the clock, and act on it. Returns False once the person quits."""
        if self._due is None:
            key = keys.read()
        else:
            key = keys.read(max(0.0, self._due - time.monotonic()))
        if key == QUIT:
            return False
        try:
            if key is None:
                self._tick()
            else:
                self._press(key)
        except ProcsnakeError as error:
            self._message = printable(error)
            self._due = None
        return True

    def picture(self) -> str:
        """Return the screen's text: news, the keys, and the board, which may be cut at the lower
        edge.
        """
        game = self._game
        looks = game.referee.customizations
        width = columns()
        board = draw(
            game.referee.state,
            0,
            game.referee.names,
            color=wants_color(),
            columns=width,
            customizations=looks,
        )
        keys = HELP_WITH_CLOCK if self._clock_s else HELP
        message = self._message or ending(game) or " ".join(news(game))
        return "\n".join([keys, fill(message, width or _WIDTH), board])

    def _press(self, key: str) -> None:
        self._message = ""
        if key in MOVE_NAMES:
            self._steer(MOVE_NAMES.index(key))
        elif key == GO_ON:
            self._go_on()
        elif key == HINT:
            self._message = advice(self._game, self._game.hint(turn=self._game.turn))
        elif key == UNDO:
            self._due = self._next_move = None
            self._game.undo(turn=self._game.turn)
        elif key == NEW:
            self._due = self._next_move = None
            self._game.new()

    def _steer(self, move: int) -> None:
        if not self._clock_s or not self._game.is_alive:
            self._play(move)
        elif move in self._game.allowed():
            self._next_move = move
            self._due = self._due or time.monotonic()

    def _go_on(self) -> None:
        if self.is_running:
            self._due = None
        elif self._clock_s or not self._game.is_alive:
            self._due = time.monotonic()
        else:
            self._play(None)

    def _tick(self) -> None:
        pause = _WATCHING_S
        if self._clock_s and self._game.is_alive:
            pause = self._clock_s
        self._due = time.monotonic() + pause
        self._play(self._next_move)

    def _play(self, move: int | None) -> None:
        """One turn. Whoever dies in it, or ends the game, is shown how before anything goes on."""
        lived = self._game.is_alive
        self._message = ""
        self._game.move(move, turn=self._game.turn)
        self._next_move = None
        if self._game.is_over or self._game.is_alive != lived:
            self._due = None
