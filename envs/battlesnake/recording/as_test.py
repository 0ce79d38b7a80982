"""Makes a test of a turn of a recording: the text of a pytest file."""

from __future__ import annotations

import pprint
import re
from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Board
from envs.battlesnake.recording.files import Recording, RecordingError
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.state import CAUSE_NAMES, MOVE_NAMES, head_cell, step_offset


def to_test(
    recording: Recording,
    turn: int,
    *,
    snake: str | None = None,
    agent: str = "flood",
    allowed: Sequence[str] | None = None,
) -> str:
    """Return the text of a pytest file that requires `agent` (as `agents.make` takes it) to choose
    an allowed move here.

    `snake` is the id or name of the snake that the agent plays. The default is the first snake that
    dies in this turn, or the first living one if none dies. `allowed` are the moves that pass. If
    the recorded move killed the snake, the default is all other moves that aren't certain death;
    otherwise it is the recorded move. For a single request it is all moves that aren't certain
    death, and the snake is the one that was asked.

    Raises `RecordingError` if there is no such turn or living snake, or if there is no move to ask
    for. If the position can't be set up, raises what `settings` and `state` raise."""
    board = recording.board(turn)
    recording.state(turn)  # the test will begin with it: better to fail here
    chosen = _pick_snake(recording, board, snake)
    moves = sorted(_wanted_moves(recording, board, chosen) if allowed is None else set(allowed))
    if allowed is None and not moves:
        raise RecordingError(_why_nothing_is_asked(recording, board, chosen))
    if not moves or not set(moves) <= set(MOVE_NAMES):
        raise RecordingError(
            f"allowed moves are {moves}; pass one or more of {', '.join(MOVE_NAMES)}"
        )
    request = recording.requests[recording.turns.index(board["turn"])]
    living = {snake["id"] for snake in board["snakes"] if not snake["eliminatedCause"]}
    shown = {
        **request["board"],
        "snakes": [snake for snake in request["board"]["snakes"] if snake["id"] in living],
    }
    position = {"turn": board["turn"], "board": shown}
    literal = pprint.pformat(
        {"game": recording.game, **position, "you": chosen},
        width=120,
        sort_dicts=False,
        compact=True,
    )
    title = re.sub(
        r"[^\w .-]",
        "",
        f"Turn {turn} of game {recording.game.get('id', '')}, played by {chosen.get('name', '')}",
    )
    return _TEST_FILE.format(title=title, request=literal, allowed=moves, turn=turn, agent=agent)


_TEST_FILE = '''"""{title}. Written by `procsnake replay to-test`."""

from __future__ import annotations

import agents
from envs.battlesnake.recording import Recording
from envs.battlesnake.state import MOVE_NAMES

REQUEST = {request}

ALLOWED = {allowed!r}


def test_turn_{turn}():
    position = Recording(REQUEST["game"], [REQUEST])
    you = [snake["id"] for snake in REQUEST["board"]["snakes"]].index(REQUEST["you"]["id"])
    decision = agents.make({agent!r}).act(position.state({turn}), you)
    assert MOVE_NAMES[decision.move] in ALLOWED
'''


def _pick_snake(recording: Recording, board: Board, wanted: str | None) -> dict[str, Any]:
    living = [snake for snake in board["snakes"] if not snake["eliminatedCause"]]
    if wanted is None and len(recording.turns) == 1:
        matching = [asked_snake(recording, board)]
    elif wanted is None:
        doomed = [snake for snake in living if _dies(recording, board, snake)]
        matching = doomed or living
    else:
        matching = [snake for snake in living if wanted in (snake["id"], snake.get("name"))]
    if not matching:
        known = ", ".join(str(snake.get("name") or snake["id"]) for snake in living)
        raise RecordingError(
            f"no living snake {wanted!r} on turn {board['turn']}; there are: {known or 'none'}"
        )
    return matching[0]


def asked_snake(recording: Recording, board: Board) -> dict[str, Any]:
    """Return the living snake whose request the recording holds for this board, or else the first
    living one.

    Raises `RecordingError` if none lives.
    """
    you = recording.requests[recording.turns.index(board["turn"])].get("you")
    own_id = you.get("id") if isinstance(you, Mapping) else None
    living = [snake for snake in board["snakes"] if not snake["eliminatedCause"]]
    if not living:
        raise RecordingError(f"no snake lives on turn {board['turn']}")
    return next((snake for snake in living if snake["id"] == own_id), living[0])


def _dies(recording: Recording, board: Board, snake: Mapping[str, Any]) -> bool:
    index = recording.turns.index(board["turn"]) + 1
    if index == len(recording.turns):
        return False
    after = {s["id"]: s for s in recording.boards()[index]["snakes"]}
    return bool(after[snake["id"]]["eliminatedCause"])


def _why_nothing_is_asked(recording: Recording, board: Board, snake: Mapping[str, Any]) -> str:
    turn = board["turn"]
    name = snake.get("name") or snake["id"]
    if len(recording.turns) == 1:
        return f"every move of {name} is certain death; say which pass: --allow up,down"
    if _dies(recording, board, snake):
        return (
            f"on turn {turn} every other move of {name} was certain death, too; take an earlier"
            " turn, or another snake"
        )
    return (
        f"no move of {name} is recorded on turn {turn}, whose board may be the last one; take an"
        " earlier turn"
    )


def _wanted_moves(recording: Recording, board: Board, snake: Mapping[str, Any]) -> set[str]:
    turn = board["turn"]
    played = recording.decisions(turn).get(snake["id"], {}).get("move")
    is_alone = len(recording.turns) == 1 and played is None
    if not is_alone and not _dies(recording, board, snake):
        return set() if played is None else {played}
    state = recording.state(turn)
    slot = [s["id"] for s in board["snakes"] if s["eliminatedCause"] in CAUSE_NAMES].index(
        snake["id"]
    )
    # Not `safe_moves`, which leaves a choice where there is none.
    targets = {
        name: head_cell(state.arrays, 0, slot) + step_offset(state.rules.width, k)
        for k, name in enumerate(MOVE_NAMES)
    }
    fatal = {
        name
        for name, cell in targets.items()
        if is_certain_death(state.arrays, 0, slot, state.rules, cell)
    }
    return targets.keys() - fatal - {played}
