"""Makes a test of a turn of a recording: the text of a pytest file."""

from __future__ import annotations

import pprint
import re
from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Board, Snake, is_dead, living_snakes
from envs.battlesnake.plain.board import has_known_fate
from envs.battlesnake.recording.files import Recording, RecordingError
from envs.battlesnake.safety import is_certain_death
from envs.battlesnake.state import MOVE_NAMES, head_cell, step_offset


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
    for. Also raises what `settings` and `state` raise."""
    board = recording.board(turn)
    recording.state(turn)  # the test will begin with it: better to fail here
    you = _pick_snake(recording, board, snake)
    if allowed is None:
        moves = sorted(_moves_to_require(recording, board, you))
        if not moves:
            raise RecordingError(_why_nothing_is_asked(recording, board, you))
    else:
        moves = sorted(set(allowed))
    if not moves or not set(moves) <= set(MOVE_NAMES):
        raise RecordingError(
            f"allowed moves are {moves}; pass one or more of {', '.join(MOVE_NAMES)}"
        )
    request = _request_of_test(recording, board, you)
    literal = pprint.pformat(request, width=120, sort_dicts=False, compact=True)
    title = f"Turn {turn} of game {recording.game.get('id', '')}, played by {you.get('name', '')}"
    return _TEST_FILE.format(
        title=re.sub(r"[^\w .-]", "", title),
        request=literal,
        allowed=moves,
        turn=turn,
        agent=agent,
    )


def _request_of_test(recording: Recording, board: Board, you: Snake) -> dict[str, Any]:
    """Return the request that the test sends: as it was recorded, with the living snakes only."""
    recorded_board = recording.requests[recording.turns.index(board["turn"])]["board"]
    ids = {snake["id"] for snake in living_snakes(board)}
    listed = [snake for snake in recorded_board["snakes"] if snake["id"] in ids]
    return {
        "game": recording.game,
        "turn": board["turn"],
        "board": {**recorded_board, "snakes": listed},
        "you": you,
    }


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


def _pick_snake(recording: Recording, board: Board, id_or_name: str | None) -> Snake:
    living = living_snakes(board)
    if id_or_name is None and len(recording.turns) == 1:
        matching = [asked_snake(recording, board)]
    elif id_or_name is None:
        doomed = [snake for snake in living if _dies(recording, board, snake)]
        matching = doomed or living
    else:
        matching = [snake for snake in living if id_or_name in (snake["id"], snake.get("name"))]
    if not matching:
        names = ", ".join(str(snake.get("name") or snake["id"]) for snake in living)
        raise RecordingError(
            f"no living snake {id_or_name!r} on turn {board['turn']}; there are: {names or 'none'}"
        )
    return matching[0]


def asked_snake(recording: Recording, board: Board) -> Snake:
    """Return the living snake whose request the recording holds for this board, or else the first
    living one.

    Raises `RecordingError` if none lives.
    """
    you = recording.requests[recording.turns.index(board["turn"])].get("you")
    living = living_snakes(board)
    if not living:
        raise RecordingError(f"no snake lives on turn {board['turn']}")
    if isinstance(you, Mapping):
        for snake in living:
            if snake["id"] == you.get("id"):
                return snake
    return living[0]


def _dies(recording: Recording, board: Board, snake: Snake) -> bool:
    index = recording.turns.index(board["turn"]) + 1
    if index == len(recording.turns):
        return False
    return any(
        is_dead(after)
        for after in recording.boards()[index]["snakes"]
        if after["id"] == snake["id"]
    )


def _why_nothing_is_asked(recording: Recording, board: Board, snake: Snake) -> str:
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


def _moves_to_require(recording: Recording, board: Board, snake: Snake) -> set[str]:
    """Return the recorded move, or all others that aren't certain death if it killed the snake or
    if none is recorded of a single request.
    """
    turn = board["turn"]
    recorded_move = recording.decisions(turn).get(snake["id"], {}).get("move")
    is_single_request = len(recording.turns) == 1 and recorded_move is None
    if not is_single_request and not _dies(recording, board, snake):
        if recorded_move is None:
            return set()
        return {recorded_move}
    state = recording.state(turn)
    ids_by_slot = [one["id"] for one in board["snakes"] if has_known_fate(one)]
    slot = ids_by_slot.index(snake["id"])
    head = head_cell(state.arrays, 0, slot)
    moves = set()
    # Not `safe_moves`, which leaves a choice where there is none.
    for move, name in enumerate(MOVE_NAMES):
        target = head + step_offset(state.rules.width, move)
        if not is_certain_death(state.arrays, 0, slot, state.rules, target):
            moves.add(name)
    return moves - {recorded_move}
