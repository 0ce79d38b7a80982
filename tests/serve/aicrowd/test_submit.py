"""Handing in, against a bare repository on this disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from serve.aicrowd import SubmissionError, export, submit
from tests.serve.aicrowd.entries import settings


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


@pytest.fixture
def entry(tmp_path) -> Path:
    export(settings("ppo"), tmp_path / "entry", track="generalization", authors=["Ada"])
    return tmp_path / "entry"


@pytest.fixture
def server(tmp_path) -> Path:
    git(tmp_path, "init", "--quiet", "--bare", "server.git")
    return tmp_path / "server.git"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_the_tag_arrives_with_the_commit(entry, server):
    done = submit(entry, "First try: wider!", remote=str(server))
    assert done.tag == "submission-first-try-wider"
    # An annotated tag is an object of its own, which names a commit.
    assert git(server, "cat-file", "-t", done.tag) == "tag"
    assert git(server, "rev-parse", f"{done.tag}^{{commit}}") == git(server, "rev-parse", "master")
    files = git(server, "ls-tree", "-r", "--name-only", "master").splitlines()
    assert {"aicrowd.json", "run.sh", "experiments/procgen-ppo.yaml", ".gitignore"} <= set(files)
    assert git(server, "log", "-1", "--format=%B", "master") == "First try: wider!"


def test_outputs_stay_at_home(entry, server):
    (entry / "outputs").mkdir()
    (entry / "outputs" / "log").write_text("1")
    submit(entry, "one", remote=str(server))
    assert "outputs" not in git(server, "ls-tree", "-r", "--name-only", "master")


def test_a_dry_run_changes_nothing_and_tells_all(entry, server):
    done = submit(entry, "one", remote=str(server), dry_run=True)
    assert [command.split()[1] for command in done.commands] == [
        "init",
        "add",
        "commit",
        "tag",
        "push",
    ]
    assert not (entry / ".git").exists()
    assert git(server, "tag") == ""


def test_the_remote_at_aicrowd_is_found(entry):
    git(entry, "init", "--quiet")
    git(entry, "remote", "add", "origin", "https://example.org/a.git")
    git(entry, "remote", "add", "aicrowd", "git@gitlab.aicrowd.com:team/entry.git")
    assert submit(entry, "one", dry_run=True).remote == "aicrowd"


def test_without_a_remote_it_says_what_to_do(entry):
    with pytest.raises(SubmissionError, match=r"no remote at gitlab\.aicrowd\.com"):
        submit(entry, "one")


def test_each_submission_has_a_message_of_its_own(entry, server):
    submit(entry, "one", remote=str(server))
    with pytest.raises(SubmissionError, match="tag submission-one already"):
        submit(entry, "One", remote=str(server))
    second = submit(entry, "two", remote=str(server))
    assert [command.split()[1] for command in second.commands] == ["tag", "push"]
    assert git(server, "tag").split() == ["submission-one", "submission-two"]


def test_a_push_that_fails_can_be_tried_again(entry, server, tmp_path):
    with pytest.raises(SubmissionError, match="git push failed"):
        submit(entry, "one", remote=str(tmp_path / "nowhere.git"))
    assert git(entry, "tag") == ""
    submit(entry, "one", remote=str(server))
    assert git(server, "tag") == "submission-one"


def test_an_entry_within_another_repository_becomes_one_of_its_own(entry, server):
    git(entry.parent, "init", "--quiet")
    submit(entry, "one", remote=str(server))
    assert (entry / ".git").is_dir()


def test_what_breaks_a_rule_is_not_handed_in(entry, server):
    (entry / "aicrowd.json").unlink()
    with pytest.raises(SubmissionError, match="procsnake export check"):
        submit(entry, "one", remote=str(server))
    assert git(server, "tag") == ""


def test_weights_are_not_handed_in(bundle_of, server, tmp_path):
    export(
        bundle_of("ppo"),
        tmp_path / "local",
        track="generalization",
        with_weights=True,
        authors=["Ada"],
    )
    with pytest.raises(SubmissionError, match="without --with-weights"):
        submit(tmp_path / "local", "one", remote=str(server))


@pytest.mark.parametrize(
    ("message", "tag"),
    [
        ("wait... what", "wait-what"),
        ("a..b", "a-.b"),
        ("...first...", "first"),
        ("v1.0.2", "v1.0.2"),
        (".lock", "lock"),
        ("my.lock", "my"),
        ("My.LOCK.lock", "my"),
        ("a.lock-.lock", "a.lock-"),
        ("a..lock", "a-"),
        ("./a@{1}~^:?*[\\", "a-1"),
    ],
)
def test_git_takes_the_tag(entry, message, tag):
    done = submit(entry, message, remote="server", dry_run=True)
    assert done.tag == f"submission-{tag}"
    git(entry, "check-ref-format", f"refs/tags/{done.tag}")


def test_a_message_without_letters(entry, server):
    with pytest.raises(SubmissionError, match="no name for a tag"):
        submit(entry, "!!!", remote=str(server))
