"""Games by their ids, files and folders, as `train --from-games` takes them."""

from __future__ import annotations

import pytest

from envs.battlesnake.recording import Recording, recording_files
from envs.common.errors import ConfigError
from serve.archive.store import GameStore
from serve.recorded_games import files_of, find_game
from tests.serve.archive.played import play, tell_all


@pytest.fixture
def archive(tmp_path):
    """An archive with a game, as a server of ours has kept it: its address and the game's id."""
    url = f"sqlite:///{tmp_path / 'games.db'}"
    game = play(seed=1)
    store = GameStore(url)
    tell_all(store, "greedy", game, 0)
    store.flush()
    store.close()
    return url, game.game_id


def test_a_kept_game_outlives_its_archive_as_a_recording(archive, tmp_path):
    url, game_id = archive
    (path,) = files_of([game_id], url, folder=tmp_path / "learn")
    kept, _ = find_game(game_id, url, None)
    (tmp_path / "games.db").unlink()
    assert path.parent == tmp_path / "learn"
    assert Recording.read(path).boards() == kept.boards()
    assert [Recording.read(path).moves_played(n) for n in range(3)] == [
        kept.moves_played(n) for n in range(3)
    ]


def test_games_of_like_names_become_files_of_their_own(tmp_path):
    url = f"sqlite:///{tmp_path / 'games.db'}"
    names = ["test.1", "test:1", "x" * 90]
    store = GameStore(url)
    for name in names:
        game = play(seed=11)
        for request in [*game.requests[0], *game.ends]:
            request["game"]["id"] = name
        tell_all(store, "greedy", game, 0)
    store.close()
    paths = files_of(names, url, folder=tmp_path / "learn")
    assert [Recording.read(path).game["id"] for path in paths] == names


def test_files_and_folders_are_taken_as_they_are(archive, tmp_path, monkeypatch):
    url, game_id = archive
    (made,) = files_of([game_id], url, folder=tmp_path / "learn")
    monkeypatch.chdir(tmp_path)
    assert files_of(["learn", made], url, folder=tmp_path / "other") == [tmp_path / "learn", made]
    assert recording_files([tmp_path / "learn", made]) == [made, made]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("game_id", ["x" * 256, "a\0b"])
def test_a_game_may_have_an_id_that_no_file_can_have(tmp_path, game_id):
    url = f"sqlite:///{tmp_path / 'games.db'}"
    game = play(seed=11)
    for request in [*game.requests[0], *game.ends]:
        request["game"]["id"] = game_id
    store = GameStore(url)
    tell_all(store, "greedy", game, 0)
    store.close()
    kept = game_id.replace("\0", "\ufffd")
    assert find_game(kept, url, None)[0].game["id"] == kept
    with pytest.raises(ConfigError, match="there is no file"):
        find_game(f"{game_id}y", url, None)


class Empty:
    """An archive without games."""

    exists = True
    bodies = staticmethod(lambda _: [])
    close = staticmethod(lambda: None)


def test_an_archive_that_lacks_a_game_is_named_without_its_password(monkeypatch):
    monkeypatch.setattr("serve.recorded_games._archive", lambda _: Empty)
    with pytest.raises(
        ConfigError, match=r"nor postgresql://ada:\*\*\*@h/games has a game of this id"
    ):
        find_game("nobody", "postgresql://ada:s3cret@h/games", None)


@pytest.mark.parametrize("name", ["nobody", "../x", "no/such/folder"])
def test_what_is_nowhere_is_said(archive, tmp_path, name):
    with pytest.raises(ConfigError, match="there is no"):
        files_of([name], archive[0], folder=tmp_path / "learn")
