"""Works out which snakes of a request are alive. Arena leaves eliminated snakes in `board.snakes`,
unmarked, as they died.

An engine asks for moves after its elimination stage, and neither positions nor lengths change
between that stage and the request. So the stage can be repeated on the request: of the snakes that
moved into this board, one is dead exactly if its head lies on its own body, on the body of another
that moved, or on the head of another that moved and is at least as long (rule E). Two requests of
consecutive turns show who moved. A single one nearly always does: `lives_in` says how.

The official engine sends only living snakes. The rule finds all of them alive, so it works for any
engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Point = tuple[int, int]

_ARENA_VERSION = "v1.0.0"
_LAST_TURN = 5000
_ARENA_RULESETS = ("standard", "royale", "constrictor", "solo")
_NO_LATENCY = ("", "0", 0)


class Life(Enum):
    """What is known of a snake. Play against an UNDECIDED one as if it lived."""

    LIVES = "lives"
    DEAD = "dead"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class SightedSnake:
    """A snake as a request shows it."""

    id: str
    body: tuple[Point, ...]
    """Points (x, y), head first, with repeats."""
    health: int
    has_answered: bool
    """Whether it has a latency other than "0", or a shout: it then lived on the turn before."""

    @classmethod
    def of(cls, snake: Mapping[str, Any]) -> SightedSnake:
        """Read a snake in webhook form, whose `id`, `health` and `body` are well-formed."""
        return cls(
            id=snake["id"],
            body=tuple((point["x"], point["y"]) for point in snake["body"]),
            health=snake["health"],
            has_answered=_has_answered(snake.get("latency"), snake.get("shout")),
        )

    @property
    def mark(self) -> tuple[Point | None, int]:
        """The head, and a number that changes with the body and the health."""
        return next(iter(self.body), None), hash((self.body, self.health))


@dataclass(frozen=True)
class LifeRules:
    """The rules that decide which snakes are alive. Arena's peculiarities apply only if
    `is_arena`.
    """

    is_arena: bool = False
    is_solo: bool = False
    is_constrictor: bool = False
    bodies_collide: bool = True
    hazards_heal: bool = False

    @classmethod
    def of(cls, game: Mapping[str, Any]) -> LifeRules:
        """Read a request's `game` object. Missing or malformed fields count as in a standard
        game.
        """
        ruleset = _object(game.get("ruleset"))
        settings = _object(ruleset.get("settings"))
        damage = settings.get("hazardDamagePerTurn")
        return cls(
            is_arena=ruleset.get("version") == _ARENA_VERSION
            and not game.get("source")
            and ruleset.get("name") in _ARENA_RULESETS,
            is_solo=ruleset.get("name") == "solo",
            is_constrictor=ruleset.get("name") in ("constrictor", "wrapped_constrictor"),
            bodies_collide=_object(settings.get("squad")).get("allowBodyCollisions") is not True,
            hazards_heal=isinstance(damage, int) and damage < 0,
        )


@dataclass(frozen=True)
class Sighting:
    """All snakes of one request, the dead ones included, in the order of the request."""

    turn: int
    width: int
    height: int
    snakes: tuple[SightedSnake, ...]
    you: int | None = None
    """The place of the snake that was asked for a move and so lives. None at the end of a game,
    where it may be dead.
    """
    rules: LifeRules = LifeRules()
    is_final: bool = False
    """Whether it is the last board: the game is over, and at most one snake need live."""

    def is_on_board(self, place: int) -> bool:
        """Return whether the snake has health and is on the board; otherwise it is dead."""
        snake = self.snakes[place]
        is_inside = all(0 <= x < self.width and 0 <= y < self.height for x, y in snake.body)
        return snake.health > 0 and bool(snake.body) and is_inside

    @classmethod
    def of(
        cls,
        snakes: Sequence[Mapping[str, Any]],
        *,
        turn: int,
        width: int,
        height: int,
        rules: LifeRules | None = None,
        you: int | None = None,
        is_final: bool = False,
    ) -> Sighting:
        """Make a sighting of snakes in webhook form, whose `id`, `health` and `body` are
        well-formed.
        """
        return cls(
            turn,
            width,
            height,
            tuple(map(SightedSnake.of, snakes)),
            you=you,
            rules=rules or LifeRules(),
            is_final=is_final,
        )


class LifeHistory:
    """What one snake's requests of one game have shown so far. Consecutive turns make `see` exact.

    It keeps a head and a hash per snake, not the boards. It forgets everything if the turn goes
    back, or comes again with another board."""

    def __init__(self) -> None:
        self._turn = -1
        self._marks: dict[str, tuple[Point | None, int]] = {}
        self._dead: frozenset[str] = frozenset()
        self._lives: tuple[Life, ...] = ()

    def see(self, sighting: Sighting) -> tuple[Life, ...]:
        """Return each snake's life, and remember this sighting."""
        marks = {snake.id: snake.mark for snake in sighting.snakes}
        is_same_board = sighting.turn == self._turn and marks == self._marks
        if is_same_board and len(self._lives) == len(sighting.snakes):
            return self._lives
        lives = lives_in(sighting, self)
        self._turn = sighting.turn
        self._marks = marks
        self._lives = lives
        self._dead = frozenset(
            snake.id
            for snake, life in zip(sighting.snakes, lives, strict=True)
            if life is Life.DEAD
        )
        return lives

    def moved(self, sighting: Sighting) -> int | None:
        """Return who moved into this board, as bits by place; None unless the turn before is
        remembered. At least the snake that was asked has moved.
        """
        if self._turn != sighting.turn - 1 or not self._is_evidence(sighting):
            return None
        moved = _bits(snake.mark[0] != self._mark(snake)[0] for snake in sighting.snakes)
        return moved or None

    def stayed_dead(self, sighting: Sighting) -> int:
        """Return who was certainly dead before this turn, as bits by place.

        A living snake loses health or grows, unless hazards heal; then only the known dead count.
        """
        if self._turn >= sighting.turn - 1 or not self._is_evidence(sighting):
            return 0
        heals = sighting.rules.hazards_heal
        return _bits(
            snake.mark == self._mark(snake) and (snake.id in self._dead or not heals)
            for snake in sighting.snakes
        )

    def _mark(self, snake: SightedSnake) -> tuple[Point | None, int]:
        return self._marks.get(snake.id, (None, 0))

    def _is_evidence(self, sighting: Sighting) -> bool:
        """Whether the game has gone on since then. A sender that repeats a board under new turns
        proves nothing.
        """
        if not self._marks:
            return False
        if sighting.you is None:
            return True
        you = sighting.snakes[sighting.you]
        head_before, number_before = self._mark(you)
        head, number = you.mark
        if self._turn == sighting.turn - 1:
            return head != head_before
        return number != number_before


def lives_in(sighting: Sighting, history: LifeHistory | None = None) -> tuple[Life, ...]:
    """Return the life of each snake of a request, in its order.

    With a `history` up to the turn before, nobody is UNDECIDED. From a single request two kinds of
    snakes are: one without latency and shout, with a straight neck, that touches no snake that
    certainly lives (it was late, or died earlier); and one whose head is on such a snake.
    """
    return _Inference(sighting, history or LifeHistory()).solved()


def death_of(snake: SightedSnake, sighting: Sighting) -> str:
    """Return the likely cause of a dead snake's death, by the name that the official engine gives
    it.
    """
    place = sighting.snakes.index(snake)
    head = snake.body[0] if snake.body else None
    others = [other for other in sighting.snakes if other is not snake]
    if snake.health <= 0:
        return "out-of-health"
    if not sighting.is_on_board(place):
        return "wall-collision"
    if _bites_itself(snake.body):
        return "snake-self-collision"
    is_met = any(other.body[:1] == (head,) for other in others)
    is_on_body = any(head in other.body[1:] for other in others)
    if is_met and not is_on_body:
        return "head-collision"
    return "snake-collision"


class _Inference:
    """The steps from what is certain to what follows. Sets of snakes are bits of an integer: bit i
    is snake i.
    """

    def __init__(self, sighting: Sighting, history: LifeHistory) -> None:
        self._sighting = sighting
        self._snakes = sighting.snakes
        self._everybody = (1 << len(self._snakes)) - 1
        self._removed = _bits(not sighting.is_on_board(n) for n in range(len(self._snakes)))
        you = 0
        if sighting.you is not None:
            you = 1 << sighting.you
        self._alive = you
        self._dead = self._removed & ~you
        # Who certainly moved into this board, and who certainly didn't.
        self._moved = self._still = 0
        if sighting.turn == 0:
            self._alive = self._everybody & ~self._dead
        elif (moved := history.moved(sighting)) is not None:
            self._moved = moved | you
            self._still = self._everybody & ~moved & ~you
        else:
            self._moved = you | self._certainly_moved()
            self._still = (history.stayed_dead(sighting) | self._certainly_still()) & ~self._moved
        self._dead |= self._still
        self._index()

    def _certainly_moved(self) -> int:
        if self._sighting.turn == 1:
            return self._everybody
        if self._tells_by_length():
            return _bits(len(snake.body) == self._full_length for snake in self._snakes)
        return _bits(snake.has_answered for snake in self._snakes)

    def _certainly_still(self) -> int:
        """Return who is dead for longer than a turn, as bits by place. Only Arena's habits tell."""
        turn = self._sighting.turn
        if turn < 2 or not self._sighting.rules.is_arena:
            return 0
        if self._sighting.rules.is_constrictor:
            if self._tells_by_length():
                return self._everybody
            return 0
        # An answer over a network takes time, so "0" is a timeout, after which a snake goes
        # straight on.
        bent = _bits(not snake.has_answered and _is_bent(snake.body) for snake in self._snakes)
        # Whoever never ate loses health on each turn.
        fresh = _bits(len(snake.body) == 3 and snake.health > 100 - turn for snake in self._snakes)
        return bent | fresh

    @property
    def _full_length(self) -> int:
        return max(3, self._sighting.turn + 2)

    def _tells_by_length(self) -> bool:
        """Whether a body's length tells if its snake has moved.

        In Arena's constrictor games all that move are equally long. Ours is too, unless somebody
        made the board up."""
        sighting = self._sighting
        if not (sighting.rules.is_arena and sighting.rules.is_constrictor):
            return False
        return sighting.you is None or len(self._snakes[sighting.you].body) == self._full_length

    def _index(self) -> None:
        """Note who lies where, apart from the snakes that the engine removed before it looked for
        collisions.
        """
        self._on: dict[Point, int] = defaultdict(int)
        self._trails: dict[Point, int] = defaultdict(int)
        self._heads: dict[Point, int] = defaultdict(int)
        for bit, snake in self._bodies():
            self._heads[snake.body[0]] |= bit
            for point in set(snake.body[1:]):
                self._trails[point] |= bit
            for point in set(snake.body):
                self._on[point] |= bit

    def _bodies(self) -> list[tuple[int, SightedSnake]]:
        return [
            (1 << n, snake) for n, snake in enumerate(self._snakes) if not self._removed >> n & 1
        ]

    def solved(self) -> tuple[Life, ...]:
        num_decided = -1
        while num_decided != (self._alive | self._dead).bit_count():
            num_decided = (self._alive | self._dead).bit_count()
            for bit, snake in self._bodies():
                if not (self._alive | self._dead) & bit:
                    self._decide(bit, snake)
            self._decide_by_number()
        return tuple(self._life(1 << n) for n in range(len(self._snakes)))

    def _decide(self, bit: int, snake: SightedSnake) -> None:
        killers = self._killers(bit, snake)
        is_killed = killers & self._moved
        touches_the_living = self._touches(bit, snake) & self._alive
        if _bites_itself(snake.body) or is_killed or touches_the_living:
            self._dead |= bit
        elif bit & self._moved and not killers & ~self._still:
            self._alive |= bit

    def _killers(self, bit: int, snake: SightedSnake) -> int:
        """Return which others kill the snake if they moved into this board, as it did. They are
        bits by place.
        """
        head = snake.body[0]
        rivals = self._heads[head] & ~bit
        length = len(snake.body)
        killers = _bits(
            rivals >> n & 1 and len(other.body) >= length for n, other in enumerate(self._snakes)
        )
        if self._sighting.rules.bodies_collide:
            killers |= self._trails[head] & ~bit
        return killers

    def _touches(self, bit: int, snake: SightedSnake) -> int:
        """Return whom the snake shares a cell with, as bits by place.

        Two living snakes never do: the later to enter has died, or the shorter, or both."""
        if not self._sighting.rules.bodies_collide:
            return 0
        touched = 0
        for point in snake.body:
            touched |= self._on[point]
        return touched & ~bit

    def _decide_by_number(self) -> None:
        """Decide by the number of the living: a game goes on while two live, unless it is a solo
        one, and is over when at most one does.
        """
        sighting = self._sighting
        if sighting.rules.is_solo:
            return
        open_places = self._everybody & ~self._alive & ~self._dead
        if sighting.is_final:
            if self._alive and sighting.rules.is_arena and sighting.turn < _LAST_TURN:
                self._dead |= open_places
        elif (
            self._alive == 1 << (sighting.you or 0)
            and open_places.bit_count() == 1
            and sighting.you is not None
        ):
            self._alive |= open_places
        self._moved |= self._alive

    def _life(self, bit: int) -> Life:
        if self._alive & bit:
            return Life.LIVES
        if self._dead & bit:
            return Life.DEAD
        return Life.UNDECIDED


def _has_answered(latency: object, shout: object) -> bool:
    has_shouted = isinstance(shout, str) and shout != ""
    has_latency = isinstance(latency, str | int | float) and latency not in _NO_LATENCY
    return has_shouted or has_latency


def _bites_itself(body: tuple[Point, ...]) -> bool:
    """Whether the head lies on an entry behind it.

    A snake that lies on one cell only hasn't moved, and so has bitten nobody."""
    return body[0] in body[1:] and len(set(body)) > 1


def _is_bent(body: tuple[Point, ...]) -> bool:
    if len(body) < 3:
        return False
    (x0, y0), (x1, y1), (x2, y2) = body[:3]
    return (x0 - x1, y0 - y1) != (x1 - x2, y1 - y2)


def _bits(flags: Iterable[Any]) -> int:
    """Return an integer with bit i set where flag i is true."""
    return sum(1 << n for n, flag in enumerate(flags) if flag)


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}
