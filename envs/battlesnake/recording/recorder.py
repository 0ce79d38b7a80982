"""Writes a recording while its game is played."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from envs.common.errors import ConfigError
from envs.common.whole_files import not_through_links

EXTRAS = "procsnake"
"""The key of a request under which recordings keep what the webhook has no field for."""


def unfinished(path: str | os.PathLike[str]) -> Path:
    """Return the path of the recording for `path` while its game is running."""
    return Path(path).with_name(Path(path).name + ".part")


@contextmanager
def _as_config_error(path: Path) -> Iterator[None]:
    """Turn missing rights, a full disk and the like into a `ConfigError` of one line."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"the recording {path} can't be written: {error.strerror or error}. Choose another"
            " place"
        ) from error


class Recorder:
    """Writes a recording while the game is played. It writes `<path>.part`, which `finish` renames
    to `path`.

    Use it as a context manager. If the game breaks off, the `.part` file stays, and
    `Recording.read` can still read it. Raises `ConfigError` where nothing can be written, and once
    the disk is full."""

    def __init__(self, path: str | os.PathLike[str], game: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._part = unfinished(self.path)
        with _as_config_error(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            # Without a buffer, which a full disk would keep from being closed.
            self._file = open(  # noqa: SIM115
                self._part, "wb", buffering=0, opener=not_through_links
            )
        self._buried: set[str] = set()
        try:
            self._write(game)
        except ConfigError:
            self._file.close()
            raise

    def turn(
        self,
        request: Mapping[str, Any],
        *,
        decisions: Mapping[str, Mapping[str, Any]] | None = None,
        dead: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Add one board.

        `request` is the move request (`webhook.move_request`), `decisions` what each snake decided
        on this board, by id. `dead` are all dead snakes of this board in the form of
        `plain.board_from_state`, whenever they died; each is written only once."""
        extras: dict[str, Any] = {}
        if decisions:
            extras["decisions"] = dict(decisions)
        newly_dead = [snake for snake in dead if snake["id"] not in self._buried]
        if newly_dead:
            extras["eliminated"] = newly_dead
            self._buried.update(snake["id"] for snake in newly_dead)
        if extras:
            request = {**request, EXTRAS: extras}
        self._write(request)

    def finish(self, *, winner_id: str = "", winner_name: str = "", is_draw: bool = False) -> Path:
        """Add the result and give the file its final name, which is returned."""
        return self.close_with(
            {"winnerId": winner_id, "winnerName": winner_name, "isDraw": is_draw}
        )

    def close_with(self, result: Mapping[str, Any] | None) -> Path:
        """Finish the file with a result in its own form; None leaves it out, as in a game that was
        cut off.
        """
        if result is not None:
            self._write(result)
        with _as_config_error(self.path):
            self._file.close()
            os.replace(self._part, self.path)
        return self.path

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with _as_config_error(self.path):
            while text:
                text = text[self._file.write(text) :]

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
