"""Runs the same experiment many times with other values by Ray Tune, for `procsnake tune`.

Each trial is an ordinary run folder.
"""

from __future__ import annotations

import csv
import io
import math
import os
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from envs.common.columns import counted, in_columns
from envs.common.errors import ConfigError
from envs.common.whole_files import write_whole
from train.config import Experiment
from train.rllib.ray_runtime import running_ray
from train.run import check
from train.runs.folder import RunError, disk_errors, require_place
from train.settings.sections import Budget, Tune
from train.tuning.search_folder import RAY_TUNE, read_search, resume_search_command, write_search
from train.tuning.space import NumberRange, Space, algorithm_of, applying, parse_space, with_values

Say = Callable[[str], None]

_ASHA_REDUCTION = 3
_ASHA_PERCENT = 11
_ASHA_LAST = 98
_PBT_PERCENT = 20
_SECONDS_BETWEEN_LINES = 60.0


@dataclass(frozen=True)
class Trial:
    """The result of one trial."""

    run: Path
    """The trial's run folder."""
    values: dict[str, Any]
    """The values with which it ended, by key: those of its own algorithm, if the search tried
    several.
    """
    score: float
    """The last value of the metric; NaN if the trial failed before there was one."""
    percent_done: int
    """The percentage of its budget that it was given."""
    error: str
    """Why it failed, in one line; empty if it didn't."""
    has_ended: bool = True
    """False if the search was interrupted before the trial used up its budget or was stopped by the
    scheduler.
    """


@dataclass(frozen=True)
class TuneResult:
    """The result of a search."""

    path: Path
    """The search's folder, with the trials' run folders, `trials.csv`, `best.yaml` and Ray Tune's
    own files.
    """
    trials: list[Trial]
    """The trials, the best first and failed ones last."""
    best_config: Path
    """The experiment of the best trial, for `procsnake train --config`."""
    metric: str = "score"
    """The metric by which trials are scored."""
    finished: bool = True
    """False if the search was interrupted and can go on."""


def _tell(line: str) -> None:
    # Ray pickles what hears of trials; `print` itself can't be once Ray's progress bars have put
    # another in its place.
    print(line)


def tune(
    experiment: Experiment,
    *,
    runs_dir: str | os.PathLike[str] = "runs",
    say: Say = _tell,
    cluster: str | None = None,
    budget: Budget | None = None,
) -> TuneResult:
    """Search as `experiment.tune` says. `say` is called with a line at the start, on each
    trial that ends, and each minute.

    `budget` is written into the best experiment; by default it is the experiment's own, which the
    trials have. With `cluster`, the trials run on the Ray cluster at this address, all of whose
    machines must see the folder `runs_dir`.

    Raises `ConfigError` or `UnknownNameError` for an impossible experiment or search space, and
    `RunError` if all trials fail."""
    require_place(Path(runs_dir))
    settings = experiment.tune
    spaces = {key: parse_space(key, text) for key, text in settings.search.items()}
    if not spaces:
        raise ConfigError(
            "nothing to search: give --search KEY=low..high[:log] or KEY=a,b,c, or a section"
            " tune.search"
        )
    if settings.scheduler == "pbt" and "algorithm" in spaces:
        raise ConfigError(
            "pbt copies a trial's weights into others, which another algorithm can't use; search"
            " with random or asha"
        )
    if settings.searcher == "optuna":
        if settings.scheduler == "pbt":
            raise ConfigError(
                "pbt changes the values of running trials, so Optuna can't choose them; take"
                " asha or random"
            )
        import_module("optuna")
    base = replace(experiment, tune=Tune())
    corners = [_checked(base, values, key, spaces[key]) for key, values in _corners(spaces)]
    folder = (
        Path(runs_dir) / f"{experiment.name}-tune-{time.strftime('%Y%m%d-%H%M%S')}"
    ).absolute()
    with disk_errors(folder):
        folder.mkdir(parents=True)
    lasting = budget or experiment.budget
    write_search(folder, experiment, lasting)
    return _searched(experiment, lasting, spaces, folder, room_for(corners), say, cluster)


def resume_search(
    path: str | os.PathLike[str], *, say: Say = _tell, cluster: str | None = None
) -> TuneResult:
    """Continue the search in the folder `path`, which was interrupted. Trials that have ended
    aren't trained again.

    Raises `RunError` for a folder without such a search, and what `tune` raises.
    """
    folder = Path(path).absolute()
    experiment, budget = read_search(folder)
    spaces = {key: parse_space(key, text) for key, text in experiment.tune.search.items()}
    corners = [with_values(experiment, values) for _, values in _corners(spaces)]
    return _searched(
        experiment, budget, spaces, folder, room_for(corners), say, cluster, goes_on=True
    )


def _searched(
    experiment: Experiment,
    budget: Budget,
    spaces: Mapping[str, Space],
    folder: Path,
    room: list[dict[str, float]],
    say: Say,
    cluster: str | None,
    *,
    goes_on: bool = False,
) -> TuneResult:
    settings = experiment.tune
    base = replace(experiment, tune=Tune())
    with running_ray(settings.concurrent * len(room), cluster):
        if cluster:
            _require_room(room)
        say(f"{counted(settings.trials, 'trial')}, {settings.concurrent} at a time, in {folder}")
        trials = _search(base, settings, spaces, folder, goes_on, room, say)
    if all(trial.error for trial in trials):
        raise RunError(
            f"every trial failed; the first with: {trials[0].error}. The search is in {folder}"
        )
    finished = len(trials) == settings.trials and all(
        trial.has_ended or trial.error for trial in trials
    )
    if finished:
        write_search(folder, experiment, budget, has_ended=True)
    return replace(
        _write_down(folder, replace(base, budget=budget), trials, settings.metric),
        finished=finished,
    )


def _require_room(room: list[dict[str, float]]) -> None:
    """Raise `ConfigError` if the cluster has no place for even one trial, which would wait for
    ever.
    """
    import ray

    there = ray.cluster_resources()
    for resource in ("CPU", "GPU"):
        needed = sum(bundle.get(resource, 0.0) for bundle in room)
        if needed > there.get(resource, 0.0):
            raise ConfigError(
                f"a trial needs {needed:g} {resource}s, but the cluster has"
                f" {there.get(resource, 0.0):g}; take fewer env runners or learners: --set"
                " num_env_runners=…"
            )


def _corners(spaces: Mapping[str, Space]) -> list[tuple[str, dict[str, Any]]]:
    """Each key with its extreme values, the other keys at their first: what can't be is found
    before anything starts.

    Values of an algorithm's section are tried with that algorithm, if the search is over several.
    """
    ends = {key: space.examples() for key, space in spaces.items()}
    first = {key: values[0] for key, values in ends.items()}
    corners = []
    for key, values in ends.items():
        others = {**first, **_algorithm_for(key, ends)}
        corners += [(key, {**others, key: value}) for value in values]
    return corners


def _checked(base: Experiment, values: Mapping[str, Any], key: str, space: Space) -> Experiment:
    """The experiment with such values, of which that of `key` is tried. Raises `ConfigError` or
    `UnknownNameError`.
    """
    try:
        experiment = with_values(base, values)
        check(experiment)
    except ConfigError as error:
        if isinstance(space, NumberRange) and values[key] not in (space.low, space.high):
            raise ConfigError(
                f"search {key} would draw numbers such as {values[key]}: {error}. For whole numbers"
                " alone, write both ends as whole ones without a point, e.g. 150000..1e6"
            ) from error
        raise
    return experiment


def _algorithm_for(key: str, ends: Mapping[str, Any]) -> dict[str, str]:
    """The algorithm with which a key is tried, if the search is over several. Raises `ConfigError`
    if its own isn't one.
    """
    needed = algorithm_of(key)
    if needed is None or "algorithm" not in ends:
        return {}
    if needed not in ends["algorithm"]:
        raise ConfigError(
            f"search {key} is for {needed}, but the search tries the algorithms"
            f" {', '.join(map(str, ends['algorithm']))}; leave it out, or add {needed} to them"
        )
    return {"algorithm": needed}


def room_for(experiments: Sequence[Experiment]) -> list[dict[str, float]]:
    """Return the Ray bundles that fit any of these experiments: one per process, the trial's own
    first.

    A process without room in a trial's bundles would wait forever.
    """
    runners = max(experiment.num_env_runners for experiment in experiments)
    learners = max(experiment.num_learners for experiment in experiments)
    gpus = max(experiment.num_gpus_per_learner for experiment in experiments)
    learner = {"CPU": 1.0}
    if gpus:
        learner["GPU"] = float(gpus)
    # Without learners of its own, the trial itself learns on a GPU.
    learns_itself = any(
        not experiment.num_learners and experiment.num_gpus_per_learner
        for experiment in experiments
    )
    trial = learner if learns_itself else {"CPU": 1.0}
    return [trial, *[{"CPU": 1.0}] * runners, *[learner] * learners]


def _search(
    base: Experiment,
    settings: Tune,
    spaces: Mapping[str, Space],
    folder: Path,
    goes_on: bool,
    room: list[dict[str, float]],
    say: Say,
) -> list[Trial]:
    from ray import tune as ray_tune

    from train.tuning.searchers import searcher_of
    from train.tuning.trial import FIXED, TrialRun

    fixed = {"experiment": base.to_dict(), "folder": str(folder), "metric": settings.metric}
    resources = ray_tune.PlacementGroupFactory(room)
    if settings.searcher == "random":
        drawn = {key: space.domain() for key, space in spaces.items()}
    else:
        drawn = {}
    trainable = ray_tune.with_resources(TrialRun, resources)
    tuner = ray_tune.Tuner(
        trainable,
        param_space={FIXED: fixed, **drawn},
        tune_config=ray_tune.TuneConfig(
            num_samples=settings.trials,
            search_alg=searcher_of(settings, spaces, seed=base.seed),
            scheduler=_scheduler(settings, spaces),
            reuse_actors=True,
        ),
        run_config=ray_tune.RunConfig(
            name=RAY_TUNE,
            storage_path=str(folder),
            verbose=0,
            callbacks=[_teller(settings, list(spaces), say)],
        ),
    )
    if goes_on:
        tuner = ray_tune.Tuner.restore(
            str(folder / RAY_TUNE), trainable, resume_unfinished=True, resume_errored=True
        )
    results = tuner.fit()
    trials = [_trial_of(results[at], folder, spaces, settings.metric) for at in range(len(results))]
    # Ray Tune takes Ctrl-C itself and returns what there is by then, trials that have played
    # nothing included.
    trials = [trial for trial in trials if trial.error or trial.percent_done]
    if not trials:
        say(f"stopped before a trial had a score; continue with: {resume_search_command(folder)}")
        raise KeyboardInterrupt
    return best_first(trials, settings.mode)


def best_first(trials: Sequence[Trial], mode: str) -> list[Trial]:
    """Return the trials, the best first, and failed or unscored ones last. `mode` is "max" or
    "min".
    """

    def badness(trial: Trial) -> float:
        if trial.error or math.isnan(trial.score):
            return math.inf
        return -trial.score if mode == "max" else trial.score

    return sorted(trials, key=badness)


def _scheduler(settings: Tune, spaces: Mapping[str, Space]) -> Any:
    from ray.tune import schedulers

    from train.tuning.trial import PERCENT

    aim: dict[str, Any] = {"time_attr": PERCENT, "metric": settings.metric, "mode": settings.mode}
    if settings.scheduler == "asha":
        # Up to 100 there would be a rung at 99, where trials would end without their policy and
        # their last evaluation.
        aim |= {
            "grace_period": _ASHA_PERCENT,
            "reduction_factor": _ASHA_REDUCTION,
            "max_t": _ASHA_LAST,
        }
        return schedulers.ASHAScheduler(**aim, stop_last_trials=False)
    if settings.scheduler == "pbt":
        return schedulers.PopulationBasedTraining(
            **aim,
            perturbation_interval=_PBT_PERCENT,
            # A choice moves to its neighbours. Numbers are left as they are, or drawn anew:
            # `_explored` moves them.
            hyperparam_mutations={key: _mutation(space) for key, space in spaces.items()},
            perturbation_factors=(1.0, 1.0),
            custom_explore_fn=partial(_explored, spaces=spaces),
        )
    return schedulers.FIFOScheduler()


def _mutation(space: Space) -> Any:
    if isinstance(space, NumberRange):
        return space.domain()
    return list(space.values)


def _explored(config: dict[str, Any], *, spaces: Mapping[str, Space]) -> dict[str, Any]:
    """The values of a trial that copied another, with each number a step away on the scale of its
    range.
    """
    ranges = {key: space for key, space in spaces.items() if isinstance(space, NumberRange)}
    return config | {
        key: space.moved(config[key], up=random.random() < 0.5) for key, space in ranges.items()
    }


def _teller(settings: Tune, keys: Sequence[str], say: Say) -> Any:
    from ray.tune import Callback

    class Teller(Callback):
        """Says a line for each trial that ends, and each minute how far one is."""

        ended = 0
        spoke_at = time.time()

        def on_trial_result(
            self,
            iteration: int,
            trials: list[Any],
            trial: Any,
            result: dict[str, Any],
            **info: Any,
        ) -> None:
            if time.time() - self.spoke_at >= _SECONDS_BETWEEN_LINES:
                self.spoke_at = time.time()
                say(f"{Path(result['run']).name}: {_how_good(result, settings.metric)} so far")

        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            self._tell(trial, _how_good(trial.last_result, settings.metric))

        def on_trial_error(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            self._tell(trial, "failed")

        def _tell(self, trial: Any, what: str) -> None:
            self.ended += 1
            self.spoke_at = time.time()
            values = _listed(
                applying({key: trial.config[key] for key in keys if key in trial.config})
            )
            say(f"trial {self.ended} of {settings.trials}: {what}, {values}")

    return Teller()


def _how_good(result: Mapping[str, Any], metric: str) -> str:
    """A trial's score, and the share of its budget after which it has that."""
    return f"{metric} {result.get(metric, math.nan):.4g} after {result.get('percent_done', 0)} %"


def _trial_of(result: Any, folder: Path, keys: Collection[str], metric: str) -> Trial:
    from train.tuning.trial import PERCENT, RUN

    metrics = result.metrics or {}
    config = result.config or {}
    if result.error:
        error = " ".join(str(getattr(result.error, "cause", None) or result.error).split())
    else:
        error = ""
    return Trial(
        run=Path(metrics.get(RUN, folder)),
        values=applying({key: config[key] for key in keys if key in config}),
        score=float(metrics.get(metric, math.nan)),
        percent_done=int(metrics.get(PERCENT, 0)),
        error=error,
        has_ended=bool(metrics.get("done")),
    )


def _write_down(folder: Path, base: Experiment, trials: list[Trial], metric: str) -> TuneResult:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    keys = list(dict.fromkeys(key for trial in trials for key in trial.values))
    writer.writerow([metric, "percent_done", *keys, "run", "error"])
    for trial in trials:
        values = [trial.values.get(key) for key in keys]
        writer.writerow([trial.score, trial.percent_done, *values, trial.run.name, trial.error])
    best = with_values(base, trials[0].values).to_dict()
    with disk_errors(folder):
        write_whole(folder / "trials.csv", text.getvalue())
        write_whole(folder / "best.yaml", yaml.safe_dump(best, sort_keys=False))
    return TuneResult(folder, trials, folder / "best.yaml", metric)


def table(result: TuneResult) -> str:
    """Return the trials as lines of text, the best first."""
    rows = [_table_row(trial) for trial in result.trials]
    return in_columns(rows, (result.metric, "of budget", "values", "run"))


def _table_row(trial: Trial) -> tuple[str, str, str, str]:
    values = _listed(trial.values)
    if trial.error:
        return "failed", "", values, trial.error
    return f"{trial.score:.4g}", f"{trial.percent_done}%", values, trial.run.name


def _listed(values: Mapping[str, Any]) -> str:
    parts = []
    for key, value in values.items():
        text = f"{value:.4g}" if isinstance(value, float) else value
        parts.append(f"{key}={text}")
    return " ".join(parts)
