"""Games that are read one after the other and exported, some of them a stranger's own make."""

from __future__ import annotations

from envs.battlesnake.recording import Recording
from serve.archive import reader
from tests.serve.archive.played import crowded_by_strangers, play, tell_all


def test_games_that_end_while_all_are_read_make_none_come_twice(store, monkeypatch):
    monkeypatch.setattr(reader, "_PAGE", 2)
    for seed in range(5):
        tell_all(store, "s", play(seed=seed), 0)
        assert store.flush()
    reading = store.every_game(live=False)
    found = [next(reading)["id"] for _ in range(2)]
    for seed in (5, 6, 7):
        tell_all(store, "s", play(seed=seed), 0)
        assert store.flush()
    assert found + [game["id"] for game in reading] == [f"game-{seed}" for seed in (4, 3, 2, 1, 0)]


def test_games_of_like_names_are_exported_to_files_of_their_own(store, tmp_path):
    long = "x" * 100
    names = ["игра", "бета", "test.1", "test:1", long, f"{long}y", "a--b", "a"]
    for name in names:
        game = play(seed=11)
        for request in [*game.requests[0], *game.ends]:
            request["game"]["id"] = name
        tell_all(store, "b--s" if name == "a" else "s", game, 0)
    assert store.flush()
    paths = list(store.export(tmp_path))
    assert sorted(Recording.read(path).game["id"] for path in paths) == sorted(names)
    assert all(path.parent == tmp_path and len(path.name) < 250 for path in paths)


def test_food_that_lies_off_the_board_is_not_kept(store, tmp_path):
    game = play(seed=1)
    for request in [*game.requests[0], *game.ends]:
        request["board"]["food"].insert(0, {"x": 60, "y": 0})
    tell_all(store, "s", game, 0)
    assert store.flush()
    (path,) = store.export(tmp_path)
    for board, request in zip(Recording.read(path).boards(), game.requests[0], strict=False):
        assert board["food"] == request["board"]["food"][1:]


def test_a_game_that_recordings_cannot_hold_does_not_keep_the_others_from_being_exported(
    store, tmp_path, caplog
):
    for seed in (1, 2, 3):
        tell_all(store, "s", crowded_by_strangers(seed) if seed == 2 else play(seed=seed), 0)
        assert store.flush()
    told = []
    assert [path.name for path in store.export(tmp_path, leave_out=told.append)] == [
        f"game-{seed}--s--you-0.jsonl" for seed in (3, 1)
    ]
    why = (
        "entry 63 is not a move request: ValueError 65 snakes so far; at most 64 take part in a"
        " game"
    )
    assert told == [f"left out the game game-2 of s: {why}"]
    list(store.export(tmp_path))
    assert caplog.messages == told
