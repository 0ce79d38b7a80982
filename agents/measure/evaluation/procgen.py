"""Measures how well policies play Procgen beside the random agent, on the levels of their training
and on others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

import envs
from agents.bundle import Bundle, load
from agents.card import BundleError
from agents.measure.evaluation.episodes import (
    GAMES_AT_ONCE,
    POLICY,
    RANDOM,
    Decide,
    drawn,
    likeliest,
)
from agents.measure.evaluation.procgen_aggregates import (
    AggregateEstimate,
    aggregates,
    mean_interval,
)
from agents.measure.evaluation.procgen_episodes import Episode, play
from envs.api import BatchEnv
from envs.common.columns import in_columns
from envs.common.errors import ConfigError, UnknownNameError
from envs.procgen import Levels, require_disjoint
from envs.procgen.levels import NUM_SEEDS
from envs.procgen.scores import PPO, normalised

_SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True, kw_only=True)
class ProcgenScore:
    """The results of one player on one set of levels."""

    player: str
    game: str
    split: str
    """The levels that were asked for: "train", "test", or the levels themselves."""
    levels: str
    """The levels that `split` means for this policy."""
    episodes: int
    mean_return: float
    interval: tuple[float, float]
    """The 95 % interval of the mean return, by bootstrap over the episodes."""
    normalised: float | None
    """The normalised mean return; None in modes without constants."""
    mean_length: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PlayerEpisodes:
    """The episodes of one player, and the world in which they can be played again."""

    score: ProcgenScore
    episodes: list[Episode]
    world: str
    """The world's name, as `envs.make` knows it."""
    options: dict[str, Any]

    def is_random_play(self, world: str, options: Mapping[str, Any]) -> bool:
        """Return whether these are the random agent's episodes in the world of this name and
        options.
        """
        return self.score.player == RANDOM and self.world == world and self.options == options


def is_procgen(card: Any) -> bool:
    """Whether a bundle's card is that of a policy for Procgen."""
    return str(card.environment["name"]).startswith("procgen/")


def evaluate(
    paths: Sequence[str],
    *,
    levels: str = "test",
    episodes: int = 200,
    seed: int = 0,
    greedy: bool = False,
    threads: int = 1,
    say: Callable[[str], None] | None = None,
) -> list[PlayerEpisodes]:
    """Measure the policies of the bundles at `paths`, and in each of their worlds the random agent
    once.

    `levels` is "train" (those of training), "test" (all others), or anything that `Levels.parse`
    reads; several are separated by commas. Actions are drawn from the policy, as the benchmark
    does. With `greedy`, and always for Q networks, the likeliest is taken. `episodes` is rounded
    up, so that each of up to 64 games at once plays equally many. `say` is called with a line about
    every ten seconds. Raises `BundleError` or `ConfigError`."""
    bundles = [_load(path) for path in paths]
    splits = [split.strip() for split in levels.split(",")]
    # All options are checked before anything is played.
    tasks = [
        (bundle, split, _options(bundle, split, episodes))
        for bundle, split in product(bundles, splits)
    ]
    results: list[PlayerEpisodes] = []
    for bundle, split, options in tasks:
        name = bundle.card.environment["name"]
        generator = np.random.default_rng(seed)
        players = _players(bundle, generator, greedy=greedy, threads=threads)
        # Policies of the same world share one random agent.
        if any(one.is_random_play(name, options) for one in results):
            del players[RANDOM]
        for player, decide in players.items():
            count = _count(say, f"{player} on {name}, levels {options['levels']}")
            results.append(_play(player, name, split, options, decide, episodes, seed, count))
    return results


def _load(path: str) -> Bundle:
    bundle = load(path)
    if not is_procgen(bundle.card):
        raise BundleError(
            f"{path} was trained in {bundle.card.environment['name']!r}, not in Procgen; leave"
            " out --levels"
        )
    return bundle


def _options(bundle: Bundle, split: str, episodes: int) -> dict[str, Any]:
    """The options of the world in which the policy is measured."""
    options = bundle.card.environment.get("options", {})
    levels = chosen_levels(split, str(options.get("levels", "all")))
    return {**options, "num_games": min(episodes, GAMES_AT_ONCE), "levels": levels}


def _players(
    bundle: Bundle, generator: np.random.Generator, *, greedy: bool, threads: int
) -> dict[str, Decide]:
    def guess(world: BatchEnv, begins: np.ndarray) -> np.ndarray:
        return generator.integers(bundle.card.action["num_actions"], size=world.num_envs)

    if greedy:
        policy = likeliest(bundle, threads=threads)
    else:
        policy = drawn(bundle, generator, threads=threads)
    return {POLICY: policy, RANDOM: guess}


def _count(say: Callable[[str], None] | None, what: str) -> Callable[[int, int], None] | None:
    """Return a function that is called with the number of episodes that have ended and of all
    episodes, and says them every ten seconds; None without `say`.
    """
    if say is None:
        return None
    last_line = float("-inf")

    def count(ended: int, episodes: int) -> None:
        nonlocal last_line
        if time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            say(f"{what}: {min(ended, episodes)} of {episodes} episodes …")

    return count


def _play(
    player: str,
    name: str,
    split: str,
    options: dict[str, Any],
    decide: Decide,
    episodes: int,
    seed: int,
    on_step: Callable[[int, int], None] | None,
) -> PlayerEpisodes:
    world = envs.make(name, **options)
    try:
        all_episodes = play(world, decide, episodes, seed, on_step)
    finally:
        world.close()
    mode = str(options.get("distribution_mode", "hard"))
    returns = np.array([episode.episode_return for episode in all_episodes])
    game = name.removeprefix("procgen/")
    score = ProcgenScore(
        player=player,
        game=game,
        split=split,
        levels=str(options["levels"]),
        episodes=len(all_episodes),
        mean_return=float(returns.mean()),
        interval=mean_interval(returns),
        normalised=worth(float(returns.mean()), game, mode),
        mean_length=float(np.mean([episode.length for episode in all_episodes])),
    )
    return PlayerEpisodes(score=score, episodes=all_episodes, world=name, options=options)


def worth(mean_return: float, game: str, mode: str) -> float | None:
    """Return the normalised score of a mean return; None if the game or mode has no constants for
    it.
    """
    try:
        return float(normalised(mean_return, game, mode))
    except (ConfigError, UnknownNameError):
        return None


def chosen_levels(levels: str, trained: str) -> str:
    """Return the levels that "train" or "test" mean for a policy that was trained on the levels
    `trained`. Raises `ConfigError` if no others are left to test it on.
    """
    if levels == "train":
        return trained
    if levels != "test":
        if levels != "all" and Levels.parse(levels) != Levels.parse(trained):
            require_disjoint(trained, levels)
        return levels
    start, num = Levels.parse(trained)
    if start + num == NUM_SEEDS:
        raise ConfigError(
            f"it was trained on levels {trained!r}, and none are left to test on; try --levels all"
        )
    unseen = f"test:{start + num}"
    require_disjoint(trained, unseen)
    return unseen


def score_matrix(scores: Iterable[ProcgenScore]) -> np.ndarray | None:
    """Return the normalised scores of the policies among `scores`, float64 (runs, games).

    Returns None if a game has fewer runs than another, or if a score can't be normalised.
    """
    by_game: dict[str, list[float | None]] = {}
    for score in scores:
        if score.player == POLICY:
            by_game.setdefault(score.game, []).append(score.normalised)
    runs = list(by_game.values())
    if not runs or len({len(own) for own in runs}) > 1 or any(None in own for own in runs):
        return None
    return np.array(runs, np.float64).T


def aggregates_by_split(scores: Sequence[ProcgenScore]) -> dict[str, list[AggregateEstimate]]:
    """Return the policies' `aggregates` for each split with several comparable policies."""
    estimates = {}
    for split in dict.fromkeys(score.split for score in scores):
        matrix = score_matrix(score for score in scores if score.split == split)
        if matrix is not None and matrix.size > 1:
            estimates[split] = aggregates(matrix)
    return estimates


def table(scores: Sequence[ProcgenScore]) -> str:
    """Return the scores as lines of text, with those of OpenAI's PPO."""
    heads = ("player", "game", "levels", "episodes", "return", "95 % interval", "norm.", "length")
    rows = [
        (
            score.player,
            score.game,
            score.levels,
            str(score.episodes),
            f"{score.mean_return:.2f}",
            f"{score.interval[0]:.2f} … {score.interval[1]:.2f}",
            "-" if score.normalised is None else f"{score.normalised:.2f}",
            f"{score.mean_length:.1f}",
        )
        for score in scores
    ]
    lines = [in_columns(rows, heads)]
    for game in dict.fromkeys(score.game for score in scores):
        reached = PPO[game].unseen_25m
        lines.append(
            f"OpenAI's PPO after 25 M steps on 200 levels of {game}, easy, unseen levels: {reached}"
        )
    for split, estimates in aggregates_by_split(scores).items():
        for estimate in estimates:
            lines.append(
                f"{split}: {estimate.name} of the normalised scores {estimate.value:.3f}"
                f" ({estimate.interval_in_words})"
            )
    return "\n".join(lines)
