"""Analyses one snake's game: what the search thinks of each turn's moves, what the played ones
cost, and where it was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from agents.measure.analysis.move_classes import FAULTS, MoveClass, class_of
from agents.measure.analysis.opinions import CERTAIN_DEATH, MoveSearch, Opinions
from agents.measure.analysis.played import Played, Position
from agents.measure.analysis.win_probability import WinProbability, group_of
from agents.parallel import Tell, spread
from agents.search.evaluation.evaluate import SURE

NODES = 50_000
"""Nodes per turn, unless told otherwise."""
CLOSER = 8
"""How many times the nodes are spent on the turns around the loss, so that it isn't blamed on a
turn that was lost before.
"""
REAL_CHANCE = 0.2
"""A game is still open while the best move has this share of an equal chance: 10 % in a duel, 5 %
among four.
"""
_LOOKS = 12
_CHUNK = 4


@dataclass(frozen=True)
class Turn:
    """A turn of the game as the search sees it. Scores and probabilities are in the order up, down,
    left, right.
    """

    turn: int
    scores: tuple[int, int, int, int]
    """The search's scores. What the game itself has shown to be lost is in the played move's
    score.
    """
    probabilities: tuple[float, float, float, float]
    """The probability of winning after each move, from 0 to 1."""
    safe: tuple[bool, bool, bool, bool]
    """Whether a move isn't certain death."""
    played: int | None
    """What was played; None if the recording doesn't tell."""
    depth: int
    group: str = ""
    """Whose curve of `win_probability` gave the probabilities."""

    @property
    def best(self) -> int:
        """Return the move with the best score: of several, the played one."""
        return max(range(4), key=lambda move: (self.scores[move], move == self.played))

    @property
    def chance(self) -> float:
        """Return the probability of winning with the best move."""
        return self.probabilities[self.best]

    @property
    def points_lost(self) -> float:
        """Return what the played move is expected to cost, in hundredths of a won game; 0 if it
        isn't known.
        """
        if self.played is None:
            return 0.0
        return 100 * max(0.0, self.chance - self.probabilities[self.played])

    @property
    def move_class(self) -> MoveClass:
        """Return the class of the played move."""
        if self.played is None:
            return "unknown"
        return class_of(self.points_lost, choices=sum(self.safe))


@dataclass(frozen=True)
class Analysis:
    """What an analysis found."""

    played: Played
    turns: tuple[Turn, ...]
    lost: int | None
    """The place in `turns` at which the game was lost; None if the snake didn't lose."""
    last_chance: int | None
    """The place in `turns` of the last turn with a move that isn't proven to lose; None if the
    snake didn't lose, or if no turn has one."""
    nodes: int


def analyse(
    played: Played,
    *,
    nodes: int,
    curves: WinProbability,
    pool: ProcessPoolExecutor | None = None,
    tell: Tell = lambda *_: None,
) -> Analysis:
    """Analyse a game with `nodes` nodes per turn, in the processes of `pool`. `tell` is called as
    it gets on.
    """
    chunks = [played.positions[n : n + _CHUNK] for n in range(0, len(played.positions), _CHUNK)]
    found = [
        one for some in spread(pool, partial(_judge, nodes=nodes), chunks, tell) for one in some
    ]
    has_lost = played.result in ("lost", "draw") and bool(played.ending["eliminatedCause"])
    if not has_lost:
        return Analysis(played, _turns(played, found, curves), None, None, nodes)
    found, last_chance = _look_closer(played.positions, found, nodes)
    turns = _turns(played, found, curves)
    return Analysis(
        played, turns, lost_turn(played.positions, turns, last_chance), last_chance, nodes
    )


class Judged(NamedTuple):
    """A position's opinions, and whether the learned evaluation of duels scored them."""

    opinions: Opinions
    is_learned: bool

    def with_score(self, move: int, most: int) -> Judged:
        """Return the same with at most this score for a move."""
        scores = list(self.opinions.scores)
        scores[move] = min(scores[move], most)
        up, down, left, right = scores
        return self._replace(opinions=replace(self.opinions, scores=(up, down, left, right)))


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

    A move that led to a position in which every move loses has lost, too, although the search
    before it may not have looked so far. Returns the opinions with that in them and the place of
    that turn, None if every turn is proven lost."""
    found = list(judged)
    most = CERTAIN_DEATH
    for n in reversed(range(len(found))):
        played = positions[n].played
        if played is not None:
            found[n] = found[n].with_score(played, most)
        if found[n].opinions.best_score >= -SURE:
            return found, n
        # Scores of losses count the turns: a turn earlier, the same death is a turn farther away.
        most = min(-SURE - 1, found[n].opinions.best_score + 1)
    return found, None


def judge(position: Position, *, nodes: int, curves: WinProbability) -> Turn:
    """Return what the search thinks of one position with `nodes` nodes."""
    (judged,) = _judge([position], nodes=nodes)
    return _turn(position, judged, curves)


def _look_closer(
    positions: Sequence[Position], judged: Sequence[Judged], nodes: int
) -> tuple[list[Judged], int | None]:
    """`with_hindsight`, where the turn that it ends at was searched with more nodes, and found not
    to be lost again.
    """
    found, place = with_hindsight(positions, judged)
    for _ in range(_LOOKS):
        if place is None:
            break
        own = list(judged)
        (own[place],) = _judge(positions[place : place + 1], nodes=CLOSER * nodes)
        judged = own
        looked_at = place
        found, place = with_hindsight(positions, judged)
        if place == looked_at:
            break
    return found, place


def lost_turn(
    positions: Sequence[Position], turns: Sequence[Turn], last_chance: int | None
) -> int | None:
    """Return the place of the last fault, up to `last_chance`, that was made with a real chance and
    never made good again.

    A real chance is at least `REAL_CHANCE` of an equal share. A fault is made good if the others
    don't use it, so that a later chance is as good as the one before. If there was no such fault,
    it is `last_chance`."""
    later = 0.0
    for n in reversed(range(0 if last_chance is None else last_chance + 1)):
        chance = turns[n].chance
        if (
            turns[n].move_class in FAULTS
            and chance > later
            and chance >= REAL_CHANCE / len(positions[n].living)
        ):
            return n
        later = max(later, chance)
    return last_chance


def _turns(played: Played, judged: Sequence[Judged], curves: WinProbability) -> tuple[Turn, ...]:
    return tuple(
        _turn(position, one, curves) for position, one in zip(played.positions, judged, strict=True)
    )


def _turn(position: Position, judged: Judged, curves: WinProbability) -> Turn:
    opinions = judged.opinions
    snakes = len(position.living)
    up, down, left, right = (
        curves(score, snakes=snakes, is_learned=judged.is_learned) for score in opinions.scores
    )
    chances = (up, down, left, right)
    group = group_of(snakes, judged.is_learned)
    return Turn(
        position.turn,
        opinions.scores,
        chances,
        opinions.safe,
        position.played,
        opinions.depth,
        group,
    )
