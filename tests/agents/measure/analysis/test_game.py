"""The turn where a game was lost, against throw-aways that trying everything proves
(`throw_aways.py`).

`python -m tests.benchmarks.analyse` analyses all of the games; these tests take some of them.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ProcessPoolExecutor

import pytest

from agents.measure.analysis.as_json import as_json
from agents.measure.analysis.game import (
    REAL_CHANCE,
    Judged,
    Turn,
    analyse,
    lost_turn,
    with_hindsight,
)
from agents.measure.analysis.move_classes import COSTS, class_of
from agents.measure.analysis.opinions import CERTAIN_DEATH, Opinions
from agents.measure.analysis.snake_game import game_of
from agents.measure.analysis.win_probability import WinProbability
from agents.measure.analysis.words import in_words, lost_sentence
from agents.search.evaluation.evaluate import SURE
from envs.battlesnake.state import MOVE_NAMES
from tests.agents.measure.analysis.throw_aways import World, as_position, kept, proofs
from tests.agents.tactics.brute_force import Solver

PROOFS = proofs()
SHORT = sorted(range(len(PROOFS)), key=lambda n: PROOFS[n].turn)[:12]
NODES = 3000


def analysis_of(number, snake=None, **options):
    recording, proof = kept()[number]
    return analyse(
        game_of(recording, snake or proof.victim),
        nodes=NODES,
        curves=WinProbability.shipped(),
        **options,
    )


@pytest.fixture(scope="module")
def analyses():
    return {number: analysis_of(number) for number in SHORT}


def test_the_games_are_a_hundred():
    assert len(kept()) == 100
    assert {recording.boards()[0]["width"] for recording, _ in kept()} == {7, 11}


@pytest.mark.parametrize("number", SHORT[:6])
def test_trying_everything_proves_the_throw_away(number):
    recording, proof = kept()[number]
    state = recording.state(proof.turn)
    slot = "ab".index(proof.victim)
    solver = Solver(World(state.width, state.height))
    surviving = solver.surviving_moves(as_position(state, slot), proof.loses_in)
    assert proof.move not in surviving
    assert set(proof.keeps) <= set(surviving)
    ended = recording.boards()[-1]["snakes"][slot]["eliminatedOnTurn"]
    assert proof.turn < ended <= proof.turn + proof.loses_in


def test_the_proven_turns_are_flagged(analyses):
    flagged = {number: one.turns[one.lost].turn for number, one in analyses.items()}
    assert sum(turn == PROOFS[number].turn for number, turn in flagged.items()) >= 11, flagged


def test_the_thrown_away_move_is_a_fault_and_the_move_that_keeps_is_best(analyses):
    right = 0
    for number, one in analyses.items():
        proof = PROOFS[number]
        turn = one.turns[one.lost]
        if turn.turn == proof.turn:
            assert turn.move == proof.move
            assert turn.points_lost >= COSTS[1][0]
            assert turn.chance >= REAL_CHANCE / 2
            right += turn.best in proof.keeps
    assert right >= 10


def test_from_the_last_chance_on_every_move_is_proven_to_lose(analyses):
    for one in analyses.values():
        assert max(one.turns[one.last_chance].scores) >= -SURE
        assert all(max(turn.scores) < -SURE for turn in one.turns[one.last_chance + 1 :])


def test_who_won_has_no_lost_turn():
    number = SHORT[0]
    winner = "ab".replace(PROOFS[number].victim, "")
    one = analysis_of(number, winner)
    assert (one.game.result, one.lost, one.last_chance, lost_sentence(one)) == (
        "won",
        None,
        None,
        "",
    )


def test_processes_find_what_one_finds(analyses):
    number = SHORT[0]
    told = []
    with ProcessPoolExecutor(1) as pool:
        again = analysis_of(number, pool=pool, tell=lambda done, of: told.append((done, of)))
    assert again.turns == analyses[number].turns
    assert told[0][0] == 0
    assert told[-1] == (len(told) - 1, len(told) - 1)


def test_hindsight_carries_the_loss_back_to_the_last_open_turn():
    """Three turns: the last is lost whatever is played; before it only one move was open, which
    wasn't played.
    """
    positions = game_of(kept()[SHORT[0]][0], PROOFS[SHORT[0]].victim).positions[-3:]
    played = [position.move for position in positions]
    open_scores = [[CERTAIN_DEATH] * 4 for _ in range(3)]
    open_scores[0][played[0]] = 200
    open_scores[1][played[1]] = -50
    open_scores[1][(played[1] + 1) % 4] = -900
    judged = [Judged(Opinions(tuple(scores), (True,) * 4, 5), False) for scores in open_scores]
    found, place = with_hindsight(positions, judged)
    assert place == 1
    assert found[1].opinions.scores[played[1]] == CERTAIN_DEATH + 1
    assert found[1].opinions.best_score == -900
    assert found[0] == judged[0]
    lost = [Judged(Opinions((CERTAIN_DEATH,) * 4, (True,) * 4, 5), False)] * 3
    assert with_hindsight(positions, lost)[1] is None
    assert all(max(one.opinions.scores) < -SURE for one in with_hindsight(positions, lost)[0])


@pytest.mark.parametrize(
    ("chances", "lost"),
    [
        ([(0.6, 0.6), (0.6, 0.1), (0.1, 0.08)], 1),
        ([(0.6, 0.1), (0.7, 0.2), (0.3, 0.29)], 1),  # The first fault was made good.
        ([(0.6, 0.1), (0.7, 0.69), (0.7, 0.69)], 2),  # It was, and there is no other fault.
        (
            [(0.6, 0.5), (0.09, 0.03), (0.04, 0.03)],
            0,
        ),  # The second one was made without a real chance.
    ],
)
def test_the_lost_turn_is_the_last_fault_that_was_never_made_good(chances, lost):
    positions = game_of(kept()[SHORT[0]][0], PROOFS[SHORT[0]].victim).positions[:3]
    scores = (1, 0, CERTAIN_DEATH, CERTAIN_DEATH)
    turns = [
        Turn(n, scores, (best, played, 0, 0), (True,) * 4, 1, 5)
        for n, (best, played) in enumerate(chances)
    ]
    assert lost_turn(positions, turns, 2) == lost
    assert lost_turn(positions, turns, None) is None


def test_classes_go_by_the_points_that_a_move_costs():
    costs = {
        0: "best",
        0.99: "best",
        1: "good",
        5: "inaccuracy",
        9.9: "inaccuracy",
        10: "mistake",
        20: "blunder",
        97: "blunder",
    }
    assert {points: class_of(points, choices=2) for points in costs} == costs
    assert class_of(0, choices=1) == "forced" == class_of(0, choices=0)
    assert class_of(50, choices=1) == "blunder"


def test_the_report_names_the_turn_the_moves_and_the_cause(analyses):
    number = SHORT[0]
    one = analyses[number]
    proof = PROOFS[number]
    report = in_words(one)
    assert f"turn {proof.turn}: {MOVE_NAMES[proof.move]} " in report
    assert report.count("← lost here") == 1
    assert f"cause: {proof.victim} died on turn " in report
    all_turns = in_words(one, all_turns=True)
    assert all(re.search(rf"(?m)^ *{turn.turn}  ", all_turns) for turn in one.turns)


def test_json_has_every_turn_and_says_what_the_report_says(analyses):
    one = analyses[SHORT[0]]
    told = json.loads(json.dumps(as_json(one)))
    assert [turn["turn"] for turn in told["turns"]] == [turn.turn for turn in one.turns]
    assert told["lost_turn"] == one.turns[one.lost].turn
    assert told["lost_sentence"] in in_words(one)
    first = told["best_line"][0]
    assert first[one.game.snake["id"]] == told["turns"][one.lost]["best"]
    assert set(told["turns"][0]["moves"]) == set(MOVE_NAMES)
