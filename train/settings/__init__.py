"""The algorithms' settings: a file for each, with a dataclass that also registers the algorithm's
name and its trainer.

Each field has a docstring. Values are checked when the settings are made.
"""

from __future__ import annotations

import logging
from importlib import metadata

from train.settings.algorithm import (
    ALGORITHMS,
    AlgorithmSettings,
    DemonstrationSettings,
    RolloutSettings,
    registered,
)

# isort: off
# In the order in which commands and pages list the algorithms.
from train.settings.ppo import PPOSettings
from train.settings.appo import APPOSettings
from train.settings.dqn import DQNSettings, QSettings
from train.settings.apex import APEXSettings
from train.settings.pqn import PQNSettings
from train.settings.mxnet_dqn import MXNetDQNSettings
from train.settings.imitation import ImitationSettings
from train.settings.learned_evaluation import LearnedEvaluationSettings
from train.settings.cloning import CloningSettings
# isort: on

__all__ = [
    "ALGORITHMS",
    "APEXSettings",
    "APPOSettings",
    "AlgorithmSettings",
    "CloningSettings",
    "DQNSettings",
    "DemonstrationSettings",
    "ImitationSettings",
    "LearnedEvaluationSettings",
    "MXNetDQNSettings",
    "PPOSettings",
    "PQNSettings",
    "QSettings",
    "RolloutSettings",
    "registered",
]

_LOGGER = logging.getLogger(__name__)


def _load_installed() -> None:
    """Import the settings that installed packages name in the group of entry points
    `procsnake.algorithms`.

    A package that fails is left out and logged, because every other algorithm still works.
    """
    for point in metadata.entry_points(group="procsnake.algorithms"):
        try:
            point.load()
        except Exception as error:
            _LOGGER.warning(
                "the algorithm %s of an installed package is left out: %s: %s",
                point.name,
                type(error).__name__,
                error,
            )


# Last, because packages import what is above.
_load_installed()
