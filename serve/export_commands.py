"""`procsnake export`: policies and submissions in other forms. One pair of functions a subcommand."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from agents.savedmodel import SAVEDMODEL_HELP, add_savedmodel, run_savedmodel
from envs.command_line import USER_ERROR, Commands
from envs.errors import ConfigError

EXPORT_HELP = """\
examples:
  procsnake export aicrowd RUN --track generalization --out entry      an entry to NeurIPS 2020 Procgen
  procsnake export check entry                                        every rule of the competition, offline
  procsnake export submit entry --message "first try" --dry-run       commit, tag and push it
  procsnake export onnx RUN --out policy.onnx                         the policy for onnxruntime
"""
AICROWD_HELP = """\
Writes the whole repository for Ray 0.8.6 on Python 3.7: experiment, networks, wrapped games, callbacks, Dockerfile, README.
What has no counterpart there is refused, with what to change.

examples:
  procsnake export aicrowd runs/procgen-ppo-lars-… --track sample-efficiency --out entry
  procsnake export aicrowd RUN --track generalization --framework torch --out local --with-weights
"""
CHECK_HELP = "Each finding comes with its fix. Exit code 2 if there are any."
SUBMIT_HELP = "Checks first. The tag is submission- and the message; pushing it to gitlab.aicrowd.com is what hands in."
ONNX_HELP = "The file of the bundle: observations (batch, …) → logits, values; card.json beside it tells what they are."


def add_export(parser: argparse.ArgumentParser) -> None:
    """The subcommands."""
    command = Commands(parser)

    def add(name: str, run: Callable[[argparse.Namespace], int], summary: str, examples: str) -> argparse.ArgumentParser:
        added = command(name, run, summary, examples)
        added.set_defaults(command=f"export {name}")
        return added

    _add_aicrowd(add("aicrowd", run_aicrowd, "Write an entry to AIcrowd's NeurIPS 2020 Procgen.", AICROWD_HELP))
    _add_directory(add("check", run_check, "Read an entry for every rule of the competition.", CHECK_HELP))
    _add_submit(add("submit", run_submit, "Hand an entry in.", SUBMIT_HELP))
    add_savedmodel(add("savedmodel", run_savedmodel, "Write a policy for TensorFlow Serving.", SAVEDMODEL_HELP))
    _add_onnx(add("onnx", run_onnx, "Copy a policy's ONNX file out of its run or bundle.", ONNX_HELP))


def _add_aicrowd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policy", metavar="RUN", help="run folder or policy bundle")
    parser.add_argument("--track", required=True, help="sample-efficiency (all levels) or generalization (200 levels)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write; an older export is replaced")
    parser.add_argument("--framework", default="tf", help="tf or torch (default: %(default)s)")
    parser.add_argument("--with-weights", action="store_true", help="a local package with the trained weights")
    parser.add_argument("--starter-kit", metavar="CLONE", help="add only the open parts to this clone of AIcrowd's kit")


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="folder of the entry")


def _add_submit(parser: argparse.ArgumentParser) -> None:
    _add_directory(parser)
    parser.add_argument("--message", required=True, help="what is new; it also names the tag")
    parser.add_argument("--remote", help="name or URL of the git remote (default: the one at gitlab.aicrowd.com)")
    parser.add_argument("--dry-run", action="store_true", help="check, and tell what would be done")


def _add_onnx(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policy", metavar="RUN", help="run folder or policy bundle")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write, or a folder for policy.onnx")


def run_aicrowd(options: argparse.Namespace) -> int:
    """`procsnake export aicrowd`."""
    from serve.aicrowd import export

    translation = export(
        options.policy,
        options.out,
        track=options.track,
        framework=options.framework,
        with_weights=options.with_weights,
        starter_kit=options.starter_kit,
    )
    print(f"written: {options.out} ({translation.body['run']}, {translation.body['stop']['timesteps_total']:,} steps)")
    for note in translation.notes:
        print(f"  note: {note}")
    print(f"check it: procsnake export check {options.out}")
    return 0


def run_check(options: argparse.Namespace) -> int:
    """`procsnake export check`."""
    from serve.aicrowd import check
    from serve.aicrowd.check import Submission

    findings = check(options.directory)
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} to mend")
        return USER_ERROR
    local = Submission(Path(options.directory)).is_local
    print("every rule is kept" + ("; a local package: it carries weights and can't be handed in" if local else ""))
    return 0


def run_submit(options: argparse.Namespace) -> int:
    """`procsnake export submit`."""
    from serve.aicrowd import submit

    done = submit(options.directory, options.message, remote=options.remote, dry_run=options.dry_run)
    for line in done.commands:
        print(line)
    print(f"{done.tag} {'would be' if options.dry_run else 'is'} pushed to {done.remote}")
    return 0


def run_onnx(options: argparse.Namespace) -> int:
    """`procsnake export onnx`."""
    from agents import bundle as bundles
    from agents.bundle import ONNX

    bundle, target = bundles.load(options.policy), Path(options.out)
    if target.is_dir():
        target /= ONNX
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(bundle.onnx)
        os.replace(part, target)
    except OSError as error:
        raise ConfigError(f"{target} can't be written: {error.strerror or error}. Choose another place") from error
    print(f"written: {target}")
    return 0
