"""The charts of an evaluation's page, beside episodes and curves whose charts can be drawn by
hand.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agents.measure.evaluation.procgen_report import _curves, _distributions


def distribution(returns: list[float]) -> tuple[np.ndarray, np.ndarray]:
    score = SimpleNamespace(game="coinrun", split="test", player="policy")
    episodes = [SimpleNamespace(episode_return=value) for value in returns]
    (chart,) = _distributions([SimpleNamespace(score=score, episodes=episodes)])
    (line,) = chart.lines
    return line.x, line.y


def test_few_outcomes_are_drawn_as_steps() -> None:
    """Seven episodes without the coin and three with it: 30 % are above 0, up to 10."""
    x, y = distribution([0.0] * 7 + [10.0] * 3)
    np.testing.assert_allclose(np.interp([1e-9, 1.0, 5.0, 10 - 1e-9], x, y), 0.3)
    np.testing.assert_allclose(y[[0, -1]], [1.0, 0.0])


def test_many_outcomes_are_drawn_as_a_curve() -> None:
    x, y = distribution(list(np.arange(100.0)))
    np.testing.assert_allclose(np.diff(x), 99 / 60)
    np.testing.assert_allclose(y, [np.mean(np.arange(100) > threshold) for threshold in x])


@pytest.mark.parametrize(("measured", "says"), [("", False), ("4.0", True)])
def test_only_a_curve_with_evaluations_has_a_gap(tmp_path: Path, measured: str, says: bool) -> None:
    curve = tmp_path / "progress.csv"
    curve.write_text(
        f"agent_steps,episode_return_mean,evaluation_return_mean\n100,2.5,\n200,3.5,{measured}\n"
    )
    (chart,) = _curves(curve)
    assert ("gap" in chart.title) == says
