"""The charts of the documentation say what its tables say."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
DRAW = runpy.run_path(str(PICTURES / "draw.py"), run_name="draw")


def charts(stem: str) -> dict:
    return {
        chart.title: chart for chart in DRAW["read_charts"](PICTURES / "curves" / f"{stem}.csv")
    }


def ends(chart, share: float = 0.0) -> dict[str, float]:
    """By line: its end, or the mean over the last `share` of the time."""
    return {
        line.name: float(line.y[line.x >= line.x[-1] * (1 - share)].mean()) for line in chart.lines
    }


def test_compare_shows_the_rewards_of_seed_0_in_the_table_of_compare():
    found = ends(charts("compare")["reward per snake"], 0.2)
    table = {"mxnet-dqn": 52.9, "dqn-1": 332, "dqn-all": 401, "apex": 567, "ppo": 647}
    assert found == {name: pytest.approx(value, abs=12) for name, value in table.items()}


def test_trainers_shows_the_means_over_seeds_in_the_table_of_benchmarks():
    found = charts("trainers")
    won = {"APEX": (0.93, 0.93, 0.975), "DQN": (0.958, 0.922, 0.942), "PPO": (0.985, 0.99, 0.995)}
    duels = found["duels won against random"]
    assert ends(duels) == {
        name: pytest.approx(np.mean(rates), abs=0.012) for name, rates in won.items()
    }
    lived = ends(found["turns that a snake lives in self-play"], 0.2)
    assert lived == {
        "APEX": pytest.approx(226, abs=6),
        "DQN": pytest.approx(269, abs=6),
        "PPO": pytest.approx(298, abs=6),
    }


@pytest.mark.parametrize("stem", ["compare", "trainers"])
def test_every_axis_has_a_name_and_every_band_holds_its_line(stem):
    for chart in charts(stem).values():
        assert chart.x_label
        assert chart.y_label
        for line in chart.lines:
            if line.low is not None:
                assert (line.low <= line.y).all()
                assert (line.y <= line.high).all()
