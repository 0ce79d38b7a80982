"""Random boards, moves, settings, rulesets and maps: nothing crashes, nothing is counted wrongly.

`PROCSNAKE_EXAMPLES=10000` makes it a long run (`make test-long`), which also plays all of them with
Numba's bounds checks on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envs.battlesnake import maps
from envs.battlesnake.compliance import check_state
from envs.battlesnake.maps.catalogue import LIMITS
from envs.battlesnake.rules import initialise_board, is_over, step_board
from envs.battlesnake.settings import OFFICIAL_MAPS, RULESETS, Settings
from envs.battlesnake.state import ALIVE, HAZARD, SELF_COLLISION, State

ROOT = Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("PROCSNAKE_EXAMPLES", "300"))
DEFAULT = "PROCSNAKE_EXAMPLES" not in os.environ
BOARDS = 3
TURNS = 4


@st.composite
def worlds(draw):
    """(settings, width, height, num_snakes, first turn, seed) of games that the map admits."""
    map_name = draw(st.sampled_from(OFFICIAL_MAPS))
    limits = LIMITS[map_name]
    sides = st.integers(max(limits.smallest_side, limits.smallest_width), 25)
    width, height = (
        draw(st.sampled_from(limits.sizes)) if limits.sizes else (draw(sides), draw(sides))
    )
    chosen = Settings(
        ruleset=draw(st.sampled_from(RULESETS)),
        map=map_name,
        food_spawn_chance=draw(st.integers(0, 100)),
        minimum_food=draw(st.integers(0, 625)),
        hazard_damage=draw(st.integers(-1000, 1000)),
        shrink_every_n_turns=draw(st.integers(1, 40)),
        solo=draw(st.booleans()),
    )
    most = min(limits.most_snakes, max(1, width * height // 4))
    return (
        chosen,
        width,
        height,
        draw(st.integers(1, most)),
        draw(st.integers(0, 2000)),
        draw(st.integers(0, 2**32)),
    )


def random_body(rng, state, board, slot):
    """A walk over cells without bodies; where it is stuck, its last entry is repeated."""
    taken = state.arrays.occupied[board]
    body = []
    free = [
        (x, y)
        for x in range(state.width)
        for y in range(state.height)
        if not taken[state.cell(x, y)]
    ]
    here = free[rng.integers(len(free))]
    for _ in range(rng.integers(1, 1 + min(12, state.width * state.height // state.num_snakes))):
        body.append(here)
        x, y = here
        around = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
        onward = [c for c in around if c in free and c not in body]
        here = onward[rng.integers(len(onward))] if onward else here
    return body


def scatter(rng, counts, on_board, most, share):
    cells = rng.permutation(on_board)[: int(rng.random() * share * len(on_board))]
    counts[cells] = rng.integers(1, most + 1, len(cells))


def random_state(world):
    chosen, width, height, num_snakes, turn, seed = world
    rng = np.random.default_rng(seed)
    state = State(BOARDS, width=width, height=height, num_snakes=num_snakes, settings=chosen)
    state.seed(seed)
    a = state.arrays
    a.turn[:] = turn
    on_board = np.flatnonzero(a.opposite == np.arange(a.opposite.size))
    for board in range(BOARDS):
        for slot in range(num_snakes):
            cause = int(rng.integers(SELF_COLLISION, HAZARD + 1)) if rng.random() < 0.2 else ALIVE
            body = random_body(rng, state, board, slot)
            if cause != ALIVE and rng.random() < 0.5:
                body[0] = (-1, int(rng.integers(height)))
            state.place_snake(board, slot, body, health=int(rng.integers(1, 101)), cause=cause)
        scatter(rng, a.food[board], on_board, 2, rng.choice([0.1, 0.9]))
        scatter(rng, a.hazards[board], on_board, 5, rng.choice([0.0, 0.1, 0.9]))
        a.num_food[board], a.num_hazards[board] = a.food[board].sum(), a.hazards[board].sum()
    return state, rng


def play(state, rng, turns):
    a = state.arrays
    r = state.rules
    check_state(state, what="start")
    for _ in range(turns):
        alive = a.num_alive.copy()
        running = np.flatnonzero([not is_over(a, b, r) for b in range(state.num_boards)])
        moves = rng.integers(-2, 7, (state.num_boards, state.num_snakes)).astype(np.int8)
        for board in running:
            step_board(a, board, r, moves)
        check_state(state, what="after the step")
        assert (a.num_alive <= alive).all()
        assert (a.health[running][a.cause[running] == ALIVE] > 0).all()
        maps.update(state, running)
        check_state(state, what="after the map's update")
        a.turn[running] += 1


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=DEFAULT,
    suppress_health_check=list(HealthCheck),
)
@given(worlds())
def test_any_board_can_be_played_on(world):
    state, rng = random_state(world)
    play(state, rng, TURNS)


@settings(
    max_examples=max(1, EXAMPLES // 2),
    deadline=None,
    derandomize=DEFAULT,
    suppress_health_check=list(HealthCheck),
)
@given(worlds())
def test_any_game_can_be_set_up_and_played(world):
    chosen, width, height, num_snakes, _, seed = world
    state = State(
        BOARDS, width=width, height=height, num_snakes=min(num_snakes, 4), settings=chosen
    )
    state.seed(seed)
    maps.set_up(state, np.arange(BOARDS))
    for board in range(BOARDS):
        initialise_board(state.arrays, board, state.rules)
    play(state, np.random.default_rng(seed), 3 * TURNS)


def test_no_index_is_out_of_range():
    """The same with every index checked: in plain Python, which needs no compiler, or in a long run
    by Numba.
    """
    checked = (
        {"NUMBA_DISABLE_JIT": "1", "PROCSNAKE_EXAMPLES": "40"}
        if DEFAULT
        else {"PROCSNAKE_BOUNDSCHECK": "1"}
    )
    if os.environ.get("PROCSNAKE_BOUNDSCHECK") == "1":
        return  # this is that run
    mixing = (  # what the mixer is made of; nobody else may
        "ignore:overflow encountered:RuntimeWarning:envs.battlesnake.rng"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "any_",
    ]
    command += ["-W", "error", "-W", mixing]
    run = subprocess.run(
        command, cwd=ROOT, env=os.environ | checked, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:]
