"""Games as an engine plays them, request by request, for whatever keeps or watches them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import agents
from agents.agent import Decision
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, State
from envs.battlesnake.webhook import game_object, move_request, read_end_request, read_move_request
from serve.archive.store import GameStore


@dataclass
class Played:
    """A whole game: what the engine sent to each snake, what it answered, and what became of it."""

    ids: list[str]
    requests: list[list[dict[str, Any]]]
    """By slot, a request a turn while the snake lived."""
    moves: list[list[int]]
    ends: list[dict[str, Any]] = field(default_factory=list)
    """By slot, the body of `/end`."""
    causes: list[str] = field(default_factory=list)
    """By slot, "" for who survived."""

    @property
    def game_id(self) -> str:
        return self.requests[0][0]["game"]["id"]

    def events(self, slot: int) -> Iterator[tuple[str, dict[str, Any], int | None]]:
        """("start" | "move" | "end", body, move)."""
        yield "start", self.requests[slot][0], None
        for request, move in zip(self.requests[slot], self.moves[slot], strict=True):
            yield "move", request, move
        yield "end", self.ends[slot], None


def play(*, seed=0, num_snakes=2, side=7, agent="greedy", max_turns=400, **settings) -> Played:
    """A game that one agent plays in all seats, `random` for its last one."""
    state = State(
        1,
        width=side,
        height=side,
        num_snakes=num_snakes,
        settings=Settings(solo=num_snakes == 1, **settings),
    )
    state.seed(seed)
    running = start_games(state)
    ids = [f"you-{slot}" for slot in range(num_snakes)]
    names = [f"snake {slot}" for slot in range(num_snakes)]
    game = game_object(state.settings, f"game-{seed}")
    players = [agents.make(agent) for _ in range(num_snakes - 1)] + [
        agents.make("random" if num_snakes > 1 else agent)
    ]
    played = Played(ids, [[] for _ in ids], [[] for _ in ids])

    def request(slot):
        return move_request(state, 0, game=game, ids=ids, names=names, you=slot)

    while running[0] and state.arrays.turn[0] < max_turns:
        moves = np.zeros((1, num_snakes), np.int8)
        for slot in np.flatnonzero(state.arrays.cause[0] == ALIVE):
            moves[0, slot] = players[slot].act(state.copy(), int(slot)).move
            played.requests[slot].append(request(slot))
            played.moves[slot].append(int(moves[0, slot]))
        play_turn(state, moves, running)
    played.ends = [request(slot) for slot in range(num_snakes)]
    played.causes = [CAUSE_NAMES[cause] for cause in state.arrays.cause[0]]
    return played


@cache
def uneven_game(num_snakes: int = 4) -> Played:
    """A game in which the first of our snakes dies well before the second, which lives longest."""
    for seed in range(100):
        game = play(seed=seed, num_snakes=num_snakes, side=9)
        lasted = [len(requests) for requests in game.requests]
        if lasted[0] + 5 < lasted[1] == max(lasted):
            return game
    raise AssertionError("of 100 games none is such a one")


def crowded_by_strangers(seed: int, num_turns: int = 70) -> Played:
    """A game that recordings can't hold, as only a stranger plays it: each turn shows another
    opponent.
    """
    first = play(seed=seed).requests[0][0]
    you, other = first["board"]["snakes"]
    requests = [
        {
            **first,
            "turn": turn,
            "board": {**first["board"], "snakes": [you, {**other, "id": f"stranger-{turn}"}]},
        }
        for turn in range(num_turns)
    ]
    return Played([you["id"]], [requests], [[0] * num_turns], [requests[-1]])


def tell(store: GameStore, snake: str, event: tuple[str, dict[str, Any], int | None]) -> None:
    """Hand one event to a store, as the server does."""
    kind, body, move = event
    if kind == "end":
        store.ended(snake, body, read_end_request(body))
    elif kind == "start":
        store.started(snake, read_move_request(body), body)
    else:
        share = np.full(4, 0.25, np.float32)
        store.moved(
            snake,
            read_move_request(body),
            body,
            Decision(move, share, 0.5, {"depth": 3}),
            latency_ms=2.0,
        )


def tell_all(store: GameStore, snake: str, played: Played, slot: int) -> None:
    """Hand a whole game to a store."""
    for event in played.events(slot):
        tell(store, snake, event)
