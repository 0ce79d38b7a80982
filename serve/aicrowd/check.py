"""Reads a submission for every rule of the competition, without running anything of it and without a network."""

from __future__ import annotations

import ast
import json
import os
import pickletools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from envs.errors import ConfigError
from envs.procgen.games import GAMES
from serve.aicrowd.rules import CHALLENGE, CORES, FOR_KIT_VALIDATION, LOCAL, MAX_FILE_BYTES, MAX_STEPS, NUM_LEVELS

_PYTHON = (3, 7)
_PICKLE_PROTOCOL = 4
_WEIGHT_FILES = (".npz", ".npy", ".h5", ".hdf5", ".pt", ".pth", ".ckpt", ".onnx", ".safetensors", ".pb")
_RAY_TRAINERS = (
    "A2C", "A3C", "APEX", "APPO", "ARS", "BC", "DDPPO", "DQN", "ES", "IMPALA", "MARWIL", "PG", "PPO", "SAC", "SimpleQ",
)  # fmt: skip
_FILES = (
    "run.sh", "train.py", "rollout.py", "callbacks.py", "requirements.txt", "aicrowd.json", "envs/procgen_env_wrapper.py",
    "algorithms/registry.py", "preprocessors/__init__.py",
)  # fmt: skip
_WORDS = ("EXPERIMENT", "--train", "--rollout", "CHECKPOINT", "EPISODES", "AICROWD_IS_GRADING", "OUTPUTS_DIR")
_PINS = {"protobuf": (3, 21), "numpy": (1, 20), "gym": (0, 18)}
"""Versions from which on the stack breaks."""


@dataclass(frozen=True)
class Finding:
    """A rule that isn't kept."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.fix}"


def check(directory: str | os.PathLike[str]) -> list[Finding]:
    """Everything that the competition would stumble over, in the order of the rules; nothing: it can be handed in.

    Raises `ConfigError` if there is no such folder.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; write one: procsnake export aicrowd RUN --track … --out {folder}")
    submission = Submission(folder)
    return [finding for rule in _RULES for finding in rule(submission)]


class Submission:
    """A folder that is to be handed in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def files(self) -> list[str]:
        """Paths of all files but git's and those of outputs/, sorted."""
        found = []
        for parent, folders, names in os.walk(self.folder):
            at = Path(parent).relative_to(self.folder)
            folders[:] = [name for name in folders if name not in (".git", "__pycache__") and at / name != Path("outputs")]
            found += [str(at / name) for name in names]
        return sorted(found)

    def text(self, path: str) -> str:
        """The content of a file; empty if it isn't there or isn't text."""
        try:
            return (self.folder / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    @cached_property
    def experiment_path(self) -> str:
        """What run.sh runs unless it is told otherwise."""
        found = re.search(r"EXPERIMENT_DEFAULT=[\"']?([^\"'\s]+)", self.text("run.sh"))
        return found[1] if found else ""

    @cached_property
    def experiments(self) -> dict[str, Any]:
        """The YAML file as it is read; empty if it can't be."""
        try:
            read = yaml.safe_load(self.text(self.experiment_path)) if self.experiment_path else None
        except yaml.YAMLError:
            return {}
        return {str(name): body for name, body in read.items() if isinstance(body, dict)} if isinstance(read, dict) else {}

    @property
    def body(self) -> dict[str, Any]:
        return next(iter(self.experiments.values()), {})

    @property
    def config(self) -> dict[str, Any]:
        found = self.body.get("config")
        return found if isinstance(found, dict) else {}

    @property
    def env_config(self) -> dict[str, Any]:
        found = self.config.get("env_config")
        return found if isinstance(found, dict) else {}

    @property
    def is_local(self) -> bool:
        """True if aicrowd.json says that it is not for the competition."""
        return LOCAL in self.text("aicrowd.json")

    @cached_property
    def weights(self) -> list[str]:
        """Files that hold weights."""
        return [path for path in self.files if path.endswith(_WEIGHT_FILES) or _is_checkpoint(path)]


def _is_checkpoint(path: str) -> bool:
    return bool(re.search(r"(^|/)checkpoint-\d+$", path)) or path.endswith((".pkl", ".pickle", ".tune_metadata"))


def _files(submission: Submission) -> Iterator[Finding]:
    for path in _FILES:
        if not (submission.folder / path).is_file():
            yield Finding(path, "it isn't there", "Export anew: procsnake export aicrowd RUN --track … --out DIR")
    for path in submission.files:
        size = (submission.folder / path).stat().st_size
        if size > MAX_FILE_BYTES:
            yield Finding(path, f"{size:,} bytes; files of more than {MAX_FILE_BYTES:,} are scrubbed", "Remove it")
    ignored = re.search(r"^/?outputs(/.*)?$", submission.text(".gitignore"), re.MULTILINE)
    if not ignored:
        yield Finding(".gitignore", "outputs/ isn't ignored by git", "Add the line: outputs/")


def _entry(submission: Submission) -> Iterator[Finding]:
    text = submission.text("aicrowd.json")
    try:
        entry = json.loads(text or "{}")
    except ValueError as error:
        yield Finding("aicrowd.json", f"it isn't JSON ({error})", "Mend it, or export anew")
        return
    for key in ("challenge_id", "grader_id"):
        if entry.get(key) != CHALLENGE:
            yield Finding("aicrowd.json", f"{key} is {entry.get(key)!r}", f'Set it to "{CHALLENGE}"')
    authors = entry.get("authors")
    if not isinstance(authors, list) or not authors or not all(isinstance(author, str) and author for author in authors):
        yield Finding("aicrowd.json", f"authors is {authors!r}", 'Make it a list as ["Ada <ada@example.org>"]')
    if not isinstance(entry.get("description"), str):
        yield Finding("aicrowd.json", f"description is {entry.get('description')!r}", "Make it a text")
    for key in ("docker_build", "debug"):
        if not isinstance(entry.get(key), bool):
            yield Finding("aicrowd.json", f"{key} is {entry.get(key)!r}", "Make it true or false")
    if entry.get("docker_build") is True and not (submission.folder / "Dockerfile").is_file():
        yield Finding("aicrowd.json", "docker_build is true, but there is no Dockerfile", "Set it to false, or add one")


def _run_script(submission: Submission) -> Iterator[Finding]:
    text = submission.text("run.sh")
    if not text:
        return
    if not os.access(submission.folder / "run.sh", os.X_OK):
        yield Finding("run.sh", "it isn't executable", "chmod +x run.sh")
    for word in _WORDS:
        if word not in text:
            yield Finding("run.sh", f"it doesn't know {word}", "Export anew, or take run.sh from another export")
    if not submission.experiment_path:
        yield Finding("run.sh", "it sets no EXPERIMENT_DEFAULT", "Set it to the YAML file of your experiment")
    elif not (submission.folder / submission.experiment_path).is_file():
        yield Finding("run.sh", f"EXPERIMENT_DEFAULT is {submission.experiment_path}, which isn't there", "Correct the path")
    if re.search(r"^exit\b", text, re.MULTILINE):
        yield Finding(
            "run.sh", "it ends with exit, but AIcrowd's validator sources it", "Remove the exit at the outermost level"
        )


def _experiment(submission: Submission) -> Iterator[Finding]:
    path = submission.experiment_path
    text = submission.text(path) if path else ""
    if not text:
        return
    if len(submission.experiments) != 1:
        yield Finding(path, f"it holds {len(submission.experiments)} experiments", "Keep exactly one, in block style")
        return
    name = next(iter(submission.experiments))
    # As run.sh reads it: the first line that is neither indented nor a comment.
    first = next((line for line in text.splitlines() if not line.startswith((" ", "#"))), "")
    if first.split(":")[0] != name or not first.rstrip().endswith(":"):
        yield Finding(path, f"run.sh reads the experiment's name from the line {first!r}", f"Make {name}: the first line")
    for key in ("run", "env"):
        lines = [line for line in text.splitlines() if f"  {key}:" in line]
        words = lines[0].split() if lines else []
        value = words[1] if len(words) > 1 else ""
        if len(lines) != 1:
            yield Finding(path, f"{len(lines)} lines hold '  {key}:', which run.sh looks for", "Let exactly one do so")
        elif value != str(submission.body.get(key)):
            yield Finding(
                path, f"run.sh reads {key} as {value!r}", f"Write it unquoted below {name}:  {key}: {submission.body.get(key)}"
            )
    yield from _names(submission, path)


def _names(submission: Submission, path: str) -> Iterator[Finding]:
    """Whatever the experiment names must register itself."""
    run, env = str(submission.body.get("run")), str(submission.body.get("env"))
    registry = "".join(submission.text(file) for file in submission.files if file.startswith("algorithms/"))
    if run not in _RAY_TRAINERS and f'"{run}"' not in registry and f"'{run}'" not in registry:
        yield Finding(path, f"run is {run}, which neither Ray 0.8.6 nor algorithms/registry.py has", "Register it there")
    model = submission.config.get("model")
    model = model.get("custom_model") if isinstance(model, dict) else None
    for name, kind, folder in ((env, "env", "envs/"), (model, "custom_model", "models/")):
        sources = "".join(
            submission.text(file) for file in submission.files if file.startswith(folder) and file.endswith(".py")
        )
        if name is not None and f'"{name}"' not in sources and f"'{name}'" not in sources:
            yield Finding(path, f"{kind} is {name}, which no file of {folder} registers", "Correct the name, or add the file")


def _validation(submission: Submission) -> Iterator[Finding]:
    path, config = submission.experiment_path, submission.config
    if not config:
        return
    missing = [key for key in FOR_KIT_VALIDATION if not _is_number(config.get(key))]
    for key in missing:
        yield Finding(path, f"config.{key} is {config.get(key)!r}; AIcrowd's validation wants a number", f"Set config.{key}")
    if missing:
        return
    processes = config["num_workers"] + (0 if submission.body.get("disable_evaluation_worker", False) else 1)
    if processes >= CORES:
        fix = f"Lower num_workers to {CORES - 1}, and set disable_evaluation_worker: true"
        yield Finding(path, f"{processes} workers beside the trainer on {CORES} cores", fix)
    gpus = config["num_gpus"] + processes * config["num_gpus_per_worker"]
    if gpus > 1:
        yield Finding(path, f"they use {gpus:.3f} of the one GPU", "Lower num_gpus or num_gpus_per_worker")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _training(submission: Submission) -> Iterator[Finding]:
    path, env = submission.experiment_path, submission.env_config
    if not submission.config:
        return
    if not env:
        yield Finding(path, "config.env_config isn't there, and train.py writes into it", "Add it with env_name and num_levels")
        return
    stop = submission.body.get("stop")
    steps = stop.get("timesteps_total") if isinstance(stop, dict) else None
    repeats = env.get("action_repeat", env.get("frame_skip", 1))
    allowed = MAX_STEPS // repeats if isinstance(repeats, int) and repeats > 0 else MAX_STEPS
    if not _is_number(steps) or steps > allowed:
        why = f" with each action repeated {repeats} times" if repeats != 1 else ""
        yield Finding(path, f"stop.timesteps_total is {steps}; at most {allowed:,} are allowed{why}", f"Set it to {allowed}")
    if env.get("env_name") not in GAMES:
        yield Finding(path, f"env_config.env_name is {env.get('env_name')!r}", f"Choose one of {', '.join(GAMES)}")
    if env.get("distribution_mode", "easy") != "easy":
        yield Finding(path, f"distribution_mode is {env['distribution_mode']!r}; the competition plays easy", "Set it to easy")
    if env.get("num_levels") not in NUM_LEVELS.values():
        fix = ", ".join(f"{num} for {track}" for track, num in NUM_LEVELS.items())
        yield Finding(path, f"env_config.num_levels is {env.get('num_levels')!r}", f"Set it to {fix}")
    if env.get("start_level", 0) != 0:
        yield Finding(path, f"env_config.start_level is {env['start_level']!r}", "Set it to 0")


def _no_weights(submission: Submission) -> Iterator[Finding]:
    fix = f"Export without --with-weights; a package that isn't for the competition says so in aicrowd.json: {LOCAL}"
    if submission.is_local:
        return
    for path in submission.weights:
        yield Finding(path, "it holds weights, and the competition trains from scratch", fix)
    model = submission.config.get("model")
    options = model.get("custom_options") if isinstance(model, dict) else None
    for key, found in (("restore", submission.body), ("weights", options)):
        if isinstance(found, dict) and found.get(key):
            yield Finding(submission.experiment_path, f"{key} is {found[key]!r}: it doesn't train from scratch", fix)


def _pickles(submission: Submission) -> Iterator[Finding]:
    for path in filter(_is_checkpoint, submission.files):
        try:
            problems = sorted(set(_pickle_problems((submission.folder / path).read_bytes())))
        except (ValueError, OSError, IndexError, UnicodeDecodeError) as error:
            problems = [f"it is no whole pickle ({error})"]
        for problem in problems:
            yield Finding(path, problem, "Export anew: procsnake writes pickles that Python 3.7 and NumPy 1.18 read")


def _pickle_problems(content: bytes) -> Iterator[str]:
    for code, argument, _ in pickletools.genops(content):
        if code.name == "PROTO" and argument > _PICKLE_PROTOCOL:
            yield f"pickle protocol {argument}; Python 3.7 reads up to {_PICKLE_PROTOCOL}"
        if isinstance(argument, str) and "numpy._core" in argument:
            yield "it names numpy._core, which NumPy 1.18 doesn't have"
        # A worker's state is a pickle within the pickle.
        if isinstance(argument, bytes) and argument[:1] == b"\x80" and argument[-1:] == b".":
            yield from _pickle_problems(argument)


def _sources(submission: Submission) -> Iterator[Finding]:
    for path in submission.files:
        if not path.endswith(".py"):
            continue
        text = submission.text(path)
        try:
            tree = ast.parse(text, feature_version=_PYTHON)
        except (SyntaxError, ValueError) as error:
            yield Finding(path, f"Python 3.7 can't read it ({error})", "Write it in the older language")
            continue
        executed = Path(path).parent in (Path("envs"), Path("models"))
        if executed and any(isinstance(node, ast.Name) and node.id == "__file__" for node in ast.walk(tree)):
            yield Finding(path, "it uses __file__, which it doesn't have there", "Use os.getcwd(), which is the repository")
    for path, name in (("algorithms/registry.py", "CUSTOM_ALGORITHMS"), ("preprocessors/__init__.py", "CUSTOM_PREPROCESSORS")):
        if submission.text(path) and name not in submission.text(path):
            yield Finding(path, f"it has no {name}", f"Add {name} = {{}}")
    if submission.text("callbacks.py") and "CustomCallbacks" not in submission.text("callbacks.py"):
        yield Finding("callbacks.py", "it has no class CustomCallbacks, which train.py imports", "Add one, or export anew")
    old = "rllib.utils.space_utils" in submission.text("rollout.py")
    if old and "rllib.utils.spaces.space_utils" not in submission.text("rollout.py"):
        if "rollout_on_ray_086" not in submission.text("run.sh"):
            fix = "Export with --starter-kit CLONE, which brings a stand-in"
            yield Finding("rollout.py", "it doesn't import on Ray 0.8.6, where space_utils has moved", fix)


def _requirements(submission: Submission) -> Iterator[Finding]:
    lines = [line.split("#")[0].strip() for line in submission.text("requirements.txt").splitlines()]
    if not any(lines):
        return
    found = {match[1].lower(): match[2] for line in lines if (match := re.match(r"([\w-]+)(?:\[.*\])?==([\d.]+)", line))}
    if found.get("ray") != "0.8.6":
        yield Finding("requirements.txt", f"ray is {found.get('ray', 'not pinned')}", "Set ray[rllib]==0.8.6")
    for name, limit in _PINS.items():
        version = tuple(int(part) for part in found[name].split(".")[:2]) if name in found else None
        if version is None or version >= limit:
            least = ".".join(map(str, limit))
            yield Finding(
                "requirements.txt",
                f"{name} is {found.get(name, 'not pinned')}",
                f"Pin it below {least}; 2020's stack needs that",
            )


_RULES: tuple[Callable[[Submission], Iterator[Finding]], ...] = (
    _files, _entry, _run_script, _experiment, _validation, _training, _no_weights, _pickles, _sources, _requirements,
)  # fmt: skip
