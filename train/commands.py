"""`procsnake train`, `procsnake tune`, `procsnake report`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from envs.command_line import INTERRUPTED, Commands, at_least
from envs.errors import ConfigError
from train.cluster import commands as cluster_commands
from train.sagemaker import commands as sagemaker_commands

TRAIN_HELP = """\
examples:
  procsnake train --list                              what can be trained
  procsnake train battlesnake-ppo                     three minutes of self-play on 11×11 with four snakes
  procsnake train battlesnake-ppo --minutes 30 --set ppo.learning_rate=3e-4 --set seed=1
  procsnake train --resume runs/battlesnake-ppo-…     go on after Ctrl-C or a crash
  procsnake train --config runs/…/config.yaml         the same run once more
  procsnake train battlesnake-apex --cluster auto     on all machines of the Ray cluster that this one belongs to
"""
TUNE_HELP = """\
Each trial is an ordinary run folder. Values to try may also stand in the experiment's own tune section.

examples:
  procsnake tune battlesnake-ppo --search ppo.learning_rate=1e-4..3e-3:log --search ppo.num_epochs=1,2,4 --trials 12
  procsnake tune battlesnake-ppo --search ppo.ent_coef=0.001..0.03:log --scheduler asha --metric win_rate \\
      --set evaluation.every_minutes=0.5 --minutes 2
"""
REPORT_HELP = """\
Curves, causes of death, speed, configuration and versions in one file that needs no network. Each run writes it when it ends.

examples:
  procsnake report runs/battlesnake-ppo-…             write it anew, also while the run goes on
  procsnake report runs/* --metrics win_rate_vs_random --out docs/trainers    several runs in one frame, seeds as one line
"""
COMPARE_HELP = """\
The same board, reward and time for the SageMaker starter pack's DQN, DQN on one core and on all, APEX and PPO, one after the
other. Finished seeds are not run again: the same command goes on where it was stopped.

examples:
  procsnake compare battlesnake --minutes 15 --seeds 3            four hours on a quiet machine
  procsnake compare battlesnake --minutes 2 --seeds 1 --contenders mxnet-dqn,ppo --out comparisons/first
"""


def add_commands(command: Commands) -> None:
    """Add this floor's commands."""
    _add_train(command("train", run_train, "Train an experiment, or continue a run.", TRAIN_HELP))
    _add_tune(command("tune", run_tune, "Search for better values of an experiment's keys.", TUNE_HELP))
    _add_report(command("report", run_report, "Write a run's report.html anew, or the curves of several runs.", REPORT_HELP))
    _add_compare(command("compare", run_compare, "Train several algorithms for the same time and compare them.", COMPARE_HELP))
    cluster_commands.add_commands(command)
    sagemaker_commands.add_commands(command)


def _add_train(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("experiment", nargs="?", help="name of an experiment")
    source.add_argument("--config", help="YAML file of an experiment, or config.yaml of a run")
    source.add_argument("--resume", metavar="RUN", help="folder of a run to continue")
    source.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value; may be repeated")
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")
    parser.add_argument("--runs", default="runs", help="where run folders are made (default: %(default)s)")
    parser.add_argument("--wandb", action="store_true", help="log to Weights & Biases, too")
    parser.add_argument("--cluster", metavar="ADDRESS", help="play and learn on this Ray cluster; auto: this machine's")


def _add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="name of an experiment, or a YAML file")
    parser.add_argument("--search", action="append", default=[], metavar="KEY=SPACE", help="low..high, low..high:log or a,b,c")
    parser.add_argument("--scheduler", help="random, asha or pbt: short for --set tune.scheduler=…")
    parser.add_argument("--metric", help="column of progress.csv: short for --set tune.metric=…")
    parser.add_argument("--trials", type=at_least(1), help="short for --set tune.trials=…")
    parser.add_argument("--concurrent", type=at_least(1), help="trials at the same time: short for --set tune.concurrent=…")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value; may be repeated")
    parser.add_argument("--minutes", type=float, help="minutes a trial: short for --set budget.max_minutes=…")
    parser.add_argument("--runs", default="runs", help="where the search's folder is made (default: %(default)s)")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folders", metavar="RUN", nargs="+", help="folder of a run; several: their curves in one frame")
    several = parser.add_argument_group("of several runs")
    several.add_argument("--metrics", help="columns of progress.csv, with commas (default: return, length, win rate)")
    several.add_argument("--out", default="curves", help="where .html and .png are written (default: %(default)s)")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("world", choices=("battlesnake",), help="what is played")
    parser.add_argument("--minutes", type=float, default=15.0, help="minutes of training each (default: %(default)s)")
    parser.add_argument("--seeds", type=at_least(1), default=3, help="trainings of each (default: %(default)s)")
    parser.add_argument("--out", default="comparisons/battlesnake", help="folder of runs and results (default: %(default)s)")
    parser.add_argument("--contenders", help="names with commas (default: mxnet-dqn,dqn-1,dqn-all,apex,ppo; also mxnet-own)")


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
    result = train_and_tell(experiment, options.runs, options.resume, wandb=options.wandb, cluster=options.cluster)
    return 0 if result.finished else INTERRUPTED


def train_and_tell(experiment: Any, runs: str, resume: str | None, *, wandb: bool = False, cluster: str | None = None) -> Any:
    """Train or resume, and say where run, policy and report lie. Returns the `RunResult`."""
    from train.run import train

    command = "procsnake " + " ".join(sys.argv[1:])
    result = train(experiment, runs_dir=runs, resume=resume, command=command, wandb=wandb, cluster=cluster)
    if result.finished:
        print(f"run: {result.path}\npolicy: {result.bundle}\nreport: {result.path / 'report.html'}")
    return result


def run_tune(options: argparse.Namespace) -> int:
    """`procsnake tune`."""
    from train.config import Experiment
    from train.tune import table, tune

    short = {f"tune.{name}": getattr(options, name) for name in ("scheduler", "metric", "trials", "concurrent")}
    short["budget.max_minutes"] = options.minutes
    overrides = options.set + [f"{key}={value}" for key, value in short.items() if value is not None]
    experiment = Experiment.load(options.experiment, overrides).search(options.search)
    result = tune(experiment, runs_dir=options.runs)
    print(f"\n{table(result, experiment.tune.metric)}\n\nsearch: {result.path}\nbest experiment: {result.best_config}")
    print(f"train it: procsnake train --config {result.best_config}")
    return 0


def run_report(options: argparse.Namespace) -> int:
    """`procsnake report`."""
    from train.report import write_report

    if len(options.run_folders) == 1:
        print(f"written: {write_report(options.run_folders[0])}")
        return 0
    from train.curves import write_curves

    write_curves(options.run_folders, options.out, options.metrics.split(",") if options.metrics else ())
    print(f"written: {options.out}.html, {options.out}.png")
    return 0


def run_compare(options: argparse.Namespace) -> int:
    """`procsnake compare`."""
    from train.compare import USUAL, compare, rows_of

    names = options.contenders.split(",") if options.contenders else USUAL
    found = compare(minutes=options.minutes, seeds=options.seeds, out=options.out, contenders=names)
    heads, rows = rows_of(found)
    for row in rows:
        print(f"\n{row[0]}")
        print("\n".join(f"  {head:<40} {cell}" for head, cell in zip(heads[1:], row[1:], strict=True)))
    print(f"\nwritten: {options.out}/comparison.html, comparison.png, comparison.json")
    return 0
