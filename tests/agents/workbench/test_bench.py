"""The bench against the engine's own rules, recordings and a running server."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

import agents
from agents.measure.evaluation.referee import Referee
from agents.workbench import Bench
from envs.battlesnake.plain import ruleset_step
from envs.battlesnake.recording import Recording, RecordingError
from envs.common.errors import ConfigError, InvalidStateError, UnknownNameError
from serve.arena import create_app
from serve.server import running

DUEL = [[(1, 1), (1, 0), (0, 0)], [(5, 5), (5, 6), (6, 6)]]


def duel(*players: str) -> Bench:
    """Two snakes of `DUEL` on 7×7."""
    bench = Bench(players, width=7, height=7)
    bench.clear()
    for number, body in enumerate(DUEL, 1):
        for x, y in body:
            bench.click(x, y, "snake", f"snake {number}")
    return bench


def bodies(board):
    return [[(p["x"], p["y"]) for p in snake["body"]] for snake in board["snakes"]]


def test_snakes_are_clicked_together_head_first():
    assert bodies(duel("flood", "greedy").board) == DUEL


def test_food_and_hazards_come_and_go_and_the_eraser_takes_whole_snakes():
    bench = duel("flood", "greedy")
    bench.click(3, 3, "food")
    bench.click(3, 3, "hazard")
    assert bench.board["food"] == bench.board["hazards"] == [{"x": 3, "y": 3}]
    bench.click(3, 3, "food")
    assert (bench.board["food"], bench.board["hazards"]) == ([], [{"x": 3, "y": 3}])
    bench.click(1, 0, "erase")
    assert bodies(bench.board) == DUEL[1:]


@pytest.mark.parametrize(
    ("click", "error", "said"),
    [
        ((9, 0, "food"), InvalidStateError, "off the board"),
        ((4, 4, "snake", "snake 1"), InvalidStateError, "click a neighbour"),
        ((0, 0, "fod"), UnknownNameError, "Did you mean 'food'"),
        ((0, 0, "snake", "snake 7"), UnknownNameError, "snake 7"),
    ],
)
def test_what_can_not_be_is_told(click, error, said):
    with pytest.raises(error, match=said):
        duel("flood", "greedy").click(*click)


def test_turns_follow_the_rules_from_the_arranged_position():
    turns = duel("flood", "greedy").play(max_turns=1)
    moves = [seen.move for seen in turns[0].snakes]
    _, after = ruleset_step(turns[0].board, moves)
    assert bodies(turns[1].board) == bodies(after)
    assert [seen.health for seen in turns[1].snakes] == [99, 99]


def test_games_repeat_with_their_seed_and_differ_with_another():
    def food(seed):
        bench = Bench(["flood", "greedy"], seed=seed)
        bench.load(json.dumps(duel("flood", "greedy").board))
        return [turn.board["food"] for turn in bench.play(max_turns=40)]

    assert food(1) == food(1)
    assert food(1) != food(2)


def test_the_dead_keep_their_cause_and_place_while_the_others_play_on():
    bench = Bench(["random", "flood", "flood"], width=7, height=7)
    turns = bench.play()
    death = next(
        number for number, turn in enumerate(turns) if any(seen.cause for seen in turn.snakes)
    )
    dead = next(seen for seen in turns[death].snakes if seen.cause)
    assert dead.move == ""
    assert all([seen.player for seen in turn.snakes] == bench.players for turn in turns)
    slot = turns[death].snakes.index(dead)
    assert all(turn.snakes[slot].cause == dead.cause for turn in turns[death:])
    if death < len(turns) - 1:
        bench.load(bench.copy(death))
        assert dead.name not in [snake["id"] for snake in bench.board["snakes"]]
        assert [seen.player for seen in bench.play(1)[0].snakes] == [
            p for k, p in enumerate(bench.players) if k != slot
        ]


def test_rules_are_read_anew_with_each_play_and_say_what_they_said(tmp_path):
    file = tmp_path / "my_rule.py"
    bench = duel(str(file), "greedy")
    for move, number in (("up", 0), ("right", 3)):
        file.write_text(
            f"def wish(me):\n    return [5.0 * (move == {number}) for move in range(4)]\n"
        )
        seen = bench.play(max_turns=1)[0].snakes[0]
        assert seen.move == move
        assert seen.rules["wish"][move] == 5.0
        assert seen.rules["certain_death"]["down"] is False
        assert seen.probabilities[move] == pytest.approx(np.exp(5) / (np.exp(5) + 2), abs=1e-6)


def test_a_frame_that_is_copied_comes_back_the_same():
    bench = duel("flood", "greedy")
    turns = bench.play(max_turns=3)
    request = json.loads(bench.copy(2))
    assert request["you"]["id"] == "snake 1"
    bench.load(json.dumps(request))
    assert bodies(bench.board) == bodies(turns[2].board)
    assert [s["health"] for s in bench.board["snakes"]] == [98, 98]
    bench.load(json.dumps(request["board"]))
    assert bodies(bench.board) == bodies(turns[2].board)


@pytest.mark.parametrize("text", ["", "[]", '"x"', '{"board": 3}', "{}"])
def test_what_is_no_position_is_refused(text):
    with pytest.raises(RecordingError):
        duel("flood", "greedy").load(text)


def test_any_turn_of_a_recording_opens(tmp_path):
    players = [agents.make(name) for name in ("flood", "greedy")]
    for _ in Referee(players, seed=2, recording=tmp_path / "game.jsonl").play():
        pass
    bench = Bench(["flood", "greedy"])
    bench.open(tmp_path / "game.jsonl", turn=4)
    assert bodies(bench.board) == bodies(Recording.read(tmp_path / "game.jsonl").board(4))
    assert bench.board["turn"] == 4
    with pytest.raises(ConfigError, match="2 snakes live"):
        Bench(["flood"]).open(tmp_path / "game.jsonl", turn=4)


@contextmanager
def served(name):
    agent = agents.make(name)
    with running(create_app({name: agent})) as url:
        yield url


def test_a_running_server_is_asked_and_plays():
    with served("greedy") as url:
        bench = duel("flood", url)
        turns = bench.play(max_turns=2)
        assert [seen.move for seen in turns[0].snakes] == [
            s.move for s in duel("flood", "greedy").play(max_turns=2)[0].snakes
        ]
        asked = bench.ask(url, turn=1, snake="snake 1")
        assert asked.move == bench.ask("greedy", turn=1, snake="snake 1").move
        assert asked.note["milliseconds"] > 0


def test_an_empty_board_is_not_played():
    bench = Bench(["flood"])
    bench.clear()
    with pytest.raises(ConfigError, match="no snake on the board"):
        bench.play()
