"""`procsnake train`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from envs.command_line import INTERRUPTED, Commands
from envs.errors import ConfigError

TRAIN_HELP = """\
examples:
  procsnake train --list                              what can be trained
  procsnake train battlesnake-ppo                     three minutes of self-play on 11×11 with four snakes
  procsnake train battlesnake-ppo --minutes 30 --set ppo.learning_rate=3e-4 --set seed=1
  procsnake train --resume runs/battlesnake-ppo-…     go on after Ctrl-C or a crash
  procsnake train --config runs/…/config.yaml         the same run once more
"""


def add_commands(command: Commands) -> None:
    """Add this floor's commands."""
    _add_train(command("train", run_train, "Train an experiment, or continue a run.", TRAIN_HELP))


def _add_train(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("experiment", nargs="?", help="name of an experiment")
    source.add_argument("--config", help="YAML file of an experiment, or config.yaml of a run")
    source.add_argument("--resume", metavar="RUN", help="folder of a run to continue")
    source.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value; may be repeated")
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")
    parser.add_argument("--runs", default="runs", help="where run folders are made (default: %(default)s)")


def run_train(options: argparse.Namespace) -> int:
    """`procsnake train`."""
    from train.config import Experiment, list_experiments

    if options.list:
        print("\n".join(list_experiments()))
        return 0
    overrides = options.set + ([f"budget.max_minutes={options.minutes}"] if options.minutes is not None else [])
    if options.resume and overrides:
        raise ConfigError("--resume goes on with the run's own config; --set and --minutes are for a new run")
    experiment = None if options.resume else Experiment.load(options.config or options.experiment, overrides)
    result = train_and_tell(experiment, options.runs, options.resume)
    return 0 if result.finished else INTERRUPTED


def train_and_tell(experiment: Any, runs: str, resume: str | None) -> Any:
    """Train or resume, and say where run and policy lie. Returns the `RunResult`."""
    from train.run import train

    result = train(experiment, runs_dir=runs, resume=resume, command="procsnake " + " ".join(sys.argv[1:]))
    if result.finished:
        print(f"run: {result.path}\npolicy: {result.bundle}")
    return result
