from __future__ import annotations

import io
import json
import math
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import envs
from agents import bundle, networks
from agents.card import BundleError
from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError
from procsnake import main
from tests.train.experiments import toy
from tests.waiting import until
from train.cluster.sizes import with_workers
from train.comparison.trainings import look_for
from train.config import Experiment
from train.run import STOPPING, _stop_on_signals, train
from train.runs.export import module_of
from train.runs.folder import RunError, RunFolder, find_runs
from train.runs.sessions.progress import Progress

ROOT = Path(__file__).parents[2]


def test_a_run_ends_at_its_budget_and_leaves_curve_checkpoint_and_a_policy_that_plays(
    one_ray, tmp_path
):
    result = train(toy("identity", steps=20_000), runs_dir=tmp_path)
    assert result.finished
    assert result.metrics["agent_steps"] >= 20_000
    assert result.metrics["episode_return_mean"] >= 0.95
    curve = RunFolder(result.path).curve()
    assert [int(row["iteration"]) for row in curve] == list(range(1, len(curve) + 1))
    assert {"seconds_env", "seconds_inference", "seconds_collation", "seconds_learner"} <= set(
        curve[0]
    )
    assert list((result.path / "tensorboard").iterdir())
    import onnxruntime

    loaded = bundle.load(result.bundle)
    session = onnxruntime.InferenceSession(loaded.onnx)
    seen = np.eye(4, dtype=np.uint8)[:, None, None, :] * 255
    logits = session.run(["logits"], {"observations": seen})[0]
    assert logits.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert loaded.card.steps["agent_steps"] == result.metrics["agent_steps"]


def test_module_and_bundle_agree(one_ray, tmp_path):
    """RLlib's module, restored from the run's checkpoint, against ONNX on 1000 random
    observations.
    """
    import onnxruntime
    import torch

    result = train(toy("corridor", steps=4_000, bf16=True), runs_dir=tmp_path)
    module = module_of(RunFolder(result.path).checkpoints()[-1])
    seen = np.random.default_rng(0).integers(0, 256, (1000, 1, 1, 11), dtype=np.uint8)
    ours = module.forward_inference({"obs": torch.from_numpy(seen)})["action_dist_inputs"].numpy()
    theirs = onnxruntime.InferenceSession(bundle.load(result.bundle).onnx).run(
        ["logits"], {"observations": seen}
    )[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    top_two = np.sort(ours, axis=1)[:, -2:]
    clear = top_two[:, 1] - top_two[:, 0] > 2e-4
    assert clear.sum() > 900
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1))[clear].all()


def test_each_part_of_a_run_builds_the_world_once_and_evaluations_share_theirs(
    one_ray, tmp_path, monkeypatch
):
    made = []
    make = envs.make
    monkeypatch.setattr(
        envs,
        "make",
        lambda name, **options: made.append(options["num_games"]) or make(name, **options),
    )
    data = toy("identity", steps=3 * 1024, num_epochs=1).to_dict() | {
        "evaluation": {"every_iterations": 1, "games": 7}
    }
    result = train(Experiment.from_dict(data), runs_dir=tmp_path)
    assert [row["evaluation_return_mean"] != "" for row in RunFolder(result.path).curve()] == [
        True
    ] * 3
    # The check before Ray starts, the evaluations, the env runner, and at the end the exported
    # policy and its film.
    assert made == [1, 7, 64, 1, 1]


def test_an_interrupted_run_goes_on_where_it_stopped(one_ray, tmp_path):
    first = train(
        toy("identity", steps=6 * 1024),
        runs_dir=tmp_path,
        on_iteration=lambda row: row["iteration"] == 4,
    )
    assert not first.finished
    assert first.bundle is None
    second = train(resume=first.path)
    assert second.finished
    assert second.path == first.path
    curve = RunFolder(first.path).curve()
    assert [int(row["agent_steps"]) for row in curve] == [1024 * k for k in range(1, 7)]
    minutes = [float(row["minutes"]) for row in curve]
    assert minutes == sorted(minutes)
    # It did not forget: untrained, it would earn 0.25.
    assert float(curve[4]["episode_return_mean"]) > float(curve[0]["episode_return_mean"]) + 0.1


def test_a_run_can_be_ended_where_it_is_and_still_goes_on_to_its_budget(one_ray, tmp_path, capsys):
    run = train(
        toy("identity", steps=6 * 1024, num_epochs=1),
        runs_dir=tmp_path,
        on_iteration=lambda row: row["iteration"] == 4,
    ).path
    with pytest.raises(
        BundleError, match=rf"a run that hasn't ended.*train --resume {run} --finish"
    ):
        bundle.load(run)
    assert f"train --resume {run} --finish" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--finish"]) == 0
    assert f"policy: {run / 'bundle'}" in capsys.readouterr().out
    early = bundle.load(run)
    assert early.card.steps["agent_steps"] == 4 * 1024
    assert early.card.command == f"procsnake train --config {run.name}/config.yaml"
    assert len(RunFolder(run).curve()) == 4
    assert look_for(tmp_path, RunFolder.open(run)[1], finished=True) == run
    assert train(resume=run).metrics["agent_steps"] == 6 * 1024
    assert bundle.load(run).weights != early.weights


def test_only_a_run_that_has_learned_something_can_be_ended(one_ray, tmp_path):
    run = RunFolder.create(tmp_path, toy("identity", steps=10_240), {}).path
    with pytest.raises(RunError, match=rf"no checkpoint, so no policy yet.*train --resume {run}"):
        train(resume=run, finish=True)
    with pytest.raises(ConfigError, match="takes sizes, finish and minutes with resume"):
        train(toy("identity", steps=10_240), runs_dir=tmp_path, finish=True)


def test_a_resumed_run_drops_rows_after_its_checkpoint_and_takes_no_half_written_one(
    one_ray, tmp_path
):
    run = train(
        toy("identity", steps=10_240, num_epochs=1),
        runs_dir=tmp_path,
        on_iteration=lambda row: row["iteration"] == 3,
    ).path
    with open(run / "progress.csv", "a") as file:
        file.write(
            (run / "progress.csv").read_text().splitlines()[-1].replace("3,", "4,", 1) + "\n5,51"
        )
    half = run / "checkpoints" / ".00000009.part"
    half.mkdir()
    train(resume=run, on_iteration=lambda row: True)
    assert [int(row["iteration"]) for row in RunFolder(run).curve()] == [1, 2, 3, 4]
    assert not half.exists()


_CHILD = """
from tests.train.experiments import endless
from train.run import train
if __name__ == "__main__":
    train(endless(%r), runs_dir=%r)
"""


@pytest.mark.parametrize(
    ("algorithm", "number"),
    [
        ("ppo", signal.SIGKILL),
        ("ppo", signal.SIGINT),
        ("dqn", signal.SIGKILL),
        ("apex", signal.SIGKILL),
    ],
)
@pytest.mark.long
def test_a_killed_process_leaves_a_run_that_can_be_resumed(one_ray, tmp_path, algorithm, number):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD % (algorithm, str(tmp_path))],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        saved = partial(tmp_path.glob, "*/checkpoints/[0-9]*/counters.json")
        until(lambda: child.poll() is not None or any(saved()), seconds=240)
        child.send_signal(number)
        output, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    assert any(saved()), output
    (run,) = tmp_path.iterdir()
    if number == signal.SIGINT:
        assert child.returncode == 0, output
        assert f"procsnake train --resume {run}" in output
    _, counters = RunFolder(run).newest_checkpoint()
    resumed = train(resume=run, on_iteration=lambda row: True)
    assert resumed.metrics["agent_steps"] > counters["agent_steps"]
    if algorithm != "apex":
        assert (
            resumed.metrics["agent_steps"]
            == counters["agent_steps"] + {"ppo": 1024, "dqn": 256}[algorithm]
        )
    iterations = [int(row["iteration"]) for row in RunFolder(run).curve()]
    assert iterations == list(range(1, counters["iteration"] + 2))


def test_a_process_that_is_lost_for_good_is_one_line_that_says_how_to_go_on(one_ray, tmp_path):
    from ray.exceptions import ActorDiedError

    def lose(row):
        raise ActorDiedError

    with pytest.raises(RunError, match=r"lost.*procsnake train --resume"):
        train(toy("identity"), runs_dir=tmp_path, on_iteration=lose)


def test_a_full_disk_leaves_the_earlier_checkpoint_and_one_line(one_ray, tmp_path):
    """Files that may not grow are to a writing process what a full disk is."""
    data = toy("identity", steps=10**9, num_epochs=1).to_dict() | {
        "checkpoints": {"every_minutes": 0.0, "keep": 2}
    }
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up(row):
        if row["iteration"] == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))

    try:
        with pytest.raises(RunError, match=r"File too large|No space left.*--resume"):
            train(Experiment.from_dict(data), runs_dir=tmp_path, on_iteration=fill_up)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (run,) = tmp_path.iterdir()
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["00000001", "00000002"]
    assert train(resume=run, on_iteration=lambda row: True).metrics["iteration"] == 3


WITHOUT_TIMES = ("minutes", "agent_steps_per_second", "seconds_")


def test_the_same_config_gives_the_same_curve(one_ray, tmp_path):
    settings = {"norm_reward": True, "kl_coef": 0.1, "anneal_lr": True, "num_epochs": 2}
    data = toy("corridor", steps=10**6, **settings).to_dict() | {"seed": 5}
    five = {"runs_dir": tmp_path, "on_iteration": lambda row: row["iteration"] == 5}
    first = train(Experiment.from_dict(data), **five).path
    second = train(Experiment.load(first / "config.yaml"), **five).path
    other = train(Experiment.load(first / "config.yaml", ["seed=6"]), **five).path

    def lines(run):
        return [
            {name: value for name, value in row.items() if not name.startswith(WITHOUT_TIMES)}
            for row in RunFolder(run).curve()
        ]

    assert len(lines(first)) == 5
    assert lines(first) == lines(second)
    assert lines(first) != lines(other)


def test_a_run_ends_at_its_target_and_exports_the_best_policy(one_ray, tmp_path):
    data = toy("identity", steps=10**9).to_dict() | {
        "evaluation": {"every_iterations": 2, "games": 64},
        "stop": {"metric": "evaluation_return_mean", "at_least": 0.95},
        "checkpoints": {"every_minutes": 60.0, "best_metric": "evaluation_return_mean"},
    }
    result = train(Experiment.from_dict(data), runs_dir=tmp_path)
    assert result.finished
    assert result.metrics["evaluation_return_mean"] >= 0.95
    folder = RunFolder(result.path)
    rates = [float(row["evaluation_return_mean"] or "nan") for row in folder.curve()]
    assert [math.isnan(rate) for rate in rates] == [k % 2 == 0 for k in range(len(rates))]
    assert all(rate < 0.95 for rate in rates[1:-1:2])
    best, counters = folder.best_checkpoint()
    assert (best.name, counters["best"]) == (f"best-{len(rates):08d}", max(rates[1::2]))
    assert bundle.load(result.bundle).card.metrics["best"] == counters["best"]
    # It stays finished: nothing is trained any more, and what is exported anew knows as much as
    # before.
    again = train(resume=result.path)
    assert again.metrics == pytest.approx(result.metrics)
    assert bundle.load(again.bundle).card.steps == bundle.load(result.bundle).card.steps


def test_the_best_checkpoint_is_kept_while_the_policy_gets_worse(one_ray, tmp_path):
    """A learning rate that explodes: the best policy is not the last, and it is the one that is
    exported.
    """
    import onnxruntime

    data = toy(
        "identity", steps=20 * 1024, learning_rate=[[0, 1e-2], [12_000, 1e-2], [13_000, 1.0]]
    ).to_dict()
    data |= {
        "evaluation": {"every_iterations": 1, "games": 256},
        "checkpoints": {"best_metric": "evaluation_return_mean"},
    }
    result = train(Experiment.from_dict(data), runs_dir=tmp_path)
    rates = [float(row["evaluation_return_mean"]) for row in RunFolder(result.path).curve()]
    assert rates[-1] < max(rates)
    assert RunFolder(result.path).best_checkpoint()[1]["best"] == max(rates)
    seen = np.eye(4, dtype=np.uint8)[:, None, None, :] * 255
    session = onnxruntime.InferenceSession(bundle.load(result.bundle).onnx)
    right = session.run(["logits"], {"observations": seen})[0].argmax(axis=1) == np.arange(4)
    assert right.mean() >= max(rates) - 0.1


def test_a_metric_that_does_not_exist_is_refused_with_the_nearest(one_ray, tmp_path):
    data = toy("identity").to_dict() | {"stop": {"metric": "policy_los", "at_least": 0.0}}
    with pytest.raises(UnknownNameError, match="Did you mean 'policy_loss'"):
        train(Experiment.from_dict(data), runs_dir=tmp_path)


def test_events_can_be_read_by_tensorboard(one_ray, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    run = train(
        toy("identity", steps=10_240, num_epochs=1),
        runs_dir=tmp_path,
        on_iteration=lambda row: row["iteration"] == 3,
    ).path
    train(resume=run, on_iteration=lambda row: row["iteration"] == 5)
    events = accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    shown = [(event.step, event.value) for event in events.Scalars("entropy")]
    assert shown == [
        (k, pytest.approx(float(row["entropy"]))) for k, row in enumerate(RunFolder(run).curve(), 1)
    ]


def test_wandb_is_asked_for_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingDependencyError, match=r"procsnake\[wandb\]"):
        train(toy("identity"), runs_dir=tmp_path, trackers=["wandb"])
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_found_before_anything_is_written(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'identity'"):
        train(
            Experiment.from_dict(
                {
                    **toy("identity").to_dict(),
                    "env": {"name": "identitty", "imports": ["tests.train.small_worlds"]},
                }
            ),
            runs_dir=tmp_path,
        )
    with pytest.raises(UnknownNameError, match="Did you mean 'mlp'"):
        train(
            Experiment.from_dict({**toy("identity").to_dict(), "network": {"name": "mlpp"}}),
            runs_dir=tmp_path,
        )
    with pytest.raises(RunError, match="is not a run"):
        train(resume=tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/runs"])
def test_a_file_in_the_place_of_the_runs_is_told_before_ray_starts(tmp_path, monkeypatch, place):
    monkeypatch.setattr("train.run.running_ray", lambda *_: pytest.fail("Ray was started"))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"/file is a file where a folder is needed"):
        train(toy("identity"), runs_dir=tmp_path / place)


def test_a_folder_without_rights_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(RunError, match=f"{tmp_path} can't be written to; check the rights"):
        train(toy("identity"), runs_dir=tmp_path / "runs")


@pytest.mark.parametrize("number", [0, 1 << 25, 2.5])
def test_a_number_of_games_that_no_world_has_is_refused_by_its_key(tmp_path, number):
    with pytest.raises(
        ConfigError, match=rf"env\.options\.num_games is {number}; it must be an integer from 1 to"
    ):
        train(toy("identity", options={"num_games": number}), runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def fail(*_, **__):
    raise ConfigError("no such thing")


@pytest.mark.parametrize("place", ["build_algorithm", "Session.begin"])
def test_a_start_that_fails_leaves_no_folder(one_ray, tmp_path, monkeypatch, place):
    monkeypatch.setattr(f"train.run.{place}", fail)
    with pytest.raises(ConfigError, match="no such thing"):
        train(toy("identity"), runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_start_that_fails_keeps_a_folder_that_was_there_before(one_ray, tmp_path, monkeypatch):
    run = RunFolder.create(tmp_path, toy("identity"), {}).path
    monkeypatch.setattr("train.run.build_algorithm", fail)
    with pytest.raises(ConfigError, match="no such thing"):
        train(resume=run)
    assert (run / "config.yaml").is_file()


def test_a_place_that_no_folder_can_have_is_refused_in_a_line(tmp_path):
    for look in (
        lambda place: RunFolder.create(place, toy("identity"), {}),
        lambda place: find_runs(place, toy("identity")),
    ):
        with pytest.raises(RunError, match=r"can't be written or read: File name too long\."):
            look(tmp_path / ("x" * 256))


@pytest.mark.parametrize("kept", ["notes.txt", "checkpoints/.00000001.part", "progress.csv"])
def test_a_folder_that_holds_more_than_a_start_writes_is_not_removed(tmp_path, kept):
    folder = RunFolder.create(tmp_path, toy("identity"), {})
    (folder.path / kept).write_text("iteration\n1\n")
    folder.remove_unless_used()
    assert (folder.path / kept).is_file()
    (folder.path / kept).unlink()
    folder.remove_unless_used()
    assert not folder.path.exists()


def test_more_env_runners_than_cores_are_told_in_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("train.run.usable_cores", lambda: 2)
    monkeypatch.setattr("train.run.running_ray", fail)
    for number in (2, 3):
        with pytest.raises(ConfigError, match="no such thing"):
            train(toy("identity", num_env_runners=number), runs_dir=tmp_path)
        told = [line for line in capsys.readouterr().out.splitlines() if "num_env_runners" in line]
        assert [line.split(",")[0] for line in told] == ["num_env_runners is 3"] * (number == 3)


def test_a_result_names_run_and_policy_in_the_same_form(one_ray, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = train(toy("identity", steps=1), runs_dir="runs")
    assert result.bundle == result.path / "bundle"
    assert result.bundle.is_dir()


def test_checkpoints_appear_whole_and_only_the_newest_stay(tmp_path):
    folder = RunFolder.create(tmp_path, toy("identity"), {})
    seen = []

    def save(path: Path) -> None:
        seen.append([c.name for c in folder.checkpoints()])
        (path / "weights").write_text("w")

    for iteration in (1, 2, 3):
        folder.save_checkpoint(save, {"iteration": iteration}, keep=2)
    assert seen == [[], ["00000001"], ["00000001", "00000002"]]
    assert [c.name for c in folder.checkpoints()] == ["00000002", "00000003"]
    assert json.loads((folder.checkpoints()[-1] / "counters.json").read_text()) == {"iteration": 3}


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_better_policy_replaces_the_best_of_a_later_iteration_that_was_discarded(
    tmp_path, monkeypatch, is_killed
):
    """A run that goes on from before its best is at a lower iteration when it gets better still."""
    folder = RunFolder.create(tmp_path, toy("identity"), {})
    folder.save_best(lambda path: None, {"iteration": 100, "best": 0.5})
    if is_killed:
        monkeypatch.setattr(RunFolder, "_remove", staticmethod(lambda checkpoint: None))
    folder.save_best(lambda path: None, {"iteration": 95, "best": 0.7})
    assert folder.best_checkpoint()[1] == {"iteration": 95, "best": 0.7}
    assert [path.name for path in folder.best_checkpoints()] == ["best-00000095", "best-00000100"][
        : 1 + is_killed
    ]


def test_a_run_that_was_fitted_to_a_cluster_is_found_by_the_experiment_that_was_asked_for(
    one_ray, tmp_path, monkeypatch
):
    monkeypatch.setattr("train.run.fit", lambda experiment, **_: with_workers(experiment, 1))
    asked = toy("identity", steps=1024)
    run = train(asked, runs_dir=tmp_path, cluster="auto").path
    assert RunFolder.open(run)[1] == with_workers(asked, 1)
    assert look_for(tmp_path, asked, finished=True) == run
    assert look_for(tmp_path, asked.override(["seed=1"]), finished=True) is None


def test_runs_are_found_by_a_name_that_looks_like_a_pattern(tmp_path):
    experiment = toy("identity").override(["name=ppo[64]"])
    run = RunFolder.create(tmp_path, experiment, {})
    assert find_runs(tmp_path, experiment) == [run.path]


def test_networks_of_the_card_can_be_built(one_ray, tmp_path):
    card = bundle.load(train(toy("identity", steps=1), runs_dir=tmp_path).bundle).card
    networks.build(
        card.network["name"],
        tuple(card.observation_shape),
        card.action["num_actions"],
        **card.network["options"],
    )


def test_ctrl_c_is_acknowledged_before_the_iteration_ends():
    stream = io.StringIO()
    with Progress(title="a run", stream=stream) as progress, _stop_on_signals(progress) as stop:
        signal.raise_signal(signal.SIGINT)
        until(lambda: STOPPING in stream.getvalue(), seconds=30)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
