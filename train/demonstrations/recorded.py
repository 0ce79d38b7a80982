"""Makes demonstrations of recorded games: each turn's observation and action of chosen snakes.

A game is left out, with a sentence that says why, if its file can't be read, if a turn is missing
in it, or if its board isn't of the world's size. A move is left out if the recording doesn't show
it, if it was certain death although another move wasn't, or if the snake had decided otherwise (its
answer came too late, so the engine moved it)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from envs.api import BatchEnv
from envs.battlesnake.plain import Board, living_snakes, state_from_board
from envs.battlesnake.plain.board import has_known_fate
from envs.battlesnake.recording import EXTRAS, Recording, contradiction, recording_files
from envs.battlesnake.recording.files import MAX_BYTES
from envs.battlesnake.rewards import Rewards
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError, reason
from envs.common.strangers.bounded import read_bytes
from envs.wrappers import layers
from train.demonstrations.dataset import DemonstrationBatch
from train.settings import CloningSettings

Tell = Callable[[str], object]
_MOST_TOLD = 5
_OUTCOMES = {"won", "died"}


@dataclass(frozen=True)
class RecordedDemonstrations:
    """Demonstrations of recorded games. `games` int64 (N,) numbers the game that each comes from, 0
    … `num_games` - 1.
    """

    demonstrations: DemonstrationBatch
    games: np.ndarray
    num_games: int

    def split(self, held_out: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices, int64, of the demonstrations to learn from, and of those in the share
        `held_out` of the games.

        At least one game is held out, and at least one isn't. The split is a function of the games'
        order and the seed."""
        num = min(max(1, round(held_out * self.num_games)), self.num_games - 1)
        held_out_games = np.random.default_rng(seed).permutation(self.num_games)[:num]
        is_held_out = np.isin(self.games, held_out_games)
        return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def games_hash(names: Iterable[str]) -> str:
    """Return the SHA-256 over the recordings in these files and folders, regardless of their names
    and order.

    Raises `ConfigError` if a path doesn't exist or a file can't be read.
    """
    try:
        hashes = sorted(
            hashlib.sha256(read_bytes(path, MAX_BYTES)).hexdigest()
            for path in recording_files(names)
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"a recording can't be read: {reason(error)}. Take it out of the folder, or name files"
        ) from error
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def read_demonstrations(
    settings: CloningSettings,
    world: BatchEnv,
    rewards: Any,
    *,
    say: Tell = lambda _: None,
    status: Tell = lambda _: None,
) -> RecordedDemonstrations:
    """Read the games of `settings` as observations of `world`. Returns are computed from the
    world's `rewards`.

    `say` reports which games are left out and why, `status` the progress. Raises `ConfigError` for
    a world without snakes or if too little is left to learn from, and `UnknownNameError` for a
    snake that played in none of the games."""
    *_, games = layers(world)
    if not isinstance(games, BattlesnakeVectorEnv):
        raise ConfigError(
            f"recorded games are Battlesnake's; env is {type(games).__name__}. Choose a Battlesnake"
            " experiment"
        )
    if not settings.games:
        raise ConfigError(
            "cloning.games is empty; name recordings, folders or games: --from-games"
            " outputs/arena-games"
        )
    reader = _Reader(settings, games, _outcome_rewards(rewards))
    paths = recording_files(settings.games)
    for number, path in enumerate(paths, 1):
        status(f"reading game {number} of {len(paths)}")
        reader.read(path)
    for omission in reader.left_out[:_MOST_TOLD]:
        say(omission)
    if more := reader.left_out[_MOST_TOLD:]:
        say(f"… and {len(more)} games more were left out")
    for doubt in reader.doubts[:_MOST_TOLD]:
        say(doubt)
    if more_doubts := reader.doubts[_MOST_TOLD:]:
        say(f"… and {len(more_doubts)} games more contradict their rules")
    return reader.result()


class _Decision(NamedTuple):
    board: Board
    snake: str
    move: int
    turns_left: int
    """How many turns later the snake's last move came."""


@dataclass
class _Reader:
    """Collects demonstrations, game by game."""

    settings: CloningSettings
    world: BattlesnakeVectorEnv
    rewards: Rewards | None
    left_out: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """The first turn of each game that contradicts its rules. The game is learned from
    nevertheless.
    """
    _parts: list[tuple[DemonstrationBatch, np.ndarray]] = field(default_factory=list)
    _games: dict[str, int] = field(default_factory=dict)
    _snakes_read: set[tuple[str, str]] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)
    _ids: set[str] = field(default_factory=set)
    _decisions: int = 0

    def read(self, path: Path) -> None:
        """Take in a recording, or note why it is left out."""
        if self._decisions >= self.settings.most_decisions:
            self.left_out.append(
                f"left out {path.name}: cloning.most_decisions, {self.settings.most_decisions}, are"
                " read"
            )
            return
        try:
            recording = Recording.read(path)
            self._take_in(recording, path)
            if doubt := contradiction(recording):
                self.doubts.append(f"{path.name}: {doubt}")
        except ProcsnakeError as error:
            self.left_out.append(f"left out {path.name}: {error}")

    def result(self) -> RecordedDemonstrations:
        """Return what was collected. Raises `ConfigError` or `UnknownNameError` if it is too
        little.
        """
        unknown = [
            snake
            for snake in self.settings.snakes
            if self._names and snake not in self._names | self._ids
        ]
        if unknown:
            raise UnknownNameError(
                "snake", unknown[0], self._names, hint="These play in the games that could be read."
            )
        whom = ", ".join(self.settings.snakes) or "the snakes that they were recorded for"
        needed = self.settings.train_batch_size
        if len(self._games) < 2 or self._decisions < needed:
            why = f" ({self.left_out[0]})" if self.left_out else ""
            raise ConfigError(
                f"{self._decisions} decisions of {whom} in {len(self._games)} games are too few to"
                f" learn from; it takes two games and {needed} decisions"
                f" (cloning.train_batch_size){why}"
            )
        batches, games = zip(*self._parts, strict=True)
        whole = DemonstrationBatch(
            *(np.concatenate(column) for column in zip(*batches, strict=True))
        )
        return RecordedDemonstrations(whole, np.concatenate(games), len(self._games))

    def _take_in(self, recording: Recording, path: Path) -> None:
        boards = recording.boards()
        settings = recording.settings
        snakes = self._snakes_to_clone(recording)
        if (boards[0]["width"], boards[0]["height"]) != (
            self.world.state.width,
            self.world.state.height,
        ):
            width = boards[0]["width"]
            height = boards[0]["height"]
            raise ConfigError(
                f"its board is {width}×{height}, the experiment's"
                f" {self.world.state.width}×{self.world.state.height}; --set"
                f" env.options.width={width} --set env.options.height={height} clones games of that"
                " size"
            )
        game = str(recording.game.get("id") or path.name)
        new = [snake for snake in snakes if (game, snake) not in self._snakes_read]
        decisions: list[_Decision] = []
        for snake in new:
            decisions += _decisions_of(recording, snake)
        if not decisions:
            return
        returns = {snake: self._last_reward(recording, boards[-1], snake) for snake in new}
        batch = self._demonstrations(decisions, settings, returns)
        self._snakes_read |= {(game, snake) for snake in new}
        number = self._games.setdefault(game, len(self._games))
        self._parts.append((batch, np.full(len(batch.returns), number)))
        self._decisions += len(batch.returns)

    def _snakes_to_clone(self, recording: Recording) -> list[str]:
        """The ids of the chosen snakes that play in this game."""
        snakes = recording.boards()[0]["snakes"]
        self._names |= {str(snake.get("name") or snake["id"]) for snake in snakes}
        self._ids |= {snake["id"] for snake in snakes}
        if self.settings.snakes:
            return [s["id"] for s in snakes if {s["id"], s.get("name")} & set(self.settings.snakes)]
        own = (recording.requests[0].get("you") or {}).get("id")
        return [s["id"] for s in snakes if s["id"] == own] or [s["id"] for s in snakes[:1]]

    def _demonstrations(
        self, decisions: Sequence[_Decision], settings: Any, returns: dict[str, float]
    ) -> DemonstrationBatch:
        all_rows = (self._row(one, settings, returns[one.snake]) for one in decisions)
        rows = [row for row in all_rows if row is not None]
        if not rows:
            raise ConfigError("none of its moves can be learned")
        return DemonstrationBatch(*(np.stack(column) for column in zip(*rows, strict=True)))

    def _row(self, decision: _Decision, settings: Any, outcome: float) -> tuple[Any, ...] | None:
        """A demonstration; None for a move that was certain death although another one wasn't, or
        that is not an action.
        """
        placed = [snake for snake in decision.board["snakes"] if has_known_fate(snake)]
        slots = max(len(placed), self.world.rows_per_game)
        state = state_from_board(
            {**decision.board, "snakes": placed}, settings=settings, num_snakes=slots
        )
        one = np.zeros(1, np.int64)
        slot = np.array([[snake["id"] for snake in placed].index(decision.snake)])
        observation = self.world.observation
        (mask,) = observation.action_mask(state, one, slot)
        (picture,) = observation.observe(state, one, slot)
        if picture.shape != self.world.single_observation_space.shape:
            raise ConfigError(
                f"{slots} snakes play in it, for which the experiment's observation has another"
                " shape"
            )
        offered = [
            int(observation.to_moves(state, one, slot, np.array([action]))[0])
            for action in range(len(mask))
        ]
        actions = [
            action for action, move in enumerate(offered) if move == decision.move and mask[action]
        ]
        if not actions:
            return None
        gamma = self.settings.gamma
        shares = np.eye(len(mask), dtype=np.float32)[actions[0]]
        return (
            picture,
            mask,
            shares,
            np.float32("nan"),
            np.float32(outcome * gamma**decision.turns_left),
        )

    def _last_reward(self, recording: Recording, last: Board, snake: str) -> float:
        """What the snake was paid in the end; NaN where that isn't known."""
        if self.rewards is None or not recording.result:
            return float("nan")
        if not _lives(snake, last):
            return self.rewards.died
        if recording.result.get("winnerId") == snake:
            return self.rewards.won
        return float("nan")


def _lives(snake: str, board: Board) -> bool:
    return any(one["id"] == snake for one in living_snakes(board))


def _decisions_of(recording: Recording, snake: str) -> Iterator[_Decision]:
    """Yield a snake's decisions. Raises `ConfigError` where a turn is missing."""
    boards = recording.boards()
    alive = [_lives(snake, board) for board in boards]
    last = max((place for place, lives in enumerate(alive) if lives), default=-1)
    # Nobody chose on the last board, unless the snake's death followed it.
    last -= last == len(boards) - 1
    for place in range(last + 1):
        board = boards[place]
        if boards[place + 1]["turn"] != board["turn"] + 1:
            raise ConfigError(
                f"turn {board['turn'] + 1} is missing, so the move before it is unknown"
            )
        move = recording.moves_played(place).get(snake)
        decided = (
            recording.requests[place]
            .get(EXTRAS, {})
            .get("decisions", {})
            .get(snake, {})
            .get("move", move)
        )
        if alive[place] and move is not None and decided == move:
            yield _Decision(board, snake, MOVE_NAMES.index(move), last - place)


def _outcome_rewards(rewards: Any) -> Rewards | None:
    """The world's rewards, if they are for winning and dying alone: a recording doesn't count other
    events.
    """
    if not isinstance(rewards, str | dict):
        return None
    try:
        outcome_rewards = Rewards.from_options(rewards)
    except ProcsnakeError:
        return None  # Somebody's own function.
    if set(outcome_rewards.options()) <= _OUTCOMES:
        return outcome_rewards
    return None
