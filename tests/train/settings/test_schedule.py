from __future__ import annotations

import pytest

from train.settings.schedule import value_at

KNOTS = [[0, 0.3], [4000, 0.1], [5000, 0.7]]


def test_knots_are_hit_exactly():
    assert [value_at(KNOTS, steps) for steps, _ in KNOTS] == [value for _, value in KNOTS]


@pytest.mark.parametrize(("steps", "value"), [(2000, 0.2), (1000, 0.25), (4500, 0.4), (9e9, 0.7)])
def test_lines_lie_between_them_and_the_ends_stay(steps, value):
    assert value_at(KNOTS, steps) == pytest.approx(value)


def test_a_number_stays_what_it_is():
    assert value_at(0.25, 123) == 0.25
