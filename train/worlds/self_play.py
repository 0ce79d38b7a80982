"""Self-play against a pool of past selves and fixed opponents. The hardest to beat are met most
often.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import make
from agents.agent import Agent
from envs.api import BatchEnv
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.errors import ConfigError
from envs.wrappers import BatchWrapper

if TYPE_CHECKING:
    import torch

LEARNER = -1
_UNKNOWN = 0.5


@dataclass
class Opponent:
    """A member of the pool."""

    name: str
    player: Agent | torch.nn.Module
    """An agent, or a network that was the policy earlier. The network takes its likeliest
    action.
    """
    win_rate: float = _UNKNOWN
    """How often the learner outlived it lately, as a moving mean. Dying on the same turn counts
    half.
    """


class Pool:
    """Fixed opponents and up to `most_past` past selves. They are drawn with a weight of (1 − win
    rate)^`exponent` + `least`.

    This is prioritised fictitious self-play (Vinyals et al., Nature 575, 2019, "hard" weighting).
    If there is no more room, a new past self takes the place of the one that is beaten most often.
    """

    def __init__(
        self,
        fixed: Sequence[str],
        *,
        most_past: int,
        exponent: float,
        least: float = 0.02,
        memory: int = 200,
    ) -> None:
        self.fixed = [Opponent(name, make(name)) for name in fixed]
        self.past: list[Opponent] = []
        self.most_past = most_past
        self.exponent = exponent
        self.least = least
        self.rate = 1 / memory
        self._born = 0

    @property
    def opponents(self) -> list[Opponent]:
        """Return all opponents, the fixed ones first."""
        return [*self.fixed, *self.past]

    def add(self, network: torch.nn.Module) -> None:
        """Add a copy of the current policy."""
        self._born += 1
        self.past.append(Opponent(f"past {self._born}", _copy(network)))

    def progress(self) -> dict[str, Any]:
        """Return the members with their win rates, and the weights of past selves."""
        past = [
            (opponent.name, opponent.win_rate, _weights(opponent.player)) for opponent in self.past
        ]
        return {
            "born": self._born,
            "fixed": {opponent.name: opponent.win_rate for opponent in self.fixed},
            "past": past,
        }

    def carry_on(self, progress: dict[str, Any], network: torch.nn.Module) -> None:
        """Continue from `progress`. Past selves are networks like `network`."""
        self._born = progress["born"]
        self.past = []
        for opponent in self.fixed:
            opponent.win_rate = progress["fixed"].get(opponent.name, _UNKNOWN)
        for name, win_rate, weights in progress["past"]:
            player = _copy(network)
            player.load_state_dict(weights)
            self.past.append(Opponent(name, player, win_rate))

    def thin(self) -> list[Opponent]:
        """Remove the past selves that are too many, those beaten most often first. Returns them."""
        if len(self.past) <= self.most_past:
            return []
        # The newest has had no chance to be beaten yet.
        gone = sorted(self.past[:-1], key=lambda opponent: -opponent.win_rate)[
            : len(self.past) - self.most_past
        ]
        self.past = [opponent for opponent in self.past if opponent not in gone]
        return gone

    def draw(self, random: np.random.Generator, size: int) -> list[Opponent]:
        """Draw `size` opponents."""
        everybody = self.opponents
        weights = np.array(
            [
                max(0.0, 1 - opponent.win_rate) ** self.exponent + self.least
                for opponent in everybody
            ]
        )
        return [
            everybody[k] for k in random.choice(len(everybody), size, p=weights / weights.sum())
        ]

    def note(self, opponent: Opponent, score: float) -> None:
        """Note a meeting: the learner outlived the opponent (1), died on the same turn (½), or died
        before it (0).
        """
        opponent.win_rate += self.rate * (score - opponent.win_rate)


def _copy(network: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(network).requires_grad_(False).eval()


def _weights(network: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.cpu() for name, tensor in network.state_dict().items()}


class SelfPlay(BatchWrapper):
    """Battlesnake in which some snakes are played by opponents instead of the learner.

    * `opponents`: The agents that are in the pool from the start, by name.
    * `share`: The share of the games that have opponents, 0 to 1, drawn as each game begins. In the
      other games the learner plays all snakes.
    * `learners`: The slots of the learner in a game with opponents. Slots and opponents are drawn.
    * `past_every`: The updates after which a copy of the policy joins the pool; never, if None.
    * `most_past`: The past selves that the pool keeps at most.
    * `exponent`: How much more often the opponents that are hardest to beat are met; with 0 all are
      met alike.
    * `seed`: Decides the draws.
    * `pool`: A pool that several worlds share.

    Rows of opponents are never `valid`, get no rewards and end no episodes; `advance` moves them. A
    runner calls `remember(network)` with the current policy after each update. Checkpoints hold the
    pool and what is known of its members.

    `drain_episodes` also has `league_<opponent>` for the fixed opponents and `league_past`: the
    running share of meetings in which the learner outlived them. It is the same for all episodes of
    a call, so its mean is that share.

    Raises `ConfigError` for any world other than Battlesnake with two or more snakes, and for
    options out of range."""

    world: BattlesnakeVectorEnv

    def __init__(
        self,
        world: BatchEnv,
        *,
        opponents: Sequence[str] = (),
        share: float = 0.5,
        learners: int = 1,
        past_every: int | None = 20,
        most_past: int = 8,
        exponent: float = 1.0,
        seed: int = 0,
        pool: Pool | None = None,
    ) -> None:
        if not isinstance(world, BattlesnakeVectorEnv) or not 1 <= learners < world.rows_per_game:
            raise ConfigError(
                f"self_play with {learners} learners needs Battlesnake with more snakes than that"
                " in a game"
            )
        if (
            not 0 <= share <= 1
            or exponent < 0
            or most_past < 0
            or (past_every is not None and past_every < 1)
        ):
            raise ConfigError(
                f"self_play: share {share} must be from 0 to 1, exponent {exponent} and most_past"
                f" {most_past} at least 0, past_every {past_every} at least 1 or null"
            )
        if not isinstance(seed, int) or seed < 0:
            raise ConfigError(
                f"self_play: seed is {seed!r}; it must be a whole number of at least 0"
            )
        if not opponents and (past_every is None or not most_past):
            raise ConfigError(
                "self_play has neither opponents nor past selves; name opponents, or leave"
                " self_play out"
            )
        super().__init__(world)
        self.pool = pool or Pool(opponents, most_past=most_past, exponent=exponent)
        self.share = share
        self.learners = learners
        self.past_every = past_every
        self._seed = seed
        self._random = np.random.default_rng(seed)
        self._calls = 0
        shape = (world.num_games, world.rows_per_game)
        self._seats: list[list[Opponent | None]] = [[None] * shape[1] for _ in range(shape[0])]
        self._mine = np.ones(shape, np.bool_)
        self._lasted = np.zeros(shape, np.int64)
        self._columns: list[dict[str, np.ndarray]] = []

    def remember(self, network: torch.nn.Module) -> None:
        """Count the calls; every `past_every` of them a copy of `network` joins the pool."""
        self._calls += 1
        if self.past_every and self.pool.most_past and self._calls % self.past_every == 0:
            self.pool.add(network)
            for gone in self.pool.thin():
                # Games that go on against it are finished by its successor.
                for seats in self._seats:
                    seats[:] = [self.pool.past[-1] if seat is gone else seat for seat in seats]

    def progress(self) -> dict[str, Any]:
        """Return the number of `calls` of `remember`, and the `pool`: past selves with their
        weights, and all win rates.
        """
        return {"calls": self._calls, "pool": self.pool.progress()}

    def carry_on(self, progress: dict[str, Any], network: torch.nn.Module) -> None:
        """Continue with the pool. Its past selves become copies of `network` with the weights that
        were kept.
        """
        self._calls = progress["calls"]
        self.pool.carry_on(progress["pool"], network)

    def restart(self, seed: int | None = None) -> None:
        if seed is not None:
            self._random = np.random.default_rng([self._seed, seed])
        super().restart(seed)
        self._columns.clear()
        self._draw_seats(np.arange(self.num_games))
        self._hide_opponents()

    def advance(self, actions: np.ndarray) -> None:
        mine = self._mine.ravel().copy()
        actions = np.array(actions, np.int64)
        self._move_opponents(actions)
        super().advance(actions)
        ended = self.terminated | self.truncated
        if ended.any():
            self._note_endings(self.world.drain_episodes(), mine)
        self.rewards = np.where(mine, self.rewards, np.float32(0))
        self.terminated = self.terminated & mine
        self.truncated = self.truncated & mine
        self._hide_opponents()

    def drain_episodes(self) -> dict[str, np.ndarray]:
        # The world's own, which is empty by now, for its columns if nothing ended.
        parts = [*self._columns, self.world.drain_episodes()]
        self._columns = []
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[-1]}
        rates = {opponent.name: opponent.win_rate for opponent in self.pool.fixed}
        past = [opponent.win_rate for opponent in self.pool.past]
        rates["past"] = float(np.mean(past)) if past else _UNKNOWN
        return columns | {
            f"league_{name}": np.full(len(columns["row"]), rate) for name, rate in rates.items()
        }

    def _hide_opponents(self) -> None:
        self.valid = self.world.valid & self._mine.ravel()

    def _draw_seats(self, games: np.ndarray) -> None:
        snakes = self.rows_per_game
        for game in games:
            self._seats[game] = [None] * snakes
            if self.pool.opponents and self._random.random() < self.share:
                slots = self._random.permutation(snakes)[self.learners :]
                for slot, opponent in zip(
                    slots, self.pool.draw(self._random, len(slots)), strict=True
                ):
                    self._seats[game][slot] = opponent
            self._mine[game] = [seat is None for seat in self._seats[game]]
        self._lasted[games] = 0

    def _move_opponents(self, actions: np.ndarray) -> None:
        rows_of: dict[int, tuple[Opponent, list[int]]] = {}
        for row in np.flatnonzero(self.world.valid & ~self._mine.ravel()).tolist():
            opponent = self._seats[row // self.rows_per_game][row % self.rows_per_game]
            assert opponent is not None
            rows_of.setdefault(id(opponent), (opponent, []))[1].append(row)
        for opponent, rows in rows_of.values():
            places = np.array(rows)
            if isinstance(opponent.player, Agent):
                actions[places] = self._act_as_agent(opponent.player, places)
            else:
                actions[places] = self._act_as_network(opponent.player, places)

    def _act_as_agent(self, agent: Any, rows: np.ndarray) -> np.ndarray:
        state = self.world.state
        kind = self.world.observation
        boards, slots = np.divmod(rows, self.rows_per_game)
        moves = agent.act_batch(state, boards, slots)
        every = np.arange(kind.num_actions)
        offered = kind.to_moves(
            state, boards.repeat(len(every)), slots.repeat(len(every)), np.tile(every, len(rows))
        )
        return (offered.reshape(len(rows), -1) == moves[:, None]).argmax(1)

    def _act_as_network(self, network: Any, rows: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode():
            device = next(network.parameters()).device
            observations = torch.from_numpy(self.world.observations[rows]).to(device)
            logits = network(observations)[0].float().cpu().numpy()
        mask = self.world.action_mask
        if mask is not None:
            logits = np.where(mask[rows], logits, -np.inf)
        return logits.argmax(1)

    def _note_endings(self, columns: dict[str, np.ndarray], mine: np.ndarray) -> None:
        rows = columns["row"]
        self._columns.append({name: column[mine[rows]] for name, column in columns.items()})
        games, slots = np.divmod(rows, self.rows_per_game)
        self._lasted[games, slots] = columns["length"] + columns["won"]
        over = np.unique(games[columns["game_over"]])
        for game in over:
            self._rate(game)
        self._draw_seats(over)

    def _rate(self, game: int) -> None:
        lasted = self._lasted[game]
        for slot, opponent in enumerate(self._seats[game]):
            if opponent is not None:
                for own in np.flatnonzero(self._mine[game]):
                    self.pool.note(opponent, 0.5 + 0.5 * float(np.sign(lasted[own] - lasted[slot])))
