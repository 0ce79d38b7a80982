"""What is read from recordings: positions, moves as the heads show them, results, and games that
are refused.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agents.measure.analysis.causes import cause_of
from agents.measure.analysis.game import analyse
from agents.measure.analysis.rooms import room_after
from agents.measure.analysis.snake_game import after, game_of, result_of
from agents.measure.analysis.win_probability import WinProbability
from agents.measure.analysis.words import in_words
from agents.measure.evaluation.referee import Referee
from agents.registry import make
from envs.battlesnake.recording import EXTRAS, Recording
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import LEFT, RIGHT, UP
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.boards import points
from tests.envs.battlesnake.traces import DATA

OFFICIAL = DATA / "cli-output-example.jsonl"


def recorded(tmp_path, players=("flood", "random"), *, seed=0, **settings):
    path = tmp_path / "game.jsonl"
    referee = Referee(
        [make(name) for name in players], seed=seed, recording=path, settings=Settings(**settings)
    )
    for _ in referee.play():
        pass
    return Recording.read(path), referee


def made(*turns, ruleset="standard", **result):
    """A recording of a 7×7 board: per turn the bodies by id, of which those with a cause behind
    them are dead.
    """
    requests = []
    for number, bodies in enumerate(turns):
        snakes = [
            {
                "id": one,
                "name": one,
                "health": 90,
                "body": points(body),
                "eliminatedCause": "".join(cause),
            }
            for one, (body, *cause) in bodies.items()
        ]
        living = [snake for snake in snakes if not snake["eliminatedCause"]]
        dead = [
            {**snake, "eliminatedOnTurn": number, "eliminatedBy": ""}
            for snake in snakes
            if snake["eliminatedCause"]
        ]
        board = {"width": 7, "height": 7, "food": [], "hazards": [], "snakes": living}
        requests.append(
            {
                "turn": number,
                "board": board,
                "you": (living or snakes)[0],
                EXTRAS: {"eliminated": dead},
            }
        )
    return Recording(
        {"id": "g", "ruleset": {"name": ruleset}, "map": "standard"}, requests, result or None
    )


A = [(1, 1), (1, 0), (0, 0)]
B = [(5, 5), (5, 6), (4, 6)]
A_UP = [(1, 2), (1, 1), (1, 0)]
B_LEFT = [(4, 5), (5, 5), (5, 6)]


def test_moves_are_those_that_the_heads_show_not_those_that_came_too_late():
    game = made({"a": (A,), "b": (B,)}, {"a": (A_UP,), "b": (B_LEFT,)})
    game.requests[0][EXTRAS]["decisions"] = {"a": {"move": "right"}}
    (position,) = game_of(game).positions
    assert position.moves == {"a": UP, "b": LEFT}


def test_the_snake_that_the_game_was_recorded_for_is_the_default_and_names_count():
    game = made({"a": (A,), "b": (B,)}, {"a": (A_UP,), "b": (B_LEFT,)})
    assert [game_of(game, name).name for name in (None, "b")] == ["a", "b"]
    with pytest.raises(UnknownNameError, match="unknown snake 'c'"):
        game_of(game, "c")


@pytest.mark.parametrize(
    ("dead", "results"),
    [("b", ("won", "lost")), ("a", ("lost", "won")), ("ab", ("draw", "draw")), ("", ("", ""))],
    ids=str,
)
def test_results_are_told_by_who_is_left(dead, results):
    last = {
        "a": (A_UP, *["wall-collision"] * ("a" in dead)),
        "b": (B_LEFT, *["wall-collision"] * ("b" in dead)),
    }
    game = made({"a": (A,), "b": (B,)}, last)
    assert tuple(game_of(game, name).result for name in "ab") == results


@pytest.mark.parametrize(
    ("turns", "results"),
    [
        ({"a": 9, "b": 9}, {"a": "draw", "b": "draw"}),
        ({"a": 4, "b": 9, "c": 9}, {"a": "lost", "b": "draw", "c": "draw"}),
        ({"a": 9}, {"a": "lost"}),
    ],
    ids=str,
)
def test_of_the_dead_alone_those_that_died_last_together_have_a_draw(turns, results):
    snakes = [
        {
            "id": name,
            "eliminatedCause": "wall-collision",
            "eliminatedBy": "",
            "eliminatedOnTurn": turn,
        }
        for name, turn in turns.items()
    ]
    recording = SimpleNamespace(result=None, boards=lambda: [{"snakes": snakes}])
    assert {name: result_of(recording, name) for name in turns} == results


def test_a_position_after_another_move_has_the_others_moves():
    game = made({"a": (A,), "b": (B,)}, {"a": (A_UP,), "b": (B_LEFT,)})
    (position,) = game_of(game).positions
    state, slot = after(position, RIGHT)
    assert state.body(0, slot)[0] == (2, 1)
    assert state.body(0, 1 - slot)[0] == (4, 5)
    assert room_after(position, LEFT).length == 3
    assert room_after(position, LEFT).cells < room_after(position, UP).cells + 49


def test_games_that_cannot_be_analysed_are_refused_in_one_line(tmp_path):
    alone = made({"a": (A,)}, {"a": (A_UP,)}, ruleset="solo")
    maze = made({"a": (A,), "b": (B,)}, {"a": (A_UP,), "b": (B_LEFT,)})
    maze.game["map"] = "solo_maze"
    gap = made(
        {"a": (A,), "b": (B,)}, {"a": (A_UP,), "b": (B_LEFT,)}, {"a": (A_UP,), "b": (B_LEFT,)}
    )
    gap._boards[1]["turn"] = 3
    for game, why in ((alone, "solo game"), (maze, "solo_maze"), (gap, "turn 1 is missing")):
        with pytest.raises(ConfigError, match=why) as refused:
            game_of(game)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"ruleset": "standard"},
        {"ruleset": "wrapped"},
        {"ruleset": "constrictor"},
        {"ruleset": "royale", "map": "royale", "shrink_every_n_turns": 5},
        {"ruleset": "standard", "map": "hz_islands_bridges"},
        {"ruleset": "standard", "map": "snail_mode"},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_games_of_all_rulesets_are_analysed_from_both_sides(tmp_path, settings):
    recording, referee = recorded(
        tmp_path, ("flood", "greedy", "random", "random"), seed=2, **settings
    )
    for snake in recording.boards()[0]["snakes"]:
        one = analyse(game_of(recording, snake["id"]), nodes=300, curves=WinProbability.shipped())
        death = one.game.death
        assert len(one.turns) == (referee.result.turns if death is None else death.turn)
        assert (one.game.result == "won") == (one.game.name == referee.result.winner)
        assert (cause_of(one) is None) == (death is None)
        assert in_words(one).startswith(one.game.name)


def test_a_file_that_tells_no_deaths_is_analysed_up_to_the_last_turn():
    recording = Recording.read(OFFICIAL)
    loser = next(s["id"] for s in recording.boards()[-1]["snakes"] if s["eliminatedCause"])
    one = analyse(game_of(recording, loser), nodes=300, curves=WinProbability.shipped())
    assert one.game.result == "lost"
    assert one.turns[-1].move is None
    assert one.turns[-1].move_class == "unknown"
    assert (one.game.death.cause, cause_of(one)) == ("snake-self-collision", "no room")
