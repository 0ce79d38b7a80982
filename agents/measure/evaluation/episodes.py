"""Measures a policy in any world by the returns and lengths of its episodes, compared with random
play. Also plays episodes for films.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import envs
from agents.bundle import Bundle, is_bundle, load
from agents.player import Player
from agents.policy import onnx_steps, plays_battlesnake
from envs.api import BatchEnv
from envs.common.columns import in_columns
from envs.common.errors import ConfigError

GAMES_AT_ONCE = 64
POLICY = "policy"
RANDOM = "random"
_RESAMPLES = 2000
Decide = Callable[[BatchEnv, np.ndarray], np.ndarray]
"""A function from a world, and which of its rows begin an episode, bool (R,), to actions (R,). It
is called once per step.
"""
Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A network as a function from observations (R, …), and which of them begin an episode, bool (R,),
to logits float32 (R, A).
"""


@dataclass(frozen=True, kw_only=True)
class WorldScore:
    """The results of one player in one world."""

    player: str
    world: str
    episodes: int
    mean_return: float
    interval: tuple[float, float]
    """The 95 % interval of the mean return, by bootstrap over the episodes."""
    mean_length: float
    """The mean number of steps of an episode."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def bundle_of_a_world(spec: str) -> Bundle | None:
    """Return the bundle at `spec` (a path, a run, a champion's name, or an address on the Hub) if
    its policy plays another world than Battlesnake.

    Returns None for everything that plays Battlesnake, because `agents.make` makes that. Raises
    `BundleError` for a bad bundle."""
    if Player.of(spec).has_evaluation or not is_bundle(spec):
        return None
    bundle = load(spec)
    if plays_battlesnake(bundle.card):
        return None
    return bundle


def world_of(bundle: Bundle, **options: Any) -> BatchEnv:
    """Make the world in which a policy was trained, with `options` replacing those of training.

    The module that registers the world must have been imported. Raises `UnknownNameError` or
    `ConfigError` if the world can't be made here."""
    name = bundle.card.environment["name"]
    options = {**bundle.card.environment.get("options", {}), **options}
    if name not in envs.names():
        env_settings = bundle.card.config.get("env")
        modules = env_settings.get("imports") if isinstance(env_settings, dict) else None
        raise ConfigError(
            f"{bundle.path} was trained in the world {name!r}, which isn't registered here. Name"
            " the module that registers it: --imports MODULE (its configuration says"
            f" {modules or 'unknown'})"
        )
    try:
        return envs.make(name, **options)
    except TypeError as error:
        raise ConfigError(
            f"the world {name!r} can't be made with options {sorted(options)}: {error}"
        ) from error


def as_measured(bundle: Bundle, world: BatchEnv, *, seed: int, threads: int = 1) -> Decide:
    """Return the policy of a bundle as `world` measures it: with sampled or with the likeliest
    actions.
    """
    if world.samples_actions:
        return drawn(bundle, np.random.default_rng(seed), threads=threads)
    return likeliest(bundle, threads=threads)


def likeliest(bundle: Bundle, *, threads: int = 1) -> Decide:
    """Return the policy of a bundle as a function that takes the likeliest allowed action."""
    return by_logits(onnx_steps(bundle, threads))


def drawn(bundle: Bundle, generator: np.random.Generator, *, threads: int = 1) -> Decide:
    """Return the policy of a bundle as a function that samples among the allowed actions.

    A Q network's values aren't logits: its policy takes the highest.
    """
    if bundle.card.network["name"] == "q-network":
        return likeliest(bundle, threads=threads)
    return by_logits(onnx_steps(bundle, threads), generator)


def by_logits(answer: Answer, generator: np.random.Generator | None = None) -> Decide:
    """Return a function that takes the allowed action with the highest logit.

    With a `generator`, it samples from the softmax of the logits instead.
    """

    def decide(world: BatchEnv, begins: np.ndarray) -> np.ndarray:
        values = answer(world.observations, begins)
        if generator is not None:
            # An exponential race (Gumbel's trick) draws by the softmax of the logits.
            values = values + generator.gumbel(size=values.shape)
        if world.action_mask is not None:
            values = np.where(world.action_mask, values, -np.inf)
        return values.argmax(1)

    return decide


def at_random(seed: int) -> Decide:
    """Return a function that takes a uniformly random allowed action."""
    generator = np.random.default_rng(seed)

    def decide(world: BatchEnv, begins: np.ndarray) -> np.ndarray:
        values = generator.random((world.num_envs, int(world.single_action_space.n)))
        if world.action_mask is not None:
            values = np.where(world.action_mask, values, -1)
        return values.argmax(1)

    return decide


def play(
    world: BatchEnv, decide: Decide, episodes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Play `episodes` episodes, rounded up, and return their returns, float64 (E,), and lengths,
    int64 (E,).

    Each row that acts plays the same number of episodes, because the first episodes to end are
    mostly short ones."""
    ended = np.zeros(world.num_envs, np.int64)
    begins = np.ones(world.num_envs, np.bool_)
    returns: list[float] = []
    lengths: list[int] = []
    world.restart(seed)
    world.drain_episodes()
    # Rows that never act, such as those for a wider stage of a curriculum, end no episode either.
    acts = world.valid.copy()
    per_row = -(-episodes // max(1, int(acts.sum())))
    while (ended[acts] < per_row).any():
        world.advance(decide(world, begins))
        begins = world.terminated | world.truncated
        acts |= world.valid
        columns = world.drain_episodes()
        for row, episode_return, length in zip(
            columns["row"], columns["return"], columns["length"], strict=True
        ):
            ended[row] += 1
            if ended[row] <= per_row:
                returns.append(float(episode_return))
                lengths.append(int(length))
    return np.array(returns), np.array(lengths)


def evaluate(
    bundle: Bundle, *, episodes: int = 200, seed: int = 0, threads: int = 1
) -> list[WorldScore]:
    """Measure the policy of a bundle, and random play, over `episodes` episodes of the world in
    which it was trained.

    Both play the same games. The world says whether the policy draws its actions or takes the
    likeliest. Raises `BundleError` for a bad bundle, and what `world_of` raises."""
    scores = []
    for player in (POLICY, RANDOM):
        world = world_of(bundle, num_games=min(episodes, GAMES_AT_ONCE))
        try:
            decide = at_random(seed)
            if player == POLICY:
                decide = as_measured(bundle, world, seed=seed, threads=threads)
            returns, lengths = play(world, decide, episodes, seed)
        finally:
            world.close()
        scores.append(
            WorldScore(
                player=player,
                world=bundle.card.environment["name"],
                episodes=len(returns),
                mean_return=float(returns.mean()),
                interval=_interval(returns),
                mean_length=float(lengths.mean()),
            )
        )
    return scores


def _interval(returns: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean, by bootstrap."""
    samples = np.random.default_rng(0).integers(len(returns), size=(_RESAMPLES, len(returns)))
    low, high = np.quantile(returns[samples].mean(1), (0.025, 0.975)).tolist()
    return low, high


def table(scores: Sequence[WorldScore]) -> str:
    """Return the scores as lines of text in columns."""
    rows = [
        (
            score.player,
            score.world,
            str(score.episodes),
            f"{score.mean_return:.3f}",
            f"{score.interval[0]:.3f} … {score.interval[1]:.3f}",
            f"{score.mean_length:.1f}",
        )
        for score in scores
    ]
    return in_columns(rows, ("player", "world", "episodes", "return", "95 % interval", "length"))


class ShownEpisode:
    """An episode of the first row of `world`, played while its pictures are read, for at most
    `most_steps` steps.

    Afterwards `episode_return` and `length` hold its result, and `ended` says whether the episode
    ended by itself."""

    def __init__(
        self, world: BatchEnv, decide: Decide, *, seed: int, most_steps: int = 1000
    ) -> None:
        self.world = world
        self._decide = decide
        self._seed = seed
        self._most_steps = most_steps
        self.episode_return = 0.0
        self.length = 0
        self.ended = False

    def pictures(self) -> Iterator[np.ndarray]:
        """Play the episode, and yield the picture before each step, uint8 (H, W, 3), as
        `BatchEnv.picture` returns it.
        """
        world = self.world
        begins = np.ones(self.world.num_envs, np.bool_)
        world.restart(self._seed)
        while not self.ended and self.length < self._most_steps:
            yield world.picture()
            world.advance(self._decide(world, begins))
            begins = world.terminated | world.truncated
            self.episode_return += float(world.rewards[0])
            self.length += 1
            self.ended = bool(begins[0])

    def __str__(self) -> str:
        how = "" if self.ended else ", then it was cut off"
        return f"return {self.episode_return:g} after {self.length} steps{how}"
