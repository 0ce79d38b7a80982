"""The hidden units of a learned evaluation: their file, their sum, and the search with them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from agents import make
from agents.search import AlphaBeta
from agents.search.alphabeta.stack import new_workspace
from agents.search.evaluation.hidden_units import add_up, new_hidden_units
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_features import LARGEST, NUM_FEATURES, OWN
from agents.search.evaluation.learned_weights import (
    FULL,
    INPUT_UNIT,
    LARGEST_BIAS,
    LARGEST_INPUT,
    LARGEST_SUM,
    UNIT,
    HiddenUnit,
    LearnedEvaluationError,
)
from envs.battlesnake.state import State
from tests.agents.boards import played_boards
from tests.agents.search.evaluation.test_learned import (
    NOTHING,
    constant,
    correction,
    mirrored,
    positions,
    random_weights,
)

IDLE = {"mine": {}, "theirs": {}, "shared": {}, "bias": 0, "points": 0}


def random_units(count, seed=0, points=300):
    """Units whose outputs lie at 0, at 1 and between, as positions vary."""
    random = np.random.default_rng(seed)
    return tuple(
        HiddenUnit.of(
            random.normal(0, 0.003 * INPUT_UNIT, NUM_FEATURES).astype(int).tolist(),
            bias=int(random.normal(0.5, 0.3) * INPUT_UNIT),
            points=int(random.integers(-points, points + 1)) * UNIT,
        )
        for _ in range(count)
    )


def float_outputs(units, features):
    """The outputs of the units as a network in floating point has them."""
    weights = np.array([unit.weights for unit in units]) / INPUT_UNIT
    bias = np.array([unit.bias for unit in units]) / INPUT_UNIT
    return np.clip(weights @ features + bias, 0, 1)


@pytest.mark.parametrize("count", [1, 8, 32, 64])
def test_the_units_add_what_a_network_in_floating_point_adds(count):
    linear = random_weights(3)
    network = replace(linear, units=random_units(count))
    points = np.array([unit.points for unit in network.units]) / UNIT
    outputs = []
    for state, me in positions(width=11, height=11):
        without, features = correction(linear, state, me)
        outputs.append(float_outputs(network.units, features))
        added = correction(network, state, me)[0] - without
        # An output is rounded down to one of `FULL` steps, and both sums to whole points.
        assert abs(added - outputs[-1] @ points) <= np.abs(points).sum() / FULL + 2
    if count >= 8:
        assert (np.array(outputs) == 0).any()
        assert (np.array(outputs) == 1).any()
        assert np.mean((np.array(outputs) > 0) & (np.array(outputs) < 1)) > 0.2


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_weights_do_not_overflow(sign):
    weights = [sign * LARGEST_INPUT] * NUM_FEATURES
    unit = HiddenUnit.of(weights, bias=sign * LARGEST_BIAS, points=sign * LARGEST_SUM)
    for feature in (LARGEST, -LARGEST):
        activation = NUM_FEATURES * sign * LARGEST_INPUT * feature + sign * LARGEST_BIAS
        assert abs(activation) < 1 << 31
        output = min(FULL, max(0, activation * FULL // INPUT_UNIT))
        features = np.full(NUM_FEATURES, feature, np.int32)
        assert add_up(new_hidden_units([unit]), features) == sign * LARGEST_SUM * output // FULL


def test_points_that_could_overflow_together_are_refused():
    half = LARGEST_SUM // 2 + 1
    units = [HiddenUnit(**{**IDLE, "points": points}) for points in (half, -half)]
    with pytest.raises(LearnedEvaluationError, match=f"{LARGEST_SUM} is the most"):
        replace(constant(0), units=tuple(units))


def test_units_that_add_nothing_change_neither_moves_nor_scores_nor_nodes():
    linear = random_weights(3, most=60)
    silent = tuple(replace(unit, points=0) for unit in random_units(16))
    before = AlphaBeta(nodes=1500, evaluation=linear)
    after = AlphaBeta(nodes=1500, evaluation=replace(linear, units=silent))
    compared = 0
    for state, me in positions(width=11, height=11):
        one = before.act(state, me)
        other = after.act(state, me)
        assert (one.move, one.value, one.note) == (other.move, other.value, other.note)
        compared += 1
    assert compared > 20


def test_a_unit_that_is_always_on_adds_its_points_to_every_position():
    on = HiddenUnit(**{**IDLE, "bias": INPUT_UNIT, "points": 7 * UNIT})
    linear = AlphaBeta(nodes=1500, evaluation=constant(7))
    network = AlphaBeta(nodes=1500, evaluation=replace(constant(0), units=(on,)))
    for state, me in islice(positions(width=11, height=11), 12):
        one = linear.act(state, me)
        other = network.act(state, me)
        assert (one.move, one.note) == (other.move, other.note)


@pytest.mark.parametrize("turned", [lambda x, y: (10 - x, y), lambda x, y: (y, x)], ids="xd")
def test_a_mirrored_board_has_the_same_score(turned):
    agent = AlphaBeta(
        nodes=10**6, max_depth=2, evaluation=replace(constant(0), units=random_units(8))
    )
    for state, me in islice(positions(width=11, height=11), 12):
        assert (
            agent.act(mirrored(state, turned), me).note["score"]
            == agent.act(state, me).note["score"]
        )


def test_one_agent_may_see_both_kinds_of_games_in_turn():
    agent = AlphaBeta(nodes=300, evaluation=replace(constant(0), units=random_units(8)))
    (duel, _, _), *_ = played_boards(1, num_snakes=2)
    (wrapped, _, _), *_ = played_boards(1, num_snakes=2, ruleset="wrapped")
    assert [agent.act(s, 0).note["evaluation"] for s in (duel, wrapped, duel)] == [
        "learned",
        "hand-written",
        "learned",
    ]


def test_a_linear_search_is_compiled_without_units():
    space = new_workspace(State(1, num_snakes=2), table_bits=8, learned=constant(0))
    assert space.correction.hidden is None


def test_a_file_is_read_as_it_was_written_and_a_player_names_it(tmp_path):
    learned = replace(random_weights(2), units=random_units(8))
    path = tmp_path / "network.json"
    learned.write(path)
    assert LearnedEvaluation.read(path) == learned
    state, me = next(positions(width=11, height=11))
    named = make(f"alphabeta?evaluation={path}&nodes=400").act(state, me)
    given = AlphaBeta(nodes=400, evaluation=learned).act(state, me)
    assert (named.move, named.note) == (given.move, given.note)


def test_only_a_file_with_units_has_the_second_version(tmp_path):
    """A procsnake that knows no units must not read such a file as a linear one."""
    path = tmp_path / "learned.json"
    for units, version in (((), 1), (random_units(1), 2)):
        replace(random_weights(2), units=units).write(path)
        assert json.loads(path.read_text())["procsnake_evaluation"] == version


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"procsnake_evaluation": 1}, "procsnake_evaluation is 1.*2 with hidden units"),
        ({"units": []}, "1 to 64 hidden units"),
        ({"units": [IDLE] * 65}, "1 to 64 hidden units"),
        ({"units": {}}, "1 to 64 hidden units"),
        ({"units": [3]}, r"units\[0\] must be an object"),
        ({"units": [IDLE, IDLE | {"bais": 1}]}, "Did you mean 'bias'"),
        ({"units": [IDLE | {"bias": 1.5}]}, r"units\[0\].bias is 1.5"),
        ({"units": [IDLE | {"bias": (1 << 30) + 1}]}, "bias is 1073741825"),
        ({"units": [{"mine": {}, "bias": 0}]}, r"points is None"),
        ({"units": [IDLE | {"mine": {"arae": 1}}]}, "Did you mean 'area'"),
        ({"units": [IDLE | {"mine": {"area": 1 << 15}}]}, "area is 32768"),
        ({"units": [IDLE | {"points": 1 << 22}]}, "points is 4194304"),
        ({"units": [IDLE | {"points": 1 << 21}] * 2}, "4194303 is the most"),
    ],
    ids=str,
)
def test_a_file_with_something_wrong_is_refused_and_told_what(tmp_path, change, told):
    path = tmp_path / "network.json"
    file = {"procsnake_evaluation": 2, "width": 11, "height": 11, "phases": [NOTHING]}
    path.write_text(json.dumps({**file, "units": [IDLE], **change}))
    with pytest.raises(LearnedEvaluationError, match=told):
        AlphaBeta(evaluation=path)


def test_the_largest_file_is_read(tmp_path):
    path = tmp_path / "network.json"
    weights = [-LARGEST_INPUT] * NUM_FEATURES
    unit = HiddenUnit.of(weights, bias=-LARGEST_BIAS, points=-(LARGEST_SUM // 64))
    largest = replace(random_weights(0, most=30_000), units=(unit,) * 64)
    largest.write(path)
    assert LearnedEvaluation.read(path) == largest


def test_a_unit_names_its_weights():
    row = [0] * NUM_FEATURES
    row[OWN.index("area")] = 5
    row[len(OWN) + OWN.index("length")] = -6
    unit = HiddenUnit.of(row, bias=1, points=2)
    assert (unit.mine, unit.theirs, unit.shared) == ({"area": 5}, {"length": -6}, {})
    assert unit.weights == row
