from __future__ import annotations

import numpy as np
import pytest

from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_weights import Phase
from train.runs.folder import GENERATIONS
from train.runs.report.generations import charts, generations


@pytest.mark.parametrize(
    ("elo", "told"),
    [
        ({"value": 81.2, "low": 51.0, "high": 114.0}, "+81 (+51 to +114)"),
        ({"value": None, "low": 357.1, "high": None}, "unbounded (+357 to unbounded)"),
    ],
)
def test_a_tested_generation_is_told_with_its_elo_also_where_that_has_no_bound(tmp_path, elo, told):
    (tmp_path / GENERATIONS).mkdir()
    test = {
        "against": "alphabeta",
        "games": 60,
        "score": {"value": 0.6},
        "elo": elo,
        "verdict": "H1",
    }
    losses = {"loss_before": 0.7, "loss": 0.6, "least_loss": 0.5}
    training = {
        "generation": 1,
        "games": 60,
        "positions": 9,
        "learning_curve": [[4, 0.65], [8, 0.6]],
        **losses,
        "accepted": True,
        "test": test,
    }
    phases = (Phase(up_to=None, mine={}, theirs={}, shared={}),)
    found = LearnedEvaluation(width=11, height=11, phases=phases, training=training)
    found.write(tmp_path / GENERATIONS / "evaluation-001.json")
    shown = generations(tmp_path)
    assert told in shown
    assert "by the positions that were fitted" in shown


def test_a_test_whose_elo_has_no_bounds_has_its_curve():
    steps = np.array([10.0, 20.0])
    history = {"agent_steps": steps, "best_generation": steps, "test_elo": np.array([np.nan, 50.0])}
    (line,) = charts(history)[-1].lines
    assert line.y.tolist()[1] == 50.0
    assert np.isnan([line.low, line.high]).all()
