"""How well a policy plays Procgen on the levels it was trained on and on others, beside the random agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import envs
from agents import bundle as bundles
from agents.card import BundleError
from agents.policy import onnx_forward
from envs.api import BatchEnv
from envs.errors import ConfigError, UnknownNameError
from envs.procgen import Levels, require_disjoint
from envs.procgen.scores import PPO_25M_UNSEEN, bootstrap_interval, normalised

Decide = Callable[[np.ndarray], np.ndarray]
"""From observations (R, …) to actions (R,)."""
GAMES_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class Score:
    """Episodes of one player on one set of levels."""

    player: str
    game: str
    levels: str
    episodes: int
    mean_return: float
    interval: tuple[float, float]
    """95 %, by bootstrap over the episodes."""
    normalised: float | None
    """None in modes without constants."""
    mean_length: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def is_procgen(card: Any) -> bool:
    """True if a bundle's card is that of a policy for Procgen."""
    return str(card.environment["name"]).startswith("procgen/")


def evaluate(
    path: str, *, levels: str = "test", episodes: int = 200, seed: int = 0, greedy: bool = False, threads: int = 1
) -> list[Score]:
    """The policy of the bundle at `path` and the random agent on the same levels.

    `levels`: "train" (those of training), "test" (all others), or any that `Levels.parse` reads. Actions are drawn from the
    policy, as the benchmark does, or with `greedy` the likeliest is taken. `episodes` is rounded up to as many for each of up
    to 64 games at once. Raises `BundleError`, `ConfigError`.
    """
    bundle = bundles.load(path)
    card = bundle.card
    if not is_procgen(card):
        raise BundleError(f"{path} was trained in {card.environment['name']!r}, not in Procgen; leave --levels away")
    options = {**card.environment["options"], "num_games": min(episodes, GAMES_AT_ONCE)}
    # Pay for novelty is for training; nothing of it is in the returns.
    options.pop("rnd", None)
    options["levels"] = chosen = chosen_levels(levels, str(options.get("levels", "all")))
    forward, generator = onnx_forward(bundle, threads), np.random.default_rng(seed)

    def decide(observations: np.ndarray) -> np.ndarray:
        logits = forward(observations)[0]
        # An exponential race (Gumbel's trick) draws by the softmax of the logits.
        return (logits if greedy else logits + generator.gumbel(size=logits.shape)).argmax(1)

    def guess(observations: np.ndarray) -> np.ndarray:
        return generator.integers(card.action["num_actions"], size=len(observations))

    name, mode = card.environment["name"].removeprefix("procgen/"), str(options.get("distribution_mode", "hard"))
    scores = []
    for player, decider in (("policy", decide), ("random", guess)):
        world = envs.make(card.environment["name"], **options)
        try:
            returns, lengths = play(world, decider, episodes, seed)
        finally:
            world.close()
        scores.append(_score(player, name, mode, chosen, returns, lengths))
    return scores


def chosen_levels(levels: str, trained: str) -> str:
    """The levels that "train" or "test" stand for, given those of training. Raises `ConfigError` if none are left to test."""
    if levels == "train":
        return trained
    if levels != "test":
        if levels != "all" and Levels.parse(levels) != Levels.parse(trained):
            require_disjoint(trained, levels)
        return levels
    start, num = Levels.parse(trained)
    unseen = f"test:{start + num}"
    require_disjoint(trained, unseen)
    return unseen


def play(world: BatchEnv, decide: Decide, episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns float32 and lengths int32 of at least `episodes` episodes, as many of each row.

    As many of each row, because short episodes would be too many among the first that end.
    """
    per_row = -(-episodes // world.num_envs)
    ended = np.zeros(world.num_envs, np.int64)
    returns: list[float] = []
    lengths: list[int] = []
    world.restart(seed)
    while (ended < per_row).any():
        world.advance(decide(world.observations))
        columns = world.drain_episodes()
        for row, episode_return, length in zip(columns["row"], columns["return"], columns["length"], strict=True):
            ended[row] += 1
            if ended[row] <= per_row:
                returns.append(episode_return)
                lengths.append(length)
    return np.array(returns, np.float32), np.array(lengths, np.int32)


def _score(player: str, game: str, mode: str, levels: str, returns: np.ndarray, lengths: np.ndarray) -> Score:
    mean = float(returns.mean(dtype=np.float64))
    try:
        worth = float(normalised(mean, game, mode))
    except (ConfigError, UnknownNameError):
        worth = None
    return Score(
        player=player,
        game=game,
        levels=levels,
        episodes=len(returns),
        mean_return=mean,
        interval=bootstrap_interval(returns[:, None].astype(np.float64), lambda sample: float(sample.mean())),
        normalised=worth,
        mean_length=float(lengths.mean()),
    )


def table(scores: list[Score]) -> str:
    """The scores in columns, and what OpenAI's PPO reached."""
    lines = [
        f"{'player':8} {'game':10} {'levels':16} {'episodes':>8} {'return':>7}  {'95 % interval':15} {'norm.':>6} {'length':>7}"
    ]
    for score in scores:
        interval = f"{score.interval[0]:.2f} … {score.interval[1]:.2f}"
        worth = "-" if score.normalised is None else f"{score.normalised:.2f}"
        lines.append(
            f"{score.player:8} {score.game:10} {score.levels:16} {score.episodes:8} {score.mean_return:7.2f}  {interval:15}"
            f" {worth:>6} {score.mean_length:7.1f}"
        )
    game = scores[0].game
    lines.append(f"OpenAI's PPO after 25 M steps on 200 levels of {game}, easy, unseen levels: {PPO_25M_UNSEEN[game]}")
    return "\n".join(lines)
