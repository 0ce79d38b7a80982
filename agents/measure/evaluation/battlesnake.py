"""Measures an agent by many parallel games against others, with confidence intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from agents.agent import Agent
from agents.registry import make
from envs.battlesnake.games import continue_games, play_turn, start_games
from envs.battlesnake.maps import check_game
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ALIVE, CAUSE_NAMES, MAX_BOARDS, NOBODY, State
from envs.battlesnake.vector_env import MAX_TURNS
from envs.common.columns import in_columns
from envs.common.errors import ConfigError, check_range


@dataclass(frozen=True)
class GameResults:
    """The results of G games among A agents. `[g, a]` is agent a in game g, where a is the agent's
    place in the list and not its seat.
    """

    names: list[str]
    winner: np.ndarray
    """int16 (G,): the agent that alone survived, or NOBODY."""
    capped: np.ndarray
    """bool (G,): whether the turn limit stopped the game while it was still open."""
    turns: np.ndarray
    """int32 (G,): the number of turns."""
    cause: np.ndarray
    """uint8 (G, A): ALIVE or the cause of death, by the codes of `envs.battlesnake.state`."""
    killer: np.ndarray
    """int16 (G, A): the agent that is blamed for the death, or NOBODY."""
    death_turn: np.ndarray
    """int32 (G, A): 0 for survivors."""
    snake_length: np.ndarray
    """int16 (G, A)."""
    food_eaten: np.ndarray
    """int16 (G, A)."""

    @property
    def wins(self) -> np.ndarray:
        """The number of games that each agent won, int64 (A,)."""
        return (self.winner[:, None] == np.arange(len(self.names))).sum(axis=0)

    @property
    def draws(self) -> int:
        """The number of games without a winner: the last snakes died on the same turn, or the turn
        limit came first.
        """
        return int((self.winner == NOBODY).sum())

    @property
    def points(self) -> np.ndarray:
        """The agents' points over all games, float64 (A,). In each game the k agents that last
        longest have 1/k each, and the others 0.
        """
        last_turns = np.where(self.cause == ALIVE, np.iinfo(np.int32).max, self.death_turn)
        first = last_turns == last_turns.max(axis=1, keepdims=True)
        return np.asarray((first / first.sum(axis=1, keepdims=True)).sum(axis=0))

    def causes(self, agent: int) -> dict[str, int]:
        """Return how often an agent, given by its place in the list, died of each cause; "survived"
        counts the other games.
        """
        codes, counts = np.unique(self.cause[:, agent], return_counts=True)
        return {
            CAUSE_NAMES[code] or "survived": int(count)
            for code, count in zip(codes, counts, strict=True)
        }


def play_games(
    agents: Sequence[Agent],
    *,
    num_games: int,
    width: int = 11,
    height: int = 11,
    settings: Settings | None = None,
    seed: int = 0,
    max_turns: int = 1000,
    on_turn: Callable[[int, int], None] | None = None,
    position: State | None = None,
) -> GameResults:
    """Play `num_games` games among `agents`, all side by side.

    In game g agent a sits in slot (a + g) mod A. So if the number of games is a multiple of A, each
    agent has each seat equally often. A game is a function of (seed, g) and the agents. An agent
    that appears several times in the list is asked once per turn for all its snakes. With one agent
    the games are played solo. `on_turn` is called after each turn with the turn's number and how
    many games are over.

    With a `position`, a state of one board, all games begin there, under its rules, and agent a
    plays slot a in each; the games differ in the food that appears and in the agents' random
    choices.

    Raises `ConfigError` for settings that no game can have, and if the number of agents differs
    from that of the position's snakes."""
    num_games = check_range("num_games", num_games, 1, MAX_BOARDS)
    max_turns = check_range("max_turns", max_turns, 1, MAX_TURNS)
    num_agents = len(agents)
    if position is not None:
        return _play_on(position, agents, num_games, seed, max_turns, on_turn)
    settings = settings or Settings()
    if num_agents == 1:
        settings = replace(settings, solo=True)
    check_game(settings, width=width, height=height, num_snakes=num_agents)
    state = State(num_games, width=width, height=height, num_snakes=num_agents, settings=settings)
    state.seed(seed)
    running = start_games(state)
    seats = (np.arange(num_agents) - np.arange(num_games)[:, None]) % num_agents
    _play(state, agents, seats, running, max_turns, on_turn)
    return _results(state, agents, seats, running)


def _play_on(
    position: State,
    agents: Sequence[Agent],
    num_games: int,
    seed: int,
    max_turns: int,
    on_turn: Callable[[int, int], None] | None,
) -> GameResults:
    if len(agents) != position.num_snakes:
        raise ConfigError(
            f"{len(agents)} agents for a position of {position.num_snakes} snakes; name one for"
            " each"
        )
    state = position.select(np.zeros(num_games, np.int64))
    state.seed(seed)
    running = continue_games(state)
    seats = np.tile(np.arange(len(agents)), (num_games, 1))
    _play(state, agents, seats, running, max_turns, on_turn)
    return _results(state, agents, seats, running)


def _play(
    state: State,
    agents: Sequence[Agent],
    seats: np.ndarray,
    running: np.ndarray,
    max_turns: int,
    on_turn: Callable[[int, int], None] | None,
) -> None:
    """Play all games to their ends. `seats` (G, slots) holds agent numbers. `running` stays True
    for games that the turn limit stops.
    """
    # The ids tell agents apart, because a user's own may be dataclasses, and then comparing two
    # with arrays in them raises.
    distinct = {id(agent): agent for agent in agents}
    numbers = {key: number for number, key in enumerate(distinct)}
    agent_numbers = np.array([numbers[id(agent)] for agent in agents])[seats]
    moves = np.zeros(agent_numbers.shape, np.int8)
    for turn in range(1, max_turns + 1):
        to_move = running[:, None] & (state.arrays.cause == ALIVE)
        for number, agent in enumerate(distinct.values()):
            boards, slots = np.nonzero(to_move & (agent_numbers == number))
            if len(boards):
                moves[boards, slots] = agent.act_batch(state, boards, slots)
        play_turn(state, moves, running)
        if on_turn:
            on_turn(turn, int((~running).sum()))
        if not running.any():
            return


def _results(
    state: State, agents: Sequence[Agent], seats: np.ndarray, running: np.ndarray
) -> GameResults:
    a = state.arrays
    slot_of = np.argsort(seats, axis=1)
    alive = a.cause == ALIVE
    has_winner = (alive.sum(axis=1) == 1) & ~running & (not state.rules.solo)
    survivor = np.take_along_axis(seats, alive.argmax(axis=1)[:, None], axis=1)[:, 0]
    killer_slot = np.maximum(a.killer, 0).astype(np.int64)
    killer = np.where(a.killer < 0, NOBODY, np.take_along_axis(seats, killer_slot, axis=1))

    def by_agent(column: np.ndarray) -> np.ndarray:
        return np.take_along_axis(column, slot_of, axis=1)

    return GameResults(
        names=[agent.name for agent in agents],
        winner=np.where(has_winner, survivor, NOBODY).astype(np.int16),
        capped=running.copy(),
        turns=a.turn.copy(),
        cause=by_agent(a.cause),
        killer=by_agent(killer).astype(np.int16),
        death_turn=by_agent(a.death_turn),
        snake_length=by_agent(a.length),
        food_eaten=by_agent(a.food_eaten),
    )


def wilson_interval(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion (E. B. Wilson, JASA 22, 1927); (0, 1) if n is
    0.

    Raises `ConfigError` unless 0 <= successes <= n and 0 < confidence < 1.
    """
    if not 0 <= successes <= n or not 0 < confidence < 1:
        raise ConfigError(
            f"no interval exists for {successes} successes of {n} at confidence {confidence}"
        )
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


@dataclass(frozen=True)
class MatchupScore:
    """The results of one agent in one match-up."""

    agent: str
    opponents: list[str]
    games: int
    wins: int
    draws: int
    """The number of games without a winner, including the capped ones."""
    capped: int
    """The number of games that the turn limit stopped."""
    mean_turns: float
    mean_length: float
    """The mean length of the agent's snake when its game ended or it died."""
    causes: dict[str, int]
    """How often the agent's snake died of each cause; "survived" counts the other games."""
    points: float
    """The agent's part of `GameResults.points`."""

    @property
    def win_rate(self) -> float:
        return self.wins / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the win rate."""
        return wilson_interval(self.wins, self.games)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a JSON-able dict."""
        return {**asdict(self), "win_rate": self.win_rate, "interval": list(self.interval)}


STANDARD_OPPONENTS: tuple[tuple[str, ...], ...] = (
    ("random",) * 3,
    ("greedy",) * 3,
    ("flood",) * 3,
    ("random",),
    ("greedy",),
    ("flood",),
)
"""The groups of opponents that an agent meets by default: each built-in opponent threefold, and in
a duel.
"""


def evaluate(
    agent: Agent,
    opponents: Sequence[Sequence[str | Agent]] = STANDARD_OPPONENTS,
    *,
    num_games: int = 200,
    width: int = 11,
    height: int = 11,
    settings: Settings | None = None,
    seed: int = 0,
    max_turns: int = 1000,
    on_score: Callable[[MatchupScore], None] | None = None,
    on_turn: Callable[[int, int], None] | None = None,
    position: State | None = None,
) -> list[MatchupScore]:
    """Play `agent` against each group of `opponents` (agents or their names), and return one score
    per group.

    `play_games` plays the games and calls `on_turn`. They begin at `position` if there is one, with
    `agent` in slot 0. `on_score` is called with each score as soon as its games are played. Raises
    what `play_games` and `agents.make` raise."""
    # All are made before any game, so that an unknown name is refused at once.
    groups = _make_all(opponents)
    scores = []
    for others in groups:
        results = play_games(
            [agent, *others],
            num_games=num_games,
            width=width,
            height=height,
            settings=settings,
            seed=seed,
            max_turns=max_turns,
            on_turn=on_turn,
            position=position,
        )
        scores.append(score(results))
        if on_score:
            on_score(scores[-1])
    return scores


def _make_all(groups: Sequence[Sequence[str | Agent]]) -> list[list[Agent]]:
    """The groups with agents in place of their names, one agent per name."""
    by_name: dict[str, Agent] = {}

    def agent_of(opponent: str | Agent) -> Agent:
        if not isinstance(opponent, str):
            return opponent
        if opponent not in by_name:
            by_name[opponent] = make(opponent)
        return by_name[opponent]

    return [list(map(agent_of, group)) for group in groups]


def score(results: GameResults, agent: int = 0) -> MatchupScore:
    """Return the results from the point of view of one agent, given by its place in the list."""
    return MatchupScore(
        agent=results.names[agent],
        opponents=[name for number, name in enumerate(results.names) if number != agent],
        games=len(results.winner),
        wins=int(results.wins[agent]),
        draws=results.draws,
        capped=int(results.capped.sum()),
        mean_turns=float(results.turns.mean()),
        mean_length=float(results.snake_length[:, agent].mean()),
        causes=results.causes(agent),
        points=float(results.points[agent]),
    )


def table(scores: Sequence[MatchupScore]) -> str:
    """Return the scores as lines of text, with 95 % Wilson intervals."""
    rows = [
        (
            opponents_text(s.opponents),
            str(s.games),
            f"{s.win_rate:.1%}",
            "{:.1%} to {:.1%}".format(*s.interval),
            f"{s.draws / s.games:.1%}",
            str(s.capped),
            f"{s.mean_turns:.1f}",
            f"{s.mean_length:.1f}",
        )
        for s in scores
    ]
    return in_columns(
        rows, ("against", "games", "won", "95 % interval", "drawn", "capped", "turns", "length")
    )


def opponents_text(opponents: Sequence[str]) -> str:
    """Return a group of opponents as text for people: "3 × flood", "flood (duel)", "nobody
    (solo)".
    """
    if not opponents:
        return "nobody (solo)"
    if len(opponents) == 1:
        return f"{opponents[0]} (duel)"
    parts = []
    for name, count in Counter(opponents).items():
        parts.append(name if count == 1 else f"{count} × {name}")
    return ", ".join(parts)
