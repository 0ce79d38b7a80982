"""Asks a teacher for its moves, for many snakes at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

import agents
from agents.search.alphabeta.agent import AlphaBeta
from agents.search.evaluation.evaluate import SCALE
from envs.api import BatchEnv
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.wrappers import layers
from train.demonstrations.dataset import NO_DEMONSTRATION, actions_of
from train.settings import ImitationSettings


class Answers(NamedTuple):
    """What a teacher says of n snakes."""

    shares: np.ndarray
    """The probability that each action should have, float32 (n, A); all 0 where the teacher's move
    is none of the actions.
    """
    values: np.ndarray
    """What it thinks of the position, float32 (n,), -1 (lost) to 1 (won); NaN where it doesn't
    say.
    """

    @property
    def actions(self) -> np.ndarray:
        """Return the likeliest actions, int64 (n,), and `NO_DEMONSTRATION` where there is none."""
        return np.where(self.shares.any(axis=1), actions_of(self.shares), NO_DEMONSTRATION)


class Teacher:
    """Gives an agent's actions for many snakes at once.

    With `settings.temperature` its answers are soft: alpha-beta searches each move to the same
    depth, and a move's share is exp(score / temperature), divided by the sum over all moves that
    aren't certain death.

    Raises `UnknownNameError` for a teacher that doesn't exist, and `ConfigError` for a world
        without snakes and for a temperature with another teacher than alpha-beta."""

    def __init__(self, settings: ImitationSettings, world: BatchEnv) -> None:
        *_, games = layers(world)
        if not isinstance(games, BattlesnakeVectorEnv):
            raise ConfigError(
                "imitation needs a teacher for its world, and agents play Battlesnake only; env is"
                f" {type(games).__name__}"
            )
        self.games = games
        self.temperature = settings.temperature
        self._agent = agents.make(settings.teacher, **settings.teacher_options)
        if self.temperature is not None and not isinstance(self._agent, AlphaBeta):
            raise ConfigError(
                f"imitation.temperature is {self.temperature}, but {settings.teacher} doesn't score"
                " its moves; only alphabeta does. Leave the temperature out, or --set"
                " imitation.teacher=alphabeta"
            )
        self._threads = settings.num_threads or usable_cores()
        self._pool = ThreadPoolExecutor(self._threads)

    def answers(self, rows: np.ndarray, masks: np.ndarray) -> Answers:
        """Return the teacher's answers for rows (n,) of the world, whose allowed actions are bool
        (n, A).
        """
        boards, slots = np.divmod(rows, self.games.rows_per_game)
        moves, values = self._ask(boards, slots)
        by_action = [
            self.games.observation.to_moves(
                self.games.state, boards, slots, np.full(len(rows), action)
            )
            for action in range(masks.shape[1])
        ]
        shares = np.take_along_axis(moves, np.stack(by_action, axis=1), axis=1) * masks
        together = shares.sum(axis=1, keepdims=True)
        normalised = np.divide(shares, together, out=np.zeros_like(shares), where=together > 0)
        return Answers(normalised, values)

    def close(self) -> None:
        """Stop the teacher's threads."""
        self._pool.shutdown()

    def _ask(self, boards: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(The share of each move, float32 (n, 4), values (n,))."""
        if self.temperature is None:
            ask = self._moves
        else:
            ask = partial(self._scores, self.temperature)
        parts = zip(
            np.array_split(boards, self._threads), np.array_split(slots, self._threads), strict=True
        )
        answers = list(self._pool.map(lambda part: ask(*part), parts))
        shares = np.concatenate([part_shares for part_shares, _ in answers])
        values = np.concatenate([part_values for _, part_values in answers])
        return shares, values

    def _moves(self, boards: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moves = self._agent.act_batch(self.games.state, boards, slots)
        return np.eye(4, dtype=np.float32)[moves], np.full(len(moves), np.nan, np.float32)

    def _scores(
        self, temperature: float, boards: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(self._agent, AlphaBeta)
        scores = self._agent.score_moves(self.games.state, boards, slots).astype(np.float64)
        best = scores.max(axis=1, keepdims=True, initial=-np.inf)
        shares = np.exp((scores - best) / temperature)
        values = (best[:, 0] / SCALE).clip(-1.0, 1.0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        return shares.astype(np.float32), values.astype(np.float32)
