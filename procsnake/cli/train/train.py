"""The command `procsnake train`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envs.common.addresses import require_path
from envs.common.columns import in_columns
from envs.common.errors import ConfigError
from envs.common.outputs import OUTPUTS, kept_at, make_place_for
from envs.common.plain_values import without_folders
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import (
    add_json,
    at_least,
    positive,
    print_json,
    progress_on_stderr,
)
from procsnake.cli.exit_codes import INTERRUPTED

HELP = """\
examples:
  procsnake train --list                    # what can be trained
  # every key that --set takes, with its default and meaning
  procsnake train battlesnake-ppo --help-keys
  procsnake train battlesnake-ppo           # three minutes of four-snake self-play on 11×11
  procsnake train battlesnake-ppo --minutes 30 --set ppo.learning_rate=3e-4 --set seed=1
  # train seeds 0 to 4, then plot their curves and print means with intervals
  procsnake train battlesnake-ppo --seeds 5
  # clone a snake
  procsnake train battlesnake-imitation --from-games outputs/arena-games --snakes Hisser --minutes 5
  # continue from those weights with PPO
  procsnake train battlesnake-league --init-from runs/battlesnake-imitation-…
  procsnake train --resume runs/battlesnake-ppo-…  # continue after Ctrl-C or a crash
  procsnake train --resume RUN --minutes 10    # ten minutes more, even if the run has ended
  procsnake train --resume RUN --finish        # end the run now, and export its policy
  # continue with more processes; no other setting may change
  procsnake train --resume RUN --set num_env_runners=4
  procsnake train --resume RUN --trust         # continue a run from another machine
  procsnake train --config runs/…/config.yaml  # repeat a run
  procsnake train battlesnake-apex --cluster auto
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake train`."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("experiment", nargs="?", help="name of an experiment")
    source.add_argument("--config", help="YAML file of an experiment, or config.yaml of a run")
    resume: Any = source.add_argument(
        "--resume",
        metavar="RUN",
        help="run to continue: its folder, the beginning of its name, an address, or latest",
    )
    source.add_argument("--list", action="store_true", help="list the experiments")
    ended = "with --resume: end the run now, and export its policy"
    parser.add_argument("--finish", action="store_true", help=ended)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value; may be repeated",
    )
    games = (
        "imitate the snakes in these recordings, folders of recordings, or ids of games that"
        " were fetched or served here"
    )
    parser.add_argument("--from-games", nargs="+", metavar="PATH", help=games)
    whom = (
        "with --from-games: names of the snakes to imitate (default: the one for which each game"
        " was recorded)"
    )
    parser.add_argument("--snakes", nargs="+", metavar="NAME", help=whom)
    begin = "start from the network and weights of a run, bundle or champion"
    parser.add_argument("--init-from", metavar="BUNDLE", help=begin)
    parser.add_argument(
        "--help-keys", action="store_true", help="list every key that --set takes, and exit"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="short for --set budget.max_minutes=…; with --resume: extra minutes",
    )
    seeds = "train N seeds in sequence; run the command again to continue unfinished ones"
    parser.add_argument("--seeds", type=at_least(2), metavar="N", help=seeds)
    add_json(parser)
    runs_help = "folder for runs, or s3://bucket/folder or gs://… (default: %(default)s)"
    runs: Any = parser.add_argument("--runs", default="runs", help=runs_help)
    # Other commands refuse addresses.
    resume.schemes = runs.schemes = ("s3", "gs")
    for name, tracker in (
        ("wandb", "Weights & Biases"),
        ("mlflow", "MLflow (MLFLOW_TRACKING_URI)"),
    ):
        help_text = f"also log to {tracker}"
        parser.add_argument(
            f"--{name}",
            dest="trackers",
            action="append_const",
            const=name,
            default=[],
            help=help_text,
        )
    trusted = "with --resume: continue a run from another machine, and execute the code in it"
    parser.add_argument("--trust", action="store_true", help=trusted)
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="train on this Ray cluster; auto: the one that this machine is in",
    )
    patience = (
        "with --cluster: minutes to wait for the autoscaler if the cluster is too small"
        " (default: 0)"
    )
    parser.add_argument("--wait", type=positive, metavar="MINUTES", help=patience)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake train`. Returns the exit code."""
    from train.config import Experiment
    from train.stages import first_stages, require_one_stage

    if options.list:
        return _list_experiments(options)
    overrides = options.set + (
        [f"budget.max_minutes={options.minutes}"] if options.minutes is not None else []
    )
    begins = _beginnings(options)
    if options.finish and not options.resume:
        raise ConfigError(
            "--finish is for --resume; it ends a run that was interrupted. A new run ends at its"
            " budget: --minutes"
        )
    if options.seeds and options.resume:
        raise ConfigError(
            "--resume continues one run; repeat the command with --seeds to continue all seeds"
        )
    if options.resume:
        experiment = None
    else:
        experiment = Experiment.load(options.config or options.experiment, begins + overrides)
    if options.help_keys:
        return _tell_keys(experiment, options)
    if options.seeds:
        require_path(options.runs)
    more = {"trackers": options.trackers, "cluster": options.cluster, "trust": options.trust}
    more |= {
        "sizes": options.set if options.resume else (),
        "wait_minutes": options.wait or 0.0,
        "finish": options.finish,
    }
    more |= {"minutes": options.minutes if options.resume else None}
    if options.seeds and experiment is not None:
        require_one_stage(experiment, "--seeds")
        return _train_seeds(experiment, options, more)
    with progress_on_stderr(options):
        if experiment is not None and first_stages(experiment):
            require_path(options.runs)
            result = _train_stages(experiment, options, more)
        else:
            # A run that goes on is trained again from its configuration, not by the command that
            # continued it.
            command = "" if options.resume else None
            result = train_and_tell(
                experiment, options.runs, options.resume, command=command, **more
            )
    if options.json:
        print_json(asdict(result))
    return 0 if result.finished else INTERRUPTED


def _train_stages(experiment: Any, options: argparse.Namespace, more: dict[str, Any]) -> Any:
    from train.stages import train_stages

    def train(stage: Any, begun: Path | None) -> Any:
        # Stages that are a single process can't use a cluster.
        cluster = more["cluster"] if stage.uses_ray else None
        return train_and_tell(
            None if begun else stage, options.runs, begun, **{**more, "cluster": cluster}
        )

    return train_stages(experiment, Path(options.runs), train, print)


def _train_seeds(experiment: Any, options: argparse.Namespace, more: dict[str, Any]) -> int:
    from train.runs.curves.plot import rows_of, usual, write_curves

    of_seeds = [experiment.override([f"seed={experiment.seed + k}"]) for k in range(options.seeds)]
    runs: list[Path] = []
    with progress_on_stderr(options):
        for of_seed in of_seeds:
            run = _run_of_seed(of_seed, options, more)
            if run is None:
                print(
                    f"{len(runs)} of {options.seeds} seeds are finished; repeat the command to"
                    " continue"
                )
                return INTERRUPTED
            runs.append(run)
        # Named by a run, so that seeds with other settings get a page of their own.
        out = str(OUTPUTS / f"{runs[0].name}-seeds")
        make_place_for(out)
        groups = write_curves(runs, out)
    heads, ((_, *cells),) = rows_of(groups, usual(groups))
    reached = dict(zip(heads[1:], cells, strict=True))
    files = [f"{out}.html", f"{out}.png"]
    if options.json:
        print_json({"runs": runs, "reached": reached, "written": files})
        return 0
    print(in_columns(reached.items(), indent="  "))
    print(
        "(means of the last fifth of the time over seeds, with Student's 95 % intervals)\nwritten:"
        f" {', '.join(files)}"
    )
    return 0


def _run_of_seed(experiment: Any, options: argparse.Namespace, more: dict[str, Any]) -> Path | None:
    """The finished run of this experiment that is there, or else a new or continued one; None if it
    was interrupted.
    """
    from train.comparison.trainings import look_for

    done = look_for(Path(options.runs), experiment, finished=True)
    if done is not None:
        print(f"seed {experiment.seed}: using the run that is there: {done}")
        return done
    begun = look_for(Path(options.runs), experiment, finished=False)
    result = train_and_tell(
        None if begun else experiment, options.runs, begun, seed=experiment.seed, **more
    )
    return result.path if result.finished else None


def _beginnings(options: argparse.Namespace) -> list[str]:
    """The overrides that `--from-games`, `--snakes` and `--init-from` stand for."""
    if options.resume and (options.from_games or options.init_from):
        raise ConfigError(
            "--resume continues with the run's own start; --from-games and --init-from are for a"
            " new run"
        )
    if options.snakes and not options.from_games:
        raise ConfigError(
            "--snakes says whom to clone of recorded games; name the games, too: --from-games PATH"
        )
    overrides = []
    if options.from_games:
        from train.demonstrations.recorded import games_hash

        places = [str(path) for path in _recorded_games(options.from_games)]
        section = {
            "games": places,
            "games_sha256": games_hash(places),
            "snakes": options.snakes or [],
        }
        # Cloning passes over the same games again and again, so the network that does best on
        # held-out ones is kept.
        overrides += ["algorithm=cloning", "checkpoints.best_metric=held_out_accuracy"]
        overrides += [f"cloning.{key}={json.dumps(value)}" for key, value in section.items()]
    if options.init_from:
        from train.runs.sessions.initial_weights import as_overrides

        overrides += as_overrides(options.init_from)
    return overrides


def _list_experiments(options: argparse.Namespace) -> int:
    from train.config import Experiment, list_experiments
    from train.keys.experiment_keys import about

    rows = [
        {"name": name, "algorithm": Experiment.load(name).algorithm, "about": about(name)}
        for name in list_experiments()
    ]
    # Whoever looks around is to meet the games first, and the closed competition last.
    rows.sort(key=lambda row: (row["name"].startswith("aicrowd"), row["name"]))
    if options.json:
        print_json(rows)
        return 0
    for row in rows:
        print(f"{row['name']}  ({row['algorithm']})")
        print(textwrap.fill(row["about"], 110, initial_indent="    ", subsequent_indent="    "))
    print(
        "\nkeys of one, to be changed by --set:"
        f" {shell_command('train', rows[0]['name'], '--help-keys')}"
    )
    return 0


def _tell_keys(experiment: Any, options: argparse.Namespace) -> int:
    from train.keys.experiment_keys import keys, table

    if experiment is None:
        raise ConfigError(
            "--help-keys lists the keys of a new run; name an experiment or --config instead of"
            " --resume"
        )
    known_keys = keys(experiment)
    print_json([asdict(key) for key in known_keys]) if options.json else print(table(known_keys))
    return 0


def train_and_tell(
    experiment: Any,
    runs: str,
    resume: str | os.PathLike[str] | None,
    *,
    seed: int | None = None,
    command: str | None = None,
    **options: Any,
) -> Any:
    """Train or resume, then print the paths of run, policy and report. `options` are those of
    `train`. Returns the `RunResult`.

    `seed` is this run's seed, if the command trains several. `command` is recorded in the
    policy's card; by default this process's."""
    from train.run import train

    if command is None:
        command = _without_places(sys.argv[1:]) + ("" if seed is None else f" --set seed={seed}")
    result = train(experiment, runs_dir=runs, resume=resume, command=command, **options)
    if result.finished and result.address:
        print(f"run: {result.address}")
    elif result.finished:
        if result.bundle is None:
            product = ""
        else:
            product = f"\n{'policy' if result.bundle.is_dir() else 'evaluation'}: {result.bundle}"
        print(f"run: {result.path}{product}\nreport: {result.path / 'report.html'}")
    return result


def _without_places(words: Sequence[str]) -> str:
    """A command as a policy's card notes it: without what holds on this machine only, as where its
    runs lie.
    """
    places = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    for option in ("--runs", "--cluster", "--wait", "--seeds"):
        places.add_argument(option)
    for tracker in ("--wandb", "--mlflow"):
        places.add_argument(tracker, action="store_true")
    _, remaining = places.parse_known_args(words)
    return shlex.join(["procsnake", *without_folders(remaining)])


def _recorded_games(names: Sequence[str]) -> list[Path]:
    """The files and folders that are meant: paths, and games by their ids."""
    from serve.archive.option import default_database
    from serve.recorded_games import files_of

    return files_of(names, default_database(), folder=Path(kept_at("games-to-learn")))
