"""Downloads games as frames, page by page, and makes recordings of them. Partial downloads are kept
for the next try.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from envs.battlesnake.plain import living_snakes
from envs.battlesnake.recording import Recording, deviations
from envs.battlesnake.settings import Settings
from envs.battlesnake.webhook import game_object
from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import not_through_links
from serve.ladder.client import PAGE, ArenaClient
from serve.ladder.errors import ArenaError, StrangeAnswerError
from serve.ladder.records import BOARDS, FAILED, OVER, GameRow
from serve.ladder.royale import sides_that_moved, ways_that_fit

MAX_TURNS = 5000
"""Arena ends games there."""
_SPARE_FRAMES = 2
_MAX_PART_BYTES = 1 << 28
_MAX_DEVIATIONS = 20
_GAME_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SETTINGS = {
    "standard": Settings(hazard_damage=15),
    "royale": Settings(ruleset="royale", hazard_damage=14),
    "constrictor": Settings(
        ruleset="constrictor", food_spawn_chance=0, minimum_food=0, hazard_damage=15
    ),
    "snail": Settings(map="snail_mode", hazard_damage=14),
    "solo": Settings(ruleset="solo", hazard_damage=15),
}
"""The rules of Arena's kinds of games, as its public source has them."""


class UnfinishedGameError(ArenaError):
    """A game can't be downloaded, because it is running, never ends, or its runner has died."""


@dataclass(frozen=True)
class Fetched:
    """A game on disk. `check` compares it with our rules in words; `deviations` lists where it
    deviates.
    """

    game: str
    file: str
    turns: int
    check: str
    deviations: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs, JSON-able."""
        return asdict(self)


def is_game_id(text: str) -> bool:
    """Return whether a text looks like the id of one of Arena's games."""
    return _GAME_ID.fullmatch(text) is not None


def recording_path(folder: Path, game_id: str) -> Path:
    """Return the path of a game's recording. Raises `ConfigError` for an id that isn't a UUID."""
    if not is_game_id(game_id):
        raise ConfigError(
            f"{game_id[:80]!r} is not a game's id, which looks like"
            " 3b241101-e2bb-4255-8caf-4136c566a962"
        )
    return folder / f"{game_id.lower()}.jsonl"


def fetch(
    client: ArenaClient, game_id: str, folder: Path, *, row: GameRow | None = None
) -> Fetched:
    """Download a finished game, write its recording to `folder`, and play it again by our rules.

    `row` is the game's entry in a list, which is requested if missing. Frames of an earlier try
    in `<game>.frames.part` aren't downloaded again. Raises `UnfinishedGameError` for a game that
    is running, was broken off or has too many turns, `StrangeAnswerError` for unreadable frames,
    and what `ArenaClient` raises."""
    path = recording_path(folder, game_id)
    about = client.game(game_id)
    if about.get("Status") not in OVER:
        raise UnfinishedGameError(
            f"game {game_id} is {about.get('Status')!s:.20}; fetch it when it is over"
        )
    # The board viewer calls a game complete that has failed.
    row = row or client.details(game_id)
    if row.status == FAILED:
        raise UnfinishedGameError(
            f"game {game_id} failed: Arena's runner died, and it has no result; there is nothing to"
            " fetch"
        )
    if not row.is_over:
        raise UnfinishedGameError(f"game {game_id} is {row.status:.20}; there is nothing to fetch")
    kind = row.game_type
    size = f"{about.get('Width')}x{about.get('Height')}"
    if size not in BOARDS or kind not in _SETTINGS:
        raise StrangeAnswerError(
            f"game {game_id} is a {kind!r:.20} on {size:.20}, which is unknown; look for a newer"
            " procsnake"
        )
    part = path.with_suffix(".frames.part")
    frames = _all_frames(client, game_id, part)
    recording = recording_of(
        game_id, frames, width=about["Width"], height=about["Height"], game_type=kind
    )
    recording.write(path)
    part.unlink()
    return checked(recording, path)


def recording_of(
    game_id: str, frames: list[Any], *, width: int, height: int, game_type: str
) -> Recording:
    """Return the recording of a game's frames. Raises `RecordingError` if they are malformed."""
    recording = Recording.from_frames({"Frames": frames}, width=width, height=height)
    game = game_object(_SETTINGS[game_type], game_id, source="arena")
    requests = [{**request, "game": game} for request in recording.requests]
    last = recording.boards()[-1]
    living = living_snakes(last)
    has_rivals = len(last["snakes"]) > 1
    winner_id = winner_name = ""
    if has_rivals and len(living) == 1:
        winner_id = living[0]["id"]
        winner_name = living[0].get("name", "")
    result = {
        "winnerId": winner_id,
        "winnerName": winner_name,
        "isDraw": has_rivals and len(living) != 1,
    }
    return Recording(game, requests, result)


def checked(recording: Recording, path: Path) -> Fetched:
    """Play a game again by our rules and say how it compares. At most 20 deviations are listed."""
    differences = [str(one) for one in islice(deviations(recording), _MAX_DEVIATIONS)]
    turns = len(recording.turns) - 1
    game = recording.game
    if differences:
        check = f"deviates from our rules, first on {differences[0]}"
    else:
        check = f"all {turns} turns follow the rules"
    if game["ruleset"]["name"] == "royale":
        check += f"; {_of_walls(game['id'], sides_that_moved(recording))}"
    return Fetched(game["id"], str(path), turns, check, differences)


def _of_walls(game_id: str, sides: list[int]) -> str:
    """Say whether royale's walls, which moved in from these sides, follow from the game's id."""
    if not sides:
        return "no wall has moved"
    ways = ways_that_fit(game_id, sides)
    if not ways:
        return f"its {len(sides)} walls don't follow from its id by any way that is known"
    return f"its {len(sides)} walls are those of its id ({' or '.join(ways)})"


def _all_frames(client: ArenaClient, game_id: str, part: Path) -> list[Any]:
    """All frames of a game: those on disk, and those that Arena has beyond them. Each page is on
    disk before the next is asked for.
    """
    frames = _frames_on_disk(part)
    with _open(part) as file:
        for page in _pages(client, game_id, len(frames)):
            _check_page(page, len(frames), game_id)
            file.write("".join(json.dumps(frame, separators=(",", ":")) + "\n" for frame in page))
            file.flush()
            os.fsync(file.fileno())
            frames += page
            if len(frames) > MAX_TURNS + _SPARE_FRAMES:
                raise UnfinishedGameError(
                    f"game {game_id} has more than {MAX_TURNS} turns, where Arena ends games. What"
                    f" came can be deleted: {part}"
                )
    return frames


def _pages(client: ArenaClient, game_id: str, offset: int) -> Iterator[list[Any]]:
    """A game's pages; one that isn't full is the last."""
    while True:
        page = client.frames(game_id, offset=offset)
        offset += len(page)
        yield page
        if len(page) < PAGE:
            return


def _check_page(page: list[Any], offset: int, game_id: str) -> None:
    for turn, frame in enumerate(page, offset):
        number = frame.get("Turn") if isinstance(frame, dict) else None
        if number != turn:
            raise StrangeAnswerError(
                f"frame {turn} of game {game_id} is of turn {number!r:.20}; frames are missing or"
                " in disorder"
            )


def _frames_on_disk(part: Path) -> list[Any]:
    """The frames of an earlier try. What a crash cut short is dropped, on disk, too."""
    if not part.exists():
        return []
    frames: list[Any] = []
    whole = 0
    try:
        for line in read_text(part, _MAX_PART_BYTES).splitlines(keepends=True):
            frame = parse_json(line)
            if (
                not line.endswith("\n")
                or not isinstance(frame, dict)
                or frame.get("Turn") != len(frames)
            ):
                break
            frames.append(frame)
            whole += len(line.encode())
    except (ValueError, OSError):
        pass  # From here on it is fetched anew.
    with _writing(part), open(part, "r+b", opener=not_through_links) as file:
        file.truncate(whole)
    return frames


def _open(part: Path) -> Any:
    with _writing(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        return open(part, "a", encoding="utf-8", opener=not_through_links)


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{part} can't be written: {error.strerror or error}. Choose another --out"
        ) from error
