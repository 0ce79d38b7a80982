"""Curves of win probability: on disk, and as numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.measure.analysis.win_probability import GROUPS, Curve, WinProbability, group_of
from agents.search.evaluation.evaluate import CROWD, WIN
from envs.common.errors import ConfigError

CURVE = Curve(scale=500, offset=0.5, proven_loss=0.03, proven_win=0.98)


def test_a_curve_is_logistic_and_never_below_proven_losses():
    assert CURVE(-250) == pytest.approx(0.5)
    assert CURVE(250) == pytest.approx(0.7310586, abs=1e-6)
    assert CURVE(-WIN + 5) == 0.03 == CURVE(-9000)
    assert CURVE(WIN - 5) == 0.98


def test_the_shipped_curves_rise_and_give_even_snakes_about_equal_chances():
    curves = WinProbability.shipped()
    for snakes, is_learned in ((2, True), (2, False), (3, False), (4, False)):
        # Where three live, the evaluation adds the same to all for the rival that has died.
        even = 0
        if snakes > 2:
            even = round(CROWD.prize * (1 / snakes - 1 / 4))
        chances = [
            curves(even + score, snakes=snakes, is_learned=is_learned)
            for score in (-2000, -500, 0, 500, 2000)
        ]
        assert chances == sorted(set(chances))
        assert chances[2] == pytest.approx(1 / snakes, abs=0.06)


def test_groups():
    assert [group_of(snakes, False) for snakes in (2, 3, 4, 8)] == ["2", "3", "4", "4"]
    assert group_of(2, True) == "duel"


def test_a_file_is_read_as_it_was_written(tmp_path):
    curves = WinProbability(dict.fromkeys(GROUPS, CURVE), {"nodes": 5})
    curves.write(tmp_path / "curves.json")
    assert WinProbability.read(tmp_path / "curves.json") == curves


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"procsnake_win_probability": 1, "curves": {"duel": {"scale": 0}}}']
)
def test_other_files_are_refused_in_one_line(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"holds no curves of win probability.*--fit") as refused:
        WinProbability.read(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [{"scale": 0}, {"scale": float("nan")}, {"proven_win": 1.5}, {"offset": float("inf")}]
)
def test_impossible_curves_are_refused(wrong):
    with pytest.raises(ConfigError, match="is invalid"):
        Curve(**{**vars(CURVE), **wrong})


def test_the_documented_fit_is_that_of_the_shipped_curves():
    text = (Path(__file__).parents[4] / "docs" / "lab" / "analysing.md").read_text(encoding="utf-8")
    shipped = WinProbability.shipped()
    documented = {}
    for part in re.split(r"^(?=(?:duel|[234]): scale )", text, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^ +\d+% to +\d+% +(\d+) +([\d.]+)% +([\d.]+)%$", part, re.MULTILINE)
        documented[part.partition(":")[0]] = [
            [int(n), *(pytest.approx(float(share) / 100) for share in row)] for n, *row in rows
        ]
    assert shipped.training["bins"] == documented
    assert set(documented) == set(GROUPS)
