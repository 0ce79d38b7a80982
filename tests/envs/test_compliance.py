"""The public check of worlds: it passes those that keep `BatchEnv`'s contract and says of others
where they break it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from envs.api import BatchEnv, Views
from envs.common.errors import ComplianceError
from envs.compliance import check_world
from envs.wrappers import ActionRepeat, FrameStack, ShapedRewards


class Pit(BatchEnv):
    """Two walkers a game on four cells; action 1 goes on, 0 waits; the last cell ends a walker's
    episode and pays 2.

    A walker at the end waits for the other; after eight steps a game is cut off. Each game begins
    at a cell that is drawn."""

    def __init__(self, *, num_games: int = 3) -> None:
        space = Box(0, 1, (1, 4, 1), np.float32)
        super().__init__(
            num_games=num_games, rows_per_game=2, observation_space=space, action_space=Discrete(2)
        )
        self.action_mask = np.ones((self.num_envs, 2), np.bool_)
        self.place = np.zeros(self.num_envs, np.int64)
        self.steps = np.zeros(num_games, np.int64)
        self.lasted = np.zeros(self.num_envs, np.int64)
        self.rng = np.random.default_rng()
        self.ended: list[tuple[int, float, int]] = []
        self.observation_contract = {"type": "pit", "version": 1}
        pictures = (lambda shown: shown, lambda shown: shown[:, :, ::-1])
        self.views = Views(pictures, np.array([[0, 1], [1, 0]]))
        self.games = 0

    def restart(self, seed: int | None = None) -> None:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.rewards[:] = self.terminated[:] = self.truncated[:] = 0
        self._begin(np.ones(self.num_games, np.bool_))
        self._show(self.observations)

    def advance(self, actions: np.ndarray) -> None:
        acting = self.valid.copy()
        self.place += acting & (actions == 1)
        self.steps += 1
        self.lasted += acting
        self.terminated[:] = acting & (self.place == 3)
        self.truncated[:] = acting & ~self.terminated & (self.steps == 8).repeat(2)
        self.rewards[:] = 2.0 * self.terminated
        self._show(self.final_observations)
        ended = self.terminated | self.truncated
        self.ended += [(row, self.rewards[row], self.lasted[row]) for row in np.flatnonzero(ended)]
        self.valid &= ~ended
        self._begin(~self.valid.reshape(-1, 2).any(1))
        self._show(self.observations)

    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = np.array(self.ended, float).reshape(-1, 3).T
        self.ended = []
        kinds = {"row": np.int32, "return": np.float32, "length": np.int32}
        return {
            name: column.astype(kind)
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }

    def progress(self) -> dict[str, int]:
        return {"games": self.games}

    def carry_on(self, progress: dict[str, int], network: object) -> None:
        self.games = progress["games"]

    def _begin(self, games: np.ndarray) -> None:
        self.games += int(games.sum())
        rows = games.repeat(2)
        self.place[rows] = self.rng.integers(0, 2, self.num_envs)[rows]
        self.steps[games] = 0
        self.lasted[rows] = 0
        self.valid[rows] = True

    def _show(self, pictures: np.ndarray) -> None:
        pictures[:] = 0
        pictures[np.arange(self.num_envs), 0, self.place, 0] = 1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_world_that_keeps_the_contract_passes(seed):
    check_world(Pit, seed=seed)
    check_world(Pit, seed=seed, num_games=1)


def test_so_do_wrappers_around_it():
    check_world(lambda: ShapedRewards(FrameStack(Pit(), 3)))
    check_world(lambda: ActionRepeat(Pit(), 3, idle=0))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("battlesnake", {"num_games": 8, "max_turns": 25}),
        (
            "battlesnake",
            {"num_games": 2, "max_turns": 25, "observation": {"view": "board"}, "width": 7},
        ),
        ("procgen/coinrun", {"num_games": 2}),
        (
            "procgen/coinrun",
            {"num_games": 2, "action_repeat": 2, "gap_stack": 3, "shape_rewards": True},
        ),
    ],
    ids=str,
)
def test_so_do_the_worlds_that_come_with_procsnake(name, options):
    check_world(name, num_steps=60, **options)


class OneActionTooMany(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.single_action_space = Discrete(2, start=1)


class UnnamedObservation(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.observation_contract = {"version": 1}


class ContractThatIsNoJson(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.observation_contract = {"type": "pit", "version": 1, "shape": (1, 4)}


class ViewThatLosesAnAction(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.views = Views(self.views.pictures, np.array([[0, 1], [1, 1]]))


class ViewsInTheWrongOrder(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.views = Views(self.views.pictures[::-1], self.views.actions)


class ViewThatCutsThePicture(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.views = Views(
            (self.views.pictures[0], lambda shown: shown[:, :, 1:]), self.views.actions
        )


class ViewThatPaintsOver(Pit):
    def __init__(self) -> None:
        super().__init__()

        def blacken(shown: np.ndarray) -> np.ndarray:
            shown[:] = 0
            return shown

        self.views = Views((self.views.pictures[0], blacken), self.views.actions)


class DoubleRewards(Pit):
    def advance(self, actions: np.ndarray) -> None:
        super().advance(actions)
        self.rewards = self.rewards.astype(np.float64)


class BrightObservations(Pit):
    def _show(self, pictures: np.ndarray) -> None:
        super()._show(pictures)
        pictures *= 255


class BrightEndings(Pit):
    def advance(self, actions: np.ndarray) -> None:
        super().advance(actions)
        self.final_observations[:] = 7


class NoWayOut(Pit):
    def advance(self, actions: np.ndarray) -> None:
        super().advance(actions)
        self.action_mask[0] = False


class PayForTheDead(Pit):
    def advance(self, actions: np.ndarray) -> None:
        idle = ~self.valid
        super().advance(actions)
        self.rewards[idle] = 1


class EndingTwice(Pit):
    def advance(self, actions: np.ndarray) -> None:
        idle = ~self.valid
        super().advance(actions)
        self.truncated[idle] = True


class Unrepeatable(Pit):
    def restart(self, seed: int | None = None) -> None:
        super().restart()


class MovingTheDead(Pit):
    def advance(self, actions: np.ndarray) -> None:
        other = np.flatnonzero(~self.valid)
        super().advance(actions)
        # Whatever is played in a row that isn't valid changes the row beside it.
        self.place[other ^ 1] = np.minimum(2, self.place[other ^ 1] + actions[other])
        self._show(self.observations)


class ForgottenEpisodes(Pit):
    def drain_episodes(self) -> dict[str, np.ndarray]:
        return {name: column[:-1] for name, column in super().drain_episodes().items()}


class UnevenColumns(Pit):
    def drain_episodes(self) -> dict[str, np.ndarray]:
        return {**super().drain_episodes(), "won": np.zeros(100)}


class WideRows(Pit):
    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = super().drain_episodes()
        return {**columns, "row": columns["row"].astype(np.int64)}


class HalfReturns(Pit):
    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = super().drain_episodes()
        return {**columns, "return": columns["return"] / 2}


class LongEpisodes(Pit):
    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = super().drain_episodes()
        return {**columns, "length": columns["length"] + 1}


class InfoWithoutAMask(Pit):
    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        return {"won": ended}


class ListedEpisodes(Pit):
    def drain_episodes(self) -> dict[str, Any]:
        return {name: column.tolist() for name, column in super().drain_episodes().items()}


class InfoOfOneNumber(Pit):
    def final_info(self, ended: np.ndarray) -> dict[str, Any]:
        return {"won": 5, "_won": ended}


class NamedContract(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.observation_contract = "pit"  # type: ignore[assignment]


class ListedViews(Pit):
    def __init__(self) -> None:
        super().__init__()
        self.views = Views(self.views.pictures, self.views.actions.tolist())


class UnknownEvaluation(Pit):
    evaluation = "duels"


class GreyPicture(Pit):
    def picture(self, game: int = 0) -> np.ndarray:
        return super().picture(game)[..., 0]


class GrowingPicture(Pit):
    size = 0

    def picture(self, game: int = 0) -> np.ndarray:
        self.size += 2
        return np.zeros((self.size, 2, 3), np.uint8)


class Forgetful(Pit):
    def carry_on(self, progress: dict[str, int], network: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("world", "trouble"),
    [
        (OneActionTooMany, "actions are"),
        (UnnamedObservation, "needs a type"),
        (ContractThatIsNoJson, "JSON doesn't give back"),
        (ViewThatLosesAnAction, "leave out or repeat an action"),
        (ViewsInTheWrongOrder, "the first must be the world as it is, but changes pictures"),
        (ViewThatCutsThePicture, r"picture 1 makes float32 \(6, 1, 3, 1\)"),
        (ViewThatPaintsOver, "picture 1 changes what it is given"),
        (DoubleRewards, r"step 0: rewards is float64 \(6,\); it must be float32 \(6,\)"),
        (BrightObservations, "observations leave the space"),
        (BrightEndings, "final_observations leave the space"),
        (NoWayOut, "allows a row no action"),
        (PayForTheDead, "rewards pay rows that were not valid"),
        (EndingTwice, "is set for rows that were not valid"),
        (Unrepeatable, "differ between two games of one seed"),
        (MovingTheDead, "observations differ between two games of one seed"),
        (ForgottenEpisodes, "episodes, but"),
        (UnevenColumns, "columns have different lengths"),
        (WideRows, "row is int64"),
        (HalfReturns, "return is not the sum"),
        (LongEpisodes, "length is not the number of actions"),
        (InfoWithoutAMask, "final_info: won"),
        (ListedEpisodes, "row is a list; it must be int32"),
        (InfoOfOneNumber, "final_info: won is not an array"),
        (NamedContract, "observation_contract is pit; it needs a type"),
        (ListedViews, "views.actions is a list"),
        (UnknownEvaluation, "evaluation is 'duels'; it must be one of episodes, opponents, levels"),
        (GreyPicture, "picture is uint8"),
        (GrowingPicture, "picture doesn't keep its size"),
        (Forgetful, "who carries on has not made the progress"),
    ],
)
def test_a_world_that_breaks_the_contract_is_told_where(world, trouble):
    with pytest.raises(ComplianceError, match=f"world '?{world.__name__}.*{trouble}"):
        check_world(world)
