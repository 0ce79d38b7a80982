"""A session: one stretch of a run, with iterations, evaluations, logging and checkpoints.

A trial of Ray Tune has a session, too.
"""

from __future__ import annotations

import itertools
import math
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from envs.common.errors import UnknownNameError
from train.config import Experiment
from train.metrics.levels import LEVELS, LevelTable
from train.metrics.rows import LEVEL_RETURNS, comes_late, progress_row
from train.runs.continuing.further import fraction_done
from train.runs.folder import (
    BUNDLE,
    CONFIG,
    Checkpoint,
    RunError,
    RunFolder,
    disk_errors,
)
from train.runs.report.page import write_report
from train.runs.sessions.evaluation import Evaluator
from train.runs.sessions.initial_weights import initial_weights
from train.runs.sessions.progress import Progress
from train.runs.sessions.trackers import Tracking
from train.runs.stored.lock import LostRunError
from train.runs.stored.mirror import Mirror, UnsentError

_MOST_EMPTY_ITERATIONS = 20
_MOST_EMPTY_SECONDS = 600.0
"""A run ends after so many iterations and so many seconds without experience. Both must pass,
because a process brings none while it starts, which takes long on a busy machine.
"""
_LOSS = "loss"
"""Part of a name that every trainer's updates have among their metrics."""


class Session:
    """One stretch of a run, from its start or a checkpoint to its end or an interruption.

    `evaluator` is the experiment's, or None without one. `step` raises `UnknownNameError` for
    metrics that don't exist."""

    def __init__(
        self,
        experiment: Experiment,
        folder: RunFolder,
        algorithm: Any,
        progress: Progress,
        *,
        evaluator: Evaluator | None,
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.algorithm = algorithm
        self.progress = progress
        self.mirror: Mirror | None = None
        """The copy of the run in an object store, if it is kept there."""
        self.counters: dict[str, Any] = {
            "iteration": 0,
            "env_steps": 0,
            "agent_steps": 0,
            "minutes": 0.0,
        }
        self.row: dict[str, Any] = self._counters_to_show()
        self._evaluator = evaluator
        self._tracking: Tracking | None = None
        self._levels = LevelTable()

    def begin(self, start: Checkpoint | None, *, trackers: Sequence[str] = ()) -> None:
        """Start from a checkpoint with its counters; with None, start at the beginning, from the
        experiment's initial weights if any.
        """
        if not self.experiment.settings.has_policy:
            self.algorithm.work_in(self.folder.path)
        if start is not None:
            path, self.counters = start
            self.algorithm.restore_from_path(str(path.absolute()))
            self._levels = LevelTable.read(path / LEVELS)
        elif self.experiment.init_from:
            self.algorithm.load_policy_weights(initial_weights(self.experiment))
        self.folder.rewind(self.counters["iteration"])
        last = self.folder.curve()[-1:]
        self.row = {}
        for row in last:
            self.row |= {name: float(value) for name, value in row.items() if value}
        self.row |= self._counters_to_show()
        self._saved_iteration = self.counters["iteration"]
        self._saved_at = time.monotonic()
        first = self.counters["iteration"] + 1
        self._tracking = Tracking(
            self.folder.path,
            self.experiment,
            first=first,
            trackers=trackers,
            progress=self.progress,
        )

    def close(self) -> None:
        """Stop logging."""
        if self._tracking:
            self._tracking.close()

    def step(self, stopped: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """Do one iteration and return its row of the curve.

        Evaluates, logs and saves checkpoints when due. The row is empty if `stopped()` becomes True
        while no env runner brings any experience.
        """
        assert self._tracking, "call begin() first"
        if not self._train(stopped):
            return {}
        self._evaluate_if_due()
        self._look_at_target()
        self.folder.append(self.row)
        self._tracking.log(self.row)
        self.progress.update(self.row, self.fraction_done())
        self._keep_if_best()
        if time.monotonic() - self._saved_at >= 60 * self.experiment.checkpoints.every_minutes:
            self.save()
        return dict(self.row)

    def _evaluate_if_due(self) -> None:
        if self._evaluator is None:
            return
        # A run that ends is always evaluated.
        if self._evaluator.is_due(self.counters) or self.fraction_done() >= 1.0:
            self.progress.passing("evaluating")
            self.row |= self._evaluator.evaluate(self.algorithm.policy_weights())
            self.counters |= {
                "evaluated_iteration": self.counters["iteration"],
                "evaluated_minutes": self.counters["minutes"],
            }

    def end(
        self, *, provenance: dict[str, Any], command: str = "", finish: bool = False
    ) -> Path | None:
        """Save the run and write its report. Export the result of a finished run and return its
        path.

        `finish` declares a run finished although some of its budget is left. `command` is the shell
        command that trains it again; by default it names the run's configuration, without the run's
        folder."""
        if self._saved_iteration != self.counters["iteration"]:
            self.save()
        bundle = None
        if finish or self.fraction_done() >= 1.0:
            self.progress.status("exporting what was trained")
            if not command:
                config = f"{self.folder.path.name}/{CONFIG}"
                command = shlex.join(["procsnake", "train", "--config", config])
            bundle = self._export(provenance, command)
        write_report(self.folder.path)
        self.send(is_last=True)
        return bundle

    def send(self, *, is_last: bool = False) -> None:
        """Send the run to its object store, if it has one.

        Raises `LostRunError` if another process has taken it over. Other failures are printed, and
        the next checkpoint tries again; with `is_last` they raise `UnsentError`."""
        if self.mirror is None:
            return
        try:
            self.mirror.send(self.folder.path)
        except LostRunError:
            raise
        except RunError as error:
            if is_last:
                raise UnsentError(
                    f"{error.message} The run stays in {self.folder.path}.",
                    next_commands=error.next_commands,
                ) from error
            self.progress.say(f"the run couldn't be sent: {error} The next checkpoint tries again")

    def fraction_done(self) -> float:
        """Return the part of the budget that is used: from 0 to 1 or slightly more; 1 once the
        target is reached.
        """
        return fraction_done(self.experiment.budget, self.counters)

    def save(self) -> None:
        """Write a checkpoint."""
        self.folder.save_checkpoint(
            self.write_checkpoint, self.counters, self.experiment.checkpoints.keep
        )
        with disk_errors(self.folder.path):
            self._levels.write(self.folder.path / LEVELS)
        self.send()
        self._saved_iteration = self.counters["iteration"]
        self._saved_at = time.monotonic()

    def write_checkpoint(self, path: Path) -> None:
        """Write the algorithm's state into an empty folder. The run's own counters are not part of
        it.
        """
        self.algorithm.save_to_path(str(path.absolute()))
        self._levels.write(path / LEVELS)

    def _look_at_target(self) -> None:
        target = self.experiment.stop
        if target and self.metric(target.metric, "stop.metric") >= target.at_least:
            self.counters["target_reached"] = True
            self.progress.say(
                f"{target.metric} is {self.row[target.metric]:.4g}: the target of"
                f" {target.at_least:g} is reached"
            )

    def _train(self, stopped: Callable[[], bool]) -> bool:
        """Do one iteration of the algorithm, or more until lost env runners have come back.

        Returns False if it was stopped before there was any experience."""
        first = time.monotonic()
        for empty in itertools.count():
            if empty and stopped():
                return False
            began = time.monotonic()
            if empty >= _MOST_EMPTY_ITERATIONS and began - first > _MOST_EMPTY_SECONDS:
                resume = ("train", "--resume", self.folder.place)
                raise RunError(
                    f"no env runner has brought any experience in {empty} iterations and"
                    f" {began - first:.0f} seconds; they may lack memory.",
                    next_commands={"continue with fewer games or runners": resume},
                )
            self.algorithm.fraction_done = min(self.fraction_done(), 1.0)
            result = self.algorithm.train()
            now = time.monotonic()
            self.counters["minutes"] += (now - began) / 60
            if metrics := progress_row(result, now - first):
                break
        self.counters["iteration"] += 1
        self.counters["env_steps"] += int(result["env_runners"]["num_env_steps_sampled"])
        self.counters["agent_steps"] += int(
            sum(result["env_runners"]["num_agent_steps_sampled"].values())
        )
        self._levels.take_in(result["env_runners"].get(LEVEL_RETURNS, {}))
        self.row = {**self._counters_to_show(), **metrics, **self._levels.metrics()}
        return True

    def _counters_to_show(self) -> dict[str, Any]:
        return {
            name: self.counters[name]
            for name in ("iteration", "env_steps", "agent_steps", "minutes")
        }

    def metric(self, name: str, key: str) -> float:
        """Return a metric of this iteration; minus infinity if it has no value yet.

        `key` is the setting that names it. Raises `UnknownNameError` if it will never have one."""
        if name in self.row:
            return float(self.row[name])
        columns = [*self.row, *self.folder.columns]
        awaits_evaluation = self._evaluator and not self.counters.get("evaluated_iteration")
        awaits_update = not any(_LOSS in column for column in columns)
        if not (name in columns or comes_late(name) or awaits_evaluation or awaits_update):
            raise UnknownNameError(key, name, self.row)
        return -math.inf

    def _keep_if_best(self) -> None:
        metric = self.experiment.checkpoints.best_metric
        if metric is None:
            return
        value = self.metric(metric, "checkpoints.best_metric")
        best = self.folder.best_checkpoint()
        best_value = best[1]["best"] if best else -math.inf
        if value > best_value:
            self.folder.save_best(self.write_checkpoint, {**self.row, "best": value})

    def _export(self, provenance: dict[str, Any], command: str) -> Path | None:
        """Export the newest network, or the best one if the experiment names a metric for that."""
        if not self.experiment.settings.has_policy:
            path, message = self.algorithm.export(provenance, command)
            self.progress.say(message)
            return Path(path) if path else None
        from train.runs.export import checkpointed_weights, export_bundle

        if best := self.folder.best_checkpoint():
            checkpoint, metrics = best
            weights = checkpointed_weights(checkpoint)
        else:
            metrics = self.row
            weights = self.algorithm.policy_weights()
        return export_bundle(
            self.folder.path / BUNDLE,
            experiment=self.experiment,
            weights=weights,
            metrics=metrics,
            provenance=provenance,
            command=command,
        )
