"""The command `procsnake export`: policies and submissions in other forms. Each subcommand has a
pair of functions.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.strangers.printable import printable
from envs.common.whole_files import replace_whole
from procsnake.cli.command_line import (
    USER_ERROR,
    Commands,
    add_json,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.compete.export_savedmodel import SAVEDMODEL_HELP, add_savedmodel, run_savedmodel
from serve.aicrowd.competition import CLOSED

HELP = """\
examples:
  # an entry for NeurIPS 2020 Procgen, which closed in 2020
  procsnake export aicrowd RUN --track generalization --out entry
  procsnake export check entry                              # offline
  procsnake export submit entry --message "first try" --dry-run  # commit, tag and push it
  procsnake export onnx RUN --out policy.onnx               # for onnxruntime
"""
AICROWD_HELP = f"""\
{CLOSED}

Writes the whole repository for that stack: experiment, networks, wrapped games, callbacks,
Dockerfile, README. An entry holds no weights, so the experiment needn't be trained. A setting
that the old stack lacks is refused, with a command that works without it. Your own files in an
older export or in the starter kit's clone stay, and are listed.

examples:
  procsnake export aicrowd procgen-dqn --set env.name=procgen/starpilot \\
     --track sample-efficiency --out entry
  procsnake export aicrowd runs/procgen-ppo-lars-… --track sample-efficiency --out entry \\
     --author "Ada <ada@example.org>"
  procsnake export aicrowd RUN --track generalization --framework torch --out local --with-weights
"""
CHECK_HELP = (
    f"{CLOSED}\n\nEach finding comes with its fix. The exit code is 2 if there are any."
    "\n\nexamples:\n  procsnake export check entry\n"
)
SUBMIT_HELP = (
    f"{CLOSED}\n\nChecks the entry, tags it as submission-MESSAGE, and pushes the tag to"
    " gitlab.aicrowd.com, which submits it.\n\nexamples:\n"
    '  procsnake export submit entry --message "first try" --dry-run\n'
)
ONNX_HELP = (
    "The model maps observations (batch, …) to logits and values; card.json beside it describes"
    " them.\n\nexamples:\n  procsnake export onnx RUN --out policy.onnx\n"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    add = Commands(parser)

    _add_aicrowd(
        add(
            "aicrowd",
            run_aicrowd,
            "Write an entry for AIcrowd's NeurIPS 2020 Procgen competition.",
            AICROWD_HELP,
        )
    )
    checking = add(
        "check", run_check, "Check an entry against every rule of the competition.", CHECK_HELP
    )
    _add_directory(checking)
    add_json(checking)
    _add_submit(add("submit", run_submit, "Submit an entry.", SUBMIT_HELP))
    add_savedmodel(
        add(
            "savedmodel",
            run_savedmodel,
            "Export a policy for TensorFlow Serving.",
            SAVEDMODEL_HELP,
        )
    )
    _add_onnx(add("onnx", run_onnx, "Copy a policy's ONNX file from its run or bundle.", ONNX_HELP))


def _add_aicrowd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="RUN|EXPERIMENT",
        help="run folder, policy bundle, experiment's name or YAML file",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a value, as for procsnake train",
    )
    parser.add_argument(
        "--track",
        required=True,
        help="sample-efficiency (all levels) or generalization (200 levels)",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder to write; an older export is replaced"
    )
    parser.add_argument("--framework", default="tf", help="tf or torch (default: %(default)s)")
    parser.add_argument(
        "--with-weights",
        action="store_true",
        help="include the trained weights, for local use only",
    )
    parser.add_argument(
        "--starter-kit",
        metavar="CLONE",
        help="add the entry to this clone of AIcrowd's starter kit, and keep its files",
    )
    parser.add_argument(
        "--author",
        action="append",
        default=[],
        metavar="NAME",
        help="author in aicrowd.json; may be repeated",
    )


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="folder of the entry")


def _add_submit(parser: argparse.ArgumentParser) -> None:
    _add_directory(parser)
    parser.add_argument("--message", required=True, help="what is new; also names the tag")
    parser.add_argument(
        "--remote", help="name or URL of the git remote (default: the one at gitlab.aicrowd.com)"
    )
    parser.add_argument("--dry-run", action="store_true", help="check, and show what would be done")


def _add_onnx(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policy", metavar="RUN", help="run folder, policy bundle, or a champion's name"
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="file to write, or a folder for policy.onnx"
    )


def run_aicrowd(options: argparse.Namespace) -> int:
    """Run `procsnake export aicrowd`. Returns the exit code."""
    from serve.aicrowd import NoCounterpartError, export

    print(CLOSED)
    try:
        exported = export(
            _source(options),
            options.out,
            track=options.track,
            framework=options.framework,
            with_weights=options.with_weights,
            starter_kit=options.starter_kit,
            authors=options.author,
        )
    except NoCounterpartError as error:
        if not error.settings:
            raise
        raise NoCounterpartError(f"{error}. Try: {_mended(options, error.settings)}") from error
    body = exported.translation.body
    print(f"written: {options.out} ({body['run']}, {body['stop']['timesteps_total']:,} steps)")
    for sentence in exported.notes:
        print(printable(f"  {sentence}"))
    for note in exported.translation.notes:
        print(f"  note: {note}")
    print(f"check it: {shell_command('export', 'check', options.out)}")
    return 0


def _source(options: argparse.Namespace) -> str | dict[str, Any]:
    """The run or bundle, or the settings of an experiment."""
    from agents import bundle as bundles
    from train.config import Experiment

    if not _is_experiment(options.source):
        if not options.set:
            return options.source
        if options.with_weights:
            raise ConfigError(
                "--set changes settings that the weights were not trained with; leave it out, or"
                " --with-weights"
            )
        settings = bundles.load(options.source).card.config
        return Experiment.from_dict(settings).override(options.set).to_dict()
    return Experiment.load(options.source, options.set).to_dict()


def _is_experiment(source: str) -> bool:
    """Whatever is there is a run or bundle, but for YAML files; what isn't is an experiment's name
    unless it looks like a path.

    A champion's name is that of its bundle.
    """
    from agents import champions

    if source in champions.names():
        return False
    path = Path(source)
    return path.suffix in (".yaml", ".yml") or not (os.path.exists(path) or len(path.parts) > 1)


def _mended(options: argparse.Namespace, settings: Sequence[str]) -> str:
    """The command that exports what was refused, or with weights the one that trains it anew."""
    from agents import bundle as bundles

    changes = [word for setting in (*options.set, *settings) for word in ("--set", setting)]
    if options.with_weights:
        card = bundles.load(options.source).card
        return (
            f"{card.command or shell_command('train', card.config['name'])} {shlex.join(changes)}"
        )
    kit = ["--starter-kit", options.starter_kit] if options.starter_kit else []
    authors = [word for author in options.author for word in ("--author", author)]
    target = [
        "--track",
        options.track,
        "--framework",
        options.framework,
        "--out",
        options.out,
        *kit,
        *authors,
    ]
    return shell_command("export", "aicrowd", options.source, *changes, *target)


def run_check(options: argparse.Namespace) -> int:
    """Run `procsnake export check`. Returns the exit code."""
    from serve.aicrowd import check
    from serve.aicrowd.check import Submission

    with progress_on_stderr(options):
        print(CLOSED)
        findings = check(options.directory)
        for finding in findings:
            print(finding)
        local = Submission(Path(options.directory)).is_local
        if findings:
            print(f"{len(findings)} to fix")
        else:
            print(
                "every rule is met"
                + ("; a local package: it includes weights and can't be submitted" if local else "")
            )
    if options.json:
        print_json({"findings": [asdict(finding) for finding in findings], "is_local": local})
    return USER_ERROR if findings else 0


def run_submit(options: argparse.Namespace) -> int:
    """Run `procsnake export submit`. Returns the exit code."""
    from serve.aicrowd import submit

    print(CLOSED)
    done = submit(
        options.directory, options.message, remote=options.remote, dry_run=options.dry_run
    )
    for line in done.commands:
        print(line)
    print(f"{done.tag} {'would be' if options.dry_run else 'is'} pushed to {done.remote}")
    return 0


def run_onnx(options: argparse.Namespace) -> int:
    """Run `procsnake export onnx`. Returns the exit code."""
    from agents import bundle as bundles
    from agents.bundle import ONNX

    bundle = bundles.load(options.policy)
    target = Path(options.out)
    if os.path.isdir(target):
        target /= ONNX
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(target, bundle.onnx)
    except OSError as error:
        raise ConfigError(
            f"{target} can't be written: {error.strerror or error}. Choose another path"
        ) from error
    print(f"written: {target}")
    return 0
