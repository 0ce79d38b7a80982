"""Small worlds with known best play. Importing this module registers them."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import envs
from envs.api import BatchEnv, Views


class ToyWorld(BatchEnv):
    """Book-keeping that the toys share: a subclass sets the arrays in `_show` and pays in
    `_play`.
    """

    def __init__(
        self, *, num_games: int, rows_per_game: int, planes: int, num_actions: int
    ) -> None:
        space = Box(0, 255, (1, 1, planes), np.uint8)
        super().__init__(
            num_games=num_games,
            rows_per_game=rows_per_game,
            observation_space=space,
            action_space=Discrete(num_actions),
        )
        self.returns, self.lengths = (
            np.zeros(self.num_envs, np.float32),
            np.zeros(self.num_envs, np.int32),
        )
        self.ended: list[tuple[int, float, int]] = []

    def restart(self, seed: int | None = None) -> None:
        if seed is not None or not hasattr(self, "rng"):
            self.rng = np.random.default_rng(seed)
        self.returns[:] = self.lengths[:] = 0
        self.valid[:] = True
        self._show(np.arange(self.num_envs))

    def _book(self, acted: np.ndarray) -> None:
        self.returns += self.rewards
        self.lengths += acted
        for row in np.flatnonzero(self.terminated | self.truncated):
            self.ended.append((int(row), float(self.returns[row]), int(self.lengths[row])))
            self.returns[row] = self.lengths[row] = 0

    def drain_episodes(self) -> dict[str, np.ndarray]:
        ended = self.ended
        self.ended = []
        columns = list(zip(*ended, strict=True)) or [(), (), ()]
        kinds = {"row": np.int32, "return": np.float32, "length": np.int32}
        return {
            name: np.array(column, kind)
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }

    def _show(self, rows: np.ndarray) -> None:
        raise NotImplementedError


class IdentityWorld(ToyWorld):
    """One step an episode: pays 1 for naming the plane that is lit, else 0. Random play earns 1 /
    num_actions.
    """

    def __init__(self, *, num_games: int = 32, num_actions: int = 4) -> None:
        super().__init__(
            num_games=num_games, rows_per_game=1, planes=num_actions, num_actions=num_actions
        )

    def _show(self, rows: np.ndarray) -> None:
        self.targets = self.rng.integers(0, self.single_action_space.n, self.num_envs)
        self.observations[:] = 0
        self.observations[np.arange(self.num_envs), 0, 0, self.targets] = 255

    def advance(self, actions: np.ndarray) -> None:
        self.rewards[:] = actions == self.targets
        self.terminated[:] = True
        self.final_observations[:] = self.observations
        self._book(self.valid)
        self._show(np.arange(self.num_envs))


class FailingWorld(IdentityWorld):
    """The same, but it raises at its second step, in all the lives of a process that
    `may_fail(folder)` names.
    """

    def __init__(self, *, folder: str = "", **options: int) -> None:
        super().__init__(**options)
        self.steps = 0
        self.fails = may_fail(folder)

    def advance(self, actions: np.ndarray) -> None:
        self.steps += 1
        if self.steps > 1 and self.fails:
            raise ValueError("the ice is too thin")
        super().advance(actions)


def may_fail(folder: str) -> bool:
    """True, or with `folder` (which counts the calls) for the second to the fourth."""
    if not folder:
        return True
    for call in range(1000):
        try:
            Path(folder, str(call)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return 1 <= call <= 3
    return False


class SymmetricIdentityWorld(IdentityWorld):
    """The same, and it may be shown with its planes in reverse."""

    def __init__(self, **options: int) -> None:
        super().__init__(**options)
        every = np.arange(self.single_action_space.n)
        self.views = Views(
            (lambda shown: shown, lambda shown: shown[..., ::-1]), np.stack([every, every[::-1]])
        )


class MaskedBandit(ToyWorld):
    """One step an episode: action k pays k / (A - 1), but the mask hides a random part of the
    actions, often the best.
    """

    def __init__(self, *, num_games: int = 32, num_actions: int = 4) -> None:
        super().__init__(
            num_games=num_games, rows_per_game=1, planes=num_actions, num_actions=num_actions
        )
        self.action_mask = np.ones((self.num_envs, num_actions), np.bool_)

    def _show(self, rows: np.ndarray) -> None:
        shape = self.action_mask.shape
        self.action_mask[:] = self.rng.random(shape) < 0.5
        self.action_mask[
            np.arange(self.num_envs), self.rng.integers(0, shape[1], self.num_envs)
        ] = True
        # The network sees no mask: only masking itself makes the right choice.
        self.observations[:] = 255

    def advance(self, actions: np.ndarray) -> None:
        assert self.action_mask[np.arange(self.num_envs), actions].all(), (
            "a masked action was taken"
        )
        self.rewards[:] = actions / (self.action_mask.shape[1] - 1)
        self.terminated[:] = True
        self.final_observations[:] = self.observations
        self._book(self.valid)
        self._show(np.arange(self.num_envs))


def best_masked_return(num_actions: int = 4) -> float:
    """What `MaskedBandit` pays on average for the best allowed action.

    Nothing above k is allowed if the action that always is allowed is none of those, and chance
    allows none of them either."""
    at_most = [(k + 1) / num_actions * 0.5 ** (num_actions - 1 - k) for k in range(num_actions - 1)]
    return 1 - sum(at_most) / (num_actions - 1)


class Corridor(ToyWorld):
    """Ten cells, 2 rows a game. Action 1 goes on, 0 ends the row's episode; the last cell pays 1
    and ends it.

    A row that ended waits, invalid and showing garbage, until the other has ended too. Games are
    cut off after `max_turns`."""

    length = 10

    def __init__(self, *, num_games: int = 32, max_turns: int = 1000) -> None:
        super().__init__(
            num_games=num_games, rows_per_game=2, planes=self.length + 1, num_actions=2
        )
        self.max_turns = max_turns
        self.cells = np.zeros(self.num_envs, np.int64)
        self.turns = np.zeros(num_games, np.int64)

    def restart(self, seed: int | None = None) -> None:
        self.cells[:] = self.turns[:] = 0
        super().restart(seed)

    def _show(self, rows: np.ndarray) -> None:
        self.observations[rows] = 0
        self.observations[rows, 0, 0, self.cells[rows]] = 255

    def advance(self, actions: np.ndarray) -> None:
        acted = self.valid.copy()
        forward = acted & (actions == 1)
        self.cells += forward
        self.turns += 1
        arrived = acted & (self.cells == self.length)
        self.rewards[:] = arrived
        self.terminated[:] = acted & (arrived | ~forward)
        cut = np.repeat(self.turns >= self.max_turns, 2)
        self.truncated[:] = acted & cut & ~self.terminated
        self._book(acted)
        self._show(np.arange(self.num_envs))
        self.final_observations[:] = self.observations
        self.valid &= ~(self.terminated | self.truncated)
        over = ~self.valid.reshape(-1, 2).any(axis=1)
        self.turns[over] = 0
        rows = np.flatnonzero(np.repeat(over, 2))
        self.cells[rows] = 0
        self.valid[rows] = True
        self._show(rows)
        self.observations[~self.valid] = self.rng.integers(
            0, 256, (int((~self.valid).sum()), 1, 1, self.length + 1)
        )


class CountingWorld(ToyWorld):
    """Each row shows a number, one more at every step, from a start that no other world has; a step
    pays number % 7.

    Episodes end after every 10th number, and are cut off after every 25th. Experience that was put
    together wrongly shows."""

    def __init__(self, *, num_games: int = 8) -> None:
        super().__init__(num_games=num_games, rows_per_game=1, planes=8, num_actions=2)

    def restart(self, seed: int | None = None) -> None:
        # Not by the seed: a restarted env runner gets the same one.
        self.numbers = np.random.default_rng().integers(0, 1 << 60, self.num_envs)
        super().restart(seed)

    def _show(self, rows: np.ndarray) -> None:
        self.observations[rows, 0, 0] = self.numbers[rows, None].view(np.uint8)

    def advance(self, actions: np.ndarray) -> None:
        self.rewards[:] = self.numbers % 7
        self.terminated[:] = self.numbers % 10 == 0
        self.truncated[:] = ~self.terminated & (self.numbers % 25 == 0)
        self._book(self.valid)
        self.numbers += 1
        self._show(np.arange(self.num_envs))
        self.final_observations[:] = self.observations


class CartPole(ToyWorld):
    """Gymnasium's CartPole-v1, many at once."""

    def __init__(self, *, num_games: int = 8) -> None:
        super().__init__(num_games=num_games, rows_per_game=1, planes=1, num_actions=2)
        self.games = [gymnasium.make("CartPole-v1") for _ in range(num_games)]
        BatchEnv.__init__(
            self,
            num_games=num_games,
            rows_per_game=1,
            observation_space=self.games[0].observation_space,
            action_space=Discrete(2),
        )

    def restart(self, seed: int | None = None) -> None:
        for row, game in enumerate(self.games):
            self.observations[row], _ = game.reset(
                seed=None if seed is None else (seed + row) % (1 << 31)
            )
        self.returns[:] = self.lengths[:] = 0
        self.valid[:] = True

    def advance(self, actions: np.ndarray) -> None:
        for row, game in enumerate(self.games):
            seen, self.rewards[row], self.terminated[row], truncated, _ = game.step(
                int(actions[row])
            )
            self.truncated[row] = truncated and not self.terminated[row]
            self.observations[row] = self.final_observations[row] = seen
            if self.terminated[row] or truncated:
                self.observations[row], _ = game.reset()
        self._book(self.valid)


envs.register("identity", IdentityWorld)
envs.register("failing", FailingWorld)
envs.register("counting", CountingWorld)
envs.register("cart-pole", CartPole)
envs.register("symmetric-identity", SymmetricIdentityWorld)
envs.register("masked-bandit", MaskedBandit)
envs.register("corridor", Corridor)
