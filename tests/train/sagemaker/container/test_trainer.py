"""What a job finds again after an interruption."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tests.train.experiments import toy
from train.runs.continuing.earlier import earlier_run
from train.runs.folder import RunFolder
from train.runs.manifest import flaw
from train.sagemaker.container import trainer
from train.sagemaker.container.files import Container


def save(run, iteration):
    def write(path):
        (path / "learner").mkdir()
        (path / "learner" / "weights").write_bytes(bytes(100))

    return run.save_checkpoint(write, {"iteration": iteration}, keep=5)


def test_a_new_job_finds_nothing(tmp_path):
    assert earlier_run(tmp_path) is None


def test_the_newest_run_is_found_without_what_arrived_in_part(tmp_path):
    RunFolder.set_up(tmp_path / "identity-20260101-000000", toy("identity"), {})
    run = RunFolder.set_up(tmp_path / "identity-20261121-000000", toy("identity"), {})
    first, second, third = (save(run, iteration) for iteration in (1, 2, 3))
    (second / "learner" / "weights").write_bytes(bytes(50))
    (third / "learner" / "weights").unlink()
    assert [flaw(path) for path in (first, second, third)] == [
        None,
        "learner/weights has 50 bytes of 100",
        "learner/weights is missing",
    ]
    assert earlier_run(tmp_path) == run.path
    assert run.newest_checkpoint() == (first, {"iteration": 1})


def test_a_checkpoint_whose_list_is_missing_or_torn_is_not_whole(tmp_path):
    run = RunFolder.set_up(tmp_path / "identity-20261121-000000", toy("identity"), {})
    path = save(run, 1)
    (path / "files.json").write_text('{"learner/wei')
    assert flaw(path).startswith("files.json can't be read")
    (path / "files.json").unlink()
    assert flaw(path) == "files.json is missing"
    assert earlier_run(tmp_path) == run.path
    assert run.checkpoints() == []


def test_the_end_of_a_long_reason_is_kept_whole_letters_only(tmp_path):
    container = Container(tmp_path)
    container.fail("é" * 2000 + "the cause")
    written = (tmp_path / "output" / "failure").read_text()
    assert len(written.encode()) <= 1024
    assert written.endswith("the cause")


def test_a_full_disk_is_told_in_the_log_where_the_reason_has_no_room(tmp_path, capsys):
    (tmp_path / "output").mkdir()
    # A file to which nothing can be written, because there is never any room.
    (tmp_path / "output" / "failure").symlink_to("/dev/full")
    Container(tmp_path).fail("the cause")
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize(("has_run", "sizes"), [(True, ["scale.workers=4"]), (False, ())])
def test_a_run_that_goes_on_takes_the_size_that_its_job_has_now(
    tmp_path, monkeypatch, has_run, sizes
):
    config = tmp_path / "input" / "config"
    config.mkdir(parents=True)
    instance = {
        "experiment": "battlesnake-ppo",
        "scale.kind": "single",
        "scale.instance": "ml.c5.4xlarge",
    }
    (config / "hyperparameters.json").write_text(
        json.dumps({**instance, "scale.workers": "4", "seed": "3"})
    )
    if has_run:
        RunFolder.set_up(tmp_path / "checkpoints" / "identity-20261121-000000", toy("identity"), {})
    asked = []
    monkeypatch.setenv("SM_BASE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    done = SimpleNamespace(bundle=None, finished=True)
    monkeypatch.setattr(
        trainer, "train", lambda experiment, **options: asked.append((experiment, options)) or done
    )
    assert trainer.main() == 0
    ((experiment, options),) = asked
    assert (experiment is None) == has_run
    assert [override for override in options["sizes"] if "workers" in override] == list(sizes)
    assert not [override for override in options["sizes"] if "seed" in override]
