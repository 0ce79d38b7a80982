"""The command `procsnake tune`: a search for better settings of an experiment."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import (
    add_json,
    at_least,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.exit_codes import INTERRUPTED

HELP = """\
Each trial is an ordinary run folder. The experiment's tune section may also list values to try.
In self-play the mean return is nearly constant, so score snakes by their win rate in
evaluations, as below. To tune a search such as alphabeta, use `procsnake tune-search`.

examples:
  procsnake tune battlesnake-ppo --search ppo.ent_coef=0.001..0.03:log --metric win_rate \\
      --minutes 2
  procsnake tune battlesnake-ppo --search ppo.num_epochs=1,2,4 --scheduler asha --trials 12 \\
      --metric win_rate --minutes 2
  procsnake tune --resume runs/battlesnake-ppo-tune-…     # continue an interrupted search
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("experiment", nargs="?", help="name of an experiment, or a YAML file")
    source.add_argument(
        "--resume",
        metavar="SEARCH",
        help="continue the interrupted search in this folder",
    )
    add_search_options(parser)
    parser.add_argument(
        "--runs", default="runs", help="folder for the search (default: %(default)s)"
    )
    shared = (
        "search on this Ray cluster, whose machines share --runs; auto: the one that this"
        " machine is in"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help=shared)
    add_json(parser)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the search."""
    parser.add_argument(
        "--search",
        action="append",
        default=[],
        metavar="KEY=SPACE",
        help="values to try: low..high (add :log or :discount for the scale), or a,b,c",
    )
    parser.add_argument("--searcher", help="random or optuna: short for --set tune.searcher=…")
    parser.add_argument("--scheduler", help="random, asha or pbt: short for --set tune.scheduler=…")
    parser.add_argument("--metric", help="column of progress.csv: short for --set tune.metric=…")
    parser.add_argument("--trials", type=at_least(1), help="short for --set tune.trials=…")
    parser.add_argument(
        "--concurrent",
        type=at_least(1),
        help="parallel trials: short for --set tune.concurrent=…",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value; may be repeated",
    )
    parser.add_argument(
        "--minutes", type=float, help="minutes per trial: short for --set budget.max_minutes=…"
    )


def overrides_of(options: argparse.Namespace) -> list[str]:
    """Return the overrides that the options of `add_search_options` stand for."""
    short = {
        f"tune.{name}": getattr(options, name)
        for name in ("searcher", "scheduler", "metric", "trials", "concurrent")
    }
    short["budget.max_minutes"] = options.minutes
    return options.set + [f"{key}={value}" for key, value in short.items() if value is not None]


def run(options: argparse.Namespace) -> int:
    """Run `procsnake tune`. Returns the exit code."""
    from train.config import Experiment
    from train.tuning.search_folder import resume_search_command
    from train.tuning.tune import resume_search, table, tune

    overrides = overrides_of(options)
    if options.resume and (overrides or options.search):
        raise ConfigError(
            "--resume continues a search unchanged; it takes only the option --cluster"
        )
    with progress_on_stderr(options):
        if options.resume:
            result = resume_search(options.resume, cluster=options.cluster)
        else:
            experiment = Experiment.load(options.experiment, overrides).search(options.search)
            # What is short for a trial would be too short for what is trained in the end.
            lasting = [override for override in overrides if not override.startswith("budget.")]
            budget = Experiment.load(options.experiment, lasting).budget
            result = tune(experiment, runs_dir=options.runs, cluster=options.cluster, budget=budget)
    failed = sum(bool(trial.error) for trial in result.trials)
    if failed:
        print(
            f"{failed} of {len(result.trials)} trials failed; trials.csv says why", file=sys.stderr
        )
    code = 1 if failed else 0
    if not result.finished:
        print(
            f"stopped before its end; continue with: {resume_search_command(result.path)}",
            file=sys.stderr,
        )
        code = INTERRUPTED
    if options.json:
        print_json(asdict(result))
        return code
    print(f"\n{table(result)}\n\nsearch: {result.path}\nbest experiment: {result.best_config}")
    budget = Experiment.load(result.best_config).budget
    print(
        f"train it for {budget.in_words}: {shell_command('train', '--config', result.best_config)}"
    )
    return code
