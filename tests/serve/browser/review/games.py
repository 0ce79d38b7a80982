"""A recorded game to review, and analyses of it that cost nothing."""

from __future__ import annotations

import json
from functools import cache

from agents.measure.analysis.snake_game import game_of
from envs.battlesnake.recording import Recording
from envs.common.errors import ConfigError
from serve.browser.review.reviews import Reviews
from tests.agents.measure.analysis.throw_aways import kept
from tests.waiting import until

PATIENCE_S = 20.0


@cache
def lost_game():
    """The second shortest game with a proven throw-away, and the proof: its loser makes three
    mistakes.
    """
    return sorted(kept(), key=lambda game: len(game[0].requests))[1]


def text_of(recording: Recording) -> str:
    """The file of a recording."""
    lines = [recording.game, *recording.requests, *([recording.result] if recording.result else [])]
    return "".join(json.dumps(line) + "\n" for line in lines)


def changed(**parts) -> Recording:
    """The game with other `game` settings, so that it has another content."""
    recording = lost_game()[0]
    return Recording({**recording.game, **parts}, recording.requests, recording.result)


def in_no_time(recording, snake, tell):
    """A judge that says whose moves it was asked about."""
    tell(1, 2)
    return {"snake": {"id": snake, "name": game_of(recording, snake).name}}


def refuses(recording, snake, tell):
    raise ConfigError(f"{snake} is not to be judged")


def wait_for(reviews: Reviews, game_id: str, *states: str) -> None:
    """Wait until the sides of a game are in these states."""
    until(
        lambda: [side.state for side in reviews.sides(game_id)] == list(states), seconds=PATIENCE_S
    )
