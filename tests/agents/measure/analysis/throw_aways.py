"""Games with a throw-away that trying everything proves: `python -m
tests.agents.measure.analysis.throw_aways FILE --games 100`.

Two flood-fill snakes play a duel. On a turn where one of them has a move that loses by force within
`Proof.loses_in` turns, and not even draws, and another one with which it lives `Proof.lives_for`
turns whatever the other does, it plays the losing one. From there the other snake plays what the
proof says, and the victim any move that isn't certain death, until it is dead. A game that was lost
before, as trying everything for up to 16 turns tells within a bound of positions, doesn't count.
The proofs are those of `tests.agents.tactics.brute_force`, which shares no code with the engine or
the search."""

from __future__ import annotations

import argparse
import gzip
import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import agents
from agents.parallel import processes, spread
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.plain import board_from_state
from envs.battlesnake.recording import EXTRAS, Recording
from envs.battlesnake.rules import is_over, step_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, MOVE_NAMES, State
from envs.common.cores import usable_cores
from tests.agents.tactics.brute_force import STEPS, Position, Snake, Solver, World

# --games 95, and --games 5 --seed 1000.
KEPT = Path(__file__).with_name("throw_aways.json.gz")
_SOON = (3, 3, 5, 7)
_SIDES = (7, 11)
_LATER = 4
_MOST_STEPS = 12_000
_FIRST_TURN = 15
_MAX_TURNS = 300
_POCKET = 9
_BATCH = 16
_HORIZONS = (10, 13, 16)
_MANY_STEPS = 40_000
_GAME = {
    "ruleset": {"name": "standard", "settings": {"foodSpawnChance": 15, "minimumFood": 1}},
    "map": "standard",
    "timeout": 500,
}


@dataclass(frozen=True)
class Proof:
    """What trying everything says of the turn of the throw-away."""

    turn: int
    victim: str
    move: int
    loses_in: int
    keeps: list[int]
    """The moves with which the victim can be sure to live for `lives_for` turns."""
    lives_for: int


class TooLongError(Exception):
    """A proof would take too long."""


class BoundedSolver(Solver):
    """A solver that gives up after so many positions. With `draws_hold`, dying together with the
    other counts as living.
    """

    def __init__(self, world: World, most: int = _MOST_STEPS, *, draws_hold: bool = False) -> None:
        super().__init__(world)
        self.left = most
        self.draws_hold = draws_hold

    def _answers(self, position: Position, move: int) -> list[Position]:
        self.left -= 1
        if self.left < 0:
            raise TooLongError
        return super()._answers(position, move)

    def _survives(self, position: Position, turns: int) -> bool:
        if self.draws_hold and not any(position.snakes):
            return True
        return super()._survives(position, turns)


def as_position(state: State, first: int) -> Position:
    """The position with the snake in slot `first` as the solver's slot 0."""
    slots = [first, 1 - first]
    snakes = tuple(
        (
            Snake(tuple(state.body(0, slot)), int(state.arrays.health[0, slot]))
            if state.arrays.cause[0, slot] == ALIVE
            else None
        )
        for slot in slots
    )
    return Position(snakes, frozenset(state.points(state.arrays.food[0])))


def find_proof(
    state: State, victim: int, safe: np.ndarray, soon: int
) -> tuple[int, int, list[int], int] | None:
    """(losing move, `soon`, moves that keep, turns that they keep), if a move loses in `soon` turns
    or one less.
    """
    position = as_position(state, victim)
    world = World(state.width, state.height)
    try:
        sooner = BoundedSolver(world, draws_hold=True).surviving_moves(position, soon - 2)
        if len(sooner) < safe.sum():
            return None
        holding = BoundedSolver(world, draws_hold=True).surviving_moves(position, soon)
        losing = [move for move in sooner if move not in holding]
        if losing and len(losing) < safe.sum():
            keeps = BoundedSolver(world).surviving_moves(position, soon + _LATER)
            return (random.choice(losing), soon, keeps, soon + _LATER) if keeps else None
    except TooLongError:
        pass
    return None


def was_lost_before(state: State, victim: int) -> bool:
    """Whether every move loses by force, so that nothing is thrown away. A proof that takes too
    long counts as none.
    """
    position = as_position(state, victim)
    world = World(state.width, state.height)
    for turns in _HORIZONS:
        try:
            if not BoundedSolver(world, _MANY_STEPS, draws_hold=True).survives(position, turns):
                return True
        except TooLongError:
            return False
    return False


def _has_pocket(state: State, victim: int, safe: np.ndarray) -> bool:
    """Whether one of the moves leads into a few cells and another one doesn't: where a proof is
    likely, and short.
    """
    sizes = [
        _region(state, state.body(0, victim)[0], step)
        for step, is_safe in zip(STEPS, safe, strict=True)
        if is_safe
    ]
    return min(sizes) < _POCKET <= max(sizes)


def _region(state: State, head: tuple[int, int], step: tuple[int, int]) -> int:
    """How many free cells hang together where a move leads."""
    taken = set(state.points(state.arrays.occupied[0]))
    waiting = [(head[0] + step[0], head[1] + step[1])]
    seen = set[tuple[int, int]]()
    while waiting:
        x, y = waiting.pop()
        if (
            0 <= x < state.width
            and 0 <= y < state.height
            and (x, y) not in seen
            and (x, y) not in taken
        ):
            seen.add((x, y))
            waiting += [(x + dx, y + dy) for dx, dy in STEPS]
    return len(seen)


def play_throw_away(seed: int) -> tuple[list[dict], Proof] | None:
    """The boards of a game and its proof; None if the game came to no throw-away."""
    random.seed(seed)
    soon = _SOON[seed % 4]
    side = _SIDES[seed // 4 % 2]
    state = State(1, width=side, height=side, num_snakes=2)
    state.seed(seed)
    running = start_games(state)
    flood = agents.make("flood")
    boards = [board(state)]
    found = None
    while running[0] and found is None and len(boards) < _MAX_TURNS:
        safe = safe_moves(state, np.zeros(2, np.int64), np.arange(2))
        victim = random.randrange(2)
        if (
            len(boards) > _FIRST_TURN
            and 1 < safe[victim].sum() < 4
            and (soon == 3 or _has_pocket(state, victim, safe[victim]))
        ):
            found = find_proof(state, victim, safe[victim], soon)
        if found is None:
            moves = flood.act_batch(state, np.zeros(2, np.int64), np.arange(2))
            play_turn(state, moves[None], running)
            boards.append(board(state))
    if found is None or was_lost_before(state, victim):
        return None
    move, _, keeps, later = found
    proof = Proof(int(state.arrays.turn[0]), "ab"[victim], move, soon, keeps, later)
    boards += _punish(state, victim, move, soon)
    return boards, proof


def _punish(state: State, victim: int, move: int, turns: int) -> list[dict]:
    """The boards after the throw-away: the other snake answers each move as the proof says. Nothing
    spawns.
    """
    solver = BoundedSolver(World(state.width, state.height), 1 << 40, draws_hold=True)
    rules = state.rules
    boards = list[dict]()
    while not is_over(state.arrays, 0, rules):
        position = as_position(state, victim)
        answers = dict(
            zip(
                solver._sensible_moves(position.snakes[1]),
                solver._answers(position, move),
                strict=True,
            )
        )
        reply = next(
            reply for reply, after in answers.items() if not solver.survives(after, turns - 1)
        )
        moves = np.zeros((1, 2), np.int8)
        moves[0, victim] = move
        moves[0, 1 - victim] = reply
        step_board(state.arrays, 0, rules, moves)
        state.arrays.turn[0] += 1
        turns -= 1
        boards.append(board(state))
        if state.arrays.cause[0, victim] == ALIVE:
            safe = safe_moves(state, np.zeros(1, np.int64), np.array([victim]))[0]
            move = random.choice(list(map(int, np.flatnonzero(safe))))
    return boards


def board(state: State) -> dict:
    return board_from_state(state, 0, ["a", "b"])


def recording(boards: list[dict]) -> Recording:
    """The game as a recording, in which the dead are known."""
    requests = []
    for one in boards:
        living = [
            {**snake, "name": snake["id"]}
            for snake in one["snakes"]
            if not snake["eliminatedCause"]
        ]
        dead = [
            {**snake, "name": snake["id"]} for snake in one["snakes"] if snake["eliminatedCause"]
        ]
        requests.append(
            {"turn": one["turn"], "board": {**one, "snakes": living}, EXTRAS: {"eliminated": dead}}
        )
    return Recording({**_GAME, "id": "throw-away"}, requests)


@cache
def _games() -> list[dict]:
    games: list[dict] = json.loads(gzip.decompress(KEPT.read_bytes()))
    return games


def proofs() -> list[Proof]:
    """The proofs of the games that were made once."""
    return [Proof(**game["proof"]) for game in _games()]


@cache
def kept() -> list[tuple[Recording, Proof]]:
    """The games that were made once, and their proofs. Checking the recordings takes seconds."""
    return [(recording(game["boards"]), proof) for game, proof in zip(_games(), proofs())]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first seed to try")
    options = parser.parse_args()
    games = list[dict]()
    seed = options.seed
    with processes(usable_cores()) as pool:
        while len(games) < options.games:
            for made in spread(
                pool, play_throw_away, range(seed, seed + _BATCH), lambda done, of: None
            ):
                if made is not None and len(games) < options.games:
                    boards, proof = made
                    games.append({"boards": boards, "proof": vars(proof)})
                    told = (
                        f"{MOVE_NAMES[proof.move]} loses in {proof.loses_in}, {proof.keeps} live"
                        f" for {proof.lives_for}"
                    )
                    print(f"{len(games)}: turn {proof.turn}: {told}", flush=True)
            seed += _BATCH
            options.out.write_bytes(
                gzip.compress(json.dumps(games, separators=(",", ":")).encode(), mtime=0)
            )


if __name__ == "__main__":
    main()
