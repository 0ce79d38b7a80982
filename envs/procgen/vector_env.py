"""Many games of Procgen that one call advances, as a Gymnasium vector environment and `BatchEnv` on
the library's C++ batch.
"""

from __future__ import annotations

import functools
import os
import weakref
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.api import BatchEnv, Evaluation, by_row
from envs.common.cores import MAX_THREADS
from envs.common.errors import (
    ConfigError,
    InvalidActionError,
    InvalidStateError,
    UnknownNameError,
    check_range,
    check_switch,
    whole_seed,
)
from envs.procgen.games import check_mode, load_library, missing_system_library
from envs.procgen.levels import NUM_SEEDS, Levels

NUM_ACTIONS = 15
_SWITCHES = {
    "center_agent": True,
    "use_backgrounds": True,
    "use_monochrome_assets": False,
    "restrict_themes": False,
    "use_generated_assets": False,
    "paint_vel_info": False,
    "use_sequential_levels": False,
}
"""The library's options that are on or off, with the library's defaults."""
_OPTIONS = (
    *_SWITCHES,
    "num_games",
    "distribution_mode",
    "levels",
    "num_threads",
    "debug_mode",
    "render_mode",
    "seed",
)
MAX_GAMES = 2**16
_MAX_INT = 2**31 - 1
_MAX_STATE = 2**20
"""The library's own limit to the bytes of a state. States have 20 to 40 thousand bytes."""
_RESTART = -1
"""The library's action that ends an episode at once."""
_THREADED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The library's batches that play on threads of their own."""


def _give_up_in_fork() -> None:
    """Mark all batches with threads as closed in a forked process.

    It has none of their threads, so a batch would wait for them for ever, even to be closed."""
    for native in _THREADED:
        native.closed = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_in_fork)


class GameState(NamedTuple):
    """The state of one game in the middle of an episode, for `ProcgenVectorEnv.set_state`."""

    native: bytes
    """The state as the library writes it."""
    episode_return: float
    episode_length: int
    checksum: int
    """Of `native`, and of the game and options with which it was played."""


class ProcgenVectorEnv(BatchEnv):
    """Games of `game`, with one row per game (Cobbe et al. 2020, arXiv 1912.01588).

    * The observation is uint8 (64, 64, 3), RGB. Actions are the library's, 0..14. There is no
      action mask, and every row is always valid.
    * The reward is the game's. An episode terminates when the library says so. That includes its
      time limit (1000 steps in most games), which the benchmark counts as an end like any other.
      Episodes are never truncated.
    * `final_observations` has the last picture of the ended episode, in which its last action was
      chosen. The library draws no picture after that action, because it builds the next level
      first.
    * `restart(seed)` equals a new library batch with `rand_seed=seed` (below 2^31; larger seeds are
      hashed). `restart()` ends all running episodes, which `drain_episodes` then doesn't report,
      and continues with the next levels.
    * `drain_episodes` also has `level` int32 (its seed) and `level_complete` bool.

    Its options, of which the switches keep the library's names and defaults:

    * `num_games`: The games that run side by side.
    * `distribution_mode`: hard, easy, or another that `envs.procgen.MODES` lists for the game. In
      exploration mode the level is fixed, and `levels` must stay at "all".
    * `levels`: "all", "train:N", "test:N" or "start:num" (see `Levels.parse`).
    * `num_threads`: The library's threads, 0 to 256. With 0, games are played in the calling
      thread, which costs least. Results don't depend on it. With threads, a forked process can't
      use the batch and must call `restart(seed)`.
    * `debug_mode`: The library's switch for its own debugging, which may also be a number.
    * `render_mode`: With "rgb_array", `render()` returns a picture of each game, uint8
      (512, 512, 3).
    * `seed`: The seed of the first `restart` that is given none.
    * `center_agent`: Keep the agent in the middle of the picture.
    * `use_backgrounds`: Draw a picture behind the level; without it the background is black.
    * `use_monochrome_assets`: Draw each thing as a rectangle of one colour.
    * `restrict_themes`: Draw each kind of thing in one theme only.
    * `use_generated_assets`: Draw things that were generated at random.
    * `paint_vel_info`: Paint the agent's velocity into the picture, in games that have one.
    * `use_sequential_levels`: Continue with the next level when one is solved. The episode ends
      only when the agent fails or time is up.

    Raises `UnknownNameError` or `ConfigError` for a game, mode or option that doesn't exist, and
    `MissingDependencyError` if the library, or a system library that it needs, is missing."""

    metadata = {**BatchEnv.metadata, "render_modes": ["rgb_array"], "render_fps": 15}
    evaluation: Evaluation = "levels"
    samples_actions = True

    def __init__(
        self,
        game: str,
        *,
        num_games: int = 64,
        distribution_mode: str = "hard",
        levels: str = "all",
        num_threads: int = 0,
        debug_mode: bool | int = 0,
        render_mode: str | None = None,
        seed: int | None = None,
        **switches: bool,
    ) -> None:
        check_mode(game, distribution_mode)
        # The library ends the process over an option of another type, and over more threads than
        # the system gives it.
        num_games = check_range("num_games", num_games, 1, MAX_GAMES)
        num_threads = check_range("num_threads", num_threads, 0, MAX_THREADS)
        if isinstance(debug_mode, bool):
            debug_mode = int(debug_mode)
        else:
            debug_mode = check_range("debug_mode", debug_mode, 0, _MAX_INT)
        if seed is not None:
            _native_seed(seed)
        if render_mode not in (None, "rgb_array"):
            raise UnknownNameError("render_mode", str(render_mode), ["rgb_array"])
        if distribution_mode == "exploration" and levels != "all":
            raise ConfigError(
                f"levels is {levels!r}, but exploration mode has one level of its own; leave levels"
                " at 'all'"
            )
        self.game = game
        self.render_mode = render_mode
        native_levels = {}
        if distribution_mode != "exploration":
            native_levels = Levels.parse(levels).native()
        # What decides how the game goes: states fit a batch only if these are equal.
        game_options: dict[str, Any] = {
            **_checked(switches),
            **native_levels,
            "distribution_mode": distribution_mode,
            "debug_mode": debug_mode,
        }
        self._options = {**game_options, "num_threads": num_threads, "render_mode": render_mode}
        self._kind = zlib.crc32(repr((game, game_options)).encode())
        space = Box(0, 255, (64, 64, 3), np.uint8)
        super().__init__(
            num_games=num_games,
            rows_per_game=1,
            observation_space=space,
            action_space=Discrete(NUM_ACTIONS),
        )
        self._seed = seed
        self._native: Any = None
        self._library = load_library()
        self._returns = np.zeros(num_games)
        self._lengths = np.zeros(num_games, np.int32)
        self._columns: list[dict[str, np.ndarray]] = []

    def restart(self, seed: int | None = None) -> None:
        if self._native is None and seed is None:
            if self._seed is not None:
                seed = self._seed
            else:
                seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self._begin(_native_seed(seed))
        else:
            self._require_begun()
            self._native.act(np.full(self.num_envs, _RESTART))
            self._native.observe()
        self.rewards[:] = self._returns[:] = self._lengths[:] = 0
        self.terminated[:] = False
        self._columns.clear()

    def _begin(self, seed: int) -> None:
        if self._native is not None:
            self._native.close()
        try:
            self._native = self._library.ProcgenGym3Env(
                self.num_envs, self.game, rand_seed=seed, **self._options
            )
        except OSError as error:
            raise missing_system_library(error) from error
        if self._options["num_threads"]:
            _THREADED.add(self._native)
        _open_library_once(self._native._ffi)
        self._state_buffer = self._native._ffi.new(f"char[{_MAX_STATE}]")
        # Its arrays themselves, in place of copies: they are written anew by each `observe`.
        self._native._reuse_arrays = True
        self._rewards, pictures, self._first = self._native.observe()
        self.observations = pictures["rgb"]
        self._facts: dict[str, np.ndarray] = self._native._info

    def advance(self, actions: np.ndarray) -> None:
        self._require_begun()
        actions = self.checked_actions(actions)
        if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
            raise InvalidActionError(
                f"actions are {actions.min()} to {actions.max()}; they must be in"
                f" 0..{NUM_ACTIONS - 1}"
            )
        # Where no episode ends, this is of no use; copying all pictures still costs less than 3 %
        # of a step.
        np.copyto(self.final_observations, self.observations)
        self._native.act(actions)
        self._native.observe()
        self.rewards[:] = self._rewards
        self.terminated[:] = self._first
        self._returns += self.rewards
        self._lengths += 1
        if self.terminated.any():
            self._note_endings(np.flatnonzero(self.terminated))

    def _note_endings(self, rows: np.ndarray) -> None:
        self._columns.append(
            {
                "row": rows.astype(np.int32),
                "return": self._returns[rows].astype(np.float32),
                "length": self._lengths[rows],
                "level": self._facts["prev_level_seed"][rows],
                "level_complete": self._facts["prev_level_complete"][rows] > 0,
            }
        )
        self._returns[rows] = self._lengths[rows] = 0

    def drain_episodes(self) -> dict[str, np.ndarray]:
        parts = [_NONE, *self._columns]
        self._columns = []
        columns = {}
        for name in _NONE:
            columns[name] = np.concatenate([part[name] for part in parts])
        return columns

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of `drain_episodes` for Gymnasium's `info["final_info"]`, with one
        entry per row.
        """
        return by_row(self._columns[-1], self.num_envs)

    def _require_begun(self) -> None:
        if self._native is None:
            raise InvalidActionError("the games have not begun; call reset() or restart() first")
        if self._native.closed:
            raise InvalidActionError(
                f"{self.game} plays on num_threads={self._options['num_threads']} threads, which"
                " a fork doesn't have; call restart(seed) in this process, or play with"
                " num_threads=0"
            )

    @property
    def native(self) -> Any:
        """The library's `ProcgenGym3Env`, for its own features. Each `restart(seed)` makes a new
        one.
        """
        return self._native

    @property
    def level_seeds(self) -> np.ndarray:
        """The level that each game plays now, int32 (R,). Raises `InvalidActionError` before the
        first restart.
        """
        self._require_begun()
        return self._facts["level_seed"].copy()

    def get_state(self, rows: Iterable[int] | None = None) -> list[GameState]:
        """Return the states of the games of `rows` (default: all). From the same state, the same
        actions give the same episode.

        Raises `InvalidActionError` before the first restart, and `ConfigError` for a row that isn't
        there."""
        self._require_begun()
        if rows is None:
            rows = range(self.num_envs)
        return [self._state_of(row) for row in rows]

    def _state_of(self, row: int) -> GameState:
        check_range("row", row, 0, self.num_envs - 1)
        length = self._native.call_c_func("get_state", int(row), self._state_buffer, _MAX_STATE)
        native = bytes(self._native._ffi.buffer(self._state_buffer, length))
        return GameState(
            native, float(self._returns[row]), int(self._lengths[row]), self._checksum(native)
        )

    def _checksum(self, native: bytes) -> int:
        return zlib.crc32(native, self._kind)

    def set_state(self, states: list[GameState]) -> None:
        """Put the games back into states that `get_state` returned, from this or another batch of
        the same game and options.

        `num_games`, `num_threads`, `render_mode` and `seed` may differ. Raises `InvalidStateError`
        if the number of states is wrong, or if one isn't such a state."""
        if len(states) != self.num_envs:
            raise InvalidStateError(f"states: {len(states)} of them for {self.num_envs} games")
        for place, state in enumerate(states):
            # The library ends the process over damaged states and those of another game, and takes
            # over a state's options.
            if not isinstance(state, GameState) or state.checksum != self._checksum(state.native):
                raise InvalidStateError(
                    f"states[{place}] is of another game than {self.game}, has other options"
                    " than this batch, or is damaged; pass what get_state returned, unchanged"
                )
        if self._native is None:
            self.restart()
        self._native.set_state([state.native for state in states])
        self._native.observe()
        self._returns[:] = [state.episode_return for state in states]
        self._lengths[:] = [state.episode_length for state in states]

    def render(self) -> tuple[np.ndarray, ...] | None:  # type: ignore[override]
        """Return a picture of each game, uint8 (512, 512, 3), or None without `render_mode`.

        Raises `InvalidActionError` before the first restart.
        """
        if not self.render_mode:
            return None
        self._require_begun()
        return tuple(self._facts["rgb"].copy())

    def picture(self, game: int = 0) -> np.ndarray:
        """Return the library's picture, 512 × 512, with `render_mode`, else the observation.

        Raises `InvalidActionError` before the first restart.
        """
        self._require_begun()
        if self.render_mode:
            return self._facts["rgb"][game].copy()
        return super().picture(game)

    def close_extras(self, **kwargs: Any) -> None:
        # Gymnasium closes what a failed constructor left, too.
        if getattr(self, "_native", None) is not None:
            # The pictures lie in the library's memory.
            self.observations = self.observations.copy()
            self._native.close()
            self._native = None


_NONE = {
    "row": np.empty(0, np.int32),
    "return": np.empty(0, np.float32),
    "length": np.empty(0, np.int32),
    "level": np.empty(0, np.int32),
    "level_complete": np.empty(0, np.bool_),
}


def _checked(switches: dict[str, bool]) -> dict[str, bool]:
    for name, value in switches.items():
        if name not in _SWITCHES:
            if name in ("num_levels", "start_level"):
                hint = "Levels are given as levels='start:num'."
            else:
                hint = ""
            raise UnknownNameError("option", name, _OPTIONS, hint=hint)
        check_switch(name, value)
    return {**_SWITCHES, **switches}


def _open_library_once(ffi: Any) -> None:
    """Make gym3 open the library once per process, because cffi keeps 11 KiB for each time that it
    is opened.
    """
    if "dlopen" not in vars(ffi):
        ffi.dlopen = functools.cache(ffi.dlopen)


def _native_seed(seed: int) -> int:
    """Return the seed as the library takes it. Raises `ConfigError` if it is not an integer."""
    whole = whole_seed(seed)
    if 0 <= whole < NUM_SEEDS:
        return whole
    return int(np.random.SeedSequence(abs(whole)).generate_state(1)[0]) >> 1
