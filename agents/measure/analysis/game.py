"""Analyses one snake's game: how the search scores each turn's moves, what the snake's own moves
cost, and where the game was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from agents.measure.analysis.move_classes import FAULTS, MoveClass, class_of
from agents.measure.analysis.opinions import CERTAIN_DEATH, MoveSearch, Opinions, by_move
from agents.measure.analysis.snake_game import Position, SnakeGame
from agents.measure.analysis.win_probability import WinProbability, group_of
from agents.parallel import Tell, spread
from agents.search.evaluation.evaluate import SURE

NODES = 50_000
"""Nodes per turn by default."""
CLOSER = 8
"""How many times as many nodes the turns around the loss get, so that it isn't blamed on a turn
that was lost before.
"""
REAL_CHANCE = 0.2
"""A game is still open while the best move has this share of an equal chance: 10 % in a duel, 5 %
among four.
"""
_LOOKS = 12
"""At most so many turns around the loss are searched again."""
_CHUNK = 4
"""Turns that a process analyses before it reports its progress."""


@dataclass(frozen=True)
class Turn:
    """A turn of the game as the search sees it. Scores and probabilities are in the order up, down,
    left, right.
    """

    turn: int
    scores: tuple[int, int, int, int]
    """The search's scores. The game itself may have shown the snake's move to lose; then its score
    says so.
    """
    probabilities: tuple[float, float, float, float]
    """The probability of winning after each move, from 0 to 1."""
    safe: tuple[bool, bool, bool, bool]
    """Whether a move isn't certain death."""
    move: int | None
    """What the snake played; None if the recording doesn't tell."""
    depth: int
    group: str = ""
    """Whose curve of `win_probability` gave the probabilities."""

    @property
    def best(self) -> int:
        """Return the move with the best score: of several, the one that was played."""
        return max(range(4), key=lambda move: (self.scores[move], move == self.move))

    @property
    def chance(self) -> float:
        """Return the probability of winning with the best move."""
        return self.probabilities[self.best]

    @property
    def points_lost(self) -> float:
        """Return what the snake's move is expected to cost, in hundredths of a won game; 0 if it
        isn't known.
        """
        if self.move is None:
            return 0.0
        return 100 * max(0.0, self.chance - self.probabilities[self.move])

    @property
    def move_class(self) -> MoveClass:
        """Return the class of the snake's move."""
        if self.move is None:
            return "unknown"
        return class_of(self.points_lost, choices=sum(self.safe))


@dataclass(frozen=True)
class Analysis:
    """The turns of a snake's game as the search sees them, and where the game was lost."""

    game: SnakeGame
    turns: tuple[Turn, ...]
    lost: int | None
    """The place in `turns` at which the game was lost; None if the snake didn't lose."""
    last_chance: int | None
    """The place in `turns` of the last turn with a move that isn't proven to lose; None if the
    snake didn't lose, or if no turn has one."""
    nodes: int


def analyse(
    game: SnakeGame,
    *,
    nodes: int,
    curves: WinProbability,
    pool: ProcessPoolExecutor | None = None,
    tell: Tell = lambda *_: None,
) -> Analysis:
    """Analyse a game with `nodes` nodes per turn, in the processes of `pool`. `tell` reports
    progress.
    """
    positions = game.positions
    chunks = [positions[n : n + _CHUNK] for n in range(0, len(positions), _CHUNK)]
    judged = list(chain.from_iterable(spread(pool, partial(_judge, nodes=nodes), chunks, tell)))
    has_lost = game.result in ("lost", "draw") and game.death is not None
    if not has_lost:
        return Analysis(game, _turns(game, judged, curves), None, None, nodes)
    judged, last_chance = _look_closer(positions, judged, nodes)
    turns = _turns(game, judged, curves)
    return Analysis(game, turns, lost_turn(positions, turns, last_chance), last_chance, nodes)


class Judged(NamedTuple):
    """What the search thinks of a position, and whether the learned evaluation of duels scored
    it.
    """

    opinions: Opinions
    is_learned: bool

    def with_score(self, move: int, most: int) -> Judged:
        """Return a copy in which a move has at most this score."""
        scores = list(self.opinions.scores)
        scores[move] = min(scores[move], most)
        return self._replace(opinions=replace(self.opinions, scores=by_move(scores.__getitem__)))


@lru_cache(maxsize=1)
def _search(nodes: int) -> MoveSearch:
    """A process's search, whose arrays are made once."""
    return MoveSearch(nodes)


def _judge(positions: Sequence[Position], *, nodes: int) -> list[Judged]:
    search = _search(nodes)
    states = [position.state() for position in positions]
    return [Judged(search(state, slot), search.is_learned(state)) for state, slot in states]


def with_hindsight(
    positions: Sequence[Position], judged: Sequence[Judged]
) -> tuple[list[Judged], int | None]:
    """Carry the loss back from the death, turn by turn, to the last turn with a move that isn't
    proven to lose.

    A move into a position in which every move loses counts as lost, too, even if the search before
    it didn't look that far. Returns the opinions, with such moves scored as losses, and the place
    of that turn; None if every turn is proven lost."""
    corrected = list(judged)
    most = CERTAIN_DEATH
    for n in reversed(range(len(corrected))):
        move = positions[n].move
        if move is not None:
            corrected[n] = corrected[n].with_score(move, most)
        best_score = corrected[n].opinions.best_score
        if best_score >= -SURE:
            return corrected, n
        # Scores of losses count the turns: a turn earlier, the same death is a turn farther away.
        most = min(-SURE - 1, best_score + 1)
    return corrected, None


def judge(position: Position, *, nodes: int, curves: WinProbability) -> Turn:
    """Return what the search thinks of one position with `nodes` nodes."""
    (judged,) = _judge([position], nodes=nodes)
    return _turn(position, judged, curves)


def _look_closer(
    positions: Sequence[Position], judged: Sequence[Judged], nodes: int
) -> tuple[list[Judged], int | None]:
    """Carry the loss back as `with_hindsight` does, and search the turn where it ends with more
    nodes.

    That may prove the turn lost as well; then it is repeated from there, `_LOOKS` times at most."""
    judged = list(judged)
    corrected, place = with_hindsight(positions, judged)
    for _ in range(_LOOKS):
        if place is None:
            break
        (judged[place],) = _judge(positions[place : place + 1], nodes=CLOSER * nodes)
        last_place = place
        corrected, place = with_hindsight(positions, judged)
        if place == last_place:
            break
    return corrected, place


def lost_turn(
    positions: Sequence[Position], turns: Sequence[Turn], last_chance: int | None
) -> int | None:
    """Return the place of the last fault, up to `last_chance`, that was made with a real chance and
    never recovered from. If there was no such fault, return `last_chance`.

    A real chance is at least `REAL_CHANCE` of an equal share. A snake recovers from a fault if a
    later chance is as good as the one before it."""
    if last_chance is None:
        return None
    best_later = 0.0
    for n in reversed(range(last_chance + 1)):
        chance = turns[n].chance
        is_real = chance >= REAL_CHANCE / len(positions[n].living)
        if is_real and chance > best_later and turns[n].move_class in FAULTS:
            return n
        best_later = max(best_later, chance)
    return last_chance


def _turns(game: SnakeGame, judged: Sequence[Judged], curves: WinProbability) -> tuple[Turn, ...]:
    pairs = zip(game.positions, judged, strict=True)
    return tuple(_turn(position, judgement, curves) for position, judgement in pairs)


def _turn(position: Position, judged: Judged, curves: WinProbability) -> Turn:
    opinions = judged.opinions
    snakes = len(position.living)
    group = group_of(snakes, judged.is_learned)
    curve = curves.curves[group]
    return Turn(
        turn=position.turn,
        scores=opinions.scores,
        probabilities=by_move(lambda move: curve(opinions.scores[move])),
        safe=opinions.safe,
        move=position.move,
        depth=opinions.depth,
        group=group,
    )
