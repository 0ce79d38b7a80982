"""Keeps the results of an evaluation in the run's folder, as `evaluation.json`, which the run's
report reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.bundle import CARD, MAX_FILE_BYTES
from agents.measure.evaluation import MatchupScore
from agents.measure.evaluation.episodes import WorldScore
from envs.battlesnake.settings import Settings
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole

RECORD = "evaluation.json"
MAX_BYTES = 1 << 20
_MAX_COUNT = 1 << 53
"""Up to here whole numbers are exact as floats. Nobody plays so many games."""


def board_of(width: int, height: int, settings: Settings) -> dict[str, Any]:
    """Return a record's `board`: everything but the players that results depend on."""
    return {"width": width, "height": height, **asdict(settings)}


STANDARD_BOARD = board_of(11, 11, Settings())


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """The results of one policy against one group of opponents after another."""

    policy: str
    """The SHA-256 of the bundle's `policy.onnx`."""
    games: int
    """The number of games against each group."""
    scores: Sequence[MatchupScore]
    board: dict[str, Any]
    """The board: `width`, `height` and the fields of `Settings`, as `board_of` makes it."""

    @property
    def unusual(self) -> str:
        """Non-standard settings of the game as text, such as ", minimum_food 100", without the
        board's size, the ruleset and the map; "" if there are none.
        """
        names = STANDARD_BOARD.keys() - {"width", "height", "ruleset", "map"}
        text = ""
        for name, usual in STANDARD_BOARD.items():
            if name in names and self.board[name] != usual:
                text += f", {name} {self.board[name]}"
        return text

    def write(self, run: Path) -> Path:
        """Write the record into the run's folder and return its path."""
        key = {"policy": self.policy, "games": self.games}
        data = {"key": key, "board": self.board, "scores": [asdict(score) for score in self.scores]}
        write_whole(run / RECORD, json.dumps(data, indent=2) + "\n")
        return run / RECORD


@dataclass(frozen=True, kw_only=True)
class WorldRecord:
    """The results of one policy in another world than Battlesnake, beside random play, in the same
    file.
    """

    policy: str
    """The SHA-256 of the bundle's `policy.onnx`."""
    scores: Sequence[WorldScore]

    def write(self, run: Path) -> Path:
        """Write the record into the run's folder and return its path."""
        data = {
            "key": {"policy": self.policy},
            "episodes": [asdict(score) for score in self.scores],
        }
        write_whole(run / RECORD, json.dumps(data, indent=2) + "\n")
        return run / RECORD


def read_world_record(run: Path) -> WorldRecord | None:
    """Return the run's record of another world than Battlesnake.

    Returns None if the record is missing or unreadable, is about games against opponents, or is
    about another policy than the run's last export."""
    try:
        data = parse_json(read_text(run / RECORD, MAX_BYTES))
        scores = [_world_score(**score) for score in data["episodes"]]
        record = WorldRecord(policy=str(data["key"]["policy"]), scores=scores)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if record.policy != policy_of(run):
        return None
    return record


def _world_score(
    *,
    player: str,
    world: str,
    episodes: float,
    mean_length: float,
    mean_return: float,
    interval: Any,
) -> WorldScore:
    """The score with values of the right types. Raises `ValueError` or `TypeError` if one can't
    be.
    """
    low, high = map(_number, interval)
    return WorldScore(
        player=str(player),
        world=str(world),
        episodes=_count(episodes, 1),
        mean_return=_number(mean_return),
        interval=(low, high),
        mean_length=_number(mean_length),
    )


def _matchup_score(
    *,
    agent: str,
    opponents: list[str],
    games: int,
    wins: int,
    draws: int,
    capped: int,
    mean_turns: float,
    mean_length: float,
    causes: dict[str, int],
    points: float,
) -> MatchupScore:
    """The score with values of the right types. Raises `ValueError` or `TypeError` if one can't
    be.
    """
    num_games = _count(games, 1)
    return MatchupScore(
        agent=str(agent),
        opponents=[str(opponent) for opponent in opponents],
        games=num_games,
        wins=_count(wins, 0, num_games),
        draws=_count(draws, 0, num_games),
        capped=_count(capped, 0, num_games),
        mean_turns=_number(mean_turns),
        mean_length=_number(mean_length),
        causes={str(cause): _count(deaths, 0) for cause, deaths in causes.items()},
        points=_number(points),
    )


def _count(value: float, least: int, most: int = _MAX_COUNT) -> int:
    if not least <= value <= most:
        raise ValueError(f"a count is {value!r:.20}; it must be from {least} to {most}")
    return int(value)


def _number(value: float) -> float:
    if not -_MAX_COUNT <= value <= _MAX_COUNT:
        raise ValueError(f"a figure is {value!r:.20}, which no evaluation has")
    return float(value)


def policy_of(run: Path) -> str | None:
    """Return the SHA-256 of the policy that the run in folder `run` has exported; None if there is
    none.
    """
    try:
        card = parse_json(read_text(run / "bundle" / CARD, MAX_FILE_BYTES[CARD]))
        return str(card["files"]["policy.onnx"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_record(run: Path) -> EvaluationRecord | None:
    """Return the run's record of games against opponents.

    Returns None if the record is missing or unreadable, or is about another policy than the run's
    last export."""
    try:
        data = parse_json(read_text(run / RECORD, MAX_BYTES))
        scores = [_matchup_score(**score) for score in data["scores"]]
        key = data["key"]
        record = EvaluationRecord(
            policy=str(key["policy"]),
            games=_count(key["games"], 1),
            scores=scores,
            board={**STANDARD_BOARD, **data["board"]},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if record.policy != policy_of(run):
        return None
    return record
