"""The command line: parses, calls and prints. Each floor brings its own commands; `quickstart` walks through them all."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import agents.commands
import serve.commands
import train.commands
from envs.command_line import INTERRUPTED, USER_ERROR, Commands, Parser, at_least, write_whole
from envs.errors import ProcsnakeError

RULE = "─" * 100
RIVALS = ("champion-standard", "flood", "greedy")
"""Who plays the first game against a fresh snake."""

QUICKSTART_HELP = """\
Trains a snake by self-play, measures it against the built-in opponents, serves it and plays a game against it over HTTP.
What an earlier run left is used again; a run that was interrupted goes on. This is what `make play` calls.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 2 for input that can't be right, 130 after Ctrl-C."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        return options.run(options) or 0
    except ProcsnakeError as error:
        print(f"procsnake {options.command}: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print(f"\nprocsnake {options.command}: stopped; nothing is left half-written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class ShowVersions(argparse.Action):
    """What a bug report needs; looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from agents.card import library_versions

        libraries = " ".join(f"{name} {version}" for name, version in library_versions().items())
        print(f"{libraries} python {platform.python_version()} {platform.platform()}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
        prog="procsnake",
        description="Train agents for Battlesnake and Procgen, measure them, and compete with them.",
        epilog="Begin with procsnake quickstart. Each command's --help has examples.",
    )
    parser.add_argument("--version", action=ShowVersions, nargs=0, help="show procsnake's version and its libraries', and exit")
    command = Commands(parser)
    for floor in (train, agents, serve):
        floor.commands.add_commands(command)
    _add_quickstart(command("quickstart", run_quickstart, "From nothing to a snake that plays over HTTP.", QUICKSTART_HELP))
    return parser


def _add_quickstart(quickstart: argparse.ArgumentParser) -> None:
    quickstart.add_argument("--experiment", default="battlesnake-ppo", help="what to train (default: %(default)s)")
    quickstart.add_argument("--minutes", type=float, help="how long to train (default: as the experiment says)")
    quickstart.add_argument("--games", type=at_least(1), default=400, help="games a match-up (default: %(default)s)")
    quickstart.add_argument("--runs", default="runs", help="folder of the runs (default: %(default)s)")
    quickstart.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")


def run_quickstart(options: argparse.Namespace) -> int:
    """`procsnake quickstart`: train, measure, serve, play, and say where everything lies."""
    run = _trained_run(options)
    if run is None:
        return INTERRUPTED
    _headline("2  measure: win rates against the built-in opponents")
    _print_scores(run, options.games)
    _headline("3  serve it, and play a game against it over HTTP")
    record = _play_over_http(run, options.delay)
    _headline("done")
    print(f"""\
the run lies in {run}
  config.yaml       what was trained, and with which versions
  report.html       curves, evaluation, causes of death: open it in a browser
  progress.csv      metrics by iteration (also TensorBoard events in tensorboard/)
  checkpoints/      to go on from
  bundle/           the exported policy: ONNX, weights, card.json
  evaluation.json   the win rates above
  replays/          {record.name}: the game you just saw

next
  procsnake serve {run}                          enter it: give the arena your server's URL
  procsnake match {run} champion-standard --watch     watch another game
  procsnake replay show {record}
  procsnake evaluate {run} --against flood --games 1000
  procsnake train {options.experiment} --minutes 30           a stronger snake""")
    return 0


def _trained_run(options: argparse.Namespace) -> Path | None:
    """The newest finished run of the experiment; else one is resumed or begun. None if it was interrupted."""
    from train.config import Experiment
    from train.run_folder import find_runs

    overrides = [f"budget.max_minutes={options.minutes}"] if options.minutes is not None else []
    experiment = Experiment.load(options.experiment, overrides)
    _headline("1  train: PPO, self-play")
    runs = find_runs(options.runs, experiment)
    finished = [run for run in runs if (run / "bundle" / "card.json").is_file()]
    if finished:
        print(f"using the run that is there: {finished[-1]} (remove it to train anew)")
        return finished[-1]
    result = train.commands.train_and_tell(None if runs else experiment, options.runs, str(runs[-1]) if runs else None)
    return result.path if result.finished else None


def _print_scores(run: Path, games: int) -> None:
    """Measure once; later calls show what was measured if policy and number of games are the same."""
    from agents.bundle import load
    from agents.evaluation import Score, evaluate, table
    from agents.policy import Policy

    bundle = load(run / "bundle")
    kept, key = run / "evaluation.json", {"policy": bundle.card.files["policy.onnx"], "games": games}
    if kept.is_file() and (stored := json.loads(kept.read_text()))["key"] == key:
        print(table([Score(**score) for score in stored["scores"]]))
        return
    began = time.monotonic()
    scores = evaluate(Policy(bundle, threads=os.cpu_count() or 1), num_games=games)
    print(table(scores))
    print(f"({games} games each on 11×11, {time.monotonic() - began:.0f} s; a draw is not a win)")
    write_whole(kept, json.dumps({"key": key, "scores": [asdict(score) for score in scores]}, indent=2) + "\n")


def _play_over_http(run: Path, delay: float) -> Path:
    from agents.referee import Referee
    from serve.arena import Look, create_app
    from serve.server import running, warm_up

    agent = agents.make(str(run))
    warm_up({agent.name: agent})
    record = run / "replays" / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    with running(create_app({agent.name: agent}, look=Look())) as url:
        print(f"{agent.name} is served at {url}; it meets {', '.join(RIVALS)}")
        seats = [url, *map(agents.make, RIVALS)]
        names = ["yours (over HTTP)", *RIVALS]
        serve.commands.watch(Referee(seats, names=names, seed=int(time.time()), recording=record), delay)
    return record


def _headline(text: str) -> None:
    print(f"\n{RULE}\n{text}\n{RULE}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
