"""Reads recorded games in Arena's shape, where the dead stay in `board.snakes`, and counts what is
read wrongly.

    python -m tests.benchmarks.arena_lives --games 10000

Four snakes play by random moves, 8 % of which are late, and every tenth game is begun again from
turn 0 after a crash. Each request is read twice: with the memory of the game, and alone, as after a
restart."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence

from serve.timing.game_memory import GameMemory
from tests.envs.battlesnake.arena_shape import (
    PlayedTurn,
    arena_game,
    is_undecidable,
    move_requests,
    played_games,
)

KINDS = (
    {"side": 7},
    {"side": 11},
    {"side": 7, "ruleset": "constrictor"},
    {"side": 11, "ruleset": "royale", "map": "royale", "shrink_every_n_turns": 25},
)
_CRASH_EVERY = 10


def counted(games: int, *, seed: int = 0) -> Counter[str]:
    """Return what was read of so many games, by kind of reading."""
    counts: Counter[str] = Counter()
    for number, settings in enumerate(KINDS):
        game = arena_game("g", ruleset=str(settings.get("ruleset", "standard")))
        memory = GameMemory()
        for turns in _with_crashes(
            played_games(games // len(KINDS), seed=seed + number, **settings)
        ):
            counts["games"] += 1
            _count(turns, game, memory, counts)
    return counts


def _with_crashes(games: Iterator[list[PlayedTurn]]) -> Iterator[list[PlayedTurn]]:
    """The games, and before every tenth the half of it that was played before a crash. All have one
    id, and none a `/start`.
    """
    for number, turns in enumerate(games):
        if number % _CRASH_EVERY == 0:
            yield turns[: len(turns) // 2 + 1]
        yield turns


def _count(
    turns: Sequence[PlayedTurn], game: dict, memory: GameMemory, counts: Counter[str]
) -> None:
    fresh = GameMemory()
    for request, alive in move_requests(turns, game):
        shown = {snake["id"] for snake in request["board"]["snakes"]}
        corpses = shown - alive
        remembered = memory.read_move(request)
        alone = fresh.read_move({**request, "game": {**game, "id": f"g{request['turn']}"}})
        counts["requests"] += 1
        counts["corpses"] += len(corpses)
        counts["living called dead, remembered"] += len(alive - set(remembered.ids))
        counts["corpses called living, remembered"] += len(corpses & set(remembered.ids))
        counts["living called dead, alone"] += len(alive - set(alone.ids))
        undecided = set(alone.undecided)
        counts["corpses called living, alone"] += len((corpses & set(alone.ids)) - undecided)
        counts["corpses undecided, alone"] += len(corpses & undecided)
        counts["undecided that could be decided, alone"] += sum(
            not is_undecidable(one, request) for one in undecided
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(counted(options.games, seed=options.seed), indent=2))


if __name__ == "__main__":
    main()
