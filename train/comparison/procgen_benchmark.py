"""Trains and measures all of a `Protocol`, for `procsnake benchmark procgen`.

Trainings and measurements that an earlier call finished are not done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.card import library_versions
from agents.measure.evaluation.procgen import (
    POLICY,
    PlayerEpisodes,
    ProcgenScore,
    evaluate,
    score_matrix,
)
from agents.measure.evaluation.procgen_aggregates import (
    AggregateEstimate,
    aggregates,
    probability_of_improvement,
)
from agents.measure.evaluation.procgen_episodes import film
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole
from train.comparison.places import Begin, on_this_machine
from train.comparison.procgen_page import page
from train.comparison.procgen_protocol import Protocol
from train.comparison.trainings import Say, Training, train_all
from train.runs.folder import BUNDLE, disk_errors
from train.runs.own_commit import own_commit

RESULT = "benchmark.json"
PAGE = "benchmark.html"
_MAX_RESULT_BYTES = 16 << 20


def benchmark(
    protocol: Protocol,
    *,
    out: str | os.PathLike[str],
    jobs: int,
    cores: int | None = None,
    against: str | None = None,
    say: Say = print,
    begin: Begin = on_this_machine,
) -> dict[str, Any]:
    """Train, `jobs` at a time, and measure the policies.

    The result is returned and written as `benchmark.json` and `benchmark.html` into `out`. The
    `cores` (default: this machine's) are shared out equally among the trainings that run at a time.
    `against` is the `benchmark.json` of a benchmark to compare with. `begin` starts a training here
    or on a cluster. The policies are measured on this machine. Raises `ConfigError` for an
    impossible protocol or comparison, before anything is trained, and `RunError` if a training
    fails."""
    folder = Path(out)
    cores = cores or usable_cores()
    trainings = protocol.trainings(max(1, cores // jobs))
    theirs = comparable(against, protocol) if against is not None else None
    runs = train_all(trainings, folder, jobs=jobs, say=say, begin=begin)
    runs_by_game: dict[str, list[Path]] = {game: [] for game in protocol.games}
    for training, run in zip(trainings, runs, strict=True):
        runs_by_game[_game_of(training)].append(run)
    scores: list[dict[str, Any]] = []
    for game, own_runs in runs_by_game.items():
        scores += _scores_of(folder, game, own_runs, protocol, say)
    ours = _matrix(scores, protocol)
    result = {
        "protocol": parse_json(json.dumps(protocol.to_dict())),
        "cores": cores,
        "jobs": jobs,
        "commit": own_commit(),
        "versions": library_versions(),
        "runs": {
            _name_of(t): str(run.relative_to(folder))
            for t, run in zip(trainings, runs, strict=True)
        },
        "scores": scores,
        "aggregates": _aggregates(ours),
    }
    if theirs is not None:
        improvement = probability_of_improvement(ours, theirs)
        result["against"] = {"file": str(against), **_plain(improvement)}
    with disk_errors(folder):
        write_whole(folder / RESULT, json.dumps(result, indent=2, allow_nan=False) + "\n")
        write_whole(folder / PAGE, page(result, folder))
    return result


def comparable(path: str, protocol: Protocol) -> np.ndarray:
    """Return the scores (runs, games), float64, of a `benchmark.json` of the same games and levels.

    Raises `ConfigError` for a file that isn't one, or whose games or levels differ.
    """
    try:
        result = parse_json(read_text(path, _MAX_RESULT_BYTES))
        theirs = Protocol(**{name: _tupled(value) for name, value in result["protocol"].items()})
        scores = _matrix(result["scores"], theirs)
    except OSError as error:
        raise ConfigError(
            f"{path} can't be read ({error.strerror}); name the benchmark.json of another benchmark"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(
            f"{path} isn't the result of a benchmark; name the benchmark.json that one wrote"
        ) from None
    for name in ("games", "distribution_mode", "levels"):
        if getattr(theirs, name) != getattr(protocol, name):
            raise ConfigError(
                f"{path} has {name} {getattr(theirs, name)!r} and this benchmark"
                f" {getattr(protocol, name)!r}; only the same can be compared"
            )
    return scores


def _scores_of(
    folder: Path, game: str, runs: Sequence[Path], protocol: Protocol, say: Say
) -> list[dict[str, Any]]:
    """The scores of a game's runs. They are measured, and an episode is filmed, unless that was
    done before for the same runs.
    """
    score_file = folder / "scores" / f"{game}.json"
    measured_as = {
        "runs": [run.name for run in runs],
        "episodes": protocol.episodes,
        "splits": list(protocol.splits),
    }
    try:
        before = parse_json(read_text(score_file, _MAX_RESULT_BYTES))
        if before["measured_as"] == measured_as:
            say(f"{game}: measured before")
            return list(before["scores"])
    except (OSError, ValueError, TypeError, KeyError):
        pass
    say(f"{game}: measuring {len(runs)} policies …")
    bundles = [str(run / BUNDLE) for run in runs]
    splits = ",".join(protocol.splits)
    evaluations = evaluate(
        bundles, levels=splits, episodes=protocol.episodes, threads=usable_cores(), say=say
    )
    with disk_errors(folder):
        for place in (score_file.parent, folder / "films"):
            place.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "films" / f"{game}.mp4", _film(evaluations, protocol.splits[-1]))
        scores = [
            {**one.score.to_dict(), "interval": list(one.score.interval)} for one in evaluations
        ]
        content = {"measured_as": measured_as, "scores": scores}
        write_whole(score_file, json.dumps(content, indent=2, allow_nan=False) + "\n")
    return scores


def _film(evaluations: Sequence[PlayerEpisodes], split: str) -> bytes:
    """A film of the episode in the middle of the first policy's returns."""
    first = next(
        one for one in evaluations if (one.score.split, one.score.player) == (split, POLICY)
    )
    ordered = sorted(first.episodes, key=lambda episode: episode.episode_return)
    return film(first.world, first.options, ordered[len(ordered) // 2])


def _matrix(scores: Sequence[Mapping[str, Any]], protocol: Protocol) -> np.ndarray:
    """The normalised scores (runs, games) on the levels that count."""
    counted = [
        ProcgenScore(**{**s, "interval": tuple(s["interval"])})
        for s in scores
        if s["split"] == protocol.splits[-1]
    ]
    matrix = score_matrix(sorted(counted, key=lambda score: protocol.games.index(score.game)))
    if matrix is None:
        raise ValueError("scores are missing")
    return matrix


def _aggregates(matrix: np.ndarray) -> list[dict[str, Any]]:
    # Of one score, they would all be that score.
    if matrix.size == 1:
        return [_plain(AggregateEstimate(name="mean", value=float(matrix[0, 0]), interval=None))]
    return [_plain(estimate) for estimate in aggregates(matrix)]


def _plain(estimate: AggregateEstimate) -> dict[str, Any]:
    return {**estimate.to_dict(), "interval": estimate.interval and list(estimate.interval)}


def _game_of(training: Training) -> str:
    return training.experiment.env.name.removeprefix("procgen/")


def _name_of(training: Training) -> str:
    return f"{_game_of(training)}, seed {training.experiment.seed}"


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
