"""Registers the worlds with Gymnasium and with its predecessor gym 0.26. A world is imported only
when it is made.
"""

from __future__ import annotations

import sys

import gymnasium

from envs.procgen.games import GAMES

BATTLESNAKE = "procsnake/Battlesnake-v0"


def register_gymnasium() -> None:
    """Register with Gymnasium. `import envs` calls this, and so does
    `gymnasium.make("envs:procsnake/Battlesnake-v0")`.
    """
    if BATTLESNAKE not in gymnasium.registry:
        gymnasium.register(
            id=BATTLESNAKE,
            entry_point="envs.battlesnake.gym_env:BattlesnakeEnv",
            vector_entry_point="envs.battlesnake.adapters.opponents_env:make_batch",
        )
    for game in GAMES:
        if (name := f"procsnake/procgen-{game}-v0") not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="envs.procgen.gym_env:ProcgenEnv",
                vector_entry_point="envs.procgen.gym_env:make_batch",
                kwargs={"game": game},
            )


def register_old_gym() -> None:
    """Register with old gym. The package's `gym.envs` entry point calls this when gym is imported,
    where it is installed.
    """
    from gym.envs.registration import register, registry

    if BATTLESNAKE not in registry:
        register(
            id=BATTLESNAKE, entry_point="envs.battlesnake.adapters.old_gym_env:OldGymBattlesnakeEnv"
        )


def register_all() -> None:
    """Register with Gymnasium, and with old gym if the program has imported it."""
    register_gymnasium()
    if "gym.envs.registration" in sys.modules:
        register_old_gym()
