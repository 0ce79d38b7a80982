"""Checks a submission against every rule of the competition, without executing any of it and
without a network.
"""

from __future__ import annotations

import json
import os
import pickletools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError, reason
from envs.common.shell_command import shell_command
from envs.common.strangers.bounded import read_bytes
from serve.aicrowd.competition import (
    CHALLENGE,
    DEFAULT_IMAGE,
    LOCAL,
    MAX_FILE_BYTES,
    SAMPLE_AUTHORS,
    SAMPLE_DESCRIPTIONS,
)
from serve.aicrowd.rules import ray_settings
from serve.aicrowd.rules.code import base_environment, contract, imports, sources
from serve.aicrowd.rules.settings import environment, model, training, validation
from serve.aicrowd.rules.stack import dockerfile, requirements
from serve.aicrowd.submission import Breach, Submission, is_checkpoint

__all__ = ["Breach", "Submission", "check"]

_PICKLE_PROTOCOL = 4
_RAY_TRAINERS = (
    "A2C",
    "A3C",
    "APEX",
    "APPO",
    "ARS",
    "BC",
    "DDPPO",
    "DQN",
    "ES",
    "IMPALA",
    "MARWIL",
    "PG",
    "PPO",
    "SAC",
    "SimpleQ",
)
_FILES = (
    "run.sh",
    "train.py",
    "rollout.py",
    "requirements.txt",
    "aicrowd.json",
    "envs/procgen_env_wrapper.py",
)
"""Files that are run or read. Missing modules are found where they are imported."""
_WORDS = (
    "EXPERIMENT",
    "--train",
    "--rollout",
    "CHECKPOINT",
    "EPISODES",
    "AICROWD_IS_GRADING",
    "OUTPUTS_DIR",
)
_STAND_IN = "utils/rollout_on_ray_086.py"


def check(directory: str | os.PathLike[str]) -> list[Breach]:
    """Return every rule that the submission breaks, in the rules' order. Without any, it can be
    submitted.

    Raises `ConfigError` if there is no such folder.
    """
    folder = Path(directory)
    if not os.path.isdir(folder):
        raise ConfigError(
            f"there is no folder {folder}.",
            next_commands={
                "write one": ("export", "aicrowd", "RUN", "--track", "TRACK", "--out", folder)
            },
        )
    submission = Submission(folder)
    return [finding for rule in _RULES for finding in rule(submission)]


def _files(submission: Submission) -> Iterator[Breach]:
    anew = (
        "Export again:"
        f" {shell_command('export', 'aicrowd', 'RUN', '--track', 'TRACK', '--out', 'DIR')}"
    )
    for path in _FILES:
        if not (submission.folder / path).is_file():
            yield Breach(path, "it isn't there", anew)
        elif not submission.text(path).strip():
            yield Breach(path, "it is empty, or no text", anew)
    for path in submission.files:
        whole = submission.folder / path
        if not whole.exists():
            yield Breach(
                path, f"it is a link to {os.readlink(whole)}, which isn't there", "Remove it"
            )
        elif not whole.resolve().is_relative_to(submission.folder.resolve()):
            yield Breach(
                path,
                "it is a link out of the repository, which git doesn't follow",
                "Put the file in its place",
            )
        elif (size := whole.stat().st_size) > MAX_FILE_BYTES:
            yield Breach(
                path,
                f"{size:,} bytes; files of more than {MAX_FILE_BYTES:,} are scrubbed",
                "Remove it",
            )
    for place in submission.virtual_environments:
        yield Breach(
            str(place),
            "it is a Python environment that git doesn't ignore, so it would be handed in",
            f"Add the line {place}/ to .gitignore",
        )
    ignored = re.search(r"^/?outputs(/.*)?$", submission.text(".gitignore"), re.MULTILINE)
    if not ignored:
        yield Breach(".gitignore", "outputs/ isn't ignored by git", "Add the line: outputs/")


def _entry(submission: Submission) -> Iterator[Breach]:
    text = submission.text("aicrowd.json")
    if not text.strip():
        return
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Breach("aicrowd.json", f"it isn't JSON ({error})", "Fix it, or export again")
        return
    if not isinstance(entry, dict):
        yield Breach(
            "aicrowd.json",
            f"it holds {_shown(entry)} where an object is wanted",
            "Fix it, or export again",
        )
        return
    for key in ("challenge_id", "grader_id"):
        if entry.get(key) != CHALLENGE:
            yield Breach("aicrowd.json", f"{key} is {entry.get(key)!r}", f'Set it to "{CHALLENGE}"')
    authors = entry.get("authors")
    if (
        not isinstance(authors, list)
        or not authors
        or not all(isinstance(author, str) and author for author in authors)
    ):
        yield Breach(
            "aicrowd.json", f"authors is {authors!r}", 'Make it a list as ["Ada <ada@example.org>"]'
        )
    elif any(author in SAMPLE_AUTHORS for author in authors):
        yield Breach(
            "aicrowd.json",
            f"authors is {authors!r}, which names nobody of your team",
            "Put your names there",
        )
    if not isinstance(entry.get("description"), str):
        yield Breach(
            "aicrowd.json", f"description is {entry.get('description')!r}", "Make it a text"
        )
    elif entry["description"] in SAMPLE_DESCRIPTIONS:
        yield Breach(
            "aicrowd.json",
            f"description is {entry['description']!r}, the starter kit's sample text",
            "Say what the entry is",
        )
    for key in ("docker_build", "debug"):
        if not isinstance(entry.get(key), bool):
            yield Breach("aicrowd.json", f"{key} is {entry.get(key)!r}", "Make it true or false")
    if entry.get("docker_build") is False:
        yield Breach(
            "aicrowd.json",
            "docker_build is false, so AIcrowd would install neither requirements.txt nor the"
            f" Dockerfile and run the entry in its own image, which has {DEFAULT_IMAGE}",
            "Set it to true",
        )
    if entry.get("docker_build") is True and not (submission.folder / "Dockerfile").is_file():
        yield Breach(
            "aicrowd.json",
            "docker_build is true, but there is no Dockerfile",
            "Add one; an export without --starter-kit brings one",
        )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 40 else f"{text[:40]}…"


def _run_script(submission: Submission) -> Iterator[Breach]:
    text = submission.text("run.sh")
    if not text:
        return
    if not os.access(submission.folder / "run.sh", os.X_OK):
        yield Breach("run.sh", "it isn't executable", "chmod +x run.sh")
    for word in _WORDS:
        if word not in text:
            yield Breach(
                "run.sh",
                f"it doesn't know {word}",
                "Export again, or take run.sh from another export",
            )
    if not submission.experiment_path:
        yield Breach(
            "run.sh", "it sets no EXPERIMENT_DEFAULT", "Set it to the YAML file of your experiment"
        )
    elif not (submission.folder / submission.experiment_path).is_file():
        yield Breach(
            "run.sh",
            f"EXPERIMENT_DEFAULT is {submission.experiment_path}, which isn't there",
            "Correct the path",
        )
    if _STAND_IN not in text and re.search(r"rollout\.py", text):
        fix = f"Start {_STAND_IN} instead, which every export brings"
        yield Breach(
            "run.sh",
            "it starts rollout.py, which, as the grader has it, doesn't import on Ray 0.8.6",
            fix,
        )
    if re.search(r"^exit\b", text, re.MULTILINE):
        yield Breach(
            "run.sh",
            "it ends with exit, but AIcrowd's validator sources it",
            "Remove the exit at the outermost level",
        )


def _experiment(submission: Submission) -> Iterator[Breach]:
    path = submission.experiment_path
    if not path or not (submission.folder / path).is_file():
        return
    text = submission.text(path)
    if len(submission.experiments) != 1:
        yield Breach(
            path,
            f"it holds {len(submission.experiments)} experiments",
            "Keep exactly one, in block style",
        )
        return
    name = next(iter(submission.experiments))
    # As run.sh reads it: the first line that is neither indented nor a comment.
    first = next((line for line in text.splitlines() if not line.startswith((" ", "#"))), "")
    if first.split(":")[0] != name or not first.rstrip().endswith(":"):
        yield Breach(
            path,
            f"run.sh reads the experiment's name from the line {first!r}",
            f"Make {name}: the first line",
        )
    for key in ("run", "env"):
        lines = [line for line in text.splitlines() if f"  {key}:" in line]
        words = lines[0].split() if lines else []
        value = words[1] if len(words) > 1 else ""
        if len(lines) != 1:
            yield Breach(
                path,
                f"{len(lines)} lines hold '  {key}:', which run.sh looks for",
                "Let exactly one do so",
            )
        elif value != str(submission.body.get(key)):
            yield Breach(
                path,
                f"run.sh reads {key} as {value!r}",
                f"Write it unquoted below {name}:  {key}: {submission.body.get(key)}",
            )
    yield from _names(submission, path)


def _names(submission: Submission, path: str) -> Iterator[Breach]:
    """Yield a breach for each name in the experiment that nothing registers."""
    run = str(submission.body.get("run"))
    env = str(submission.body.get("env"))
    registry = "".join(
        submission.text(file) for file in submission.files if file.startswith("algorithms/")
    )
    if run not in _RAY_TRAINERS and f'"{run}"' not in registry and f"'{run}'" not in registry:
        yield Breach(
            path,
            f"run is {run}, which neither Ray 0.8.6 nor algorithms/registry.py has",
            "Register it there",
        )
    model = submission.model.get("custom_model")
    for name, kind, folder in ((env, "env", "envs/"), (model, "custom_model", "models/")):
        sources = "".join(
            submission.text(file)
            for file in submission.files
            if file.startswith(folder) and file.endswith(".py")
        )
        if name is not None and f'"{name}"' not in sources and f"'{name}'" not in sources:
            yield Breach(
                path,
                f"{kind} is {name}, which no file of {folder} registers",
                "Correct the name, or add the file",
            )


def _no_weights(submission: Submission) -> Iterator[Breach]:
    fix = (
        "Export without --with-weights; a package that isn't for the competition says so in"
        f" aicrowd.json: {LOCAL}"
    )
    if submission.is_local:
        return
    for path in submission.weights:
        yield Breach(path, "it holds weights, and the competition trains from scratch", fix)
    for key, section in (
        ("restore", submission.body),
        ("weights", submission.model.get("custom_options")),
    ):
        if isinstance(section, dict) and section.get(key):
            yield Breach(
                submission.experiment_path,
                f"{key} is {section[key]!r}: it doesn't train from scratch",
                fix,
            )


def _pickles(submission: Submission) -> Iterator[Breach]:
    for path in filter(is_checkpoint, submission.files):
        try:
            problems = sorted(
                set(_pickle_problems(read_bytes(submission.folder / path, MAX_FILE_BYTES)))
            )
        except (ValueError, OSError, IndexError, RecursionError) as error:
            problems = [f"it is not a complete pickle ({reason(error)})"]
        for problem in problems:
            yield Breach(
                path,
                problem,
                "Export again: procsnake writes pickles that Python 3.7 and NumPy 1.18 read",
            )


def _pickle_problems(content: bytes) -> Iterator[str]:
    for code, argument, _ in pickletools.genops(content):
        if code.name == "PROTO" and isinstance(argument, int) and argument > _PICKLE_PROTOCOL:
            yield f"pickle protocol {argument}; Python 3.7 reads up to {_PICKLE_PROTOCOL}"
        if isinstance(argument, str) and "numpy._core" in argument:
            yield "it names numpy._core, which NumPy 1.18 doesn't have"
        # A worker's state is a pickle within the pickle.
        if isinstance(argument, bytes) and argument[:1] == b"\x80" and argument[-1:] == b".":
            yield from _pickle_problems(argument)


_RULES: tuple[Callable[[Submission], Iterator[Breach]], ...] = (
    _files,
    _entry,
    _run_script,
    _experiment,
    ray_settings.experiment,
    ray_settings.config,
    ray_settings.model,
    ray_settings.combinations,
    validation,
    training,
    environment,
    model,
    _no_weights,
    _pickles,
    sources,
    imports,
    contract,
    base_environment,
    requirements,
    dockerfile,
)
