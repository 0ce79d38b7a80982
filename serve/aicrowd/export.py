"""Writes the repository that is handed in, from a run, a bundle or an experiment, and the files of
`template/`.
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents import bundle as bundles
from agents.bundle import Bundle
from envs.common.errors import ConfigError
from serve.aicrowd import folder
from serve.aicrowd.competition import CHALLENGE, CLOSED, LOCAL, PLACEHOLDER
from serve.aicrowd.folder import Files
from serve.aicrowd.legacy_weights import checkpoint, npz, policy_weights, read_weights
from serve.aicrowd.starter_kit import merge
from serve.aicrowd.translation import Translation, translate

TEMPLATE = Path(__file__).parent / "template"
WEIGHTS = "weights/policy.npz"
CHECKPOINT = "checkpoint/checkpoint_1/checkpoint-1"
_ENTRY = "aicrowd.json"
_PAGE = "README.md"


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    translation: Translation
    """The experiment as the entry has it."""
    told: list[str]
    """A sentence about each file that differs from what procsnake would have written: the user's,
    or the starter kit's.
    """


def export(
    source: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    track: str,
    framework: str = "tf",
    with_weights: bool = False,
    starter_kit: str | os.PathLike[str] | None = None,
    authors: Sequence[str] = (),
) -> Exported:
    """Write the entry for a run folder or bundle, or for an experiment's settings, to the folder
    `out`.

    `out` must not exist, be empty, or hold an older export. What its user added or changed there
    stays, and is reported.

    * `with_weights` makes a local package, which plays and continues to train with the policy's
      weights; the competition forbade it.
    * `starter_kit` is a clone of AIcrowd's starter kit, whose files are copied and added to.
    * `authors` are for aicrowd.json. Without them it keeps those that it names, or has a
      placeholder.

    Raises `BundleError`, `UnknownNameError`, `NoCounterpartError` or `ConfigError`.
    """
    target = Path(out).absolute()
    if isinstance(source, Mapping):
        bundle = None
        config = source
    else:
        bundle = bundles.load(source)
        config = bundle.card.config
    if bundle is None and with_weights:
        raise ConfigError(
            "an experiment that wasn't trained has no weights; train it, and export the run with"
            " --with-weights"
        )
    translation = translate(
        config, track=track, framework=framework, weights=WEIGHTS if with_weights else None
    )
    command = (bundle and bundle.card.command) or shlex.join(
        ["procsnake", "train", translation.name]
    )
    experiment = f"experiments/{translation.name}.yaml"
    ours = {**_template(), **_own_files(translation, experiment, track=track, command=command)}
    if bundle and with_weights:
        ours |= _weights(bundle, translation, framework)
    files = ours
    told = list[str]()
    if starter_kit is not None:
        _require_apart(Path(starter_kit), target)
        ours["PROCSNAKE.md"] = ours.pop(_PAGE)
        files, told = merge(Path(starter_kit), ours, experiment)
    older = folder.read_json(target / _ENTRY)
    found = older or folder.read_json(Path(starter_kit or target) / _ENTRY)
    description = _description(translation, track)
    written = folder.read_manifest(target).get("description")
    files[_ENTRY] = _entry(found, description, authors, written)
    if older and older.get("authors") != [PLACEHOLDER]:
        told.append(
            f"{_ENTRY} keeps what you put there; only a description that procsnake wrote is"
            " renewed."
        )
    kept = folder.write(target, files, description=description, merged=[_ENTRY] if older else [])
    return Exported(translation, [*told, *(f"{name} is as you left it." for name in kept)])


def _require_apart(clone: Path, target: Path) -> None:
    if target.resolve() == clone.resolve() or clone.resolve() in target.resolve().parents:
        raise ConfigError(
            f"{target} is the starter kit's clone, or within it, and the clone stays as it is;"
            " choose another --out"
        )


def _template() -> Files:
    files = {
        str(path.relative_to(TEMPLATE)): path.read_bytes()
        for path in sorted(TEMPLATE.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    files[".gitignore"] = files.pop("gitignore")
    return files


def _description(translation: Translation, track: str) -> str:
    about = f"{translation.name}: {translation.algorithm} on Procgen, {track}"
    if translation.has_weights:
        return f"{about}; {LOCAL}"
    return about


def _own_files(translation: Translation, experiment: str, *, track: str, command: str) -> Files:
    """The files whose content differs from export to export."""
    run_sh = (TEMPLATE / "run.sh").read_text(encoding="utf-8").replace("@EXPERIMENT@", experiment)
    about = _description(translation, track)
    text = f"# {about}\n" + yaml.safe_dump(
        {translation.name: translation.body}, sort_keys=False, default_flow_style=False
    )
    return {
        "run.sh": run_sh.encode(),
        experiment: text.encode(),
        _PAGE: _readme(translation, track, command).encode(),
    }


def _entry(
    found: Mapping[str, Any], description: str, authors: Sequence[str], written: str | None
) -> bytes:
    """The content of aicrowd.json. What was `found` there stays, except for the authors if new ones
    are given, and for the description if procsnake had `written` it."""
    fresh = {
        "challenge_id": CHALLENGE,
        "grader_id": CHALLENGE,
        "authors": [PLACEHOLDER],
        "description": description,
        "docker_build": True,
        "debug": False,
    }
    entry = {**fresh, **found, **({"authors": list(authors)} if authors else {})}
    told = str(entry["description"])
    if told == written or (LOCAL in told) != (LOCAL in description):
        entry["description"] = description
    return (json.dumps(entry, indent=2, ensure_ascii=False) + "\n").encode()


def _weights(bundle: Bundle, translation: Translation, framework: str) -> Files:
    weights = read_weights(bundle)
    config = translation.body["config"]
    ranges = runpy.run_path(str(TEMPLATE / "aicrowd_helpers" / "config.py"))["EASY_GAME_RANGES"][
        config["env_config"]["env_name"]
    ]
    # As train.py leaves it: the grader's environment takes the three of the score out again.
    env_config = {
        **config["env_config"],
        **dict(zip(("return_min", "return_blind", "return_max"), ranges)),
    }
    evaluation = {**config["evaluation_config"], "explore": False}
    params = {
        **config,
        "env": translation.body["env"],
        "env_config": env_config,
        "evaluation_config": evaluation,
    }
    named = policy_weights(weights, algorithm=bundle.card.algorithm, framework=framework)
    trial = {f"checkpoint/{name}": content for name, content in checkpoint(named, params).items()}
    return {WEIGHTS: npz(weights), **trial}


def _readme(translation: Translation, track: str, command: str) -> str:
    config = translation.body["config"]
    notes = "\n".join(f"- {note}" for note in translation.notes) or "- Nothing."
    return (
        (TEMPLATE / "README.md")
        .read_text(encoding="utf-8")
        .format(
            name=translation.name,
            closed=CLOSED,
            algorithm=translation.algorithm,
            game=config["env_config"]["env_name"],
            track=track,
            framework="torch" if config["use_pytorch"] else "TensorFlow",
            kind=(
                _LOCAL_PAGE.format(checkpoint=CHECKPOINT)
                if translation.has_weights
                else _COMPETITION_PAGE
            ),
            command=command,
            notes=notes,
        )
    )


_COMPETITION_PAGE = "It carries no weights: the grader trains it from scratch."
_LOCAL_PAGE = (
    "**A local package:** it carries the trained weights, which the competition forbids. `./run.sh"
    " --train` goes on from\nthem, and `CHECKPOINT={checkpoint} ./run.sh --rollout` plays them"
    " greedily. Export without `--with-weights` to hand it in."
)
