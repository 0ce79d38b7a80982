"""The life of a run: `train(experiment)` plays, learns, shows, saves, stops when asked, resumes, and exports the policy."""

from __future__ import annotations

import logging
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.errors import ConfigError
from train.config import Experiment
from train.progress import Progress
from train.run_folder import BUNDLE, EVENTS, RunFolder

OnIteration = Callable[[dict[str, Any]], bool | None]
"""Gets each progress row; returning True ends the session early, as Ctrl-C does."""


@dataclass(frozen=True)
class RunResult:
    """What came of a session of training."""

    path: Path
    """The run folder."""
    bundle: Path | None
    """The exported policy; None if the run isn't finished."""
    finished: bool
    """The budget is used up; otherwise the run was interrupted and can be resumed."""
    metrics: dict[str, Any]
    """The last row of the curve."""


def train(
    experiment: Experiment | None = None,
    *,
    runs_dir: str | os.PathLike[str] = "runs",
    resume: str | os.PathLike[str] | None = None,
    on_iteration: OnIteration | None = None,
    command: str = "",
) -> RunResult:
    """Run `experiment` in a new folder under `runs_dir`, or continue the run in folder `resume` from its newest checkpoint.

    Ctrl-C (SIGINT) lets the iteration end, saves a checkpoint and returns; a second one raises `KeyboardInterrupt` at once. A
    kill at any moment leaves the last checkpoint whole. Raises `RunError` for folders that can't be used, `ConfigError` and
    `UnknownNameError` for an experiment that can't be run. `command` is noted in the policy's card.
    """
    if (experiment is None) == (resume is None):
        raise ConfigError("train() needs either an experiment or the folder of a run to resume")
    start = None
    if resume is not None:
        folder, experiment = RunFolder.open(Path(resume))
        start = folder.newest_checkpoint()
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(title=experiment.name))
        progress.status("preparing the world (compiling it takes a minute the first time)")
        _check(experiment)
        if resume is None:
            folder = RunFolder.create(Path(runs_dir), experiment, _provenance())
        folder.clean()
        stop = stack.enter_context(_stop_on_sigint())
        progress.status("starting Ray and building the network")
        algorithm = stack.enter_context(_algorithm(experiment))
        try:
            return _Session(experiment, folder, algorithm, progress, stop, start).run(on_iteration, command)
        except KeyboardInterrupt:
            progress.say(f"stopped at once; go on from the last checkpoint with: procsnake train --resume {folder.path}")
            raise


class _Session:
    """One stretch of a run, from start or checkpoint to end or interruption."""

    def __init__(
        self,
        experiment: Experiment,
        folder: RunFolder,
        algorithm: Any,
        progress: Progress,
        stop: threading.Event,
        start: tuple[Path, dict[str, Any]] | None,
    ) -> None:
        self.experiment, self.folder, self.algorithm = experiment, folder, algorithm
        self.progress, self.stop = progress, stop
        self.counters: dict[str, Any] = {"iteration": 0, "env_steps": 0, "agent_steps": 0, "minutes": 0.0}
        self.row: dict[str, Any] = dict(self.counters)
        if start is not None:
            path, self.counters = start
            algorithm.restore_from_path(str(path.absolute()))
            self.row = dict(self.counters)
            progress.say(f"continuing {folder.path} from iteration {self.counters['iteration']}")
        folder.rewind(self.counters["iteration"])
        self._saved_iteration, self._saved_at = self.counters["iteration"], time.monotonic()

    def run(self, on_iteration: OnIteration | None, command: str) -> RunResult:
        from tensorboardX import SummaryWriter

        self.progress.status("first iteration")
        first = self.counters["iteration"] + 1
        with SummaryWriter(str(self.folder.path / EVENTS), purge_step=first, write_to_disk=True) as events:
            while self.fraction_done() < 1.0 and not self.stop.is_set():
                self._iterate(events)
                if on_iteration and on_iteration(dict(self.row)):
                    self.stop.set()
                if time.monotonic() - self._saved_at >= 60 * self.experiment.checkpoints.every_minutes:
                    self._save()
        if self._saved_iteration != self.counters["iteration"]:
            self._save()
        finished = self.fraction_done() >= 1.0
        bundle = None
        if finished:
            self.progress.status("exporting the policy")
            bundle = self._export(command)
        else:
            self.progress.say(f"stopped and saved; continue with: procsnake train --resume {self.folder.path}")
        return RunResult(self.folder.path, bundle, finished, dict(self.row))

    def fraction_done(self) -> float:
        """How much of the budget is used, 0..1 and a little more."""
        budget, fraction = self.experiment.budget, 0.0
        if budget.total_agent_steps:
            fraction = self.counters["agent_steps"] / budget.total_agent_steps
        if budget.max_minutes is not None:
            fraction = max(fraction, self.counters["minutes"] / budget.max_minutes if budget.max_minutes else 1.0)
        return fraction

    def _iterate(self, events: Any) -> None:
        began = time.monotonic()
        self.algorithm.fraction_done = min(self.fraction_done(), 1.0)
        result = self.algorithm.train()
        seconds = time.monotonic() - began
        agent_steps = sum(result["env_runners"]["num_agent_steps_sampled"].values())
        self.counters["iteration"] += 1
        self.counters["env_steps"] += int(result["env_runners"]["num_env_steps_sampled"])
        self.counters["agent_steps"] += int(agent_steps)
        self.counters["minutes"] += seconds / 60
        self.row = {**self.counters, "agent_steps_per_second": agent_steps / seconds, **_metrics(result)}
        self.folder.append(self.row)
        for name, value in self.row.items():
            if math.isfinite(value):
                events.add_scalar(name, value, self.counters["iteration"])
        self.progress.update(self.row, self.fraction_done())

    def _save(self) -> None:
        self.folder.save_checkpoint(
            lambda path: self.algorithm.save_to_path(str(path.absolute())), self.counters, self.experiment.checkpoints.keep
        )
        self._saved_iteration, self._saved_at = self.counters["iteration"], time.monotonic()

    def _export(self, command: str) -> Path:
        from train.export import export_bundle

        state = self.algorithm.learner_group.get_state(components="learner/rl_module")
        weights = next(iter(state["learner"]["rl_module"].values()))
        return export_bundle(
            self.folder.path / BUNDLE,
            experiment=self.experiment,
            weights=weights,
            metrics=self.row,
            provenance=_provenance(),
            command=command or f"procsnake train --config {self.folder.path / 'config.yaml'}",
        )


def _metrics(result: dict[str, Any]) -> dict[str, float]:
    """The flat columns of the curve from an RLlib result."""
    played, learned = result["env_runners"], result["learners"]["default_policy"]
    row = {name: played[name] for name in ("episode_return_mean", "episode_len_mean") if name in played}
    row |= {"episodes": played["num_episodes"]}
    row |= {f"mean_{name}": mean for name, mean in played.get("episode_means", {}).items() if name not in ("return", "length")}
    row |= {f"seconds_{phase}": seconds for phase, seconds in played["phase_seconds"].items()}
    row |= {"seconds_learner": result["learner_seconds"]}
    losses = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "explained_variance")
    row |= {name: learned[name] for name in losses}
    row |= {"learning_rate": learned["default_optimizer_learning_rate"]}
    return {name: float(value) for name, value in row.items()}


def _check(experiment: Experiment) -> None:
    """Find mistakes in the experiment before anything is started or written, and have the world compiled before time counts."""
    import numpy as np

    from train.export import build_network
    from train.world import make_world, world_options

    world = make_world({**world_options(experiment), "num_games": 1})
    build_network(experiment, world)
    world.restart(experiment.seed)
    world.advance(np.zeros(world.num_envs, np.int64))
    world.close()


@contextmanager
def _algorithm(experiment: Experiment) -> Iterator[Any]:
    """The RLlib algorithm, built, on a Ray of our own unless one is running already."""
    quiet = {"RLLIB_TEST_NO_TF_IMPORT": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ.update(quiet)
    import ray

    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)

    own = not ray.is_initialized()
    if own:
        ray.init(
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env={"env_vars": {**quiet, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}},
        )
    try:
        from train.ppo import PPOConfig

        algorithm = PPOConfig.from_experiment(experiment).build_algo()
        try:
            yield algorithm
        finally:
            algorithm.stop()
    finally:
        if own:
            ray.shutdown()


@contextmanager
def _stop_on_sigint() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts as usual. Signals reach only the main thread."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _provenance() -> dict[str, Any]:
    """Versions and commit that a run or a policy came from."""
    from agents.card import library_versions

    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        commit = ""
    return {"versions": library_versions(), "git_commit": commit, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
