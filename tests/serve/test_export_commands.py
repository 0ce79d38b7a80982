"""`procsnake export …` as it is typed."""

from __future__ import annotations

import pytest

import procsnake
from agents import bundle
from tests.serve.aicrowd.entries import make_bundle


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("policy") / "bundle", "lars")


def test_from_a_run_to_a_checked_entry(policy, tmp_path, capsys):
    entry = str(tmp_path / "entry")
    assert procsnake.main(["export", "aicrowd", str(policy.parent), "--track", "sample-efficiency", "--out", entry]) == 0
    assert "8,000,000 steps" in capsys.readouterr().out
    assert procsnake.main(["export", "check", entry]) == 0
    assert "every rule is kept" in capsys.readouterr().out
    remote = ["--remote", "git@gitlab.aicrowd.com:team/entry.git"]
    assert procsnake.main(["export", "submit", entry, "--message", "one", "--dry-run", *remote]) == 0
    assert "submission-one would be pushed" in capsys.readouterr().out


def test_findings_come_with_their_fix_and_an_exit_code(policy, tmp_path, capsys):
    entry = tmp_path / "entry"
    procsnake.main(["export", "aicrowd", str(policy), "--track", "generalization", "--out", str(entry)])
    (entry / ".gitignore").write_text("")
    assert procsnake.main(["export", "check", str(entry)]) == 2
    assert "Add the line: outputs/" in capsys.readouterr().out


def test_a_wrong_track_is_answered_in_a_line(policy, tmp_path, capsys):
    arguments = ["export", "aicrowd", str(policy), "--track", "generalisation", "--out", str(tmp_path / "entry")]
    assert procsnake.main(arguments) == 2
    assert capsys.readouterr().err.startswith("procsnake export aicrowd: unknown track 'generalisation'. Did you mean")


@pytest.mark.parametrize("target", ["policy.onnx", "."])
def test_the_onnx_file_is_the_bundles(policy, tmp_path, target):
    assert procsnake.main(["export", "onnx", str(policy), "--out", str(tmp_path / target)]) == 0
    assert (tmp_path / "policy.onnx").read_bytes() == bundle.load(policy).onnx
