"""The bench without its widgets: a board, the players on it, and what each of them saw and decided
on every turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from agents.measure.evaluation.remote_snake import RemoteSnake
from agents.player import Player
from agents.registry import make
from agents.workbench import arrangement
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import Board, Snake, board_from_state, state_from_board
from envs.battlesnake.recording import Recording
from envs.battlesnake.render.scene import PALETTE, to_hex
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, MOVE_NAMES, State
from envs.battlesnake.webhook import game_object, move_request
from envs.common.errors import ConfigError, UnknownNameError

_REMOTE_MS = 500


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One snake on one turn, with what it decided there."""

    name: str
    player: str = ""
    color: str
    """The snake's colour in pictures, as #rrggbb."""
    health: int
    length: int
    move: str = ""
    """The snake's next move; "" for a dead snake and on the last turn."""
    cause: str
    """The cause of its death; "" while it lives."""
    probabilities: dict[str, float] = field(default_factory=dict)
    """The probability of each move; empty if the player gives none."""
    value: float | None = None
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each rule says of each move: False bans it, a number is a preference. Empty for players
    without rules.
    """
    note: dict[str, Any] = field(default_factory=dict)
    """Whatever else the player tells about its decision."""


@dataclass(frozen=True)
class BenchTurn:
    """A board, and its snakes in the order of the board's list."""

    board: Board
    snakes: list[Seen]


class Bench:
    """A position that you arrange, and the game that `players` play from it.

    `players` has one player per slot: a name as `agents.make` takes it (also `my_rule.py` and
    `my_rule.py+flood`), or the URL of a running server. `board` is the position in webhook form,
    `turns` the game that was played from it. Each `play` reads files of rules anew. The same `seed`
    gives the same game.

    Raises what `agents.make` raises, and `ConfigError` for a position without snakes or with more
    snakes than players."""

    def __init__(
        self,
        players: Sequence[str],
        *,
        width: int = 11,
        height: int = 11,
        settings: Settings | None = None,
        seed: int = 0,
    ) -> None:
        if not players:
            raise ConfigError(
                "a bench needs at least one player, e.g. Bench(['my_rule.py', 'flood'])"
            )
        self.players = list(players)
        self.seed = seed
        self.settings = settings or Settings()
        self.board = arrangement.empty_board(width, height)
        self.turns: list[BenchTurn] = []
        self.deal()

    @property
    def names(self) -> list[str]:
        """The snakes' names on the bench, by slot."""
        return [f"snake {slot + 1}" for slot in range(len(self.players))]

    def deal(self) -> None:
        """Set the board to the first one of a new game, as the map lays it out."""
        width = self.board["width"]
        height = self.board["height"]
        count = len(self.players)
        state = State(1, width=width, height=height, num_snakes=count, settings=self._rules(count))
        state.seed(self.seed)
        start_games(state)
        self._arrange(self._board(state, self.names))

    def clear(self) -> None:
        """Empty the board."""
        self._arrange(arrangement.empty_board(self.board["width"], self.board["height"]))

    def click(self, x: int, y: int, tool: str, snake: str = "") -> None:
        """Use a tool of `arrangement.TOOLS` on a point. `snake` is one of `names`."""
        if tool == "snake" and snake not in self.names:
            raise UnknownNameError("snake", snake, self.names)
        self._arrange(arrangement.changed(self.board, x, y, tool, snake))

    def load(self, text: str) -> None:
        """Take over the position and the rules of a game's JSON (`arrangement.read_position`)."""
        self._take(*arrangement.read_position(text))

    def open(self, recording: str | os.PathLike[str], turn: int) -> None:
        """Take over a turn of a recorded game."""
        self._take(*arrangement.position(Recording.read(recording), turn))

    def copy(self, turn: int, snake: str | None = None) -> str:
        """Return a turn as the move request that `snake` (default: the first living one) gets.

        It is JSON for `load`, for a server or for a bug report.
        """
        state, names, you = self._place(turn, snake)
        game = game_object(state.settings, "workbench")
        return json.dumps(move_request(state, 0, game=game, ids=names, names=names, you=you))

    def play(self, max_turns: int = 200) -> list[BenchTurn]:
        """Play from the position. Sets `turns`, with one entry per board, and returns them."""
        state, names = self._state(self.board)
        if not names:
            raise ConfigError("there is no snake on the board; place one by clicking, or deal")
        players = [make_player(self._player_of(name)) for name in names]
        state.seed(self.seed)
        running = np.ones(1, np.bool_)
        turns: list[BenchTurn] = []
        while running[0] and len(turns) < max_turns:
            living = np.flatnonzero(state.arrays.cause[0] == ALIVE).tolist()
            decisions = {slot: players[slot].act(state.copy(), slot) for slot in living}
            turns.append(self._turn(state, names, decisions))
            moves = np.zeros((1, len(names)), np.int8)
            moves[0, living] = [decision.move for decision in decisions.values()]
            play_turn(state, moves, running)
        self.turns = [*turns, self._turn(state, names, {})]
        return self.turns

    def ask(self, player: str, turn: int, snake: str | None = None) -> Seen:
        """Return what `player` would do in the place of `snake` (default: the first living one).

        The player is a name or the URL of a running server.
        """
        state, names, you = self._place(turn, snake)
        decision = make_player(player).act(state, you)
        return replace(_seen(state, you, names[you], decision), player=player)

    def _place(self, turn: int, snake: str | None) -> tuple[State, list[str], int]:
        """Return a turn's state, the names of its slots, and the slot of `snake`, or of the first
        that lives.
        """
        board = self.board
        if self.turns:
            board = self.turns[turn].board
        state, names = self._state(board)
        is_alive = state.arrays.cause[0] == ALIVE
        living = [name for slot, name in enumerate(names) if is_alive[slot]]
        if not living or snake not in (None, *living):
            raise UnknownNameError("living snake", str(snake or "any"), living)
        return state, names, names.index(snake or living[0])

    def _turn(
        self, state: State, names: Sequence[str], decisions: Mapping[int, Decision]
    ) -> BenchTurn:
        snakes = []
        for slot, name in enumerate(names):
            snake = _seen(state, slot, name, decisions.get(slot))
            snakes.append(replace(snake, player=self._player_of(name)))
        return BenchTurn(self._board(state, names), snakes)

    def _take(self, board: Board, settings: Settings) -> None:
        snakes = board["snakes"]
        if len(snakes) > len(self.players):
            raise ConfigError(
                f"{len(snakes)} snakes live on that board, but there are {len(self.players)}"
                " players; name more"
            )
        self.settings = settings
        ids = [snake["id"] for snake in snakes]
        # The bench's own positions keep its names; the snakes of others get them by slot.
        if not set(ids) <= set(self.names):
            ids = self.names[: len(snakes)]
        renamed: list[Snake] = [
            {**snake, "id": name, "name": name} for snake, name in zip(snakes, ids, strict=True)
        ]
        self._arrange({**board, "snakes": renamed})

    def _arrange(self, board: Board) -> None:
        snakes = sorted(board["snakes"], key=lambda snake: self.names.index(snake["id"]))
        colored: list[Snake] = [
            {**snake, "customizations": {"color": _color(snake["id"])}} for snake in snakes
        ]
        self.board = {**board, "snakes": colored}
        self.turns = []

    def _rules(self, num_snakes: int) -> Settings:
        return replace(self.settings, solo=num_snakes == 1)

    def _state(self, board: Board) -> tuple[State, list[str]]:
        """Return the board as a state, and the names of its slots."""
        names = [snake["id"] for snake in board["snakes"]]
        return state_from_board(board, settings=self._rules(len(names))), names

    def _board(self, state: State, names: Sequence[str]) -> Board:
        board = board_from_state(state, 0, names)
        for snake in board["snakes"]:
            name = snake["id"]
            snake["name"] = f"{name}: {self._player_of(name)}"
            snake["customizations"] = {"color": _color(name)}
        return board

    def _player_of(self, name: str) -> str:
        return self.players[self.names.index(name)]


class _Remote(Agent):
    """The snake of a running server."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._url = url

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        names = [f"snake {slot + 1}" for slot in range(state.num_snakes)]
        game = game_object(state.settings, "workbench", timeout_ms=_REMOTE_MS)
        server = RemoteSnake(self._url, _REMOTE_MS)
        try:
            server.check()
            request = move_request(state, 0, game=game, ids=names, names=names, you=you)
            move, milliseconds, failure = server.move(request)
        finally:
            server.close()
        note: dict[str, Any] = {"milliseconds": round(milliseconds, 1)}
        if failure:
            note["failure"] = failure
        return Decision(move, note=note)

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        moves = np.zeros(len(boards), np.int8)
        for n, (board, slot) in enumerate(zip(boards, slots, strict=True)):
            moves[n] = self.act(state.select(np.array([board])), int(slot)).move
        return moves


def make_player(name: str) -> Agent:
    """Return the agent of this name, or one that asks the server at this URL."""
    if Player.of(name).is_remote:
        return _Remote(name)
    return make(name)


def _color(name: str) -> str:
    """Return the colour of "snake 1", "snake 2", …, as #rrggbb."""
    return to_hex(PALETTE[int(name.rsplit(" ", 1)[1]) - 1])


def _seen(state: State, slot: int, name: str, decision: Decision | None) -> Seen:
    """Return the snake in a slot of board 0, with its decision if it makes one."""
    snake = Seen(
        name=name,
        color=_color(name),
        health=int(state.arrays.health[0, slot]),
        length=int(state.arrays.length[0, slot]),
        cause=CAUSE_NAMES[state.arrays.cause[0, slot]],
    )
    if decision is None:
        return snake
    note = dict(decision.note)
    probabilities: dict[str, float] = {}
    if decision.probabilities is not None:
        probabilities = dict(zip(MOVE_NAMES, map(float, decision.probabilities), strict=True))
    return replace(
        snake,
        move=MOVE_NAMES[decision.move],
        probabilities=probabilities,
        value=decision.value,
        rules=note.pop("rules", {}),
        note=note,
    )
