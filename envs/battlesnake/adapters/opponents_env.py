"""What `gymnasium.make_vec("procsnake/Battlesnake-v0", …)` makes: many games of one learning snake
against others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from envs.api import BatchEnv
from envs.battlesnake.adapters.opponents import Opponent, RandomSafely, moves_of, seated
from envs.battlesnake.games import play_turn
from envs.battlesnake.observations import EgocentricPlanes, Observation, choose_observation
from envs.battlesnake.state import State
from envs.battlesnake.vector_env import BattlesnakeVectorEnv


class BattlesnakeOpponentsEnv(BatchEnv):
    """`num_games` games of `BattlesnakeEnv` at once, with one row per game: the snake in slot 0.

    * Options, opponents, observations, actions, rewards and the ends of episodes are those of
      `BattlesnakeEnv`. Further options are those of `BattlesnakeVectorEnv`.
    * The next game begins in the same step in which a row's episode ends, even if other snakes are
      still alive.
    * `drain_episodes`, and so `info["final_info"]`, has the columns of `BattlesnakeVectorEnv`.

    `BattlesnakeVectorEnv` has a row per snake and is faster, because it asks no opponents.

    Raises what `BattlesnakeEnv` raises.
    """

    def __init__(
        self,
        *,
        num_games: int = 64,
        opponents: Opponent | Sequence[Opponent] | None = None,
        num_snakes: int = 4,
        observation: Observation | str | dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        board_view = EgocentricPlanes(view="board")
        self._batch = BattlesnakeVectorEnv(
            num_games=num_games, num_snakes=num_snakes, observation=board_view, **options
        )
        self._kind = choose_observation(observation, num_snakes)
        super().__init__(
            num_games=num_games,
            rows_per_game=1,
            observation_space=self._kind.space(self._batch.state.width, self._batch.state.height),
            action_space=Discrete(self._kind.num_actions),
        )
        self.observation_contract = self._kind.contract()
        self._mask = self.action_mask = np.ones((num_games, self._kind.num_actions), np.bool_)
        self._opponents = seated(
            opponents, num_snakes - 1, default=RandomSafely(lambda: self._random)
        )
        self._random = np.random.default_rng(options.get("seed"))
        self._all_games = np.arange(num_games)

    def restart(self, seed: int | None = None) -> None:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._batch.restart(seed)
        self.terminated[:] = self.truncated[:] = False
        self.rewards[:] = 0.0
        self._show()

    def advance(self, actions: np.ndarray) -> None:
        batch = self._batch
        moves = self._moves(self.checked_actions(actions))
        before = batch.state.copy()
        batch.advance(moves.reshape(-1))
        own_rows = slice(None, None, batch.rows_per_game)
        self.rewards[:] = batch.rewards[own_rows]
        self.terminated[:] = batch.terminated[own_rows]
        self.truncated[:] = batch.truncated[own_rows]
        ended = self.terminated | self.truncated
        games = np.flatnonzero(ended)
        if len(games):
            # The batch shows the next games already, so the last turn is played once more.
            play_turn(before, moves, ended)
            self.final_observations[games] = self._kind.observe(before, *_own(games))
            batch.begin_next(games[batch.state.arrays.turn[games] > 0])
        self._show()

    def _moves(self, actions: np.ndarray) -> np.ndarray:
        """Return the moves of all snakes, int8 (games, snakes)."""
        state: State = self._batch.state
        moves = np.zeros((self.num_games, state.num_snakes), np.int8)
        moves[:, 0] = self._kind.to_moves(state, *_own(self._all_games), actions)
        alive = self._batch.valid.reshape(moves.shape)
        for slot, opponent in enumerate(self._opponents, 1):
            games = np.flatnonzero(alive[:, slot])
            if len(games):
                moves[games, slot] = moves_of(opponent, state, games, slot)
        return moves

    def _show(self) -> None:
        self.observations[:] = self._kind.observe(self._batch.state, *_own(self._all_games))
        self._mask[:] = self._kind.action_mask(self._batch.state, *_own(self._all_games))

    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = self._batch.drain_episodes()
        games, slots = np.divmod(columns["row"], self._batch.rows_per_game)
        return {name: column[slots == 0] for name, column in {**columns, "row": games}.items()}

    def picture(self, game: int = 0) -> np.ndarray:
        return self._batch.picture(game)


def make_batch(num_envs: int, **options: Any) -> BattlesnakeOpponentsEnv:
    """Make a batch of games for `gymnasium.make_vec`, which calls their number `num_envs`."""
    return BattlesnakeOpponentsEnv(num_games=num_envs, **options)


def _own(games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the learning snakes of these games, as pairs of boards and slots."""
    return games, np.zeros(len(games), np.int64)
