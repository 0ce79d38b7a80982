"""Submits an entry: it commits, makes an annotated tag, and pushes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from envs.common.errors import ProcsnakeError
from serve.aicrowd.check import Submission, check
from serve.aicrowd.competition import REMOTE_HOST

BRANCH = "master"


class SubmissionError(ProcsnakeError):
    """An entry can't be submitted."""


@dataclass(frozen=True)
class Submitted:
    """The result of a submission, or with `dry_run` what the result would be."""

    tag: str
    remote: str
    commands: list[str]
    """The git commands, as a person would type them."""


def submit(
    directory: str | os.PathLike[str],
    message: str,
    *,
    remote: str | None = None,
    dry_run: bool = False,
) -> Submitted:
    """Check `directory`, commit all of it, tag it `submission-<message>` and push branch and tag
    together.

    `remote` is a name or URL (default: the one at gitlab.aicrowd.com). With `dry_run` nothing is
    changed. If the push fails, the tag is removed, so that the same message can be tried again.
    Raises `SubmissionError` or `ConfigError`."""
    folder = Path(directory)
    findings = check(folder)
    if findings:
        raise SubmissionError(
            f"{folder} breaks {len(findings)} rules; the first: {findings[0]}",
            next_commands={"all": ("export", "check", folder)},
        )
    if Submission(folder).is_local:
        raise SubmissionError(
            f"{folder} carries weights, which the competition forbids; export it without"
            " --with-weights"
        )
    # Git refuses names with two dots in a row, and such as end in a dot or in .lock.
    words = re.sub(r"([^A-Za-z0-9.]|\.(?![A-Za-z0-9]))+", "-", message).strip("-.").lower()
    tag = "submission-" + re.sub(r"(\.lock)+$", "", words)
    if tag == "submission-":
        raise SubmissionError(
            f"the message {message!r} gives no name for a tag; use letters or digits"
        )
    repository = _Repository(folder)
    target = remote or repository.aicrowd_remote()
    if repository.has_tag(tag):
        raise SubmissionError(
            f"there is a tag {tag} already: each submission needs a message of its own"
        )
    steps = repository.steps(tag, message, target)
    if not dry_run:
        repository.run(steps, tag)
    return Submitted(tag, target, [shlex.join(["git", *step]) for step in steps])


class _Repository:
    """The git repository of a submission, which is made if the folder isn't one yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A folder within another repository isn't one of its own.
        self.exists = (folder / ".git").exists()

    def git(self, *arguments: str) -> str:
        """Run a git command and return its standard output. Raises `SubmissionError` with git's
        message if it fails.
        """
        try:
            done = subprocess.run(
                ["git", "-C", str(self.folder), *arguments], capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise SubmissionError("git isn't installed; install it: apt-get install git") from error
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            raise SubmissionError(f"git {arguments[0]} failed: {said}")
        return done.stdout.strip()

    def aicrowd_remote(self) -> str:
        lines = self.git("remote", "-v").splitlines() if self.exists else []
        names = [line.split()[0] for line in lines if REMOTE_HOST in line]
        if not names:
            url = f"git@{REMOTE_HOST}:TEAM/REPOSITORY.git"
            raise SubmissionError(
                f"{self.folder} has no remote at {REMOTE_HOST}; add it, or name another: --remote"
                f" {url}"
            )
        return names[0]

    def has_tag(self, tag: str) -> bool:
        return self.exists and bool(self.git("tag", "--list", tag))

    def steps(self, tag: str, message: str, remote: str) -> list[list[str]]:
        begin = [] if self.exists else [["init", "--quiet"]]
        changed = not self.exists or bool(self.git("status", "--porcelain"))
        if changed:
            commit = [["add", "--all"], ["commit", "--quiet", "-m", message]]
        else:
            commit = []
        push = [
            "push",
            "--quiet",
            "--atomic",
            remote,
            f"HEAD:refs/heads/{BRANCH}",
            f"refs/tags/{tag}",
        ]
        return [*begin, *commit, ["tag", "--annotate", "-m", message, tag], push]

    def run(self, steps: list[list[str]], tag: str) -> None:
        *others, push = steps
        for step in others:
            self.git(*step)
        try:
            self.git(*push)
        except SubmissionError:
            self.git("tag", "--delete", tag)
            raise
