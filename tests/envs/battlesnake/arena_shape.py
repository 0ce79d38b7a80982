"""Turns games into the requests that Arena sends: eliminated snakes stay in `board.snakes`,
unmarked, as they died.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, State
from envs.battlesnake.webhook import NO_LOOK

_STRAIGHT_ON = -1


class PlayedTurn(NamedTuple):
    """A board with its eliminated snakes marked, and who answered the board before it in time."""

    board: dict[str, Any]
    answered: frozenset[str]


class Shown(NamedTuple):
    """A request in Arena's shape, and the ids of those who live in it."""

    request: dict[str, Any]
    alive: frozenset[str]


def arena_game(
    game_id: str, *, ruleset: str = "standard", hazard_damage: int = 15
) -> dict[str, Any]:
    """The `game` object that Arena sends."""
    settings = {
        "foodSpawnChance": 15,
        "minimumFood": 1,
        "hazardDamagePerTurn": hazard_damage,
        "royale": {"shrinkEveryNTurns": 25 if ruleset == "royale" else 0},
        "squad": {
            "allowBodyCollisions": False,
            "sharedElimination": False,
            "sharedHealth": False,
            "sharedLength": False,
        },
    }
    ruleset_object = {"name": ruleset, "version": "v1.0.0", "settings": settings}
    return {"id": game_id, "ruleset": ruleset_object, "map": "", "timeout": 500, "source": ""}


def is_alive(snake: Mapping[str, Any]) -> bool:
    return not snake["eliminatedCause"]


def shown_turns(
    turns: Iterable[PlayedTurn],
) -> Iterator[tuple[int, list[dict[str, Any]], frozenset[str], dict[str, Any]]]:
    """(turn, snakes in webhook form, who lives, board) of every turn."""
    corpses: dict[str, dict[str, Any]] = {}
    for board, answered in turns:
        snakes = []
        for snake in board["snakes"]:
            latency = "41" if snake["id"] in answered else "0"
            shown = _shown(snake, latency)
            if snake["id"] in corpses:
                shown = corpses[snake["id"]]
            elif not is_alive(snake):
                # What it died with is shown once; the body stays for the rest of the game.
                corpses[snake["id"]] = _shown(snake, "0")
            snakes.append(shown)
        yield (
            board["turn"],
            snakes,
            frozenset(s["id"] for s in board["snakes"] if is_alive(s)),
            board,
        )


def move_requests(turns: Sequence[PlayedTurn], game: Mapping[str, Any]) -> Iterator[Shown]:
    """What every living snake is sent on every turn of a game that goes on."""
    for turn, snakes, alive, board in shown_turns(turns):
        if len(alive) < min(2, len(snakes)):
            return
        shown_board = {key: board[key] for key in ("width", "height", "food", "hazards")} | {
            "snakes": snakes
        }
        for snake in snakes:
            if snake["id"] in alive:
                yield Shown(
                    {"game": dict(game), "turn": turn, "board": shown_board, "you": snake}, alive
                )


def end_request(turns: Sequence[PlayedTurn], game: Mapping[str, Any], you: str) -> Shown:
    """What a snake, dead or not, is sent at the end."""
    turn, snakes, alive, board = list(shown_turns(turns))[-1]
    shown_board = {key: board[key] for key in ("width", "height", "food", "hazards")} | {
        "snakes": snakes
    }
    own = next(snake for snake in snakes if snake["id"] == you)
    return Shown({"game": dict(game), "turn": turn, "board": shown_board, "you": own}, alive)


def is_undecidable(snake_id: str, request: Mapping[str, Any]) -> bool:
    """Whether one request can't tell if the snake lives.

    Either it looks like a timeout, which goes straight on, or its head lies on such a snake.
    """
    bodies = {snake["id"]: snake["body"] for snake in request["board"]["snakes"]}
    silent = {snake["id"] for snake in request["board"]["snakes"] if snake["latency"] == "0"}
    head, neck, third = bodies[snake_id][:3]
    is_straight = all(head[axis] - neck[axis] == neck[axis] - third[axis] for axis in "xy")
    return (snake_id in silent and is_straight) or any(
        head in bodies[other] for other in silent - {snake_id}
    )


def _shown(snake: Mapping[str, Any], latency: str) -> dict[str, Any]:
    return {
        "id": snake["id"],
        "name": snake["id"],
        "latency": latency,
        "health": snake["health"],
        "body": snake["body"],
        "head": snake["body"][0],
        "length": len(snake["body"]),
        "shout": "",
        "squad": "",
        "customizations": dict(NO_LOOK),
    }


def played_games(
    num_games: int,
    *,
    seed: int = 0,
    side: int = 11,
    num_snakes: int = 4,
    time_outs: float = 0.08,
    carelessness: float = 0.05,
    **settings: Any,
) -> Iterator[list[PlayedTurn]]:
    """Games by random moves that are safe but for a share of `carelessness`; a timeout goes
    straight on.

    Each ends with the board on which it was over.
    """
    state = State(1, width=side, height=side, num_snakes=num_snakes, settings=Settings(**settings))
    state.seed(seed)
    ids = [f"s{slot}" for slot in range(num_snakes)]
    dice = random.Random(seed)
    rng = np.random.default_rng(seed)
    for _ in range(num_games):
        start_games(state)
        turns = [PlayedTurn(board_from_state(state, 0, ids), frozenset())]
        running = np.ones(1, bool)
        while running.all():
            late = {slot for slot in range(num_snakes) if dice.random() < time_outs}
            moves = _random_moves(state, rng, carelessness)
            moves[0, sorted(late)] = _STRAIGHT_ON
            alive = {slot for slot in range(num_snakes) if state.arrays.cause[0, slot] == ALIVE}
            play_turn(state, moves, running)
            answered = frozenset(ids[slot] for slot in alive - late)
            turns.append(PlayedTurn(board_from_state(state, 0, ids), answered))
        yield turns


def _random_moves(state: State, rng: np.random.Generator, carelessness: float) -> np.ndarray:
    slots = np.arange(state.num_snakes)
    safe = safe_moves(state, np.zeros_like(slots), slots)
    considered = safe | (rng.random((state.num_snakes, 1)) < carelessness)
    weights = rng.random((state.num_snakes, 4)) * considered
    return weights.argmax(axis=1).reshape(1, -1).astype(np.int8)
