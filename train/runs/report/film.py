"""Films a finished run's policy for the run's report.

The film is a game of Battlesnake, or an episode of any other world.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from agents import names
from agents.measure.evaluation import opponents_text
from agents.measure.evaluation.record import read_record
from agents.measure.pages import film, moving_picture, note
from envs.api import BatchEnv
from envs.battlesnake.state import CAUSE_NAMES
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.errors import ProcsnakeError
from envs.common.films import write_film
from envs.wrappers import layers
from train.config import Experiment
from train.runs.continuing.resuming import named_code
from train.runs.folder import BUNDLE, CONFIG, RunFolder
from train.worlds.build import single_world

_MAX_TURNS = 400
_MAX_STEPS = 400
_CELL = 20
_FPS = 8.0


def film_of(run: Path) -> str:
    """Return the film as HTML. It is empty for a run without a policy.

    If the policy can't play because its world or its opponents are missing here, the HTML says why.
    Modules and files of rules that the run's configuration names are executed only if this machine
    wrote it."""
    if not (run / BUNDLE / "card.json").is_file():
        return ""
    try:
        folder, experiment = RunFolder.open(run)
        code = list(named_code(experiment))
        if code and not folder.has_own_config():
            return note(
                f"no film: {CONFIG} names {', '.join(code[:5])}, and this machine didn't write it"
            )
        with closing(single_world(experiment)) as world:
            return _FILMS[world.evaluation](run, experiment, world)
    except ProcsnakeError as error:
        return note(f"no film: {error}")


def _game(run: Path, experiment: Experiment, world: BatchEnv) -> str:
    """A game against the last group of opponents that the policy was measured against.

    The board and the rules are those of training."""
    from agents import make
    from agents.measure.evaluation.referee import Referee
    from agents.policy import Policy
    from envs.battlesnake.recording import Recording
    from envs.battlesnake.render.svg import animated_svg

    *_, games = layers(world)
    assert isinstance(games, BattlesnakeVectorEnv)
    state = games.state
    policy = Policy.load(run / BUNDLE)
    rivals = _opponents(run, experiment, state.num_snakes - 1)
    with tempfile.TemporaryDirectory(prefix="procsnake-") as scratch:
        path = Path(scratch) / "game.jsonl"
        referee = Referee(
            [policy, *map(make, rivals)],
            settings=state.settings,
            width=state.width,
            height=state.height,
            seed=experiment.seed,
            max_turns=_MAX_TURNS,
            names=["this policy", *_numbered(rivals)],
            tell_deadline=False,
            recording=path,
        )
        for _ in referee.play():
            pass
        svg = animated_svg(Recording.read(path).boards(), fps=_FPS, cell=_CELL)
    return moving_picture(svg, _caption(referee.result, rivals))


def _numbered(rivals: list[str]) -> list[str]:
    """The names of the rivals; those that occur twice have their seat's number behind them."""
    names = list(rivals)
    for number, name in enumerate(rivals, 1):
        if rivals.count(name) > 1:
            names[number - 1] = f"{name} {number}"
    return names


def _opponents(run: Path, experiment: Experiment, seats: int) -> list[str]:
    """The last group of opponents, one for each of the `seats`, that the policy met in its
    evaluation or in those of its training; floods if there is none.
    """
    groups: list[list[str]] = []
    if record := read_record(run):
        # A stranger's record could name a file of rules, which is a program. Built-in opponents are
        # harmless.
        groups = [
            list(score.opponents) for score in record.scores if set(score.opponents) <= set(names())
        ]
    if not groups and experiment.evaluation:
        groups = [list(group) for group in experiment.evaluation.opponents]
    fitting = [group for group in groups if len(group) == seats]
    if not fitting:
        return ["flood"] * seats
    return fitting[-1]


def _caption(result: Any, rivals: list[str]) -> str:
    if not rivals:
        return f"alone, {result.turns} turns"
    against = opponents_text(rivals)
    if result.winner == "this policy":
        return f"against {against}: won after {result.turns} turns"
    cause = CAUSE_NAMES[result.causes[0]]
    end = f"died ({cause.replace('-', ' ')})" if cause else "alive when the film ends"
    return f"against {against}: {end}, {result.turns} turns"


def _episode_on_levels(run: Path, experiment: Experiment, world: BatchEnv) -> str:
    """The first episode that the policy plays on the levels of its training."""
    from agents.measure.evaluation import procgen_episodes
    from agents.measure.evaluation.procgen import evaluate

    one = evaluate([str(run)], levels="train", episodes=1)[0]
    episode = one.episodes[0]
    caption = (
        f"level {episode.level}, return {episode.episode_return:g} after {episode.length} steps"
    )
    return film(procgen_episodes.film(one.world, one.options, episode), caption)


def _episode(run: Path, experiment: Experiment, world: BatchEnv) -> str:
    """An episode in the world of its training, played as the policy is measured there."""
    from agents.bundle import load
    from agents.measure.evaluation.episodes import ShownEpisode, as_measured

    policy = as_measured(load(run), world, seed=experiment.seed)
    episode = ShownEpisode(world, policy, seed=experiment.seed, most_steps=_MAX_STEPS)
    with tempfile.TemporaryDirectory(prefix="procsnake-") as scratch:
        mp4 = write_film(Path(scratch) / "episode.mp4", episode.pictures(), fps=_FPS).read_bytes()
    return film(mp4, str(episode))


_FILMS = {"opponents": _game, "levels": _episode_on_levels, "episodes": _episode}
"""The function that films a policy, by the way in which policies are measured in its world
(`BatchEnv.evaluation`).
"""
