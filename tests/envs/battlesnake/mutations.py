"""Single mistakes in the rules, and a run of the recorded games that must notice each of them.

`python -m tests.envs.battlesnake.mutations` prints one JSON object: what caught each mistake, null
if nothing did. It needs NUMBA_DISABLE_JIT=1: each mistake is made in a fork of this process by
running the changed source in the module's place, and only plain Python functions see the change at
once."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np

from envs.battlesnake import maps, rng, rules, ruleset_step, setup_board
from envs.battlesnake.compliance import check_ruleset
from envs.battlesnake.maps import drawn, patterns, snail, spreading, standard
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MOVE_NAMES, State
from tests.envs.battlesnake import test_rules, traces
from tests.envs.battlesnake.maps import test_catalogue as test_maps


class Mutation(NamedTuple):
    """Replace `right`, which the module's source holds exactly once, by `wrong`."""

    module: object
    right: str
    wrong: str


MUTATIONS = [
    Mutation(rules, "return s.num_alive[b] == 0", "return s.num_alive[b] <= 1"),
    Mutation(rules, "return s.num_alive[b] <= 1", "return s.num_alive[b] == 0"),
    Mutation(rules, "s.occupied[b, tail_cell(s, b, i)] -= 1", "pass"),
    Mutation(rules, "if r.wrapped:", "if not r.wrapped:"),
    Mutation(
        rules,
        "== head:\n            return move\n    for",
        "== head:\n            return UP\n    for",
    ),
    Mutation(rules, "target != neck and s.opposite[target] == head", "False"),
    Mutation(rules, "s.health[b, i] -= 1", "s.health[b, i] -= 2"),
    Mutation(rules, "        if s.food[b, cell]:\n", "        if False:\n"),
    Mutation(rules, "layers * r.hazard_damage", "r.hazard_damage"),
    Mutation(
        rules,
        "min(FULL_HEALTH, s.health[b, i] - layers * r.hazard_damage)",
        "s.health[b, i] - layers * r.hazard_damage",
    ),
    Mutation(rules, "        if health == 0:\n", "        if health < 0:\n"),
    Mutation(
        rules, "eliminate(s, b, i, HAZARD, NOBODY)", "eliminate(s, b, i, OUT_OF_HEALTH, NOBODY)"
    ),
    Mutation(
        rules,
        "range(s.food[b, head_cell(s, b, i)])",
        "range(min(1, s.food[b, head_cell(s, b, i)]))",
    ),
    Mutation(
        rules,
        "s.health[b, i] = FULL_HEALTH\n                s",
        "s.health[b, i] += 1\n                s",
    ),
    Mutation(rules, "if s.health[b, i] <= 0:", "if s.health[b, i] < 0:"),
    Mutation(rules, "elif s.opposite[cell] != cell:", "elif False:"),
    Mutation(
        rules, "s.occupied[b, head_cell(s, b, i)] > 1", "s.occupied[b, head_cell(s, b, i)] > 2"
    ),
    Mutation(rules, "(is_alive(s, b, j) or s.cause[b, j] >= _JUDGED)", "is_alive(s, b, j)"),
    Mutation(rules, "s.length[b, j] >= s.length[b, i]", "s.length[b, j] > s.length[b, i]"),
    Mutation(
        rules, "s.length[b, j] > s.length[b, by_head]", "s.length[b, j] >= s.length[b, by_head]"
    ),
    Mutation(
        rules, "    if by_body != NOBODY:\n", "    if by_body != NOBODY and by_head == NOBODY:\n"
    ),
    Mutation(rules, "_JUDGED + SELF_COLLISION", "_JUDGED + BODY_COLLISION"),
    Mutation(rules, "s.killer[b, i] = by_body", "s.killer[b, i] = NOBODY"),
    Mutation(rules, "range(1, s.length[b, i])", "range(1, s.length[b, i] - 1)"),
    Mutation(rules, "s.turn[b] + 1\n    s.num_alive", "s.turn[b]\n    s.num_alive"),
    Mutation(rules, "(s.turn[b] + 1) // r.shrink_every", "s.turn[b] // r.shrink_every"),
    Mutation(rules, "right -= 1", "right -= 2"),
    Mutation(rules, "    if s.num_food[b]:\n", "    if False:\n"),
    Mutation(rules, "        if s.cause[b, i] == ABSENT:\n", "        if not is_alive(s, b, i):\n"),
    Mutation(rules, "tail_cell(s, b, i) != body_cell", "tail_cell(s, b, i) == body_cell"),
    Mutation(rules, "    tail = tail_cell(s, b, i)", "    tail = head_cell(s, b, i)"),
    Mutation(standard, "0, 100) < r.food_spawn_chance", "0, 100) <= r.food_spawn_chance"),
    Mutation(standard, "if missing > 0:", "if missing > 1:"),
    Mutation(standard, "START_LENGTH = 3", "START_LENGTH = 2"),
    Mutation(standard, "(x + y) % 2 == 0", "(x + y) % 2 == 1"),
    Mutation(standard, "corners_first == (i < 4)", "corners_first == (i < 3)"),
    Mutation(standard, "away == offset", "away == 2 * offset"),
    Mutation(standard, " or y < head_y < mid_y", ""),
    Mutation(standard, "not on_board or corner or", "not on_board or"),
    Mutation(standard, "for n in range(count):", "for n in range(1):"),
    Mutation(standard, "snakes <= 4 or r.width * r.height >= 121", "snakes <= 4"),
    Mutation(drawn, "_FIRST_CASTLE_FOOD = 10", "_FIRST_CASTLE_FOOD = 9"),
    Mutation(drawn, "if body_cell(s, b, i, entry) == cell:", "if False:"),
    Mutation(drawn, "if s.food[b, cell + offset]:", "if False:"),
    Mutation(drawn, "refill_food(s, b, r, True)", "refill_food(s, b, r, False)"),
    Mutation(patterns, "edge % 2 == 1 and edge + 1 <", "edge % 2 == 1 and edge + 2 <"),
    Mutation(patterns, "_PIT_LAYERS = (0, 1, 2,", "_PIT_LAYERS = (0, 2, 2,"),
    Mutation(patterns, "since = s.turn[b] - 1", "since = s.turn[b]"),
    Mutation(patterns, "radius == 0 or not corner", "True"),
    Mutation(patterns, "s.turn[b] + 1 >= r.shrink_every", "s.turn[b] >= r.shrink_every"),
    Mutation(snail, "if layers and not _holds_head(s, b, cell):", "if layers:"),
    Mutation(snail, "s.trail[b, i, 1] = length", "s.trail[b, i, 1] = length - 1"),
    Mutation(snail, "            is_alive(s, b, i)\n            and length", "            length"),
    Mutation(spreading, "while step > 8 * ring:", "while step >= 8 * ring:"),
    Mutation(spreading, "n + rng.below(s.key[b], 0, rng.MAP_HAZARDS, n, area - n)", "n"),
    Mutation(spreading, "s, b, 2 + n, left > 0, top <", "s, b, 2 + n, left > 1, top <"),
    Mutation(spreading, "if abs(cell_y - y) == distance", "if cell_y - y == distance"),
    Mutation(rng, "last, last + 1)", "last, last)"),
    Mutation(rng, "np.uint64(turn) << _PURPOSE_BITS | np.uint64(purpose)", "np.uint64(purpose)"),
]

# One recorded turn in so many is played: enough for every mistake above, and done in seconds
# without a compiler.
_EVERY_CROWDED = 9
_EVERY_ON_MAPS = 97
_EVERY_ON = {
    "snail_mode": 4,
    "sinkholes": 4,
    "hz_hazard_pits": 8,
    "hz_castle_wall_lg": 6,
    "solo_maze": 10**6,
}


class Turns(NamedTuple):
    """Pairs of a game and one of its recorded transitions."""

    crowded: list
    """Made-up crowded boards, and all of the rarest kinds."""
    on_maps: list


def recorded_turns():
    """A fixed selection of recorded transitions."""
    turns = Turns([], [])
    seen = Counter()
    for game in traces.games():
        crowded = game["kind"] == "scenario"
        every = _EVERY_CROWDED if crowded else _EVERY_ON.get(game["map"], _EVERY_ON_MAPS)
        for t in traces.transitions(game):
            seen[game["map"]] += 1
            if seen[game["map"]] % every == 0:
                (turns.crowded if crowded else turns.on_maps).append((game, t))
            elif is_rare(t):
                turns.crowded.append((game, t))
    return turns


def is_rare(t):
    """A move that is none, two foods eaten at once, or more than two snakes dead of one meeting of
    heads.
    """
    if any(move is not None and move not in MOVE_NAMES for move in t.moves):
        return True
    pairs = list(zip(t.before["snakes"], t.stepped["snakes"], strict=True))
    lost_heads = [
        new["body"][0]
        for old, new in pairs
        if new["eliminatedCause"] == "head-collision" != old["eliminatedCause"]
    ]
    return any(len(new["body"]) > len(old["body"]) + 1 for old, new in pairs) or any(
        lost_heads.count(cell) > 2 for cell in lost_heads
    )


def check_rules(turns):
    """The ruleset's step gives what was recorded; a royale wall is the one its turn asks for."""
    for game, t in turns.crowded:
        ruleset = game["ruleset"]
        settings = game["settings"]
        over, board = ruleset_step(
            t.before, t.moves, ruleset=ruleset, settings=settings, solo=game["solo"]
        )
        assert over == t.over
        assert test_rules._difference(t.stepped, board, ruleset) == []
        if ruleset == "royale" and not over:
            moves = (t.turn + 1) // settings["shrinkEveryNTurns"]
            test_maps.check_royale(
                board["width"], board["height"], moves, test_maps.points(board["hazards"])
            )


def check_food(turns):
    """The standard map feeds where, and as much as, it should; chance 1 means never."""
    for game, t in [(g, t) for g, t in turns.crowded if not t.over][::6]:
        before = t.stepped | {"turn": t.turn}
        more = [{"foodSpawnChance": 0, "minimumFood": len(before["food"]) + k} for k in (1, 3)]
        for settings in (game["settings"], *more):
            after = test_maps.map_update(before, map="standard", settings=settings, seed=t.turn)
            test_maps.check_food(before, after, "standard", settings)
    state = State(
        1200,
        num_snakes=1,
        width=5,
        height=5,
        settings=Settings(food_spawn_chance=1, minimum_food=0, solo=True),
    )
    maps.update(state, np.arange(1200))
    assert not state.arrays.num_food.any()


def check_maps(turns):
    """Hazards and food of all maps at the end of recorded turns; schedules and randomness of those
    that spread.
    """
    seen = Counter()
    for game, t in turns.on_maps:
        map_name = game["map"]
        if t.over:
            continue
        seen[map_name] += 1
        before = t.stepped | {"turn": t.turn}
        after = test_maps.map_update(before, map=map_name, settings=game["settings"], seed=t.turn)
        test_maps.check_food(before, after, map_name, game["settings"])
        if map_name not in test_maps.RANDOM_HAZARDS:
            assert test_maps.points(after["hazards"]) == test_maps.points(t.after["hazards"])
    assert len(seen) == 24
    for map_name in (*test_maps.SPREADING, "royale"):
        played = test_maps.bare_games(
            map_name, 7, 7, num_games=2, num_turns=200, shrink_every_n_turns=9, minimum_food=0
        )
        for history in played:
            test_maps.check_hazards(map_name, {"shrinkEveryNTurns": 9}, 7, 7, history)
        assert len({str(history) for history in played}) > 1
    for map_name, side in (("hz_rings", 11), ("hz_castle_wall", 11)):
        board = setup_board(map=map_name, width=side, height=side)
        test_maps.check_laid_out(map_name, board, {})


def check_set_up(turns):
    """Starts and first food by the facts sheet; every start cell gets its turn; food differs from
    turn to turn.
    """
    for side, num_snakes in ((7, 3), (7, 5), (9, 8), (11, 4), (11, 6), (11, 12), (5, 4)):
        for seed in range(3):
            ids = [str(i) for i in range(num_snakes)]
            board = setup_board(width=side, height=side, snake_ids=ids, seed=seed)
            heads = [body[0] for body in test_maps.bodies(board)]
            assert all(len(s["body"]) == 3 for s in board["snakes"])
            test_maps.check_standard_start(heads, side, side)
            if side > 5:
                test_maps.check_first_food("standard", board, {})
    firsts = {test_maps.bodies(setup_board(seed=seed))[0][0] for seed in range(100)}
    assert len(firsts) == 8
    state = State(1, settings=Settings(minimum_food=0, food_spawn_chance=0))
    draws = []
    for turn in range(8):
        state.arrays.turn[0] = turn
        draws.append(rng.below(state.arrays.key[0], turn, rng.SPAWN_FOOD, 1, 1000))
    assert len(set(draws)) > 4


def check_counts(turns):
    """The public compliance check: counts agree with bodies and cells."""
    check_ruleset(num_games=2, num_turns=10)


def first_failure(module, turns):
    """Name of the first check that fails of those which look at a module, or at all modules; None
    if they hold.
    """
    checks = [check_maps] if module not in (None, rules, rng, standard) else []
    checks = checks or [check_rules, check_set_up, check_food, check_counts] + [check_maps] * (
        module is None
    )
    for check in checks:
        try:
            check(turns)
        except Exception as error:  # a mistake may show as any exception
            return f"{check.__name__}: {type(error).__name__}"
    return None


def mutate(mutation):
    """Run the changed source in its module, and hand the new functions to all who imported the old
    ones.
    """
    module = mutation.module
    with open(module.__file__) as file:
        source = file.read()
    assert source.count(mutation.right) == 1, (
        f"{mutation.right!r} stands {source.count(mutation.right)} times in {module}"
    )
    old = dict(vars(module))
    exec(
        compile(source.replace(mutation.right, mutation.wrong), module.__file__, "exec"),
        vars(module),
    )
    for other in [m for name, m in sys.modules.items() if name.startswith("envs.battlesnake")]:
        for name, value in list(vars(other).items()):
            if name in old and value is old[name] and name in vars(module):
                setattr(other, name, vars(module)[name])


def caught_in_fork(turns, mutation=None):
    """`first_failure` with the mistake made (or none), in a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if mutation is not None:
            mutate(mutation)
        os.write(writer, json.dumps(first_failure(mutation and mutation.module, turns)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text or '"did not run"')


if __name__ == "__main__":
    assert os.environ.get("NUMBA_DISABLE_JIT") == "1"
    warnings.simplefilter("ignore")  # NumPy scalars warn of the overflow that the mixer is made of
    recorded = recorded_turns()
    results = {m.right.strip(): caught_in_fork(recorded, m) for m in MUTATIONS}
    played = len(recorded.crowded) + len(recorded.on_maps)
    print(
        json.dumps({"turns": played, "unchanged": caught_in_fork(recorded), "mutations": results})
    )
