"""Who lives in a request, against games of the official engine and of ours in Arena's shape, where
the truth is known.
"""

from __future__ import annotations

import pytest

from envs.battlesnake.plain import state_from_board
from envs.battlesnake.plain.living import Life, LifeHistory, LifeRules, Sighting, lives_in
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import CAUSE_NAMES
from envs.battlesnake.webhook import read_end_request, read_move_request
from tests.envs.battlesnake.arena_shape import (
    PlayedTurn,
    arena_game,
    end_request,
    is_undecidable,
    move_requests,
    played_games,
)
from tests.envs.battlesnake.traces import games, transitions

ARENA = LifeRules(is_arena=True)
GAMES = [
    {"side": 7},
    {"side": 7, "ruleset": "constrictor"},
    {"side": 11, "ruleset": "royale", "map": "royale", "shrink_every_n_turns": 5},
]


def sent(turns, **game):
    return list(move_requests(turns, arena_game("g", **game)))


def arena_games(settings):
    for turns in played_games(12, seed=3, **settings):
        yield sent(turns, ruleset=settings.get("ruleset", "standard"))


@pytest.mark.parametrize("settings", GAMES, ids=str)
def test_consecutive_requests_tell_exactly_who_lives(settings):
    corpses = 0
    for shown in arena_games(settings):
        histories = {}
        for request, alive in shown:
            history = histories.setdefault(request["you"]["id"], LifeHistory())
            turn = read_move_request(request, history=history)
            assert set(turn.ids) == alive
            assert turn.undecided == []
            corpses += len(request["board"]["snakes"]) - len(alive)
    assert corpses > 100


@pytest.mark.parametrize("settings", GAMES, ids=str)
def test_a_single_request_is_never_wrong_and_doubts_only_what_it_cannot_tell(settings):
    corpses = 0
    for shown in arena_games(settings):
        for request, alive in shown:
            turn = read_move_request(request)
            assert alive <= set(turn.ids)
            assert set(turn.ids) - alive <= set(turn.undecided)
            assert all(is_undecidable(snake_id, request) for snake_id in turn.undecided)
            corpses += len(request["board"]["snakes"]) - len(alive)
    assert corpses > 100


def official_turns(game):
    """The official boards; a move that the official engine can't read is late here."""
    steps = list(transitions(game))
    yield PlayedTurn(steps[0].before, frozenset())
    for step in steps:
        if not step.over:
            moves = {
                snake["id"]: move
                for snake, move in zip(step.before["snakes"], step.moves, strict=True)
            }
            answered = {
                snake_id
                for snake_id, move in moves.items()
                if move in ("up", "down", "left", "right")
            }
            yield PlayedTurn(step.after, frozenset(answered))


def test_the_living_of_the_official_games_are_found_exactly():
    """On all boards that the engine made. The first ones of scenarios hold snakes that no game can
    have.
    """
    sightings = 0
    for recorded in games()[::12]:
        rules = {
            "ruleset": recorded["ruleset"],
            "hazard_damage": recorded["settings"]["damagePerTurn"],
        }
        histories = {}
        for request, alive in sent(list(official_turns(recorded)), **rules):
            turn = read_move_request(
                request, history=histories.setdefault(request["you"]["id"], LifeHistory())
            )
            if request["turn"] > recorded["start_turn"]:
                assert set(turn.ids) == alive
                sightings += len(alive)
    assert sightings > 2000


def snake(name, body, health=90, latency="41"):
    points = [{"x": x, "y": y} for x, y in body]
    return {"id": name, "health": health, "body": points, "latency": latency}


YOU = snake("you", [(5, 5), (5, 4), (5, 3)])
FAR = [(0, 0), (1, 0), (2, 0), (3, 0)]
BENT = [(9, 9), (9, 8), (8, 8), (8, 7)]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([snake("b", FAR), snake("c", BENT)], "LL"),
        ([snake("b", FAR, health=0), snake("c", BENT)], "DL"),
        ([snake("b", [(-1, 0), (0, 0), (1, 0)]), snake("c", BENT)], "DL"),
        # Whoever lies on a living snake is dead, and so is a head that meets a longer one.
        ([snake("b", [(5, 4), (6, 4), (7, 4), (8, 4)], latency="0"), snake("c", BENT)], "DL"),
        ([snake("b", [(9, 9), (9, 10), (8, 10)]), snake("c", BENT)], "DL"),
        ([snake("b", [(9, 9), (9, 10), (8, 10), (7, 10)]), snake("c", BENT)], "DD"),
        ([snake("b", [(2, 2), (2, 3), (1, 3), (1, 2), (2, 2)]), snake("c", BENT)], "DL"),
        # A timeout goes straight on, and whoever never ate has lost health on each turn.
        ([snake("b", [(0, 0), (1, 0), (1, 1), (2, 1)], latency="0"), snake("c", BENT)], "DL"),
        ([snake("b", FAR[:3], latency="0"), snake("c", BENT)], "DL"),
        # Late, or dead for longer; and a head on such a snake.
        ([snake("b", FAR, latency="0"), snake("c", BENT)], "UL"),
        ([snake("b", FAR, latency="0"), snake("c", [(1, 0), (1, 1), (0, 1), (0, 2)])], "UU"),
        ([snake("b", FAR, latency="0")], "L"),
        ([snake("b", FAR, latency="0"), snake("c", BENT, health=0)], "LD"),
    ],
)
def test_a_single_request_is_read_as_the_rules_allow(others, expected):
    sighting = Sighting.of([YOU, *others], turn=20, width=11, height=11, you=0, rules=ARENA)
    assert "".join(life.name[0] for life in lives_in(sighting)[1:]) == expected


def test_only_arenas_own_habits_are_taken_for_evidence_there():
    bent = snake("b", [(0, 0), (1, 0), (1, 1)], latency="0")
    sighting = Sighting.of([YOU, bent, snake("c", BENT)], turn=20, width=11, height=11, you=0)
    assert lives_in(sighting)[1] is Life.UNDECIDED


def test_in_constrictor_the_length_tells_who_moved():
    long_body = [(x, 9) for x in range(10)] + [(9, 8), (9, 7)]
    own = snake("you", [(x, 5) for x in range(11)] + [(10, 6)])
    short = snake("b", [(x, 1) for x in range(9)])
    rules = LifeRules(is_arena=True, is_constrictor=True)
    sighting = Sighting.of(
        [own, short, snake("c", long_body)], turn=10, width=11, height=11, you=0, rules=rules
    )
    assert [life.name for life in lives_in(sighting)] == ["LIVES", "DEAD", "LIVES"]


def seen(turn, you, late=FAR):
    own = snake("you", [(5, you), (5, you - 1), (5, you - 2)], health=100 - turn)
    others = [
        snake("b", late, latency="0", health=50),
        snake("c", [(x, turn % 11) for x in (9, 8, 7, 6)]),
    ]
    return Sighting.of([own, *others], turn=turn, width=11, height=11, you=0, rules=ARENA)


def test_an_older_turn_tells_who_has_stayed_where_it_was():
    history = LifeHistory()
    assert history.see(seen(20, 5))[1] is Life.UNDECIDED
    assert history.see(seen(25, 6))[1] is Life.DEAD


def test_the_same_turn_twice_is_no_evidence():
    history = LifeHistory()
    assert history.see(seen(20, 5)) == history.see(seen(20, 5))
    assert history.see(seen(20, 6))[1] is Life.UNDECIDED


def test_a_replay_from_an_earlier_turn_is_a_new_game():
    history = LifeHistory()
    history.see(seen(20, 5))
    assert history.see(seen(19, 6))[1] is Life.UNDECIDED


def test_a_sender_that_repeats_its_board_on_the_next_turn_proves_nothing():
    history = LifeHistory()
    history.see(seen(20, 5))
    assert history.see(seen(21, 5))[1] is Life.UNDECIDED


@pytest.mark.parametrize("settings", GAMES[:2], ids=str)
def test_the_end_tells_who_won_to_the_dead_too(settings):
    winners = 0
    for turns in played_games(12, seed=5, **settings):
        game = arena_game("g", ruleset=settings.get("ruleset", "standard"))
        for you in ("s0", "s1", "s2", "s3"):
            request, alive = end_request(turns, game, you)
            read = read_end_request(request)
            assert (set(read.ids) if read else set()) >= alive
            if alive:
                winners += set(read.ids) == alive
    assert winners > 20


def test_a_board_alone_marks_the_dead_that_it_shows():
    """`state_from_board(request["board"])`, without the turn, without `you`."""
    others = [
        snake("b", [(9, 9), (9, 10), (8, 10)]),
        snake("c", BENT),
        snake("d", [(-1, 0), (0, 0), (1, 0)], latency="0"),
    ]
    request_board = {"width": 11, "height": 11, "snakes": [YOU, *others], "food": [], "hazards": []}
    state = state_from_board(request_board)
    assert [CAUSE_NAMES[cause] for cause in state.arrays.cause[0]] == [
        "",
        "head-collision",
        "",
        "wall-collision",
    ]
    opening = [snake(name, [(1, 1)] * 3, latency="0") for name in "ab"]
    assert state_from_board({**request_board, "snakes": opening}).arrays.num_alive[0] == 2


def test_a_log_of_arenas_requests_is_read_as_the_game_that_was_played():
    for turns in played_games(3, seed=6, side=7):
        game = arena_game("g")
        requests = [request for request, _ in sent(turns) if request["you"]["id"] == "s0"]
        read = Recording(
            game, [*requests, end_request(turns[: len(requests) + 1], game, "s0").request]
        )
        for shown, turn in zip(read.boards(), turns, strict=False):
            living = {one["id"] for one in shown["snakes"] if not one["eliminatedCause"]}
            assert living == {
                one["id"] for one in turn.board["snakes"] if not one["eliminatedCause"]
            }
