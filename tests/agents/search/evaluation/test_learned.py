"""The file of a learned evaluation, and the search that uses it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePath

import numpy as np
import pytest

from agents import make
from agents.heuristics.composition import Heuristics
from agents.search import AlphaBeta
from agents.search.evaluation.correction import correct, new_correction
from agents.search.evaluation.evaluate import SURE, Weights, judge
from agents.search.evaluation.learned import (
    HAND_WRITTEN,
    MOST,
    LearnedEvaluation,
    find_evaluation,
    shipped_evaluations,
)
from agents.search.evaluation.learned_features import (
    LARGEST,
    NUM_FEATURES,
    OWN,
    SHARED,
    geometry_of,
    write_features,
)
from agents.search.evaluation.learned_weights import (
    LARGEST_SUM,
    UNIT,
    LearnedEvaluationError,
    Phase,
)
from agents.search.evaluation.territory import new_territory, survey
from envs.battlesnake.plain import board_from_state, state_from_board
from envs.battlesnake.state import ALIVE
from tests.agents.boards import board, played_boards
from tests.agents.search.evaluation.test_learned_features import mirrored, positions

SETUP = Path(__file__).parents[4] / "setup.py"
NOTHING = {"up_to": None, "mine": {}, "theirs": {}, "shared": {}}


def random_weights(seed, most=400):
    random = np.random.default_rng(seed)
    phases = (
        Phase.of(end, random.integers(-most, most + 1, NUM_FEATURES)) for end in (8, 12, None)
    )
    return LearnedEvaluation(width=11, height=11, phases=tuple(phases))


def constant(points):
    """An evaluation that adds so many points to every position of a duel on 11×11."""
    return LearnedEvaluation(
        width=11,
        height=11,
        phases=(Phase(up_to=None, mine={}, theirs={}, shared={"tempo": points * UNIT}),),
    )


def correction(learned, state, me):
    """The points, and the features behind them."""
    territory = new_territory(state, with_stages=True)
    features = np.zeros(NUM_FEATURES, np.int64)
    arrays = new_correction(state, territory, learned)
    survey(state.arrays, state.rules, territory)
    judge(state.arrays, state.rules, territory, Weights(), me)
    write_features(
        state.arrays, state.rules, territory, geometry_of(state, territory), features, me
    )
    return correct(state.arrays, state.rules, territory, arrays, me), features


def test_the_correction_is_the_sum_of_weights_times_features_of_its_phase():
    learned = random_weights(3)
    seen = set()
    for state, me in positions(width=11, height=11):
        points, features = correction(learned, state, me)
        together = sum(len(state.body(0, i)) for i in (0, 1))
        phase = next(
            n for n, one in enumerate(learned.phases) if one.up_to is None or together <= one.up_to
        )
        assert (
            points
            == sum(a * b for a, b in zip(learned.phases[phase].weights, map(int, features))) // UNIT
        )
        seen.add(phase)
    assert seen == {0, 1, 2}


@pytest.mark.slow
def test_weights_of_zero_change_neither_moves_nor_scores_nor_nodes():
    plain = AlphaBeta(nodes=1500, evaluation=HAND_WRITTEN)
    zero = AlphaBeta(nodes=1500, evaluation=constant(0))
    compared = 0
    for state, me in positions(width=11, height=11):
        before = plain.act(state, me)
        after = zero.act(state, me)
        assert (before.note.pop("evaluation"), after.note.pop("evaluation")) == (
            HAND_WRITTEN,
            "learned",
        )
        assert (before.move, before.value, before.note) == (after.move, after.value, after.note)
        compared += 1
    assert compared > 20


def test_points_for_every_position_move_the_score_by_as_many():
    plain, richer = (
        AlphaBeta(nodes=1500, max_depth=3, evaluation=one) for one in (HAND_WRITTEN, constant(7))
    )
    compared = 0
    for state, me in positions(width=11, height=11):
        before = plain.act(state, me)
        after = richer.act(state, me)
        # A proven line can lie between evaluated ones, and a draw keeps its score.
        if abs(before.note["score"]) < 1500 and before.note["depth"] == after.note["depth"] == 3:
            assert after.note["score"] == before.note["score"] + 7
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("group", ["mine", "theirs", "shared"])
def test_the_largest_weights_neither_overflow_nor_look_like_a_proven_win(sign, group):
    assert LARGEST_SUM * LARGEST < 1 << 31
    groups = {"mine": {}, "theirs": {}, "shared": {}}
    for name in SHARED if group == "shared" else OWN:
        one = Phase(up_to=None, **{**groups, group: {name: sign * LARGEST_SUM}})
        largest = LearnedEvaluation(width=11, height=11, phases=(one,))
        for state, me in islice(positions(width=11, height=11), 3):
            points, features = correction(largest, state, me)
            assert points == int(
                np.clip(sum(a * int(b) for a, b in zip(one.weights, features)) // UNIT, -MOST, MOST)
            )
            assert abs(points) + 30 * 128 + 600 * 20 + 8000 < SURE


def test_weights_that_could_overflow_together_are_refused():
    half = LARGEST_SUM // 2 + 1
    with pytest.raises(LearnedEvaluationError, match=f"{LARGEST_SUM} is the most"):
        Phase(up_to=None, mine={"area": half}, theirs={"area": -half}, shared={})


@pytest.mark.parametrize("turned", [lambda x, y: (10 - x, y), lambda x, y: (y, x)], ids="xd")
def test_a_mirrored_board_has_the_same_score(turned):
    agent = AlphaBeta(nodes=10**6, max_depth=2, evaluation=random_weights(1))
    for state, me in islice(positions(width=11, height=11), 12):
        assert (
            agent.act(mirrored(state, turned), me).note["score"]
            == agent.act(state, me).note["score"]
        )


def test_a_correction_of_opposite_weights_for_the_two_snakes_changes_sign_with_the_view():
    mine = dict(zip(OWN, range(-11 * UNIT, 12 * UNIT, UNIT)))
    phase = Phase(
        up_to=None,
        mine=mine,
        theirs={name: -w for name, w in mine.items()},
        shared={"lead_8": 5 * UNIT},
    )
    learned = LearnedEvaluation(width=11, height=11, phases=(phase,))
    compared = 0
    for state, me in positions(width=11, height=11):
        if state.arrays.length[0, 0] != state.arrays.length[0, 1]:
            assert correction(learned, state, me)[0] == -correction(learned, state, 1 - me)[0]
            compared += 1
    assert compared > 20


@pytest.mark.parametrize(
    "settings",
    [
        {"num_snakes": 2, "width": 19, "height": 19},
        {"num_snakes": 2, "width": 7, "height": 7},
        {"num_snakes": 3},
        {"num_snakes": 2, "ruleset": "wrapped"},
        {"num_snakes": 2, "ruleset": "constrictor"},
        {"num_snakes": 2, "ruleset": "royale"},
        {"num_snakes": 1, "ruleset": "solo"},
    ],
    ids=str,
)
def test_elsewhere_the_hand_written_evaluation_is_used_and_the_note_says_so(settings):
    plain = AlphaBeta(nodes=300, evaluation=HAND_WRITTEN)
    learned = AlphaBeta(nodes=300, evaluation=random_weights(0))
    state, boards, slots = played_boards(2, **settings)[0]
    one = state.select(boards[[0]])
    before = plain.act(one, int(slots[0]))
    after = learned.act(one, int(slots[0]))
    assert after.note["evaluation"] == HAND_WRITTEN
    assert (before.move, before.note) == (after.move, after.note)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"num_snakes": 2}, "learned (duel-units)"),
        (
            {"num_snakes": 4},
            "hand-written, because the game has 4 snakes, and duel-units is for duels",
        ),
        (
            {"num_snakes": 2, "width": 7, "height": 9},
            "hand-written, because the board is 7×9, and duel-units is for 11×11",
        ),
        (
            {"num_snakes": 2, "ruleset": "constrictor"},
            "hand-written, because constrictor isn't the standard game",
        ),
        (
            {"num_snakes": 2, "ruleset": "royale"},
            "hand-written, because royale isn't the standard game",
        ),
    ],
    ids=str,
)
def test_which_evaluation_plays_is_told_with_the_reason(settings, told):
    state, _, _ = played_boards(1, **settings)[0]
    assert make("alphabeta").evaluation_in_words(state) == told
    # As the note of its moves says.
    assert (
        make("alphabeta", nodes=50).act(state, 0).note["evaluation"]
        == told.partition(",")[0].partition(" ")[0]
    )


def test_which_evaluation_plays_is_told_of_other_players(tmp_path):
    state, _, _ = played_boards(1, num_snakes=2)[0]
    assert (
        make("alphabeta?evaluation=hand-written").evaluation_in_words(state)
        == "hand-written, because that was asked for"
    )
    assert make("flood").evaluation_in_words(state) is None
    everywhere = (
        "learned (duel-units) in duels of the standard game on 11×11, hand-written elsewhere"
    )
    assert make("alphabeta").evaluation_in_words() == everywhere
    assert Heuristics(["walls"], make("alphabeta")).evaluation_in_words() == everywhere
    path = tmp_path / "mine.json"
    replace(random_weights(0), training={"accepted": False}).write(path)
    assert (
        AlphaBeta(evaluation=path).evaluation_in_words(state)
        == "learned (mine.json, not accepted by a test)"
    )


def test_a_file_is_json_also_with_an_infinite_elo_in_what_was_read(tmp_path):
    path = tmp_path / "mine.json"
    replace(random_weights(0), training={"test": {"elo": {"value": math.inf, "low": 9.5}}}).write(
        path
    )
    assert "Infinity" not in path.read_text()
    assert LearnedEvaluation.read(path).training == {"test": {"elo": {"value": None, "low": 9.5}}}


def test_hazards_are_left_to_the_hand_written_evaluation():
    duel = {"size": (11, 11), "hazards": [(5, 5)], "hazard_damage": 10}
    state = board([(1, 1), (1, 2), (1, 3)], [(9, 9), (9, 8), (9, 7)], **duel)
    assert not random_weights(0).applies_to(state)
    assert (
        AlphaBeta(nodes=300, evaluation=random_weights(0)).act(state, 0).note["evaluation"]
        == "hand-written"
    )


def test_the_last_two_of_four_snakes_play_a_duel_as_a_server_does():
    compared = 0
    for state, boards, slots in played_boards(60, num_snakes=4):
        one = state.select(boards[[0]])
        if one.arrays.num_alive[0] != 2:
            continue
        living = np.flatnonzero(one.arrays.cause[0] == ALIVE)
        told = board_from_state(one, 0, [str(slot) for slot in range(4)])
        told["snakes"] = [snake for snake in told["snakes"] if int(snake["id"]) in living]
        duel = state_from_board(told, settings=state.settings)
        here = AlphaBeta(nodes=300).act(one, int(slots[0]))
        there = AlphaBeta(nodes=300).act(duel, int(np.flatnonzero(living == slots[0])[0]))
        assert here.note["evaluation"] == "learned"
        assert make("alphabeta").evaluation_in_words(one) == "learned (duel-units)"
        assert (here.move, here.note) == (there.move, there.note)
        compared += 1
    assert compared > 3


def test_a_dead_snake_has_lost_whoever_else_lives():
    states = (s.select(boards[[0]]) for s, boards, _ in played_boards(60, num_snakes=4))
    state = next(s for s in states if s.arrays.num_alive[0] == 3)
    dead = int(np.flatnonzero(state.arrays.cause[0] != ALIVE)[0])
    assert AlphaBeta(nodes=300).act(state, dead).note["score"] < -SURE


@pytest.mark.parametrize("ruleset", ["constrictor", "royale", "wrapped", "solo"])
def test_other_rules_are_played_by_default_as_with_the_hand_written_evaluation(ruleset):
    default = AlphaBeta(nodes=300)
    plain = AlphaBeta(nodes=300, evaluation=HAND_WRITTEN)
    for state, boards, slots in played_boards(
        20, num_snakes=1 if ruleset == "solo" else 2, ruleset=ruleset
    )[::4]:
        one = state.select(boards[[0]])
        me = int(slots[0])
        before = plain.act(one, me)
        after = default.act(one, me)
        assert after.note["evaluation"] == HAND_WRITTEN
        assert (before.move, before.note) == (after.move, after.note)


def test_a_duel_on_11x11_is_played_by_the_learned_evaluation_by_default():
    state, me = next(positions(width=11, height=11))
    default = AlphaBeta(nodes=300).act(state, me)
    named = make("alphabeta?evaluation=duel-units&nodes=300").act(state, me)
    assert default.note["evaluation"] == "learned"
    assert (default.move, default.note) == (named.move, named.note)


def test_one_agent_may_see_both_kinds_of_games_in_turn():
    agent = AlphaBeta(nodes=300, evaluation=random_weights(0))
    (duel, _, _), *_ = played_boards(1, num_snakes=2)
    (wrapped, _, _), *_ = played_boards(1, num_snakes=2, ruleset="wrapped")
    assert [agent.act(s, 0).note["evaluation"] for s in (duel, wrapped, duel)] == [
        "learned",
        "hand-written",
        "learned",
    ]


def test_a_file_is_read_as_it_was_written_and_a_player_names_it(tmp_path):
    learned = random_weights(2)
    path = tmp_path / "learned.json"
    learned.write(path)
    assert LearnedEvaluation.read(path) == learned
    state, me = next(positions(width=11, height=11))
    named = make(f"alphabeta?evaluation={path}&nodes=400").act(state, me)
    given = AlphaBeta(nodes=400, evaluation=learned).act(state, me)
    assert (named.move, named.note) == (given.move, given.note)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"procsnake_evaluation": 2}, "version 1"),
        ({"extra": 1}, "unknown name in the file 'extra'"),
        ({"width": 11.0}, "width is 11.0"),
        ({"width": 25}, "25×11 cells"),
        ({"phases": []}, "1 to 16 phases"),
        ({"phases": [NOTHING] * 17}, "1 to 16 phases"),
        ({"phases": [NOTHING, NOTHING]}, "up_to is None"),
        ({"phases": [NOTHING | {"up_to": 5}]}, "up_to is 5"),
        ({"phases": [NOTHING | {"up_to": 9}, NOTHING | {"up_to": 8}, NOTHING]}, r"end at \[9, 8\]"),
        ({"phases": [NOTHING | {"mine": {"arae": 1}}]}, "Did you mean 'area'"),
        ({"phases": [NOTHING | {"mine": {"area": 1.5}}]}, "area is 1.5"),
        ({"phases": [NOTHING | {"mine": {"area": True}}]}, "area is True"),
        ({"phases": [NOTHING | {"shared": {"longer": 1 << 22}}]}, "longer is 4194304"),
        ({"phases": [NOTHING | {"theirs": [1]}]}, "must be an object"),
        ({"training": 3}, "training must be an object"),
    ],
    ids=str,
)
def test_a_file_with_something_wrong_is_refused_and_told_what(tmp_path, change, told):
    path = tmp_path / "learned.json"
    path.write_text(
        json.dumps(
            {"procsnake_evaluation": 1, "width": 11, "height": 11, "phases": [NOTHING], **change}
        )
    )
    with pytest.raises(LearnedEvaluationError, match=told):
        AlphaBeta(evaluation=path)


@pytest.mark.parametrize(
    "content", ["", "[" * 100_000, "3", '{"training": "' + "x" * (256 << 10) + '"}'], ids=range(4)
)
def test_what_is_no_such_file_is_refused(tmp_path, content):
    path = tmp_path / "learned.json"
    path.write_text(content)
    with pytest.raises(LearnedEvaluationError, match="is not a learned evaluation"):
        LearnedEvaluation.read(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(LearnedEvaluationError, match=r"can't be read.*duel.* or hand-written"):
        make(f"alphabeta?evaluation={tmp_path}/none.json")


def test_what_comes_with_procsnake_is_known_by_name_and_belongs_to_the_installation():
    assert "duel" in shipped_evaluations()
    # Setup's call is read, not run: it would be run with the test's arguments.
    patterns = re.findall(r'"(search/[^"]+)"', SETUP.read_text())
    for name in shipped_evaluations():
        learned = find_evaluation(name)
        assert (learned.width, learned.height) == (11, 11)
        assert any(
            PurePath(f"search/evaluation/shipped/{name}.json").match(pattern)
            for pattern in patterns
        )
    state, me = next(positions(width=11, height=11))
    named = make("alphabeta?evaluation=duel&nodes=400")
    given = AlphaBeta(nodes=400, evaluation=find_evaluation("duel"))
    assert named.act(state, me).note == given.act(state, me).note
    assert (
        make("alphabeta?evaluation=hand-written&nodes=400").act(state, me).note["evaluation"]
        == HAND_WRITTEN
    )


def test_all_names_are_different():
    assert len(set(OWN) | set(SHARED)) == len(OWN) + len(SHARED)
