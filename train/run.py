"""The life of a run.

`train(experiment)` plays, learns, shows progress, saves, stops when asked, resumes, and exports the
policy."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envs.common.columns import counted
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from train.algorithms import build_algorithm, trainer_class
from train.cluster.live import fit
from train.cluster.sizes import sized
from train.compute.gpus import require_gpus
from train.config import Experiment
from train.rllib.env_runner_failures import EnvRunnerError, clear_errors
from train.rllib.ray_runtime import is_lost_process, num_processes, running_ray
from train.runs.continuing.further import exported, fraction_done, further, why_ended
from train.runs.continuing.resizing import resized
from train.runs.continuing.resuming import require_trust, starting_point
from train.runs.folder import ASKED, Checkpoint, RunError, RunFolder, require_place, resume_command
from train.runs.lock import locked
from train.runs.own_commit import own_commit
from train.runs.sessions.evaluation import Evaluator
from train.runs.sessions.progress import Progress
from train.runs.sessions.session import Session
from train.runs.sessions.trackers import require_trackers
from train.runs.stored.mirror import Mirror, fetched, new_mirror, staged
from train.runs.stored.object_store import StoredFolder, is_address

STOPPING = "finishing this iteration, then saving …  (Ctrl-C again stops at once, without saving)"
OnIteration = Callable[[dict[str, Any]], bool | None]
"""A function that is called with each row of the curve. If it returns True, the session ends early,
as by Ctrl-C.
"""


@dataclass(frozen=True)
class RunResult:
    """The result of a session of training."""

    path: Path
    """The run folder. If the run is kept at an address, this folder is gone."""
    bundle: Path | None
    """The exported policy, or the file of an algorithm that trains none; None if the run isn't
    finished.
    """
    finished: bool
    """True if the budget is used up, the target is reached, or `finish` was asked for. Otherwise
    the run can be resumed.
    """
    metrics: dict[str, Any]
    """The last row of the curve."""
    address: str = ""
    """Where the run is kept in an object store; empty if it is in its folder."""


def train(
    experiment: Experiment | None = None,
    *,
    runs_dir: str | os.PathLike[str] = "runs",
    resume: str | os.PathLike[str] | None = None,
    on_iteration: OnIteration | None = None,
    command: str = "",
    trackers: Sequence[str] = (),
    cluster: str | None = None,
    trust: bool = False,
    sizes: Sequence[str] = (),
    wait_minutes: float = 0.0,
    finish: bool = False,
    minutes: float | None = None,
) -> RunResult:
    """Run `experiment` in a new folder under `runs_dir`, or continue the run in folder `resume`
    from its newest checkpoint.

    Either may also be an address in S3 or Google Cloud Storage, such as "s3://bucket/runs": the run
    is sent there with each checkpoint, and any machine can continue it
    (`train.runs.stored.mirror`).

    Ctrl-C (SIGINT) or SIGTERM lets the iteration end, saves a checkpoint and returns; a second one
    raises `KeyboardInterrupt` at once. A kill at any moment leaves the last checkpoint whole.

    * `command` is noted in the policy's card.
    * `trackers` also get the rows of the curve: "wandb" (Weights & Biases), "mlflow".
    * `cluster` is the address of a Ray cluster to use, sized by the experiment's `scale`. A learned
      evaluation plays there.
    * `trust` resumes a run from another machine, and executes the code in it
      (`train.runs.continuing.resuming`).
    * `wait_minutes` is how long a cluster that is too small may take to start more machines.
    * `finish` ends the run in `resume` now: nothing more is learned, and its policy is exported.
    * `minutes` trains the run in `resume` for this many more minutes, even if it has ended
      (`train.runs.continuing.further`).
    * `sizes` resumes with another number of processes, by overrides such as "num_env_runners=4"
      (`train.runs.continuing.resizing`).

    The folder of a new run whose start fails is removed, as long as nothing was learned.

    Raises `RunError` for folders that can't be used, `ConfigError` and `UnknownNameError` for an
    experiment that can't be run, `MissingDependencyError` if a tracker isn't installed, and
    `ClusterError` if there is no such cluster."""
    options: dict[str, Any] = {
        "on_iteration": on_iteration,
        "command": command,
        "trackers": trackers,
        "cluster": cluster,
        "trust": trust,
        "sizes": sizes,
        "wait_minutes": wait_minutes,
        "finish": finish,
        "minutes": minutes,
    }
    if resume is not None and is_address(resume):
        with fetched(StoredFolder.at(os.fspath(resume))) as (folder, mirror):
            return _train(experiment, Path(), folder, mirror, **options)
    if resume is None and is_address(runs_dir):
        with staged() as folder:
            return _train(experiment, folder, None, StoredFolder.at(os.fspath(runs_dir)), **options)
    return _train(experiment, runs_dir, resume, None, **options)


def _train(
    experiment: Experiment | None,
    runs_dir: str | os.PathLike[str],
    resume: str | os.PathLike[str] | None,
    kept_at: Mirror | StoredFolder | None,
    *,
    on_iteration: OnIteration | None,
    command: str,
    trackers: Sequence[str],
    cluster: str | None,
    trust: bool,
    sizes: Sequence[str],
    wait_minutes: float,
    finish: bool,
    minutes: float | None,
) -> RunResult:
    """Train here. `kept_at` is the mirror of the run to resume, or the stored folder of a new run's
    mirror, if it has one.
    """
    begun = _begun(experiment, resume, sizes, finish=finish, minutes=minutes)
    require_trackers(trackers)
    if begun:
        folder, saved = begun
        experiment = resized(saved, sizes)
    else:
        require_place(Path(runs_dir))
    assert experiment is not None
    start = None
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(title=experiment.name))
        if begun:
            require_trust(folder, saved, trust=trust)
            stack.enter_context(locked(folder.path))
            start = starting_point(folder, saved, trust=trust, say=progress.say)
            _require_something_learned(folder, start, finish=finish or minutes is not None)
            if start and minutes is None and (ended := _ended(folder, saved, start, progress)):
                return ended
            if start and minutes is not None:
                longer, start = further(saved, start, minutes)
                experiment = replace(experiment, budget=longer.budget, stop=longer.stop)
        progress.status("preparing the world")
        evaluator = check(experiment, begins=start is None, progress=progress)
        original = experiment
        experiment = stack.enter_context(_placed(original, cluster, wait_minutes, progress))
        start_failed = stack.enter_context(ExitStack())
        if not begun:
            folder = _created(Path(runs_dir), experiment, original)
            start_failed.callback(folder.remove_unless_used)
            stack.enter_context(locked(folder.path))
            if isinstance(kept_at, StoredFolder):
                kept_at = stack.enter_context(new_mirror(kept_at, folder.path))
        mirror = kept_at if isinstance(kept_at, Mirror) else None
        if mirror:
            folder.address = str(mirror.run)
        folder.clean()
        if minutes is not None:
            folder.change(experiment)
        # Ray has put a handler of its own in place of the one for SIGTERM.
        stop = stack.enter_context(_stop_on_signals(progress))
        algorithm = stack.enter_context(_built(experiment, cluster))
        session = Session(experiment, folder, algorithm, progress, evaluator=evaluator)
        session.mirror = mirror
        if start:
            progress.say(f"continuing {folder.place} from iteration {start[1]['iteration']}")
        if sizes:
            progress.say(
                f"with {experiment.num_env_runners} env runners and {experiment.num_learners}"
                " learners from here on"
            )
        session.begin(start, trackers=trackers)
        stack.callback(session.close)
        # From here on an interruption or a failure is told with the command that goes on with the
        # folder.
        start_failed.pop_all()
        session.send()
        with _telling_how_to_go_on(folder, progress):
            return _run(session, stop, on_iteration, command, finish=finish)


def _begun(
    experiment: Experiment | None,
    resume: str | os.PathLike[str] | None,
    sizes: Sequence[str],
    *,
    finish: bool,
    minutes: float | None,
) -> tuple[RunFolder, Experiment] | None:
    """The run to resume and its experiment, or None for a new run. Raises `ConfigError` for
    arguments that contradict.
    """
    if (experiment is None) == (resume is None):
        raise ConfigError("train() needs either an experiment or the folder of a run to resume")
    if (sizes or finish or minutes is not None) and resume is None:
        raise ConfigError(
            "train() takes sizes, finish and minutes with resume: they are for an existing run"
        )
    if finish and minutes is not None:
        raise ConfigError(
            "--finish ends the run where it is, and --minutes trains it further; leave out one of"
            " them"
        )
    if resume is None:
        return None
    return RunFolder.open(Path(resume))


def _require_something_learned(
    folder: RunFolder, start: Checkpoint | None, *, finish: bool
) -> None:
    """Raise `RunError` if a run is to be finished that has no checkpoint yet."""
    if finish and start is None:
        raise RunError(
            f"{folder.path} has no checkpoint, so no policy yet.",
            next_commands={"continue it": ("train", "--resume", folder.path)},
        )


def _ended(
    folder: RunFolder, experiment: Experiment, start: Checkpoint, progress: Progress
) -> RunResult | None:
    """The result of a run that has nothing left to train and has exported its policy, which is
    said; None for others.
    """
    _, counters = start
    path = exported(folder, start)
    if path is None or fraction_done(experiment.budget, counters) < 1.0:
        return None
    again = resume_command(folder.place)
    progress.say(
        f"{folder.place} has ended: {why_ended(experiment, counters)}. Train it further: {again}"
        " --minutes 10"
    )
    curve = folder.curve()
    last_row = curve[-1] if curve else {}
    metrics = {name: float(value) for name, value in last_row.items() if value}
    return RunResult(folder.path, path, True, metrics, folder.address)


def _created(runs_dir: Path, experiment: Experiment, original: Experiment) -> RunFolder:
    """The folder of a new run. It notes the experiment that was asked for, if that was fitted to a
    cluster.
    """
    origin = provenance()
    if original != experiment:
        origin[ASKED] = original.to_dict()
    return RunFolder.create(runs_dir, experiment, origin)


@contextmanager
def _placed(
    experiment: Experiment, cluster: str | None, wait_minutes: float, progress: Progress
) -> Iterator[Experiment]:
    """The experiment, fitted to the cluster if there is one, with Ray running if it needs that."""
    plays_there = bool(cluster) and experiment.settings.plays_on_cluster
    if cluster and not (experiment.uses_ray or plays_there):
        raise ConfigError(
            f"{experiment.algorithm} is a single process and can't use a cluster; leave out"
            " --cluster"
        )
    cores = usable_cores()
    if experiment.num_env_runners > cores and not cluster:
        progress.say(
            f"num_env_runners is {experiment.num_env_runners}, and this machine has"
            f" {counted(cores, 'core')} for them: they take turns, and each needs memory of its own"
        )
    if not cluster:
        require_gpus(experiment)
    needs_ray = experiment.uses_ray or plays_there
    task = "starting Ray and building the network" if needs_ray else "building the network"
    progress.status(task)
    with running_ray(num_processes(experiment), cluster) if needs_ray else nullcontext():
        if cluster and experiment.uses_ray:
            yield fit(sized(experiment), wait_minutes=wait_minutes, say=progress.say)
        else:
            yield experiment


@contextmanager
def _built(experiment: Experiment, cluster: str | None) -> Iterator[Any]:
    """The experiment's algorithm, which is stopped at the end."""
    algorithm = build_algorithm(experiment)
    try:
        if cluster and experiment.settings.plays_on_cluster:
            algorithm.play_on_cluster()
        yield algorithm
    finally:
        algorithm.stop()


@contextmanager
def _telling_how_to_go_on(folder: RunFolder, progress: Progress) -> Iterator[None]:
    """Add to an interruption, a faulty world or a lost process by which command the run
    continues.
    """
    resume = ("train", "--resume", folder.place)
    try:
        yield
    except KeyboardInterrupt:
        again = resume_command(folder.place)
        progress.say(f"stopped at once; continue from the last checkpoint with: {again}")
        raise
    except EnvRunnerError as error:
        raise EnvRunnerError(
            f"{error}. Fix it.",
            next_commands={"then continue from the last checkpoint": resume},
        ) from error
    except Exception as error:
        if not is_lost_process(error):
            raise
        raise RunError(
            "a process of the run was lost and could not be replaced"
            f" ({' '.join(str(error).split())[:200]}); perhaps the machine lacks memory.",
            next_commands={"continue from the last checkpoint with": resume},
        ) from error


def _run(
    session: Session,
    stop: threading.Event,
    on_iteration: OnIteration | None,
    command: str,
    *,
    finish: bool,
) -> RunResult:
    folder = session.folder
    progress = session.progress
    if finish:
        stop.set()
    else:
        progress.status("first iteration")
    while session.fraction_done() < 1.0 and not stop.is_set():
        row = session.step(stop.is_set)
        if row and on_iteration and on_iteration(row):
            stop.set()
    export = session.end(provenance=provenance(), command=command, finish=finish)
    # Exports return whole paths; a result has both of its paths in the form in which the run's was
    # given.
    bundle = export and folder.path / export.name
    finished = finish or session.fraction_done() >= 1.0
    if not finished:
        again = resume_command(folder.place)
        if session.counters["iteration"]:
            progress.say(
                f"stopped and saved; continue with: {again}\nor end it here, with the policy so"
                f" far: {again} --finish"
            )
        else:
            progress.say(f"stopped before its first iteration; continue with: {again}")
    return RunResult(folder.path, bundle, finished, dict(session.row), folder.address)


def check(
    experiment: Experiment, *, begins: bool = True, progress: Progress | None = None
) -> Evaluator | None:
    """Find mistakes in the experiment before anything is started or written, and compile the world
    before the clock starts.

    `begins` says that the run doesn't continue from a checkpoint. Returns the run's evaluator,
    if the experiment asks for one."""
    import numpy as np

    from envs.battlesnake.state import MAX_BOARDS
    from envs.common.errors import check_range
    from train.runs.export import build_network, check_network
    from train.runs.sessions.initial_weights import initial_weights
    from train.worlds.build import make_world, world_options
    from train.worlds.symmetry import views_of

    if not experiment.settings.has_policy:
        trainer_class(experiment).check(experiment)
        return None
    # The world that is made here has one game.
    if (num_games := experiment.env.options.get("num_games")) is not None:
        check_range("env.options.num_games", num_games, 1, MAX_BOARDS)
    with clear_errors(experiment.env.name):
        world = make_world({**world_options(experiment), "num_games": 1})
    network = build_network(experiment, world)
    evaluator = Evaluator(experiment) if experiment.evaluation else None
    if getattr(experiment.settings, "symmetries", False):
        views_of(world)
    if begins and experiment.init_from:
        initial_weights(experiment)
    with clear_errors(experiment.env.name):
        world.restart(experiment.seed)
        check_network(network, world, bf16=getattr(experiment.settings, "bf16", None) is not False)
        if experiment.settings.checks_start:
            trainer_class(experiment).check(experiment, world, progress)
        world.advance(np.zeros(world.num_envs, np.int64))
        world.close()
    return evaluator


@contextmanager
def _stop_on_signals(progress: Progress) -> Iterator[threading.Event]:
    """An event that the first SIGINT (Ctrl-C) or SIGTERM sets, and says so; the second one
    interrupts.

    Signals reach only the main thread.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # In a thread of its own, because the signal may have interrupted this one while it was
        # printing.
        threading.Thread(target=progress.say, args=(STOPPING,), daemon=True).start()

    before = {
        number: signal.signal(number, ask) or signal.SIG_DFL
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def provenance() -> dict[str, Any]:
    """Return the versions and the commit that made a run or a policy."""
    from agents.card import library_versions

    return {
        "versions": library_versions(),
        "git_commit": own_commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
