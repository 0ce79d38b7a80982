"""One game of Battlesnake in which a person has a seat: moves, undo, hints, new games.

The `Referee` plays it, so the rules, the opponents' answers and the recording are those of any
other game. The person's seat is an agent that plays the last chosen move. Undo starts a new game
with the same seed, whose opening is all moves before that turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from agents.agent import Agent, Decision
from agents.measure.evaluation.referee import Referee
from envs.battlesnake.plain import Board
from envs.battlesnake.render.scene import direction, scene
from envs.battlesnake.state import ALIVE, MOVE_NAMES, UP
from envs.common.errors import ProcsnakeError
from serve.browser.by_hand.table import YOU, Moves, Setup, Table
from serve.browser.viewer.hosted_game import SNAKE, HostedGame

HINT = "alphabeta?nodes=200000"
"""The search that gives hints to a person who names none."""


class RefusedError(ProcsnakeError):
    """The game refuses the person's request, on this turn or at all. The message says why."""


class HumanGame:
    """The one game that a person plays. Several threads may call it; each call waits for the one
    before.

    * `make` makes an agent of an opponent's spec, and `hint_by` is the spec of the agent that gives
      hints.
    * `recording` is the file of the first game; the second one is written to NAME-2.SUFFIX, and so
      on.
    * URLs have `timeout_ms` for an answer. With `tell_deadline`, agents are told to answer in the
      same time. Without it they take their own time, and answer the same moves in the same way.

    Each request names its turn, so that nothing is played on a board that the person hasn't seen.
    Raises what `new` raises."""

    def __init__(
        self,
        setup: Setup,
        *,
        make: Callable[[str], Agent],
        recording: Path,
        hint_by: str = HINT,
        timeout_ms: int = 500,
        tell_deadline: bool = False,
    ) -> None:
        self._adviser = make(hint_by)
        self._table = Table(
            make=make, adviser=self._adviser, timeout_ms=timeout_ms, tell_deadline=tell_deadline
        )
        self.lock = threading.RLock()
        """Whoever reads several things of the game that belong together holds it."""
        self.hint_by = hint_by
        self.named = setup.opponents
        self.moves: list[Moves] = []
        """What each slot played on each turn so far; None for dead snakes."""
        self.failures: dict[int, str] = {}
        """The slots whose request failed on the last turn, and why."""
        self.paths = [recording]
        """The files of all games, the last one's last."""
        self._current = self._table.begin(setup, recording)

    @property
    def setup(self) -> Setup:
        """The opponents, rules, board and seed that the game began with."""
        return self._current.setup

    @property
    def referee(self) -> Referee:
        """The referee that plays the game; its `state` is the board."""
        return self._current.referee

    @property
    def hosted(self) -> HostedGame:
        """The game as the viewer shows it."""
        return self._current.hosted

    @property
    def path(self) -> Path:
        """The path of the recording once the game is over."""
        return self._current.path

    @property
    def turn(self) -> int:
        """The number of the board that the person sees."""
        return len(self.moves)

    @property
    def heading(self) -> int:
        """The person's last move, 0..3; up at first."""
        for moves in reversed(self.moves):
            own = moves[YOU]
            if own is not None:
                return own
        return UP

    @property
    def is_alive(self) -> bool:
        """Whether the person's snake lives."""
        return bool(self.referee.state.arrays.cause[0, YOU] == ALIVE)

    @property
    def is_over(self) -> bool:
        """Whether the game is over."""
        return self.referee.result is not None

    @property
    def result(self) -> str | None:
        """How the game ended for the person: "won", "lost" or "draw". None during the game, and
        after a solo game.
        """
        game = self.hosted.game(self.referee.game["id"], SNAKE)
        return None if game is None else game["result"]

    def board(self) -> Board:
        """Return the board in webhook form, including dead snakes, names and looks. The ids are
        slots.
        """
        return scene(self.referee.state, 0, self.referee.names, self.referee.customizations)

    def allowed(self) -> list[int]:
        """Return the moves that don't lead into the person's own neck; none once its snake is
        dead.
        """
        if not self.is_alive:
            return []
        board = self.board()
        body = board["snakes"][YOU]["body"]
        back = direction(board, *body[:2]) if len(body) > 1 else None
        return [move for move in range(len(MOVE_NAMES)) if move != back]

    def new(self, setup: Setup | None = None) -> None:
        """Start another game: with `setup`, or like the last one with the next seed.

        Raises `ConfigError` or `UnknownNameError` for an impossible setup, `BundleError` for a
        policy that doesn't support such boards, and `SnakeUnreachableError`. The old game then
        continues."""
        with self.lock:
            path = self.paths[0].with_stem(f"{self.paths[0].stem}-{len(self.paths) + 1}")
            if setup is None:
                setup = replace(self.setup, seed=self.setup.seed + 1)
            game = self._table.begin(setup, path)
            self.close()
            self._current = game
            self.moves = []
            self.failures = {}
            self.paths.append(path)

    def move(self, move: int | None, *, turn: int) -> None:
        """Play one turn, on which the person plays `move`, 0..3. With None its snake goes straight
        on, at first up.

        Once the person's snake is dead, its move doesn't count and the others play on. Raises
        `RefusedError`."""
        with self.lock:
            self._check(turn)
            if self.is_alive and move is not None and move not in self.allowed():
                raise RefusedError(
                    f"{MOVE_NAMES[move]} leads into your own neck; a snake can't turn round on the"
                    " spot"
                )
            self._table.person.move = self.heading if move is None else move
            try:
                frame = next(self._current.frames)
            except Exception as error:  # an opponent of the user's own may raise anything
                self._replay(self.moves)
                raise RefusedError(
                    f"an opponent failed on turn {turn}: {error}. Undo, try again or begin a new"
                    " game"
                ) from error
            self.moves.append(list(frame.moves))
            self.failures = dict(frame.failures)
            self._current.end_if_over()

    def undo(self, *, turn: int) -> None:
        """Take back the person's last move and everything after it. Raises `RefusedError` if that
        is impossible.
        """
        with self.lock:
            self._check(turn, goes_on=False)
            remote = next((seat for seat in self.referee.seats if isinstance(seat, str)), None)
            if remote is not None:
                raise RefusedError(
                    f"no undo against {remote}: a snake elsewhere has seen the turn and can't"
                    " forget it"
                )
            if not self.moves:
                raise RefusedError("there is no move to take back on turn 0")
            own = [turn for turn, moves in enumerate(self.moves) if moves[YOU] is not None]
            self._replay(self.moves[: own[-1]])

    def hint(self, *, turn: int) -> Decision:
        """Return the adviser's move for the person. Raises `RefusedError`."""
        with self.lock:
            self._check(turn)
            if not self.is_alive:
                raise RefusedError(
                    "your snake is dead, so there is no move to advise; undo takes its last one"
                    " back"
                )
            try:
                return self._adviser.act(self.referee.state.copy(), YOU)
            except Exception as error:  # rules of the person's own may raise anything
                raise RefusedError(f"{self.hint_by} has no hint: {error}") from error

    def close(self) -> None:
        """Stop the game. Its moves stay in an unfinished recording."""
        with self.lock:
            self._current.frames.close()

    def _check(self, turn: int, *, goes_on: bool = True) -> None:
        if turn != self.turn:
            raise RefusedError(
                f"the game is on turn {self.turn}, not on turn {turn}: another page or key was"
                " faster"
            )
        if goes_on and self.is_over:
            raise RefusedError("the game is over; undo, or begin a new one")

    def _replay(self, moves: Sequence[Moves]) -> None:
        """Play these moves from the beginning, in place of what was played."""
        self.close()
        game = self._table.begin(self.setup, self.path, moves)
        game.hosted.recall(self.hosted)
        self._current = game
        self.moves = list(moves)
        self.failures = {}
