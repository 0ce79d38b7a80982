"""The game of a person, without a page: the engine's turns, undo, hints, refusals, recordings."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import agents
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.recording import Recording, unfinished
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES, State
from envs.common.errors import ConfigError, ProcsnakeError
from serve.arena import create_app
from serve.browser.by_hand.game import RefusedError
from serve.browser.viewer.hosted_game import SNAKE
from serve.server import running
from tests.serve.browser.by_hand.games import (
    DOWN,
    LEFT,
    RIGHT,
    UP,
    arrays,
    circle,
    game_of,
    make,
    same,
)

MANY = [
    {"settings": Settings()},
    {
        "settings": Settings(ruleset="wrapped", map="hz_islands_bridges", hazard_damage=3),
        "width": 11,
        "height": 11,
    },
    {
        "settings": Settings(ruleset="royale", map="royale", shrink_every_n_turns=2),
        "width": 9,
        "height": 5,
    },
    {"settings": Settings(ruleset="constrictor"), "width": 19, "height": 19},
]


@pytest.mark.parametrize("setup", MANY, ids=["standard", "wrapped", "royale", "constrictor"])
def test_a_turn_is_the_engines_turn_on_the_moves_of_all(tmp_path, setup):
    game = game_of(tmp_path, "flood", "greedy", **setup)
    size = {"width": game.setup.width, "height": game.setup.height}
    state = State(1, num_snakes=3, settings=game.setup.settings, **size)
    state.seed(game.setup.seed)
    running_ = start_games(state)
    rivals = [agents.make("flood"), agents.make("greedy")]
    while not game.is_over and game.turn < 12:
        assert same(arrays(game), state.arrays._asdict()), game.turn
        chosen = game.allowed()[game.turn % 3] if game.is_alive else None
        moves = [UP if chosen is None else chosen]
        moves += [rival.act(state.copy(), slot).move if state.arrays.cause[0, slot] == 0 else UP
                  for slot, rival in enumerate(rivals, 1)]  # fmt: skip
        game.move(chosen, turn=game.turn)
        play_turn(state, np.array([moves], np.int8), running_)
    assert game.turn > 3
    assert same(arrays(game), state.arrays._asdict())
    assert game.is_over == (not running_[0])


def test_undo_restores_the_board_bit_for_bit_and_the_same_moves_lead_to_the_same(tmp_path):
    game = game_of(tmp_path, "flood", "alphabeta?nodes=300", width=11, height=11)
    boards = []
    own = []
    while game.is_alive and game.turn < 15:
        boards.append(arrays(game))
        own.append(game.hint(turn=game.turn).move)
        game.move(own[-1], turn=game.turn)
    last = arrays(game)
    reached = game.turn
    for turn in reversed(range(reached)):
        game.undo(turn=game.turn)
        assert game.turn == turn
        assert same(arrays(game), boards[turn])
    with pytest.raises(RefusedError, match="no move to take back on turn 0"):
        game.undo(turn=0)
    for move in own:
        game.move(move, turn=game.turn)
    assert same(arrays(game), last)


def test_undo_after_the_end_goes_back_to_where_the_person_last_chose(tmp_path):
    game = game_of(tmp_path, "circles", "circles", width=11, height=11, seed=2)
    while game.is_alive:
        before = arrays(game)
        game.move(None, turn=game.turn)
    died = game.turn
    assert not game.is_over
    game.move(None, turn=game.turn)
    game.move(LEFT, turn=game.turn)
    assert game.turn == died + 2
    game.undo(turn=game.turn)
    assert (game.turn, game.is_alive) == (died - 1, True)
    assert same(arrays(game), before)


def test_without_a_move_the_snake_goes_on_as_before(tmp_path):
    game = game_of(tmp_path, "circles")
    game.move(None, turn=0)
    game.move(LEFT, turn=1)
    game.move(None, turn=2)
    assert [moves[0] for moves in game.moves] == [UP, LEFT, LEFT]


def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(tmp_path):
    game = game_of(tmp_path, "circles")
    assert game.allowed() == [UP, DOWN, LEFT, RIGHT]
    circle(game, 1)
    before = arrays(game)
    assert game.allowed() == [UP, LEFT, RIGHT]
    for ask, said in (
        (lambda: game.move(DOWN, turn=1), "down leads into your own neck"),
        (lambda: game.move(UP, turn=0), "on turn 1, not on turn 0"),
        (lambda: game.hint(turn=7), "on turn 1, not on turn 7"),
        (lambda: game.undo(turn=2), "on turn 1, not on turn 2"),
    ):
        with pytest.raises(RefusedError, match=said) as refused:
            ask()
        assert "\n" not in str(refused.value)
    assert (game.turn, same(arrays(game), before)) == (1, True)


def test_in_a_wrapped_game_the_neck_may_lie_across_the_edge(tmp_path):
    game = game_of(tmp_path, settings=Settings(ruleset="wrapped"))
    while game.board()["snakes"][0]["body"][0]["y"] < 6:
        game.move(UP, turn=game.turn)
    game.move(UP, turn=game.turn)
    assert game.board()["snakes"][0]["body"][0]["y"] == 0
    assert game.allowed() == [UP, LEFT, RIGHT]


@pytest.mark.parametrize(
    "spec", ["alphabeta?nodes=700", "mcts?simulations=60", "champion-standard"]
)
def test_a_hint_is_the_searchs_own_answer_and_plays_nothing(tmp_path, spec):
    game = game_of(tmp_path, "flood", hint_by=spec)
    search = make(spec)
    for _ in range(6):
        before = arrays(game)
        hint = game.hint(turn=game.turn)
        assert hint.move == search.act(game.referee.state.copy(), 0).move
        assert same(arrays(game), before)
        game.move(hint.move, turn=game.turn)


def test_the_dead_get_no_hints_and_an_ended_game_takes_no_moves(tmp_path):
    game = game_of(tmp_path, "circles", "circles", width=11, height=11, seed=2)
    while game.is_alive:
        game.move(None, turn=game.turn)
    with pytest.raises(RefusedError, match="your snake is dead"):
        game.hint(turn=game.turn)
    alone = game_of(tmp_path)
    while not alone.is_over:
        alone.move(None, turn=alone.turn)
    for ask in (lambda: alone.move(UP, turn=alone.turn), lambda: alone.hint(turn=alone.turn)):
        with pytest.raises(RefusedError, match="the game is over; undo, or begin a new one"):
            ask()


def test_another_game_has_the_next_seed_and_a_file_of_its_own(tmp_path):
    game = game_of(tmp_path, "circles")
    first = arrays(game)
    circle(game, 2)
    game.new()
    assert (game.setup.seed, game.turn, game.path.name) == (2, 0, "game-2.jsonl")
    assert not same(arrays(game), first)
    game.close()
    assert len(Recording.read(unfinished(tmp_path / "game.jsonl")).turns) == 2


def test_a_game_that_cannot_be_leaves_the_old_one_as_it_is(tmp_path):
    game = game_of(tmp_path, "circles")
    circle(game, 2)
    before = arrays(game)
    for other in (
        {"width": 2},
        {"opponents": ("flod",)},
        {"opponents": ("http://127.0.0.1:9",)},
        {"settings": Settings(map="hz_castle_wall")},
    ):
        with pytest.raises(ProcsnakeError):
            game.new(replace(game.setup, **other))
        assert (game.turn, same(arrays(game), before)) == (2, True)
    circle(game, 2)
    assert game.turn == 4


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ({"width": 9}, "it knows boards of 7×7"),
        ({"width": 9, "height": 9}, r"picky can't play: its first move failed \(IndexError"),
    ],
)
def test_whoever_does_not_know_such_boards_says_so_before_the_old_game_is_left(
    tmp_path, size, said
):
    game = game_of(tmp_path, "picky")
    circle(game, 2)
    with pytest.raises(ProcsnakeError, match=said):
        game.new(replace(game.setup, **size))
    assert (game.turn, game.setup.width) == (2, 7)
    assert not list(tmp_path.glob("game-2*"))
    circle(game, 1)


def test_an_opponent_that_fails_is_told_and_the_game_stays_where_it_is(tmp_path):
    game = game_of(tmp_path, "fails")
    circle(game, 2)
    before = arrays(game)
    for _ in range(2):
        with pytest.raises(
            RefusedError, match=r"an opponent failed on turn 2: a bug of its own\. Undo"
        ):
            game.move(DOWN, turn=2)
    assert same(arrays(game), before)
    game.undo(turn=2)
    assert game.turn == 1


def test_an_adviser_that_fails_is_told(tmp_path):
    game = game_of(tmp_path, "circles", hint_by="fails")
    circle(game, 2)
    with pytest.raises(RefusedError, match="fails has no hint: a bug of its own"):
        game.hint(turn=2)
    circle(game, 1)


def test_against_a_snake_elsewhere_there_is_no_undo(tmp_path):
    with running(create_app(agents.make("flood"))) as url:
        game = game_of(tmp_path, f"far={url}")
        circle(game, 2)
        assert game.referee.names == ["you", "far"]
        with pytest.raises(RefusedError, match=f"no undo against {re.escape(url)}"):
            game.undo(turn=2)
        assert game.turn == 2
        game.close()


def test_the_recording_is_the_game_as_it_was_played_in_the_end(tmp_path):
    game = game_of(tmp_path, "circles")
    circle(game, 4)
    game.undo(turn=4)
    while not game.is_over:
        game.move(None, turn=game.turn)
    recording = Recording.read(tmp_path / "game.jsonl")
    assert not unfinished(tmp_path / "game.jsonl").exists()
    assert recording.turns == list(range(game.turn + 1))
    you = game.referee.ids[0]
    played = [recording.decisions(turn)[you]["move"] for turn in recording.turns[:-1]]
    assert played == [MOVE_NAMES[moves[0]] for moves in game.moves]
    assert recording.result["winnerName"] == "circles"


def test_what_the_others_thought_is_still_known_after_an_undo(tmp_path):
    game = game_of(tmp_path, "alphabeta?nodes=300")
    circle(game, 3)

    def thoughts():
        shown = game.hosted.turns(game.referee.game["id"], SNAKE, you=game.referee.ids[1])
        return [(turn["move"], turn["note"]) for turn in shown]

    before = thoughts()
    assert all(note["nodes"] > 0 for _, note in before)
    game.undo(turn=3)
    assert thoughts() == before[:2]


def test_a_place_that_cannot_be_written_is_said_in_a_line(tmp_path):
    (tmp_path / "game.jsonl.part").mkdir()
    with pytest.raises(ConfigError, match=r"game\.jsonl can't be written: .*Choose another place"):
        game_of(tmp_path, "circles")
