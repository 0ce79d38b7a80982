"""How well policies play Procgen on the levels they were trained on and on others, beside the random agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import envs
from agents.bundle import Bundle, load
from agents.card import BundleError
from agents.policy import onnx_steps
from agents.procgen_aggregates import Estimate, aggregates, mean_interval
from agents.procgen_episodes import Decide, Episode, play
from envs.errors import ConfigError, UnknownNameError
from envs.procgen import Levels, require_disjoint
from envs.procgen.levels import NUM_SEEDS
from envs.procgen.scores import PPO, normalised

GAMES_AT_ONCE = 64
POLICY, RANDOM = "policy", "random"


@dataclass(frozen=True, kw_only=True)
class Score:
    """Episodes of one player on one set of levels."""

    player: str
    game: str
    split: str
    """What was asked for: train, test, or the levels themselves."""
    levels: str
    """What that is for this policy."""
    episodes: int
    mean_return: float
    interval: tuple[float, float]
    """95 %, by bootstrap over the episodes."""
    normalised: float | None
    """None in modes without constants."""
    mean_length: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Played:
    """One player's episodes, and the world in which they can be played once more."""

    score: Score
    episodes: list[Episode]
    world: str
    """As `envs.make` knows it."""
    options: dict[str, Any]


def is_procgen(card: Any) -> bool:
    """True if a bundle's card is that of a policy for Procgen."""
    return str(card.environment["name"]).startswith("procgen/")


def evaluate(
    paths: Sequence[str], *, levels: str = "test", episodes: int = 200, seed: int = 0, greedy: bool = False, threads: int = 1
) -> list[Played]:
    """The policies of the bundles at `paths` and, in each of their worlds once, the random agent.

    `levels`: "train" (those of training), "test" (all others), or any that `Levels.parse` reads; several with commas. Actions
    are drawn from the policy, as the benchmark does, or with `greedy` the likeliest is taken, which Q networks always do.
    `episodes` is rounded up to as many for each of up to 64 games at once. Raises `BundleError`, `ConfigError`.
    """
    bundles = [_load(path) for path in paths]
    splits = [split.strip() for split in levels.split(",")]
    # All that can be wrong is found before anything is played.
    worlds = {(k, split): _options(bundle, split, episodes) for k, bundle in enumerate(bundles) for split in splits}
    played: list[Played] = []
    for (k, split), options in worlds.items():
        name, generator = bundles[k].card.environment["name"], np.random.default_rng(seed)
        known = any((one.world, one.options, one.score.player) == (name, options, RANDOM) for one in played)
        for player, decide in _players(bundles[k], generator, greedy=greedy, threads=threads).items():
            if player != RANDOM or not known:
                played.append(_play(player, name, split, options, decide, episodes, seed))
    return played


def _load(path: str) -> Bundle:
    bundle = load(path)
    if not is_procgen(bundle.card):
        raise BundleError(f"{path} was trained in {bundle.card.environment['name']!r}, not in Procgen; leave --levels away")
    return bundle


def _options(bundle: Bundle, split: str, episodes: int) -> dict[str, Any]:
    """Those of the world that the policy is measured in."""
    options = bundle.card.environment["options"]
    levels = chosen_levels(split, str(options.get("levels", "all")))
    return {**options, "num_games": min(episodes, GAMES_AT_ONCE), "levels": levels}


def _players(bundle: Bundle, generator: np.random.Generator, *, greedy: bool, threads: int) -> dict[str, Decide]:
    step = onnx_steps(bundle, threads)
    # Q values are no logits: the policy that was learned takes the highest.
    greedy = greedy or bundle.card.network["name"] == "q-network"

    def decide(observations: np.ndarray, begins: np.ndarray) -> np.ndarray:
        logits = step(observations, begins)
        # An exponential race (Gumbel's trick) draws by the softmax of the logits.
        return (logits if greedy else logits + generator.gumbel(size=logits.shape)).argmax(1)

    def guess(observations: np.ndarray, begins: np.ndarray) -> np.ndarray:
        return generator.integers(bundle.card.action["num_actions"], size=len(observations))

    return {POLICY: decide, RANDOM: guess}


def _play(player: str, name: str, split: str, options: dict[str, Any], decide: Decide, episodes: int, seed: int) -> Played:
    world = envs.make(name, **options)
    try:
        played = play(world, decide, episodes, seed)
    finally:
        world.close()
    mode = str(options.get("distribution_mode", "hard"))
    returns = np.array([episode.episode_return for episode in played])
    game = name.removeprefix("procgen/")
    score = Score(
        player=player,
        game=game,
        split=split,
        levels=str(options["levels"]),
        episodes=len(played),
        mean_return=float(returns.mean()),
        interval=mean_interval(returns),
        normalised=worth(float(returns.mean()), game, mode),
        mean_length=float(np.mean([episode.length for episode in played])),
    )
    return Played(score=score, episodes=played, world=name, options=options)


def worth(mean_return: float, game: str, mode: str) -> float | None:
    """The normalised score; None where there are no constants."""
    try:
        return float(normalised(mean_return, game, mode))
    except (ConfigError, UnknownNameError):
        return None


def chosen_levels(levels: str, trained: str) -> str:
    """The levels that "train" or "test" stand for, given those of training. Raises `ConfigError` if none are left to test."""
    if levels == "train":
        return trained
    if levels != "test":
        if levels != "all" and Levels.parse(levels) != Levels.parse(trained):
            require_disjoint(trained, levels)
        return levels
    start, num = Levels.parse(trained)
    if start + num == NUM_SEEDS:
        raise ConfigError(f"it was trained on levels {trained!r}, and none are left to test on; try --levels all")
    unseen = f"test:{start + num}"
    require_disjoint(trained, unseen)
    return unseen


def score_matrix(scores: Iterable[Score]) -> np.ndarray | None:
    """Normalised scores float64 (runs, games) of the policies among `scores`; None where that is no matrix.

    That is where a game has fewer runs than another, or a score can't be normalised.
    """
    by_game: dict[str, list[float | None]] = {}
    for score in scores:
        if score.player == POLICY:
            by_game.setdefault(score.game, []).append(score.normalised)
    runs = list(by_game.values())
    if not runs or len({len(own) for own in runs}) > 1 or any(None in own for own in runs):
        return None
    return np.array(runs, np.float64).T


def aggregates_by_split(scores: Sequence[Score]) -> dict[str, list[Estimate]]:
    """`aggregates` of the policies for each split on which several were measured that go together."""
    matrices = {split: score_matrix(s for s in scores if s.split == split) for split in dict.fromkeys(s.split for s in scores)}
    return {split: aggregates(matrix) for split, matrix in matrices.items() if matrix is not None and matrix.size > 1}


def table(scores: Sequence[Score]) -> str:
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
    for game in dict.fromkeys(score.game for score in scores):
        reached = PPO[game].unseen_25m
        lines.append(f"OpenAI's PPO after 25 M steps on 200 levels of {game}, easy, unseen levels: {reached}")
    for split, estimates in aggregates_by_split(scores).items():
        for estimate in estimates:
            low, high = estimate.interval
            lines.append(f"{split}: {estimate.name} of the normalised scores {estimate.value:.3f} ({low:.3f} … {high:.3f})")
    return "\n".join(lines)
