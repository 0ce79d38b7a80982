"""The tree that alpha-beta searches: I choose, the others answer knowing my move, and the turn is
played.

The others work together against me (paranoid search), so there are two sides, and alpha-beta cuts
apply: my plies look for the largest score, theirs for the smallest. `run` is the whole search, in
numbered steps."""

from __future__ import annotations

from agents.search.alphabeta.movepick import credit_cut, list_choices
from agents.search.alphabeta.stack import (
    NODES,
    PLAYERS,
    PLY,
    QUIET,
    RETURNING,
    TURN,
    TURNS_PLAYED,
    VALUE,
    Stack,
)
from agents.search.alphabeta.transposition_table import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    NO_MOVE,
    look_up,
    store,
)
from agents.search.evaluation.correction import Correction, correct
from agents.search.evaluation.evaluate import WIN, Weights, judge
from agents.search.evaluation.territory import Territory, survey
from agents.search.make_unmake import Turns, begin_turns, landing, play, position_hash, take_back
from agents.search.players import choose_players, head_distance, is_player
from agents.search.prediction import likely_move
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import HEAD_COLLISION, Boards, is_alive


@kernel
def prepare(
    s: Boards,
    r: Rules,
    x: Stack,
    u: Turns,
    f: Territory,
    me: int,
    max_rivals: int,
    near: int,
    quiet_turns: int,
) -> None:
    """Begin a search on board 0 for snake `me`: choose the snakes to search, and empty the tables.

    Where two heads could meet next, the search looks up to `quiet_turns` (0 to `QUIET_TURNS`)
    further."""
    x.table[:] = 0
    x.history[:] = 0
    x.killer[:] = NO_MOVE
    x.reg[:] = 0
    x.reg[PLAYERS] = choose_players(s, r, x.players, me, max_rivals, near)
    x.reg[QUIET] = quiet_turns
    survey(s, r, f)
    begin_turns(s, r, u)


@kernel
def begin(x: Stack, depth: int, alpha: int, beta: int) -> None:
    """Begin an iteration of `depth` turns with the window alpha to beta."""
    x.reg[PLY] = 0
    x.reg[TURN] = 0
    x.reg[RETURNING] = 0
    x.player[0] = 0
    x.depth[0] = depth
    x.alpha[0] = alpha
    x.beta[0] = beta
    x.best_move[0] = NO_MOVE


@kernel
def run(
    s: Boards, r: Rules, x: Stack, u: Turns, f: Territory, w: Weights, c: Correction, until: int
) -> bool:
    """Search until the iteration is done, which returns True, or until `until` nodes were visited
    in all, which returns False.

    After False, another call continues. The score of the iteration is `x.reg[VALUE]`, the move is
    `x.best_move[0]`."""
    # Local copies stay in the processor's registers; they are written back at the end.
    ply = x.reg[PLY]
    turn = x.reg[TURN]
    value = x.reg[VALUE]
    returning = x.reg[RETURNING] != 0
    nodes = x.reg[NODES]
    turns_played = x.reg[TURNS_PLAYED]
    is_done = False
    while True:
        if not returning:
            # Step 1. Stop before a new node, if the budget is used up.
            if nodes >= until:
                break
            nodes += 1
            if x.player[ply] == 0:
                # Step 2. A turn begins. Some positions need no search: the game is over, the table
                # knows the score, or we have looked deep enough and evaluate.
                is_settled, value = _settle(s, r, x, u, f, w, c, ply, turn)
                if is_settled:
                    returning = True
                    ply -= 1
                    continue
            # Step 3. List the moves, the most promising first.
            x.num_choices[ply] = list_choices(s, r, x, ply)
            _open_ply(x, ply)
        else:
            # Step 7. Come back from a child with its score. At the root the iteration is done.
            if ply < 0:
                is_done = True
                break
            if x.player[ply + 1] == 0:
                turn -= 1
                take_back(s, r, u, turn)
            _update_best(s, r, x, ply, value)
        # Step 4. Leave the ply when its moves are through, or when one side would avoid it anyway.
        if x.tried[ply] == x.num_choices[ply] or x.alpha[ply] >= x.beta[ply]:
            value = x.best[ply]
            if x.player[ply] == 0:
                _remember(x, ply, turn)
            returning = True
            ply -= 1
            continue
        # Step 5. Try the next move. The next snake answers it in the same window.
        x.tried[ply] += 1
        x.alpha[ply + 1] = x.alpha[ply]
        x.beta[ply + 1] = x.beta[ply]
        following = _next_player(s, x, x.player[ply])
        depth = x.depth[ply]
        # Step 6. If all have chosen, play the turn.
        if following == 0:
            _collect_moves(s, r, x, u, ply)
            play(s, r, x.moves, u, turn)
            turn += 1
            turns_played += 1
            depth -= 1
        x.depth[ply + 1] = depth
        x.player[ply + 1] = following
        returning = False
        ply += 1
    x.reg[PLY] = ply
    x.reg[TURN] = turn
    x.reg[VALUE] = value
    x.reg[RETURNING] = returning
    x.reg[NODES] = nodes
    x.reg[TURNS_PLAYED] = turns_played
    return is_done


@kernel
def _settle(
    s: Boards,
    r: Rules,
    x: Stack,
    u: Turns,
    f: Territory,
    w: Weights,
    c: Correction,
    ply: int,
    turn: int,
) -> tuple[bool, int]:
    """Return (True, score) of a position that needs no search, else (False, 0)."""
    me = x.players[0]
    depth = x.depth[ply]
    # Step 2a. Is the game over? A late loss and an early win are better than others.
    if not is_alive(s, 0, me):
        if _is_mutual(s, r, u, me, turn - 1) and not r.solo:
            return True, w.draw
        return True, turn - WIN
    if s.num_alive[0] == 1 and not r.solo:
        return True, WIN - turn
    # Step 2b. Does the table know it, at this depth or deeper, and well enough for this window?
    key = position_hash(s, u, turn)
    value, known_depth, bound, move = look_up(x.table, key, turn)
    x.key[ply] = key
    x.best_move[ply] = move
    # The root is searched in any case, because its move is asked for.
    if ply > 0 and move != NO_MOVE and known_depth >= depth:
        if (
            bound == EXACT
            or (bound == AT_LEAST and value >= x.beta[ply])
            or (bound == AT_MOST and value <= x.alpha[ply])
        ):
            return True, value
    # Step 2c. Is it deep enough to be evaluated? Where two heads could meet next, look further, but
    # few turns in the first iterations: with several rivals nearby they would eat up a small
    # budget.
    if depth <= 0 and (depth <= -min(x.reg[QUIET], x.depth[0]) or _is_quiet(s, r, x)):
        value = judge(s, r, f, w, me)
        if c.is_used[0]:
            value += correct(s, r, f, c, me)
        # Any move does: NO_MOVE in the table stands for a position that isn't there.
        if move == NO_MOVE:
            move = 0
        store(x.table, key, value, depth, EXACT, move, turn)
        return True, value
    return False, 0


@kernel
def _is_mutual(s: Boards, r: Rules, u: Turns, me: int, turn: int) -> bool:
    """Return whether the snake that met my head died too, or the last snakes died together. Nobody
    wins that by choice.
    """
    if s.cause[0, me] == HEAD_COLLISION:
        return not is_alive(s, 0, s.killer[0, me])
    return s.num_alive[0] == 0 and u.counts[turn, 1] > 1


@kernel
def _is_quiet(s: Boards, r: Rules, x: Stack) -> bool:
    """Return whether none of the searched heads can meet mine on the next turn."""
    for j in range(1, x.reg[PLAYERS]):
        if is_alive(s, 0, x.players[j]) and head_distance(s, r, x.players[0], x.players[j]) == 2:
            return False
    return True


@kernel
def _open_ply(x: Stack, ply: int) -> None:
    """Begin with a ply whose choices are listed: nothing is tried, and the best is worse
    than any.
    """
    x.tried[ply] = 0
    x.floor[ply] = x.alpha[ply]
    if x.player[ply] == 0:
        x.best[ply] = -2 * WIN
    else:
        x.best[ply] = 2 * WIN
    x.best_move[ply] = NO_MOVE


@kernel
def _update_best(s: Boards, r: Rules, x: Stack, ply: int, value: int) -> None:
    """Take the score of the move that was tried last into account: I look for the largest, the
    others for the smallest.
    """
    is_mine = x.player[ply] == 0
    if is_mine:
        is_better = value > x.best[ply]
    else:
        is_better = value < x.best[ply]
    if not is_better:
        return
    move = x.choices[ply, x.tried[ply] - 1]
    x.best[ply] = value
    x.best_move[ply] = move
    if is_mine:
        x.alpha[ply] = max(x.alpha[ply], value)
    else:
        x.beta[ply] = min(x.beta[ply], value)
    if x.alpha[ply] >= x.beta[ply]:
        credit_cut(s, r, x, ply, move)


@kernel
def _remember(x: Stack, ply: int, turn: int) -> None:
    """Store the score of a ply of mine, as a bound where the window has cut it off."""
    best = x.best[ply]
    if best >= x.beta[ply]:
        bound = AT_LEAST
    elif best <= x.floor[ply]:
        bound = AT_MOST
    else:
        bound = EXACT
    store(x.table, x.key[ply], best, x.depth[ply], bound, x.best_move[ply], turn)


@kernel
def _next_player(s: Boards, x: Stack, player: int) -> int:
    """Return the place in `x.players` of who chooses next in this turn; 0 if all have chosen."""
    for j in range(player + 1, x.reg[PLAYERS]):
        if is_alive(s, 0, x.players[j]):
            return j
    return 0


@kernel
def _collect_moves(s: Boards, r: Rules, x: Stack, u: Turns, ply: int) -> None:
    """Write the moves of a turn whose last chooser chose at `ply` into `x.moves`.

    The snakes that aren't searched make their likeliest moves, and meet my head if they dare."""
    while True:
        x.moves[0, x.players[x.player[ply]]] = x.choices[ply, x.tried[ply] - 1]
        if x.player[ply] == 0:
            break
        ply -= 1
    me = x.players[0]
    target = landing(s, r, me, x.moves[0, me])
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i) and not is_player(x.players, x.reg[PLAYERS], i):
            x.moves[0, i] = likely_move(s, r, u, i)
            if s.length[0, i] >= s.length[0, me]:
                for move in range(4):
                    if landing(s, r, i, move) == target:
                        x.moves[0, i] = move
