"""Normalised scores, which make the returns of different games comparable, and published
returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from envs.common.errors import ConfigError, UnknownNameError

_SHAPED_SHARE = 0.501


class Bounds(NamedTuple):
    """The return of an agent that sees nothing, and the highest possible return."""

    blind: float
    highest: float


EASY = {
    "bigfish": Bounds(1, 40),
    "bossfight": Bounds(0.5, 13),
    "caveflyer": Bounds(3.5, 12),
    "chaser": Bounds(0.5, 13),
    "climber": Bounds(2, 12.6),
    "coinrun": Bounds(5, 10),
    "dodgeball": Bounds(1.5, 19),
    "fruitbot": Bounds(-1.5, 32.4),
    "heist": Bounds(3.5, 10),
    "jumper": Bounds(1, 10),
    "leaper": Bounds(1.5, 10),
    "maze": Bounds(5, 10),
    "miner": Bounds(1.5, 13),
    "ninja": Bounds(3.5, 10),
    "plunder": Bounds(4.5, 30),
    "starpilot": Bounds(2.5, 64),
}
"""Cobbe et al. 2020, appendix C."""
HARD = {
    "bigfish": Bounds(0, 40),
    "bossfight": Bounds(0.5, 13),
    "caveflyer": Bounds(2, 13.4),
    "chaser": Bounds(0.5, 14.2),
    "climber": Bounds(1, 12.6),
    "coinrun": Bounds(5, 10),
    "dodgeball": Bounds(1.5, 19),
    "fruitbot": Bounds(-0.5, 27.2),
    "heist": Bounds(2, 10),
    "jumper": Bounds(1, 10),
    "leaper": Bounds(1.5, 10),
    "maze": Bounds(4, 10),
    "miner": Bounds(1.5, 20),
    "ninja": Bounds(2, 10),
    "plunder": Bounds(3, 30),
    "starpilot": Bounds(1.5, 35),
}
PRIVATE = {
    "caterpillar": Bounds(8.25, 24),
    "gemjourney": Bounds(1.1, 16),
    "hovercraft": Bounds(0.2, 18),
    "safezone": Bounds(0.2, 10),
}
"""The competition's own games in easy mode. The library doesn't have them."""


class PublishedPPO(NamedTuple):
    """Returns of OpenAI's PPO in easy mode, by logs of 3 runs: trained on all levels, or on 200 and
    measured on others.
    """

    all_8m: float
    unseen_8m: float
    all_25m: float
    unseen_25m: float


PPO = {
    "bigfish": PublishedPPO(10.4, 2.9, 20.2, 4.8),
    "bossfight": PublishedPPO(7.5, 5.0, 9.0, 7.5),
    "caveflyer": PublishedPPO(5.9, 4.4, 7.3, 5.3),
    "chaser": PublishedPPO(2.6, 2.4, 6.9, 6.1),
    "climber": PublishedPPO(6.6, 5.1, 10.3, 5.9),
    "coinrun": PublishedPPO(8.0, 8.2, 9.1, 8.7),
    "dodgeball": PublishedPPO(1.9, 1.2, 6.5, 2.0),
    "fruitbot": PublishedPPO(26.1, 23.4, 29.0, 26.3),
    "heist": PublishedPPO(3.8, 2.3, 7.1, 2.7),
    "jumper": PublishedPPO(7.1, 5.8, 7.8, 5.7),
    "leaper": PublishedPPO(5.6, 3.7, 7.3, 5.9),
    "maze": PublishedPPO(7.4, 5.3, 9.9, 5.5),
    "miner": PublishedPPO(7.3, 6.5, 11.1, 9.5),
    "ninja": PublishedPPO(5.9, 5.1, 8.2, 5.8),
    "plunder": PublishedPPO(7.1, 4.8, 14.6, 4.6),
    "starpilot": PublishedPPO(27.5, 18.4, 33.0, 23.8),
}
LARS_8M_ALL = {
    "bigfish": 26.3,
    "chaser": 10.8,
    "coinrun": 9.26,
    "miner": 9.78,
    "plunder": 7.45,
    "starpilot": 61.9,
}
"""Returns of LARS's entry to the 2020 competition after 8 M steps on all levels in easy mode, for
the games in its log.
"""


def highest_return(world: str, options: Mapping[str, Any]) -> float | None:
    """Return the highest possible return of `procgen/<game>`, as it is paid with these options of
    the world.

    Returns None for other worlds, and for modes without constants. The defaults are those of
    `ProcgenVectorEnv`."""
    modes = {"easy": EASY, "hard": HARD}
    bounds = modes.get(str(options.get("distribution_mode", "hard")), {})
    game = world.removeprefix("procgen/")
    if not world.startswith("procgen/") or game not in bounds:
        return None
    highest = bounds[game].highest
    if options.get("shape_rewards"):
        # Shaping pays at most 0.501 for each 1 (`envs.wrappers.shaped`).
        highest *= _SHAPED_SHARE
    return highest


def normalised(
    returns: np.ndarray | float, game: str, distribution_mode: str = "easy"
) -> np.ndarray:
    """Return (R - R_blind) / (R_max - R_blind), not clipped: 0 is as good as a blind agent, 1 is
    the best possible.

    Raises `UnknownNameError` for a game without constants, and `ConfigError` for a mode without
    them."""
    if distribution_mode not in ("easy", "hard"):
        raise ConfigError(
            f"there are no constants to normalise {distribution_mode!r} by, only for easy and hard"
        )
    bounds_by_game = {**EASY, **PRIVATE}
    if distribution_mode == "hard":
        bounds_by_game = HARD
    if game not in bounds_by_game:
        raise UnknownNameError("Procgen game", game, bounds_by_game)
    bounds = bounds_by_game[game]
    return (np.asarray(returns, np.float64) - bounds.blind) / (bounds.highest - bounds.blind)
