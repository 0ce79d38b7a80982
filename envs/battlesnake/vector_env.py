"""Thousands of Battlesnake games that one call advances, as a Gymnasium vector environment and as
the trainers' `BatchEnv`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from envs.api import BatchEnv, Evaluation
from envs.battlesnake import maps
from envs.battlesnake.batch_kernels import (
    EPISODE_COLUMNS,
    BatchArrays,
    advance_boards,
    close_boards,
    play_boards,
    show_boards,
)
from envs.battlesnake.games import start_games
from envs.battlesnake.jit import compiled_for
from envs.battlesnake.observations import EgocentricPlanes, Observation, choose_observation
from envs.battlesnake.observing.painting import PLACES_APART, make_pictures, make_scene
from envs.battlesnake.observing.starter_pack import StarterPackObservation
from envs.battlesnake.observing.symmetry import views_of_snakes
from envs.battlesnake.rewards import EVENTS, RewardFunction, Rewards, choose_rewards
from envs.battlesnake.settings import STANDARD_MAP, Settings
from envs.battlesnake.state import MAX_BOARDS, MOVE_NAMES, State
from envs.common.cores import MAX_THREADS
from envs.common.errors import (
    ConfigError,
    InvalidActionError,
    UnknownNameError,
    check_range,
    whole_seed,
)

MAX_TURNS = (1 << 31) - 1
"""The last turn that int32 can count."""


class BattlesnakeVectorEnv(BatchEnv):
    """N games of Battlesnake by the official rules, with one row per snake: row = game * num_snakes
    + slot.

    * `num_games`: The games that run side by side.
    * `width`: The columns of the boards, 3 to 25.
    * `height`: The rows of the boards, 3 to 25.
    * `num_snakes`: The snakes of a game, 1 to 16. One snake plays solo.
    * `settings`: The rules of the game. Each of its fields (`ruleset`, `map`,
      `food_spawn_chance`, …) is also an option of its own.
    * `observation`: What a snake sees and which actions it has: an observation, the name of a type
      ("flat-51s": see `StarterPackObservation`), or a dict of options (`choose_observation`). The
      default is `EgocentricPlanes(rotate=True)`: uint8 planes, and the actions left, ahead, right.
    * `rewards`: A preset's name, a dict of weights by event, a `Rewards`, or a function from event
      counts, uint8 (R, events), to float32 (R,), which may be named "module:function". Events have
      the order of `rewards.EVENTS`.
    * `max_turns`: The turn at which a game is truncated.
    * `num_threads`: The threads that play the games, 1 to 256.
    * `seed`: The seed of the first `restart` that is given none.

    How it steps:

    * An action out of range means straight on, as in the official engine. `action_mask` is False
      where an action is certain death (`envs.battlesnake.safety`).
    * A row's episode terminates when its snake dies or the game ends. It is truncated when the game
      reaches `max_turns`. A dead snake's row stays invalid, with observation zero, until the game
      is over. The next game then starts in the same step.
    * After `restart(seed)`, game k on board b is a function of (seed, b, k) and the moves. The
      batch size and `num_threads` make no difference.
    * `drain_episodes` has, besides `row`, `return` and `length`: `game` (its number on its board),
      `won`, `cause` and `killer` (codes and slots of `envs.battlesnake.state`), `snake_length`,
      `food_eaten`, `hazard_turns`, and `game_over` (the snake's end was the game's end).

    A copy, by `copy.deepcopy` or pickle, plays on from where the original is. Raises `ConfigError`
    or `UnknownNameError` for options that no game can have."""

    evaluation: Evaluation = "opponents"

    def __init__(
        self,
        *,
        num_games: int = 256,
        width: int = 11,
        height: int = 11,
        num_snakes: int = 4,
        settings: Settings | None = None,
        observation: Observation | str | dict[str, Any] | None = None,
        rewards: str | Rewards | dict[str, float] | RewardFunction = "win",
        max_turns: int = 1000,
        num_threads: int = 1,
        seed: int | None = None,
        **settings_options: Any,
    ) -> None:
        self.max_turns = check_range("max_turns", max_turns, 1, MAX_TURNS)
        self._num_threads = check_range("num_threads", num_threads, 1, MAX_THREADS)
        num_games = check_range("num_games", num_games, 1, MAX_BOARDS)
        settings = _settings(settings, settings_options)
        if num_snakes == 1:
            settings = replace(settings, solo=True)
        maps.check_game(settings, width=width, height=height, num_snakes=num_snakes)
        self.state = State(
            num_games, width=width, height=height, num_snakes=num_snakes, settings=settings
        )
        width = self.state.width
        height = self.state.height
        num_snakes = self.state.num_snakes
        self.observation = choose_observation(observation, num_snakes)
        super().__init__(
            num_games=num_games,
            rows_per_game=num_snakes,
            observation_space=self.observation.space(width, height),
            action_space=Discrete(self.observation.num_actions),
        )
        self.observation_contract = self.observation.contract()
        self.views = views_of_snakes(self.observation, width, height)
        self._choose_pay(rewards)
        self._rules = self.state.rules
        if isinstance(self.observation, EgocentricPlanes):
            painted = self.observation
        else:
            # The kernels don't paint other types, but need a view whose actions are moves.
            painted = EgocentricPlanes(view="board")
        self._view = painted.kernel_view(width, height, self._rules.wrapped)
        # A type of a user's own makes moves of its actions itself, and so has its own mask.
        self._is_own_type = not isinstance(
            self.observation, EgocentricPlanes | StarterPackObservation
        )
        self._rows = self._allocate_rows(num_snakes)
        self._columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._chunks = _split(num_games, self._num_threads)
        self._function_returns = np.zeros(self.num_envs)
        self._make_ready()
        # One kernel plays and paints, if it knows the map and the observation.
        self._fused = settings.map == STANDARD_MAP and self._is_painted
        self._seed = None if seed is None else whole_seed(seed)
        self._started = False

    def _choose_pay(self, option: str | Rewards | dict[str, float] | RewardFunction) -> None:
        """Set the weights that the kernels pay by, and the reward function, if there is one."""
        rewards = choose_rewards(option)
        self._reward_function: RewardFunction | None = None
        if not isinstance(rewards, Rewards):
            self._reward_function = rewards
            rewards = Rewards()
        self._weights = rewards.weights()

    def _allocate_rows(self, num_snakes: int) -> BatchArrays:
        rows = self.num_envs
        pictures = self._allocate_pictures()
        mask = np.ones((rows, self.observation.num_actions), np.bool_)
        self.action_mask = mask
        self._own_mask: np.ndarray | None = None
        if self._is_own_type:
            # The kernels write a mask of moves, which nobody reads.
            self._own_mask = mask
            mask = np.ones((rows, len(MOVE_NAMES)), np.bool_)
        counted_rows = rows if self._reward_function else 0
        return BatchArrays(
            moves=np.zeros((self.num_games, num_snakes), np.int8),
            ate=np.zeros((self.num_games, num_snakes), np.int16),
            pictures=pictures[0],
            final_pictures=pictures[1],
            scene=make_scene(self.state, self._num_threads),
            mask=mask,
            valid=self.valid,
            rewards=self.rewards,
            events=np.zeros((counted_rows, len(EVENTS)), np.uint8),
            terminated=self.terminated,
            truncated=self.truncated,
            restart=np.zeros(self.num_games, np.bool_),
            returns=np.zeros(rows, np.float64),
            ended_returns=np.zeros(rows, np.float64),
            ended=np.zeros((rows, len(EPISODE_COLUMNS)), np.int32),
        )

    def _allocate_pictures(self) -> list[np.ndarray]:
        """Room for observations and final ones, as the kernels want it; the arrays of other types
        stay as they are.
        """
        if self._is_painted:
            return [make_pictures(self.num_envs, self._view.size) for _ in range(2)]
        return [np.empty((0, 0), np.uint8)] * 2

    def _make_ready(self) -> None:
        """Make what a copy needs of its own: threads, machine code, and views of the pictures."""
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._step: Callable[..., int] | None = None
        if self._is_painted:
            shape = self.observation_space.shape
            pictures = (self._rows.pictures, self._rows.final_pictures)
            self.observations, self.final_observations = (
                p[:, : self._view.size].reshape(shape) for p in pictures
            )

    def _threads(self) -> ThreadPoolExecutor:
        # A fork has none of its parent's threads, and would wait for them for ever.
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self._num_threads - 1)
            self._process = os.getpid()
        return self._pool

    @property
    def _is_painted(self) -> bool:
        return isinstance(self.observation, EgocentricPlanes)

    def __getstate__(self) -> dict[str, Any]:
        attributes = dict(vars(self))
        del attributes["_pool"], attributes["_step"]
        if self._is_painted:
            # NumPy copies a view as an array of its own, which the kernels would not write to.
            del attributes["observations"], attributes["final_observations"]
        return attributes

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_ready()

    def restart(self, seed: int | None = None) -> None:
        if seed is None and not self._started:
            seed = self._seed
            if seed is None:
                seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self.state.seed(seed)
        self._started = True
        self.terminated[:] = self.truncated[:] = False
        self.rewards[:] = self._rows.returns[:] = self._function_returns[:] = 0.0
        self._columns.clear()
        start_games(self.state)
        self.show()

    def advance(self, actions: np.ndarray) -> None:
        actions = np.ascontiguousarray(self.checked_actions(actions), np.int64)
        if not self._started:
            raise InvalidActionError("the games have not begun; call reset() or restart() first")
        if self._reward_function:
            acted = self.valid.copy()
        if self._fused:
            num_ended = self._advance_fused(actions)
        else:
            num_ended = self._advance_in_phases(actions)
        if self._reward_function:
            self._pay_by_function(self._reward_function, acted)
        if num_ended:
            self._note_endings()

    def _advance_fused(self, actions: np.ndarray) -> int:
        """Play one turn by one kernel, and return how many rows' episodes ended. This thread plays
        the first part of the games.
        """
        arguments = (
            self.state.arrays,
            self._rules,
            self._view,
            self._rows,
            self._weights,
            actions,
            self.max_turns,
        )
        if self._step is None:
            self._step = compiled_for(advance_boards, *arguments, *self._chunks[0])
        if self._num_threads == 1:
            return self._step(*arguments, *self._chunks[0])
        step = partial(self._step, *arguments)
        others = [self._threads().submit(step, *chunk) for chunk in self._chunks[1:]]
        return step(*self._chunks[0]) + sum(other.result() for other in others)

    def _pay_by_function(self, function: RewardFunction, acted: np.ndarray) -> None:
        """Pay the rows that played this turn, `acted` bool (R,), by a user's own function."""
        self.rewards[:] = np.where(acted, function(self._rows.events), 0.0)
        self._function_returns += self.rewards
        ended = self.terminated | self.truncated
        self._rows.ended_returns[ended] = self._function_returns[ended]
        self._function_returns[ended] = 0.0

    def _advance_in_phases(self, actions: np.ndarray) -> int:
        """Do what `advance_boards` does, for maps and observation types that aren't compiled into
        it.
        """
        s = self.state.arrays
        r = self._rules
        view = self._view
        rows = self._rows
        if self._is_own_type:
            actions = self._moves_of(actions)
        play_boards(s, r, view, rows, self._weights, actions)
        maps.update(self.state, np.arange(self.num_games))
        close_boards(s, r, rows, self.max_turns)
        ended = np.flatnonzero(self.terminated | self.truncated)
        self.final_observations[ended] = self._observe(ended)
        start_games(self.state, np.flatnonzero(rows.restart))
        self.show()
        return len(ended)

    def begin_next(self, games: np.ndarray) -> None:
        """Leave the running games of these numbers, int64 (n,), and begin the next ones there.

        Episodes that were running in them are not reported.
        """
        rows = (games[:, None] * self.rows_per_game + np.arange(self.rows_per_game)).ravel()
        self._rows.returns[rows] = self._function_returns[rows] = 0.0
        start_games(self.state, games)
        self.show()

    def show(self) -> None:
        """Write `valid`, `action_mask` and `observations` for the boards as they are.

        Call it after changing `state` by hand.
        """
        show_boards(self.state.arrays, self._rules, self._view, self._rows, self._fused)
        if not self._fused:
            rows = np.flatnonzero(self.valid)
            self.observations[:] = 0
            self.observations[rows] = self._observe(rows)
            if self._own_mask is not None:
                self._own_mask[:] = True
                self._own_mask[rows] = self.observation.action_mask(
                    self.state, *np.divmod(rows, self.rows_per_game)
                )

    def _moves_of(self, actions: np.ndarray) -> np.ndarray:
        """The moves that a user's own observation type makes of the actions, int64 (rows,)."""
        rows = np.flatnonzero(self.valid)
        moves = np.zeros(self.num_envs, np.int64)
        moves[rows] = self.observation.to_moves(
            self.state, *np.divmod(rows, self.rows_per_game), actions[rows]
        )
        return moves

    def _observe(self, rows: np.ndarray) -> np.ndarray:
        return self.observation.observe(self.state, *np.divmod(rows, self.rows_per_game))

    def _note_endings(self) -> None:
        rows = np.flatnonzero(self.terminated | self.truncated)
        self._columns.append((rows, self._rows.ended_returns[rows], self._rows.ended[rows]))

    def drain_episodes(self) -> dict[str, np.ndarray]:
        parts = self._columns
        self._columns = []
        rows = np.concatenate([p[0] for p in parts] or [np.empty(0)]).astype(np.int32)
        returns = np.concatenate([p[1] for p in parts] or [np.empty(0)]).astype(np.float32)
        ended = np.concatenate(
            [p[2] for p in parts] or [np.empty((0, len(EPISODE_COLUMNS)), np.int32)]
        )
        columns = dict(zip(EPISODE_COLUMNS, ended.T.copy(), strict=True))
        return {
            "row": rows,
            "return": returns,
            **columns,
            "won": columns["won"] > 0,
            "game_over": columns["game_over"] > 0,
        }

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of `drain_episodes` for Gymnasium's `info["final_info"]`, with one
        entry per row.
        """
        columns = dict(zip(EPISODE_COLUMNS, self._rows.ended.T, strict=True))
        columns["return"] = self._rows.ended_returns
        info = {}
        for name, column in columns.items():
            info[name] = np.where(ended, column, 0)
            info[f"_{name}"] = ended
        return info

    def picture(self, game: int = 0) -> np.ndarray:
        from envs.battlesnake.render.rgb import rgb_array

        return rgb_array(self.state, game)

    def close_extras(self, **kwargs: Any) -> None:
        # Gymnasium closes what a failed constructor left, too.
        pool: ThreadPoolExecutor | None = getattr(self, "_pool", None)
        if pool is not None:
            pool.shutdown()


def _settings(settings: Settings | None, options: dict[str, Any]) -> Settings:
    if not isinstance(settings, Settings | None):
        raise ConfigError(
            f"settings is {settings!r}; it must be a Settings object. Or give its fields as"
            " options: map='royale'"
        )
    fields_of_settings = set(Settings.__dataclass_fields__)
    for name in options:
        if name not in fields_of_settings:
            raise UnknownNameError("option", name, fields_of_settings | set(_OPTIONS))
    return replace(settings or Settings(), **options)


_OPTIONS = (
    "num_games",
    "width",
    "height",
    "num_snakes",
    "settings",
    "observation",
    "rewards",
    "max_turns",
    "num_threads",
)


def _split(num_games: int, parts: int) -> list[tuple[int, int, int]]:
    """(first, last + 1, place) of each part; a thread writes what only it needs at its place."""
    edges = np.linspace(0, num_games, parts + 1).astype(int)
    return [
        (int(a), int(b), thread * PLACES_APART)
        for thread, (a, b) in enumerate(itertools.pairwise(edges))
    ]
