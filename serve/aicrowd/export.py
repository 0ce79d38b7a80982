"""Writes the repository that is handed in, from a bundle and the files of `template/`."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from agents import bundle as bundles
from agents.bundle import Bundle
from envs.errors import ConfigError
from serve.aicrowd.legacy_weights import checkpoint, npz, policy_weights, read_weights
from serve.aicrowd.rules import CHALLENGE, LOCAL
from serve.aicrowd.translation import Translation, translate

TEMPLATE = Path(__file__).parent / "template"
WEIGHTS = "weights/policy.npz"
CHECKPOINT = "checkpoint/checkpoint_1/checkpoint-1"
_KIT_OWN = (
    "README.md",
    "train.py",
    "rollout.py",
    "envs/procgen_env_wrapper.py",
    "utils/loader.py",
    "utils/returns.py",
    "algorithms/__init__.py",
)
"""What a clone of the starter kit brings itself, most of which may not be edited, or has no use for."""
_KIT_ROLLOUT = "utils/rollout_on_ray_086.py"
_REGISTER = """

from algorithms import procsnake_registry  # noqa: E402

CUSTOM_ALGORITHMS.update(procsnake_registry.CUSTOM_ALGORITHMS)
"""

Files = dict[str, bytes]


def export(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    track: str,
    framework: str = "tf",
    with_weights: bool = False,
    starter_kit: str | os.PathLike[str] | None = None,
) -> Translation:
    """Write the submission for a run folder or bundle to `out`, a folder that doesn't exist or an older export.

    `with_weights`: a local package, which plays and goes on training with the policy's weights; the competition forbids it.
    `starter_kit`: a clone of AIcrowd's starter kit, whose files are copied and kept; only its open parts are added. Raises
    `BundleError`, `UnknownNameError`, `NoCounterpartError` and `ConfigError`.
    """
    bundle = bundles.load(run)
    translation = translate(bundle.card, track=track, framework=framework, weights=WEIGHTS if with_weights else None)
    kit = None if starter_kit is None else Path(starter_kit)
    if kit is not None and not (kit / "run.sh").is_file():
        raise ConfigError(f"{kit} is no clone of the starter kit: it has no run.sh. Leave --starter-kit away to do without one")
    files = _template() if kit is None else _open_parts(kit, _template())
    files |= _own_files(translation, bundle, track, kit is not None)
    if with_weights:
        files |= _weights(bundle, translation, framework)
    _write(Path(out).absolute(), files, kit)
    return translation


def _template() -> Files:
    return {
        str(path.relative_to(TEMPLATE)): path.read_bytes()
        for path in sorted(TEMPLATE.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and str(path.relative_to(TEMPLATE)) != _KIT_ROLLOUT
    }


def _open_parts(kit: Path, files: Files) -> Files:
    """The files to add to a clone of the kit; its registry of algorithms is added to."""
    files = {name: content for name, content in files.items() if name not in _KIT_OWN}
    files["algorithms/procsnake_registry.py"] = files.pop("algorithms/registry.py")
    registry = kit / "algorithms" / "registry.py"
    old = registry.read_text(encoding="utf-8") if registry.is_file() else "CUSTOM_ALGORITHMS = {}\n"
    files["algorithms/registry.py"] = (old if _REGISTER in old else old.rstrip("\n") + "\n" + _REGISTER).encode()
    files[_KIT_ROLLOUT] = (TEMPLATE / _KIT_ROLLOUT).read_bytes()
    ignored = kit / ".gitignore"
    if ignored.is_file():
        files["gitignore"] = ignored.read_bytes().rstrip(b"\n") + b"\n" + files["gitignore"]
    return files


def _own_files(translation: Translation, bundle: Bundle, track: str, in_kit: bool) -> Files:
    """What differs from export to export, and what is renamed."""
    experiment = f"experiments/{translation.name}.yaml"
    model = translation.body["config"]["model"]["custom_options"]
    run_sh = (TEMPLATE / "run.sh").read_text(encoding="utf-8").replace("@EXPERIMENT@", experiment)
    # Procgen's rollouts of the kit don't import on its own Ray.
    run_sh = run_sh.replace("@ROLLOUT@", _KIT_ROLLOUT if in_kit else "rollout.py")
    about = f"{translation.name}: {bundle.card.algorithm} on Procgen, {track}"
    kind = f"{about}; {LOCAL}" if "weights" in model else about
    entry = {
        "challenge_id": CHALLENGE,
        "grader_id": CHALLENGE,
        "authors": ["your name <your address>"],
        "description": kind,
        "docker_build": True,
        "debug": False,
    }
    text = f"# {kind}\n" + yaml.safe_dump({translation.name: translation.body}, sort_keys=False, default_flow_style=False)
    return {
        "run.sh": run_sh.encode(),
        experiment: text.encode(),
        "aicrowd.json": (json.dumps(entry, indent=2) + "\n").encode(),
        "PROCSNAKE.md" if in_kit else "README.md": _readme(translation, bundle, track).encode(),
    }


def _weights(bundle: Bundle, translation: Translation, framework: str) -> Files:
    weights, config = read_weights(bundle), translation.body["config"]
    params = {**config, "env": translation.body["env"], "evaluation_config": {**config["evaluation_config"], "explore": False}}
    named = policy_weights(weights, algorithm=bundle.card.algorithm, framework=framework)
    trial = {f"checkpoint/{name}": content for name, content in checkpoint(named, params).items()}
    return {WEIGHTS: npz(weights), **trial}


def _readme(translation: Translation, bundle: Bundle, track: str) -> str:
    config, card = translation.body["config"], bundle.card
    local = "weights" in config["model"]["custom_options"]
    notes = "\n".join(f"- {note}" for note in translation.notes) or "- Nothing."
    return (
        (TEMPLATE / "README.md")
        .read_text(encoding="utf-8")
        .format(
            name=translation.name,
            algorithm=card.algorithm,
            game=config["env_config"]["env_name"],
            track=track,
            framework="torch" if config["use_pytorch"] else "TensorFlow",
            kind=_LOCAL_PAGE.format(checkpoint=CHECKPOINT) if local else _COMPETITION_PAGE,
            command=card.command or f"procsnake train {translation.name}",
            notes=notes,
        )
    )


_COMPETITION_PAGE = "It carries no weights: the grader trains it from scratch."
_LOCAL_PAGE = (
    "**A local package:** it carries the trained weights, which the competition forbids. `./run.sh --train` goes on from\n"
    "them, and `CHECKPOINT={checkpoint} ./run.sh --rollout` plays them greedily. Export without `--with-weights` to hand it in."
)


def _write(target: Path, files: Mapping[str, bytes], kit: Path | None) -> None:
    """The folder appears whole or not at all; an older export in its place keeps its .git."""
    if target.exists() and not _is_replaceable(target):
        raise ConfigError(f"{target} exists and is no export of procsnake, so it is not replaced. Choose another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    old = fresh.with_suffix(".old")
    try:
        if kit is not None:
            shutil.copytree(kit, fresh, ignore=shutil.ignore_patterns(".git", "outputs", "__pycache__"), dirs_exist_ok=True)
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _finish(fresh, files)
        if (target / ".git").exists():
            os.rename(target / ".git", fresh / ".git")
        if target.exists():
            os.replace(target, old)
        os.replace(fresh, target)
    except OSError as error:
        raise ConfigError(f"{target} can't be written: {error.strerror or error}. Choose another place") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _finish(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.chmod(0o755)
    (folder / "run.sh").chmod(0o755)
    os.replace(folder / "gitignore", folder / ".gitignore")


def _is_replaceable(target: Path) -> bool:
    """An empty folder, a fresh clone of the team's repository, or an older export."""
    if not target.is_dir():
        return False
    return {path.name for path in target.iterdir()} <= {".git"} or (target / "models" / "procsnake_tf.py").is_file()
