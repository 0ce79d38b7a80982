"""Resumes of runs that were copied in part, that others made, and that another process writes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from procsnake import main
from tests.train.experiments import toy
from train.config import Experiment
from train.run import train
from train.runs.continuing.resuming import named_code, starting_point
from train.runs.folder import RunError, RunFolder
from train.runs.lock import locked
from train.runs.manifest import flaw, is_own, write_manifest

WORLD = {"name": "world", "env": {"name": "battlesnake"}, "budget": {"max_minutes": 1}}


@pytest.fixture(autouse=True)
def own_key(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def a_run(tmp_path, num_checkpoints=3, experiment=None):
    """A run with the files that RLlib's checkpoints have, without their contents."""
    run = RunFolder.set_up(tmp_path / "run", experiment or Experiment.from_dict(WORLD), {})
    for iteration in range(1, num_checkpoints + 1):
        run.save_checkpoint(write_rllib_files, {"iteration": iteration}, keep=5)
    return run


def write_rllib_files(path):
    module = path / "learner_group" / "learner" / "rl_module" / "default_policy"
    module.mkdir(parents=True)
    for name in ("rllib_checkpoint.json", "learner_group/metadata.json"):
        (path / name).write_text("{}")
    (module / "metadata.json").write_text("{}")
    for name in ("algorithm_state.pkl", "learner_group/learner/state.pkl"):
        (path / name).write_bytes(bytes(100))
    (module / "module_state.pkl").write_bytes(bytes(100))


def start(run, *, trust=False):
    said = []
    found = starting_point(run, RunFolder.open(run.path)[1], trust=trust, say=said.append)
    return found, said


def without_learner_group(checkpoint):
    shutil.rmtree(checkpoint / "learner_group")


def with_other_weights(checkpoint):
    state = checkpoint / "learner_group" / "learner" / "state.pkl"
    state.write_bytes(bytes(99) + b"x")


def without_counters(checkpoint):
    (checkpoint / "counters.json").unlink()


def with_torn_counters(checkpoint):
    (checkpoint / "counters.json").write_text('{"itera')
    write_manifest(checkpoint)


@pytest.mark.parametrize(
    "damage", [without_learner_group, with_other_weights, without_counters, with_torn_counters]
)
def test_a_damaged_checkpoint_is_left_out_and_kept(tmp_path, damage):
    run = a_run(tmp_path)
    damage(run.checkpoints()[-1])
    (checkpoint, counters), said = start(run)
    assert (checkpoint.name, counters) == ("00000002", {"iteration": 2})
    assert "checkpoint 00000003 is left out" in said[0]
    assert (run.path / "checkpoints" / "damaged-00000003").is_dir()
    assert [path.name for path in run.checkpoints()] == ["00000001", "00000002"]


def test_a_damaged_best_checkpoint_is_no_longer_the_best(tmp_path):
    run = a_run(tmp_path)
    best = run.save_best(write_rllib_files, {"iteration": 2, "best": 1.0})
    without_learner_group(best)
    assert start(run)[0][1] == {"iteration": 3}
    assert run.best_checkpoint() is None


def test_what_is_forgotten_are_the_checkpoints_after_an_iteration(tmp_path):
    run = a_run(tmp_path, num_checkpoints=4)
    run.forget_after(2)
    assert [int(checkpoint.name) for checkpoint in run.checkpoints()] == [1, 2]


def test_a_run_of_which_every_checkpoint_is_damaged_does_not_begin_anew(tmp_path):
    run = a_run(tmp_path, 2)
    for checkpoint in run.checkpoints():
        without_learner_group(checkpoint)
    with pytest.raises(
        RunError, match=r"no whole checkpoint: in 00000002, learner_group/\S+ is missing"
    ):
        start(run)
    assert len(run.checkpoints()) == 2


@pytest.mark.parametrize("cut", ["1", "12", "124", "124,1", "122,0.", "1,0.5"])
def test_a_row_that_was_cut_off_anywhere_is_dropped(tmp_path, cut):
    run = a_run(tmp_path)
    rows = "".join(f"{iteration},0.5\n" for iteration in range(118, 124))
    (run.path / "progress.csv").write_text(f"iteration,loss\n{rows}{cut}")
    run.rewind(122)
    assert [tuple(row.values()) for row in run.curve()] == [
        (str(iteration), "0.5") for iteration in range(118, 123)
    ]


def test_a_strangers_run_is_refused_until_it_is_trusted(tmp_path, monkeypatch):
    run = a_run(tmp_path, 2)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another state"))
    with pytest.raises(RunError, match=r"was not made on this machine \(checkpoint 00000001\)"):
        start(run)
    start(run, trust=True)
    assert start(run)[0][1] == {"iteration": 2}


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/procsnake-was-here",)


def contents(folder):
    """All files below a folder, with what they hold."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("trust", [[], ["--trust"]])
@pytest.mark.parametrize(
    "name",
    [".lock", "checkpoints", "tensorboard", "checkpoints/00000003/files.json", "progress.csv"],
)
def test_a_link_in_a_strangers_run_harms_no_file_of_yours(tmp_path, capsys, name, trust):
    run = a_run(tmp_path)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text("secret")
    link = run.path / name
    is_folder = link.is_dir() or name == "tensorboard"
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(home if is_folder else home / ".ssh" / "key")
    before = contents(tmp_path)
    assert main(["train", "--resume", str(run.path), *trust]) == 2
    assert f"{link} is a link" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_trust_is_asked_for_before_anything_is_written(tmp_path, monkeypatch, capsys):
    run = a_run(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another state"))
    before = contents(run.path)
    assert main(["train", "--resume", str(run.path)]) == 2
    assert "was not made on this machine" in capsys.readouterr().err
    assert contents(run.path) == before


def test_a_pickle_that_was_slipped_into_an_own_checkpoint_is_refused(tmp_path):
    run = a_run(tmp_path, 1)
    (checkpoint,) = run.checkpoints()
    (checkpoint / "class_and_ctor_args.pkl").write_bytes(pickle.dumps(Evil()))
    assert flaw(checkpoint) is None
    assert not is_own(checkpoint)
    with pytest.raises(RunError, match="pickles"):
        start(run)


def test_train_resume_does_not_unpickle_what_strangers_wrote(tmp_path, monkeypatch, capsys):
    """End to end: the pickle would leave a file."""
    run = a_run(tmp_path, 1)
    (checkpoint,) = run.checkpoints()
    trace = tmp_path / "was executed"
    monkeypatch.setattr(Evil, "__reduce__", lambda self: (os.system, (f"touch '{trace}'",)))
    for pickled in checkpoint.rglob("*.pkl"):
        pickled.write_bytes(pickle.dumps(Evil()))
    write_manifest(checkpoint)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another state"))
    assert main(["train", "--resume", str(run.path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not trace.exists()


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"env": {"name": "battlesnake", "imports": ["worlds_of_mine"]}}, ["worlds_of_mine"]),
        ({"evaluation": {"every_minutes": 1, "opponents": [["mine.py+flood"]]}}, ["mine.py+flood"]),
        (
            {"evaluation": {"every_minutes": 1, "opponents": [["mine.py?options=o.yaml"]]}},
            ["mine.py?options=o.yaml"],
        ),
        ({"evaluation": {"every_minutes": 1, "opponents": [["is it?mine.py"]]}}, ["is it?mine.py"]),
        ({"algorithm": "imitation", "imitation": {"teacher": "mine.py"}}, ["mine.py"]),
        (
            {"env": {"name": "battlesnake", "options": {"self_play": {"opponents": ["mine.py"]}}}},
            ["mine.py"],
        ),
        ({}, []),
    ],
)
def test_a_changed_config_matters_where_it_names_code(tmp_path, changed, names):
    run = a_run(tmp_path, 1, Experiment.from_dict({**WORLD, **changed}))
    assert list(named_code(RunFolder.open(run.path)[1])) == names
    assert start(run)[0]
    with open(run.path / "config.yaml", "a") as file:
        file.write("# changed\n")
    if names:
        with pytest.raises(RunError, match=rf"config.yaml, which names {names[0][:4]}"):
            start(run)
    else:
        assert start(run)[0]


def test_without_a_home_a_run_is_resumed_by_trust_alone(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run = a_run(tmp_path, 1)
    with pytest.raises(RunError, match="--trust"):
        start(run)
    assert start(run, trust=True)[0]


def test_the_key_is_its_owners_alone(tmp_path):
    a_run(tmp_path, 1)
    key = tmp_path / "state" / "procsnake" / "key"
    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
    assert [path.name for path in key.parent.iterdir()] == ["key"]


def hold(path, ready):
    with locked(path):
        ready.set()
        signal.pause()


def test_a_second_process_is_told_who_writes_the_run(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=hold, args=(tmp_path, ready))
    holder.start()
    try:
        assert ready.wait(60)
        with (
            pytest.raises(RunError, match=f"process {holder.pid} on {socket.gethostname()}"),
            locked(tmp_path),
        ):
            pass
    finally:
        holder.kill()
        holder.join()
    # It was killed and could not say that it has ended; the kernel did.
    with locked(tmp_path):
        pass


def test_what_another_machine_left_is_explained(tmp_path):
    (tmp_path / ".lock").write_text('{"pid": 17, "host": "elsewhere"}')
    with (
        pytest.raises(RunError, match=r"process 17 on elsewhere.*remove .*\.lock"),
        locked(tmp_path),
    ):
        pass
    (tmp_path / ".lock").write_text('{"pid": 1')
    with (
        locked(tmp_path),
        pytest.raises(RunError, match=f"process {os.getpid()}"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_an_interrupted_run_that_was_copied_in_part_goes_on_from_the_checkpoint_before(
    one_ray, tmp_path, capsys
):
    """With RLlib's own files; without the check it went on with fresh weights."""
    experiment = toy("identity", steps=10_240).override(["checkpoints.every_minutes=0.0"])
    run = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 4).path
    names = [path.name for path in RunFolder(run).checkpoints()]
    assert names[-1] == "00000004"
    shutil.rmtree(run / "checkpoints" / names[-1] / "learner_group")
    second = train(resume=run, on_iteration=lambda row: True)
    assert second.metrics["iteration"] == 4
    told = capsys.readouterr()
    assert "checkpoint 00000004 is left out: learner_group/" in told.out + told.err
    # Nothing is signed, as in a run that another machine wrote.
    for checkpoint in RunFolder(run).checkpoints():
        (checkpoint / "files.json.hmac").unlink()
        assert flaw(checkpoint) is None
    assert train(resume=run, on_iteration=lambda row: True, trust=True).metrics["iteration"] == 5


@pytest.mark.long
def test_a_run_that_trains_is_not_resumed_beside(tmp_path):
    root = Path(__file__).parents[4]
    program = (
        "from tests.train.experiments import endless\nfrom train.run import train\nif __name__ =="
        f" '__main__':\n    train(endless('ppo'), runs_dir={str(tmp_path / 'runs')!r})"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    try:
        while not (found := list((tmp_path / "runs").glob("*/checkpoints/[0-9]*"))):
            assert child.poll() is None
        with pytest.raises(RunError, match=f"is being written by process {child.pid}"):
            train(resume=found[0].parents[1])
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(120)
