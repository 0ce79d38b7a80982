"""One trial of Ray Tune: a training session in its own actor, with an ordinary run folder."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ray.tune import Trainable

from train.algorithms import build_algorithm
from train.config import Experiment
from train.run import provenance
from train.runs.continuing.resuming import flaw_of
from train.runs.folder import COUNTERS, CURVE, Checkpoint, RunError, RunFolder, read_counters
from train.runs.lock import locked
from train.runs.manifest import write_manifest
from train.runs.sessions.evaluation import Evaluator
from train.runs.sessions.progress import Progress
from train.runs.sessions.session import Session
from train.tuning.space import with_values

FIXED = "fixed"
"""The key of what all trials share: `experiment` (plain values), `folder`, `metric`. The other keys
are the values to try.
"""
PERCENT = "percent_done"
"""Key of results: how much of the budget is used up, 0..100."""
RUN = "run"
"""Key of results: the run folder."""


class TrialRun(Trainable):
    """A trial. Each step trains until another percent of the budget is used and the metric is
    known.
    """

    def setup(self, config: dict[str, Any]) -> None:
        self._stack = ExitStack()
        self._begun = False
        fixed = config[FIXED]
        values = {key: value for key, value in config.items() if key != FIXED}
        experiment = with_values(Experiment.from_dict(fixed["experiment"]), values)
        path = Path(fixed["folder"]) / f"{experiment.name}-{self.trial_id.rpartition('_')[2]}"
        self._metric = fixed["metric"]
        self._score: float | None = None
        progress = Progress(title=experiment.name, quiet=True)
        algorithm = build_algorithm(experiment)
        self._stack.callback(algorithm.stop)
        folder = RunFolder.set_up(path, experiment, provenance())
        self._stack.enter_context(locked(folder.path))
        # Of a search that goes on: what the trial had saved when it was interrupted.
        whole = [checkpoint for checkpoint in folder.checkpoints() if flaw_of(checkpoint) is None]
        self._start: Checkpoint | None = None
        if whole:
            self._start = whole[-1], read_counters(whole[-1])
        evaluator = Evaluator(experiment) if experiment.evaluation else None
        self._session = Session(experiment, folder, algorithm, progress, evaluator=evaluator)

    def step(self) -> dict[str, Any]:
        if not self._begun:
            self._begin(self._start)
        before = self._percent()
        row = {}
        while not self._is_finished() and (self._percent() == before or self._score is None):
            row = self._session.step()
            self._score = row.get(self._metric, self._score)
        if self._score is None:
            self._session.metric(self._metric, "tune.metric")
            raise RunError(
                f"{self._metric} has no value by the end of the trial's budget, because no episode"
                " or evaluation has ended by then. Give trials more: --minutes"
            )
        result = {
            self._metric: self._score,
            PERCENT: self._percent(),
            RUN: str(self._session.folder.path),
        }
        if finished := self._is_finished():
            self._end()
        return {**result, "done": finished}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        self._session.write_checkpoint(Path(checkpoint_dir))
        (Path(checkpoint_dir) / COUNTERS).write_text(json.dumps(self._session.counters))
        shutil.copyfile(self._session.folder.path / CURVE, Path(checkpoint_dir) / CURVE)
        write_manifest(Path(checkpoint_dir))

    def load_checkpoint(self, checkpoint: str | dict[str, Any] | None) -> None:
        """Continue from a checkpoint, which may be another trial's. The curve becomes that of the
        checkpoint's weights.

        Raises `RunError` if the checkpoint is incomplete.
        """
        path = Path(str(checkpoint))
        folder = self._session.folder
        if flaw := flaw_of(path):
            raise RunError(f"Ray Tune's checkpoint {path} is not whole: {flaw}. Is the disk full?")
        counters = read_counters(path)
        folder.forget_after(counters["iteration"])
        shutil.copyfile(path / CURVE, folder.path / CURVE)
        self._begin((path, counters))
        self._session.save()

    def _begin(self, start: Checkpoint | None) -> None:
        self._session.begin(start)
        self._begun = True
        # The curve is that of the weights, and so is the score, which the rest of the budget may be
        # too short to measure anew.
        self._score = None
        for row in self._session.folder.curve():
            if row.get(self._metric):
                self._score = float(row[self._metric])

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Reuse this process for another trial instead of starting a new one."""
        self.cleanup()
        self.setup(new_config)
        return True

    def cleanup(self) -> None:
        self._end()
        self._stack.close()

    def _end(self) -> None:
        if self._begun:
            self._session.end(provenance=provenance())
            self._session.close()
            self._begun = False

    def _percent(self) -> int:
        return min(100, int(100 * self._session.fraction_done()))

    def _is_finished(self) -> bool:
        return self._session.fraction_done() >= 1.0
