"""Counts returns level by level, for worlds that play levels.

A mean over all episodes hides levels that are never solved.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from envs.common.whole_files import write_whole

LEVELS = "levels.csv"
_HEADS = ("world", "level", "episodes", "mean_return", "recent_return")
_RATE = 0.2
_QUANTILES = {
    "level_return_worst_tenth": 0.1,
    "level_return_median": 0.5,
    "level_return_best_tenth": 0.9,
}
LEVEL_METRICS = ("levels_seen", *_QUANTILES)
"""The names of `LevelTable.metrics`."""


def level_returns(columns: Mapping[str, np.ndarray], world: str) -> dict[str, np.ndarray]:
    """Return, by world, the level and the return of each episode, float64 (episodes, 2).

    `columns` are those of `BatchEnv.drain_episodes`. The worlds are those of a mixture
    (`train.worlds.mixture`), or without one `world`. The dict is empty where there are no
    levels."""
    if "level" not in columns or not len(columns["level"]):
        return {}
    pairs = np.stack([columns["level"], columns["return"]], axis=1, dtype=np.float64)
    shares = {
        name.removeprefix("world_"): column
        for name, column in columns.items()
        if name.startswith("world_")
    }
    if not shares:
        return {world.rpartition("/")[2]: pairs}
    return {label: pairs[own] for label, own in shares.items() if own.any()}


class LevelTable:
    """For each level, the number of episodes, their mean return, and the recent return.

    The recent return is a moving mean, two thirds of which come from the last five episodes.
    """

    def __init__(self) -> None:
        self._levels: dict[tuple[str, int], tuple[int, float, float]] = {}

    def take_in(self, episodes: Mapping[str, Iterable[np.ndarray]]) -> None:
        """Add episodes, by world.

        They may come as `level_returns` returns them, or one by one, because RLlib passes on either
        form."""
        for world, parts in episodes.items():
            pairs = np.concatenate([np.zeros(0), *map(np.ravel, parts)]).reshape(-1, 2)
            for level, episode_return in pairs.tolist():
                count, mean, recent = self._levels.get((world, int(level)), (0, 0.0, 0.0))
                count += 1
                mean += (episode_return - mean) / count
                recent += max(1 / count, _RATE) * (episode_return - recent)
                self._levels[world, int(level)] = count, mean, recent

    def metrics(self) -> dict[str, float]:
        """Return the number of levels met so far, and quantiles of their recent returns.

        The dict is empty before the first level."""
        if not self._levels:
            return {}
        recent = [recent for _, _, recent in self._levels.values()]
        quantiles = np.quantile(recent, list(_QUANTILES.values())).tolist()
        return dict(zip(LEVEL_METRICS, [float(len(recent)), *quantiles], strict=True))

    def write(self, path: Path) -> None:
        """Write the table as a CSV, whole or not at all. Without levels, nothing is written."""
        if self._levels:
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(_HEADS)
            writer.writerows([*key, *values] for key, values in sorted(self._levels.items()))
            write_whole(path, text.getvalue())

    @classmethod
    def read(cls, path: Path) -> LevelTable:
        """Read the table written to `path`; empty if there is none."""
        table = cls()
        if path.is_file():
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    values = (
                        int(row["episodes"]),
                        float(row["mean_return"]),
                        float(row["recent_return"]),
                    )
                    table._levels[row["world"], int(row["level"])] = values
        return table
