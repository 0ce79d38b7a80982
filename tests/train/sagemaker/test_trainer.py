"""What a job finds again after an interruption."""

from __future__ import annotations

from tests.train.experiments import toy
from train.runs.folder import RunFolder
from train.runs.manifest import flaw
from train.sagemaker.container import Container
from train.sagemaker.trainer import found_run


def save(run, iteration):
    def write(path):
        (path / "learner").mkdir()
        (path / "learner" / "weights").write_bytes(bytes(100))

    return run.save_checkpoint(write, {"iteration": iteration}, keep=5)


def test_a_new_job_finds_nothing(tmp_path):
    assert found_run(tmp_path) is None


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
    assert found_run(tmp_path) == run.path
    assert run.newest_checkpoint() == (first, {"iteration": 1})


def test_a_checkpoint_whose_list_is_missing_or_torn_is_not_whole(tmp_path):
    run = RunFolder.set_up(tmp_path / "identity-20261121-000000", toy("identity"), {})
    path = save(run, 1)
    (path / "files.json").write_text('{"learner/wei')
    assert flaw(path).startswith("files.json can't be read")
    (path / "files.json").unlink()
    assert flaw(path) == "rllib_checkpoint.json is missing"
    assert found_run(tmp_path) == run.path
    assert run.checkpoints() == []


def test_the_end_of_a_long_reason_is_kept_whole_letters_only(tmp_path):
    container = Container(tmp_path)
    container.fail("é" * 2000 + "the cause")
    written = (tmp_path / "output" / "failure").read_text()
    assert len(written.encode()) <= 1024
    assert written.endswith("the cause")
