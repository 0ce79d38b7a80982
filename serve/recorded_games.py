"""Finds recorded games in files, among those downloaded from Arena, and in a server's archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.opened_recording import open_recording, say_doubts
from envs.battlesnake.recording import Recording, recording_files
from envs.common.errors import ConfigError
from envs.common.outputs import kept_at
from envs.common.strangers.printable import file_name
from serve.archive.option import without_password
from serve.ladder.download import recording_path

if TYPE_CHECKING:
    from serve.archive.reader import GameArchive


def find_game(name: str, database: str, snake: str | None) -> tuple[Recording, str | None]:
    """Return the recording called `name`, and the id or name of its snake.

    `name` is a file, or the id of a game that was downloaded from Arena or is in the archive at
    `database`. `snake` is an id or a name in the game, or our server's name of its snake. In the
    last case None is returned, for the snake that the game was recorded for.

        Raises `ConfigError` if there is no such game, `RecordingError` for files that are no
        recordings, `GamesUnavailableError` if the archive can't be read, and
        `MissingDependencyError` without the extra that reads it."""
    if os.path.isdir(name):
        raise ConfigError(
            f"{name} is a folder.",
            next_commands={"to sum its games up": ("analyse", "--last", 10, name)},
        )
    file = _file(name)
    if file is not None:
        return open_recording(file), snake
    with closing(_archive(database)) as archive:
        bodies = archive.bodies(name) if archive.exists else []
        if not bodies:
            places = f"neither {kept_at('arena-games')} nor {without_password(database)}"
            raise ConfigError(
                f"there is no file {name}, and {places} has a game of this id.",
                next_commands={"to list those that are kept": ("games", "list")},
            )
        own = [body for body in bodies if snake in (body["snake"], body["you"])]
        if own:
            snake = None
        recording = _from_archive(archive, (own or bodies)[0])
        say_doubts(recording, name)
        return recording, snake


def _file(name: str) -> Path | None:
    """The file that is meant; None if it can only be the id of a game in an archive."""
    if os.path.exists(name) or Path(name).name != name:
        return Path(name)
    try:
        path = recording_path(Path(kept_at("arena-games")), name)
    except ConfigError:
        return None
    if path.exists():
        return path
    return None


def last_games(
    names: Sequence[str], database: str, snake: str | None
) -> Iterator[tuple[str, Callable[[], Recording], str | None]]:
    """Yield the name and the reader of each finished game, the newest first, and `snake` as
    `find_game` returns it.

    They come from the files and folders in `names`, or without any from the archive at `database`,
    restricted to games of `snake` and without the doctor's checks. A game of a rival, `snake`, that
    was also downloaded from Arena is read from there, because frames are complete; its name says
    so. Raises `ConfigError` for a missing path, and what `find_game` raises."""
    if names:
        paths = recording_files(names)
        for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
            yield path.name, partial(open_recording, path), snake
        return
    with closing(_archive(database)) as archive:
        if not archive.exists:
            raise ConfigError(
                f"there is no {database}; procsnake serve keeps its games in one. Or name a folder"
                " of recordings"
            )
        for game in archive.every_game(live=False):
            if game["is_check"] or snake not in (None, game["snake"], *game["snakes"]):
                continue
            file = _file(game["id"])
            if snake in (None, game["snake"]):
                yield f"{game['id']} (archive)", partial(_from_archive, archive, game), None
            elif file is None:
                yield f"{game['id']} (archive)", partial(_from_archive, archive, game), snake
            else:
                yield f"{game['id']} (fetched)", partial(Recording.read, file), snake


def files_of(names: Sequence[str], database: str, *, folder: Path) -> list[Path]:
    """Return the absolute paths of the files and folders in `names`, and of recordings of the games
    whose ids are among them.

    A game of the archive at `database` is written to `folder`, where it outlasts the archive.
    Raises what `find_game` raises."""
    paths = []
    for name in names:
        path = _file(name)
        if path is None:
            recording, _ = find_game(name, database, None)
            folder.mkdir(parents=True, exist_ok=True)
            # Whoever played chose the id, so it is made a file's name and nothing else.
            path = recording.write(folder / f"{file_name(name)}.jsonl")
        elif not os.path.exists(path):
            raise ConfigError(
                f"there is no {name}; name files or folders of recordings, or games by their ids"
            )
        paths.append(path.absolute())
    return paths


def _archive(database: str) -> GameArchive:
    # Whoever analyses a file needs no database.
    from serve.archive.reader import GameArchive

    return GameArchive(database)


def _from_archive(archive: GameArchive, game: Mapping[str, Any]) -> Recording:
    recording = archive.recording(game["id"], game["snake"], game["you"])
    if recording is None:
        raise ConfigError(f"the game {game['id']} has no turns")
    return recording
