"""The shapes in which people keep games are read as the games that were played: official games,
written in each shape.
"""

from __future__ import annotations

import json

import pytest

from envs.battlesnake.recording import Recording, RecordingError, deviations
from envs.battlesnake.settings import Settings
from tests.envs.battlesnake.arena_shape import arena_game, end_request, move_requests, played_games
from tests.envs.battlesnake.recording.official import boards_of, official_games, recorded
from tests.envs.battlesnake.recording.shapes import frames, in_lower_case, requests

FATES = ("id", "body", "health", "eliminatedCause", "eliminatedBy", "eliminatedOnTurn")


def official(ruleset="wrapped", game_map="standard"):
    """The webhook's game object and the boards of an official game in which snakes die."""
    games = [game for game in official_games(ruleset, game_map) if game["n_snakes"] > 1]
    game = next(
        game
        for game in games
        if any(snake["eliminatedCause"] for snake in boards_of(game)[-1]["snakes"])
    )
    return recorded(game).game, boards_of(game)


def lines(entries):
    return "".join(f"{json.dumps(entry, separators=(',', ':'))}\n" for entry in entries)


def shown(recording):
    """What a recording shows of living snakes, food and hazards."""
    return [
        (
            board["turn"],
            board["food"],
            board["hazards"],
            [s["body"] for s in board["snakes"] if not s["eliminatedCause"]],
        )
        for board in recording.boards()
    ]


def played(boards):
    return [
        (
            board["turn"],
            board["food"],
            board["hazards"],
            [s["body"] for s in board["snakes"] if not s["eliminatedCause"]],
        )
        for board in boards
    ]


def test_a_log_of_move_requests_has_all_its_turns_and_its_rules():
    game, boards = official("wrapped")
    recording = Recording.parse(lines(requests(game, boards)), "log")
    assert shown(recording) == played(boards)
    assert recording.settings.ruleset == "wrapped"
    assert list(deviations(recording)) == []


def test_requests_may_lie_within_a_logs_own_entries():
    game, boards = official()
    entries = [
        {"time": "12:00", "body": request, "answer": {"move": "up"}}
        for request in requests(game, boards)
    ]
    assert shown(Recording.parse(lines(entries), "log")) == played(boards)


def test_a_log_without_rules_is_of_a_standard_game():
    _, boards = official("standard")
    log = [
        {"turn": r["turn"], "chosen_move": "up", "board": r["board"]} for r in requests({}, boards)
    ]
    recording = Recording.parse(lines(log), "log")
    assert shown(recording) == played(boards)
    assert recording.settings == Settings()


def test_a_turn_that_both_snakes_of_a_server_log_is_one_turn():
    game, boards = official()
    logs = zip(requests(game, boards, you=0), requests(game, boards, you=1), strict=True)
    both = [request for pair in logs for request in pair]
    both[2], both[3], both[4] = both[4], both[2], both[3]  # One of them is late.
    recording = Recording.parse(lines(both), "log")
    assert shown(recording) == played(boards)
    assert list(deviations(recording)) == []


def test_another_board_of_the_same_turn_contradicts_it():
    game, boards = official()
    log = requests(game, boards)
    other = json.loads(json.dumps(log[3]))
    other["board"]["food"] = [{"x": 0, "y": 0}]
    first = next(deviations(Recording.parse(lines([*log[:4], other, *log[4:]]), "log")))
    assert (first.turn, first.what) == (3, "this turn is there twice, with two boards")


def test_a_log_of_several_games_is_refused():
    game, boards = official()
    log = requests(game, boards)
    with pytest.raises(
        RecordingError, match="requests of 2 games; keep those of one, for example: grep"
    ):
        Recording.parse(lines([*log, *requests({**game, "id": "other"}, boards)]), "log")
    without = [{"turn": request["turn"], "board": request["board"]} for request in log]
    with pytest.raises(RecordingError, match=r"goes back from \d+ to 0, so it holds several games"):
        Recording.parse(lines([*without, *without]), "log")


@pytest.mark.parametrize("shape", ["a line", "indented", "within an entry", "board alone", "list"])
def test_a_single_request_is_a_game_of_one_turn(shape):
    game, boards = official()
    request = requests(game, boards)[5]
    text = {
        "a line": json.dumps(request),
        "indented": "\ufeff" + json.dumps(request, indent=2) + "\r\n",
        "within an entry": json.dumps({"state": request, "expected": ["up", "down"]}),
        "board alone": json.dumps({"turn": 5, **request["board"]}, indent=1),
        "list": json.dumps([request]),
    }[shape]
    recording = Recording.parse(text, "request")
    assert shown(recording) == played(boards)[5:6]
    assert recording.settings.ruleset == ("standard" if shape == "board alone" else "wrapped")


ABOUT = {
    "ID": "g",
    "Status": "complete",
    "Width": 11,
    "Height": 11,
    "SnakeTimeout": 400,
    "Source": "league",
    "Map": "royale",
}
TEXTS = {"foodSpawnChance": "20", "minimumFood": "2", "shrinkEveryNTurns": "10"}


def royale_game():
    _, boards = official("royale", "royale")
    about = {**ABOUT, "Width": boards[0]["width"], "Height": boards[0]["height"]}
    return about, boards


SHAPES = {
    "a game with its frames": lambda about, shots: json.dumps({"Game": about, "Frames": shots}),
    "the same in lower case": lambda about, shots: json.dumps(
        in_lower_case({"Game": about, "Frames": shots})
    ),
    "Arena's own backup": lambda about, shots: json.dumps(
        {"game": about, "frames": shots}, indent=1
    ),
    "pages by lines": lambda about, shots: lines(
        [{"Game": about}, {"Count": 9, "Frames": shots[:9]}, {"count": 9, "frames": shots[9:]}]
    ),
    "a game and messages": lambda about, shots: lines(
        [
            about,
            *({"Type": "frame", "Data": shot} for shot in [shots[0], *shots]),
            {"Type": "game_end", "Data": {}},
        ]
    ),
    "frames by lines": lambda about, shots: lines(
        [{"Game": about, "LastFrame": shots[-1]}, *shots]
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_games_of_the_old_engine_are_read_with_their_rules(shape):
    about, boards = royale_game()
    rules = {"name": "royale", "damagePerTurn": "15", **TEXTS}
    recording = Recording.parse(SHAPES[shape]({**about, "Ruleset": rules}, frames(boards)), "game")
    for board, read in zip(boards, recording.boards(), strict=True):
        assert [{key: s[key] for key in FATES} for s in read["snakes"]] == [
            {k: s[k] for k in FATES} for s in board["snakes"]
        ]
        assert (read["food"], read["hazards"]) == (board["food"], board["hazards"])
    assert recording.settings == Settings(
        ruleset="royale",
        map="royale",
        food_spawn_chance=20,
        minimum_food=2,
        hazard_damage=15,
        shrink_every_n_turns=10,
    )
    assert recording.game["timeout"] == 400


@pytest.mark.parametrize(
    ("rules", "read"),
    [
        (
            {"Ruleset": {"name": "wrapped", "hazardDamagePerTurn": "30"}},
            Settings(ruleset="wrapped", hazard_damage=30),
        ),
        (
            {"Ruleset": {"damagePerTurn": "30"}, "RulesetName": "wrapped"},
            Settings(ruleset="wrapped", hazard_damage=30),
        ),
        (
            {"Ruleset": {"name": "standard", "minimumFood": "1"}},
            Settings(hazard_damage=0, minimum_food=1),
        ),
        ({"Ruleset": "constrictor"}, None),
    ],
    ids=str,
)
def test_rules_come_under_more_than_one_name(rules, read):
    _, boards = official("standard")
    about = {"Width": boards[0]["width"], "Height": boards[0]["height"], **rules}
    settings = Recording.parse(
        json.dumps({"Game": about, "Frames": frames(boards)}), "game"
    ).settings
    if read is None:
        assert settings.ruleset == "constrictor"
        return
    assert (settings.ruleset, settings.hazard_damage) == (read.ruleset, read.hazard_damage)
    # What the official rules take for a number that is absent.
    assert settings.food_spawn_chance == 0


def test_a_request_of_the_old_engine_is_read_with_its_flat_rules():
    _, boards = official("standard")
    rules = {
        "name": "royale",
        "version": "",
        "damagePerTurn": "14",
        "foodSpawnChance": "16",
        "shrinkEveryNTurns": "9",
    }
    recording = Recording.parse(
        json.dumps(requests({"id": "g", "ruleset": rules, "timeout": "400"}, boards)[0]), "request"
    )
    assert recording.settings == Settings(
        ruleset="royale",
        food_spawn_chance=16,
        minimum_food=0,
        hazard_damage=14,
        shrink_every_n_turns=9,
    )


def test_a_last_line_without_snakes_and_numbers_with_a_point_are_read():
    game, boards = official("standard")
    log = requests(game, boards)
    log[-1]["board"]["snakes"] = None
    text = lines(log).replace('"health":90', '"health":90.0').replace('"x":5,', '"x":5.0,')
    assert '"health":90.0' in text
    recording = Recording.parse(text, "log")
    assert recording.turns == [board["turn"] for board in boards]
    assert {s["eliminatedCause"] for s in recording.boards()[-1]["snakes"]} == {"unknown"}
    assert shown(recording)[:-1] == played(boards)[:-1]
    assert all(
        type(s["body"][0]["x"]) is int for board in recording.boards() for s in board["snakes"]
    )


@pytest.mark.parametrize("ruleset", ["standard", "constrictor"])
def test_a_log_of_arenas_requests_tells_the_dead_from_the_living(ruleset):
    """There the dead stay in the list, unmarked, and the last request may be sent to one of
    them.
    """
    for turns in played_games(5, seed=11, side=7, ruleset=ruleset):
        game = arena_game("g", ruleset=ruleset)
        log = [
            shown.request
            for shown in move_requests(turns, game)
            if shown.request["you"]["id"] == "s0"
        ]
        log.append(end_request(turns, game, "s0").request)
        recording = Recording.parse(lines(log), "log")
        living = {
            turn.board["turn"]: [
                s["body"] for s in turn.board["snakes"] if not s["eliminatedCause"]
            ]
            for turn in turns
        }
        for board in recording.boards():
            assert [s["body"] for s in board["snakes"] if not s["eliminatedCause"]] == living[
                board["turn"]
            ]
        assert recording.undecided == []


def test_a_single_request_names_the_snakes_that_may_be_dead():
    turns = next(turns for turns in played_games(9, seed=2, side=7) if len(turns) > 12)
    requests_of_arena = list(move_requests(turns, arena_game("g")))
    doubted = 0
    for request, alive in requests_of_arena:
        recording = Recording.parse(json.dumps(request, indent=1), "request")
        shown_alive = {s["id"] for s in recording.boards()[0]["snakes"] if not s["eliminatedCause"]}
        assert alive <= shown_alive
        assert shown_alive - alive <= set(recording.undecided)
        doubted += len(recording.undecided)
    assert doubted


def test_whoever_has_left_the_board_in_a_request_is_dead():
    game, boards = official("standard")
    request = requests(game, boards)[5]
    gone = {
        **request["board"]["snakes"][0],
        "id": "gone",
        "body": [{"x": -1, "y": 0}, {"x": 0, "y": 0}],
    }
    starved = {**request["board"]["snakes"][0], "id": "starved", "health": 0}
    request["board"]["snakes"] += [gone, starved]
    recording = Recording.parse(json.dumps(request), "request")
    assert shown(recording) == played(boards)[5:6]
    assert recording.state(5).num_snakes == len(played(boards)[5][3])
