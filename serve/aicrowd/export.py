"""Writes the repository to submit, from a run, a bundle or an experiment and the files of
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
from serve.aicrowd.competition import (
    CHALLENGE,
    CLOSED,
    DEFAULT_IMAGE,
    LOCAL,
    PLACEHOLDER,
    SAMPLE_AUTHORS,
    SAMPLE_DESCRIPTIONS,
)
from serve.aicrowd.folder import Files
from serve.aicrowd.legacy_weights import checkpoint, npz, policy_weights, read_weights
from serve.aicrowd.starter_kit import merge
from serve.aicrowd.translation import Translation, translate

TEMPLATE = Path(__file__).parent / "template"
WEIGHTS = "weights/policy.npz"
CHECKPOINT = "checkpoint/checkpoint_1/checkpoint-1"
_ENTRY = "aicrowd.json"
_PAGE = "README.md"
_MANY = 12
"""Above so many files of a folder, the folder is named instead of each file."""


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    translation: Translation
    """The experiment as the entry has it."""
    notes: list[str]
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

    `out` must be missing, empty, or an older export. The user's additions and changes there stay,
    and are reported.

    * `with_weights` makes a local package, which plays and continues to train with the policy's
      weights; the competition forbade it.
    * `starter_kit` is a clone of AIcrowd's starter kit, whose files are copied and added to.
    * `authors` are for aicrowd.json. Without them aicrowd.json keeps its authors, or gets a
      placeholder.

    Raises `BundleError`, `UnknownNameError`, `NoCounterpartError` or `ConfigError`.
    """
    target = Path(out).absolute()
    bundle, config = _bundle_and_config(source)
    if bundle is None and with_weights:
        raise ConfigError(
            "an experiment that wasn't trained has no weights; train it, and export the run with"
            " --with-weights"
        )
    translation = translate(
        config, track=track, framework=framework, weights=WEIGHTS if with_weights else None
    )
    experiment = f"experiments/{translation.name}.yaml"
    command = (bundle and bundle.card.command) or shlex.join(
        ["procsnake", "train", translation.name]
    )
    page = _readme(translation, track, command, in_the_kit=starter_kit is not None)
    ours = {
        **_template(),
        **_own_files(translation, experiment, track=track),
        _PAGE: page.encode(),
    }
    if bundle and with_weights:
        ours |= _weights(bundle, translation, framework)
    files = ours
    notes = list[str]()
    of_the_kit: list[str] = []
    entry = folder.read_json(target / _ENTRY)
    is_renewed = bool(entry)
    if starter_kit is not None:
        _require_apart(Path(starter_kit), target)
        ours["PROCSNAKE.md"] = ours.pop(_PAGE)
        merged = merge(Path(starter_kit), ours, experiment)
        files, notes, of_the_kit = (merged.files, merged.notes, merged.of_the_kit)
        if not is_renewed:
            entry, without = _without_samples(folder.read_json(Path(starter_kit) / _ENTRY))
            notes += without
    description = _description(translation, track)
    own_description = folder.read_manifest(target).get("description")
    files[_ENTRY] = _entry(entry, description, authors, own_description)
    if is_renewed and entry.get("authors") != [PLACEHOLDER]:
        notes.append(
            f"{_ENTRY} keeps what you put there; only a description that procsnake wrote is"
            " renewed."
        )
    result = folder.write(
        target,
        files,
        description=description,
        merged=[_ENTRY] if is_renewed else [],
        of_the_kit=of_the_kit,
    )
    notes += _by_folder(result.kept, "as you left it")
    notes += _by_folder(result.removed, "of the older export, and was removed")
    return Exported(translation, notes)


def _bundle_and_config(
    source: str | os.PathLike[str] | Mapping[str, Any],
) -> tuple[Bundle | None, Mapping[str, Any]]:
    """Return the bundle, None of an experiment that wasn't trained, and the experiment's
    settings.
    """
    if isinstance(source, Mapping):
        return None, source
    bundle = bundles.load(source)
    return bundle, bundle.card.config


def _by_folder(names: Sequence[str], what: str) -> list[str]:
    """A sentence per file, or per folder in the export that has many of them."""
    by_folder: dict[str, list[str]] = {}
    for name in names:
        by_folder.setdefault(Path(name).parts[0], []).append(name)
    sentences = []
    for top, inside in by_folder.items():
        if len(inside) > _MANY:
            sentences.append(f"{top}/, with {len(inside)} files, is {what}.")
        else:
            sentences += [f"{name} is {what}." for name in inside]
    return sentences


def _without_samples(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The starter kit's aicrowd.json without what stands there for example, and a sentence about
    what is left out.
    """
    team = dict(entry)
    notes = []
    authors = team.get("authors")
    if isinstance(authors, list) and any(author in SAMPLE_AUTHORS for author in authors):
        del team["authors"]
        notes.append(f"{_ENTRY} names you instead of the kit's sample author.")
    if team.get("description") in SAMPLE_DESCRIPTIONS:
        del team["description"]
        notes.append(f"{_ENTRY} describes the entry instead of having the kit's sample text.")
    if team.get("docker_build") is False:
        del team["docker_build"]
        notes.append(
            f"{_ENTRY} has docker_build: true; with the kit's false AIcrowd would run the entry in"
            f" its own image, which has {DEFAULT_IMAGE}."
        )
    return team, notes


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


def _own_files(translation: Translation, experiment: str, *, track: str) -> Files:
    """The files whose content differs from export to export."""
    run_sh = (TEMPLATE / "run.sh").read_text(encoding="utf-8").replace("@EXPERIMENT@", experiment)
    about = _description(translation, track)
    text = f"# {about}\n" + yaml.safe_dump(
        {translation.name: translation.body}, sort_keys=False, default_flow_style=False
    )
    return {
        "run.sh": run_sh.encode(),
        experiment: text.encode(),
    }


def _entry(
    older_entry: Mapping[str, Any],
    description: str,
    authors: Sequence[str],
    own_description: str | None,
) -> bytes:
    """The content of aicrowd.json. What `older_entry` has stays, except for the authors if new ones
    are given, and for the description if procsnake wrote it, `own_description`."""
    fresh = {
        "challenge_id": CHALLENGE,
        "grader_id": CHALLENGE,
        "authors": [PLACEHOLDER],
        "description": description,
        "docker_build": True,
        "debug": False,
    }
    entry = {**fresh, **older_entry, **({"authors": list(authors)} if authors else {})}
    older_text = str(entry["description"])
    if older_text == own_description or (LOCAL in older_text) != (LOCAL in description):
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


def _readme(translation: Translation, track: str, command: str, *, in_the_kit: bool) -> str:
    config = translation.body["config"]
    train = _TRAIN_IN_THE_KIT if in_the_kit else _TRAIN
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
            train=train.format(name=translation.name),
        )
    )


_TRAIN = "PATH=$PWD/legacy/bin:$PATH ./run.sh --train           # results in ~/ray_results/{name}"
_TRAIN_IN_THE_KIT = (
    "# The kit's run.sh --train needs eight cores and a GPU; this doesn't."
    " Results: ~/ray_results/{name}\n"
    "PATH=$PWD/legacy/bin:$PATH python utils/on_this_machine.py experiments/{name}.yaml"
)
_COMPETITION_PAGE = "It carries no weights: the grader trains it from scratch."
_LOCAL_PAGE = (
    "**A local package:** it carries the trained weights, which the competition forbids. `./run.sh"
    " --train` goes on from\nthem, and `CHECKPOINT={checkpoint} ./run.sh --rollout` plays them"
    " greedily. Export without `--with-weights` to hand it in."
)
