"""What a server remembers of games: bounded, by game and snake, and forgotten when a game begins
again.
"""

from __future__ import annotations

from serve.timing.game_memory import GameMemory
from tests.envs.battlesnake.arena_shape import arena_game, end_request, move_requests, played_games


def remembered(memory, game, turn):
    with memory.record(game, turn) as record:
        return record.lives


def test_a_game_is_remembered_from_turn_to_turn_for_each_of_its_snakes():
    memory = GameMemory()
    ours = remembered(memory, ("g", "a"), 3)
    assert remembered(memory, ("g", "b"), 4) is not ours
    assert remembered(memory, ("g", "a"), 4) is ours


def test_a_game_is_forgotten_when_it_begins_or_its_turn_goes_back():
    memory = GameMemory()
    start = next(move_requests(next(played_games(1)), arena_game("g"))).request
    game = "g", start["you"]["id"]
    first = remembered(memory, game, 3)
    second = remembered(memory, game, 2)
    memory.start(start)
    third = remembered(memory, game, 3)
    assert len({id(first), id(second), id(third)}) == 3


def test_a_server_knows_exactly_who_lives_though_a_game_is_replayed():
    """A runner crashes in the middle of a game, and plays another game from turn 0 under the same
    ids.
    """
    memory = GameMemory()
    game = arena_game("g")
    first, second = played_games(2, seed=4, side=7)
    for turns in (first[: len(first) // 2], second):
        for request, alive in move_requests(turns, game):
            turn = memory.read_move(request)
            assert set(turn.ids) == alive
            assert turn.undecided == []
    for you in ("s0", "s1", "s2", "s3"):
        request, alive = end_request(second, game, you)
        final = memory.read_end(request)
        assert (set(final.ids) if final else set()) == alive


def test_a_request_that_fails_leaves_the_turn_as_it_was():
    memory = GameMemory()
    ours = remembered(memory, ("g", "a"), 3)
    try:
        with memory.record(("g", "a"), 900):
            raise ValueError("malformed")
    except ValueError:
        pass
    assert remembered(memory, ("g", "a"), 4) is ours


def test_only_so_many_games_are_kept_and_none_for_ever():
    now = 0.0
    memory = GameMemory(max_games=2, max_idle_s=10, clock=lambda: now)
    oldest = remembered(memory, ("1", "a"), 0)
    remembered(memory, ("2", "a"), 0)
    remembered(memory, ("3", "a"), 0)
    assert len(memory) == 2
    assert remembered(memory, ("1", "a"), 1) is not oldest
    now = 11.0
    remembered(memory, ("4", "a"), 0)
    assert len(memory) == 1
