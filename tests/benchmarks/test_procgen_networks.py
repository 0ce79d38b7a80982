from __future__ import annotations

import json
import shlex
import sys

import pytest

from tests.benchmarks import procgen_networks

ASKED = shlex.split("--networks cleanrl --games coinrun --seeds 1 --steps 100 --seconds 2")
OLD = {"network": "cleanrl", "game": "coinrun", "seed": 0, "per_step": 5.0, "per_hour": 6.0}
OLD |= {"per_step_at": [100, 1.0], "per_hour_at": [200, 2.0]}


def report(monkeypatch, path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(sys, "argv", ["procgen_networks", "--out", str(path), *ASKED, "--report"])
    procgen_networks.main()


def test_a_line_says_its_budget(monkeypatch):
    monkeypatch.setattr(procgen_networks, "cleanrl", lambda game, seed: (lambda: 60, None))
    monkeypatch.setattr(procgen_networks, "unseen_score", lambda answer, game: 5.0)
    found = procgen_networks.learn("cleanrl", "coinrun", 0, steps=100, seconds=0.0)
    assert (found["steps"], found["seconds"]) == (100, 0.0)
    assert (found["per_step_at"][0], found["per_hour_at"][0]) == (120, 60)


@pytest.mark.parametrize("own", [{}, {"steps": 100, "seconds": 2.0}], ids=["before", "now"])
def test_results_of_the_same_budget_or_of_an_unknown_one_are_used(
    monkeypatch, tmp_path, capsys, own
):
    report(monkeypatch, tmp_path / "found.jsonl", [{**OLD, **own}])
    assert capsys.readouterr().out.startswith("1 seeds, coinrun")


@pytest.mark.parametrize("other", [{"steps": 200, "seconds": 2.0}, {"steps": 100, "seconds": 3.0}])
def test_results_of_another_budget_are_refused(monkeypatch, tmp_path, other):
    with pytest.raises(
        SystemExit,
        match=f"of --steps {other['steps']} --seconds {other['seconds']:g}, not .* another --out",
    ):
        report(monkeypatch, tmp_path / "found.jsonl", [OLD, {**OLD, **other}])
