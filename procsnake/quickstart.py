"""The command `procsnake quickstart`: from nothing to a snake that plays over HTTP."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from procsnake.cli.exit_codes import INTERRUPTED
from procsnake_packages import HERE

if TYPE_CHECKING:
    from train.config import Experiment

RULE = "─" * 100
RIVALS = ("champion-standard", "flood", "greedy")
"""The snakes that play the first game against a fresh snake."""
FIRST_GAME = ("flood", "flood", "greedy", "random")
"""The snakes of the game that is shown while the engine is compiled: they play fast enough without
compiling anything.
"""
FIRST_GAME_TURN_S = 0.25
"""How long a turn of that game is shown: compiling takes about a minute."""
TURN_S = 0.12
SHOWN_S = 10.0
"""How long a turn is shown by quickstart, and after how long the rest of a game is shown without
pauses.
"""

HELP = """\
Trains a snake by self-play, measures it against the built-in opponents, serves it, and plays
a game against it over HTTP. While the engine compiles, you watch a first game. The command
reuses a finished run and continues an interrupted one. `make play` calls it.

examples:
  procsnake quickstart                             # train for three minutes, then measure and play
  procsnake quickstart --minutes 10 --games 100    # train longer, measure less
  procsnake quickstart --experiment battlesnake-league  # another experiment
"""


def add_options(quickstart: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake quickstart`."""
    from procsnake.cli.command_line import add_json, at_least, pause

    add_json(quickstart)
    quickstart.add_argument(
        "--experiment", default="battlesnake-ppo", help="experiment to train (default: %(default)s)"
    )
    quickstart.add_argument(
        "--minutes", type=float, help="minutes of training (default: the experiment's)"
    )
    quickstart.add_argument(
        "--games", type=at_least(1), default=400, help="games per match-up (default: %(default)s)"
    )
    quickstart.add_argument("--runs", default="runs", help="folder for runs (default: %(default)s)")
    hurried = f"{TURN_S:g}; 0 after {SHOWN_S:.0f} seconds"
    quickstart.add_argument(
        "--delay", type=pause, help=f"seconds per turn on screen (default: {hurried})"
    )


def run(options: argparse.Namespace) -> int:
    """Run `procsnake quickstart`: train, measure, serve, play, and say where everything lies."""
    from procsnake.cli.command_line import print_json, progress_on_stderr

    with progress_on_stderr(options):
        run = _trained_run(options)
        if run is None:
            return INTERRUPTED
        _headline("2  measure: win rates against the built-in opponents")
        scores = _print_scores(run, options.games)
        _headline("3  serve it, and play a game against it over HTTP")
        record, game = _play_over_http(run, options.delay)
        _headline("done")
        _tell_places(run, record, options.experiment)
    if options.json:
        print_json(
            {
                "run": run,
                "scores": [score.to_dict() for score in scores],
                "recording": record,
                "game": game,
            }
        )
    return 0


def _tell_places(run: Path, record: Path, experiment: str) -> None:
    print(f"""\
the run is in {run}
  config.yaml       what was trained, and with which versions
  report.html       curves, evaluation, causes of death: open it in a browser
  progress.csv      metrics by iteration (also TensorBoard events in tensorboard/)
  checkpoints/      to go on from
  bundle/           the exported policy: ONNX, weights, card.json
  evaluation.json   the win rates above
  replays/          {record.name}: the game you just saw

next
{suggestions(run, record, experiment)}""")


def suggestions(run: Path, record: Path, experiment: str) -> str:
    """Return commands to continue with, one per line, each with its purpose behind a #."""
    from envs.common.shell_command import shell_command

    commands = {
        shell_command("serve", run): "enter it: give the arena your server's URL",
        shell_command("match", run, "champion-standard", "--watch"): "watch another game",
        shell_command("play", "--against", run): "play against it yourself",
        shell_command("replay", "show", record): "watch the last one again",
        shell_command(
            "evaluate", run, "--against", "flood", "--games", 1000
        ): "measure it more closely",
        shell_command("train", experiment, "--minutes", 30): "a stronger snake",
    }
    width = max(map(len, commands))
    return "\n".join(f"  {command:<{width}}  # {purpose}" for command, purpose in commands.items())


def _trained_run(options: argparse.Namespace) -> Path | None:
    """The newest finished run of the experiment; else one is resumed or begun. None if it was
    interrupted.
    """
    from envs.battlesnake.jit.cache import is_compiled
    from procsnake.cli.train.train import train_and_tell
    from train.config import Experiment
    from train.runs.folder import find_runs

    if options.minutes is not None:
        overrides = [f"budget.max_minutes={options.minutes}"]
    else:
        overrides = []
    experiment = Experiment.load(options.experiment, overrides)
    _require_a_snake(experiment, options.experiment)
    runs = find_runs(options.runs, experiment)
    # What is missing is told by what comes next.
    installed = importlib.util.find_spec("torch") is not None
    if (
        not runs
        and installed
        and experiment.env.name == "battlesnake"
        and not is_compiled("advance_boards")
    ):
        _headline("0  a first game, while the engine is compiled (about a minute, once)")
        _show_first_game_while_compiling(options.delay)
    _headline(f"1  train: {experiment.name}, by {experiment.algorithm}")
    finished = [run for run in runs if (run / "bundle" / "card.json").is_file()]
    if finished:
        print(f"using the run that is there: {finished[-1]} (remove it to train again)")
        return finished[-1]
    result = train_and_tell(
        None if runs else experiment, options.runs, str(runs[-1]) if runs else None
    )
    return result.path if result.finished else None


def _require_a_snake(experiment: Experiment, name_or_path: str) -> None:
    """Raise `ConfigError` if what an experiment trains can't be served as a snake."""
    from envs.battlesnake.observations import is_observation_type
    from envs.common.errors import ConfigError
    from envs.common.shell_command import shell_command

    instead = f"this trains it alone: {shell_command('train', name_or_path)}"
    if not experiment.settings.has_policy:
        raise ConfigError(
            f"quickstart serves what it trains, and {experiment.algorithm} trains no policy;"
            f" {instead}"
        )
    world = experiment.env.name
    if world != "battlesnake":
        from train.runs.export import contracts
        from train.worlds.build import single_world

        # Curricula, mixtures and worlds of a user's own may be of Battlesnake's boards.
        with closing(single_world(experiment)) as world_of_run:
            if not is_observation_type(contracts(experiment, world_of_run)["observation"]["type"]):
                raise ConfigError(
                    f"quickstart serves a snake, and {experiment.name} trains in {world}; {instead}"
                )


def _show_first_game_while_compiling(delay: float | None) -> None:
    """Compile what training needs in one process, while another one shows a game."""
    pause = FIRST_GAME_TURN_S if delay is None else delay
    compiling = _start("warm-up", "training", stdout=subprocess.DEVNULL)
    # Interpreted, heuristics play some twenty turns a second at once; compiled, they would begin in
    # a minute.
    options = ("--watch", "--delay", str(pause), "--seed", str(int(time.time())))
    game = _start("match", *FIRST_GAME, *options, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
    try:
        game.wait()
        if compiling.poll() is None:
            print("compiling what training needs …", flush=True)
        compiling.wait()
    finally:
        for process in (game, compiling):
            process.terminate()
            process.wait()


def _start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command of procsnake that reads nothing and has nothing to say but its output."""
    command = [sys.executable, str(HERE / "procsnake"), *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def _hurrying(delay: float | None) -> Callable[[], float]:
    """The pause after each turn: `delay`, or with None one that ends when the game has been shown
    for `SHOWN_S`.
    """
    if delay is not None:
        return lambda: delay
    end = time.monotonic() + SHOWN_S
    return lambda: TURN_S if time.monotonic() < end else 0.0


def _print_scores(run: Path, games: int) -> Sequence[Any]:
    """Measure once, and have the run's report say it; later calls show what was measured if policy
    and games are the same.
    """
    from agents.bundle import load
    from agents.measure.evaluation import evaluate, table
    from agents.measure.evaluation.record import STANDARD_BOARD, EvaluationRecord, read_record
    from agents.policy import Policy
    from envs.common.cores import usable_cores
    from train.runs.report.page import write_report

    record = read_record(run)
    if record and record.games == games and record.board == STANDARD_BOARD:
        print(table(record.scores))
        return record.scores
    began = time.monotonic()
    bundle = load(run / "bundle")
    scores = evaluate(Policy(bundle, threads=usable_cores()), num_games=games)
    print(table(scores))
    print(f"({games} games each on 11×11, {time.monotonic() - began:.0f} s; a draw is not a win)")
    policy = bundle.card.files["policy.onnx"]
    EvaluationRecord(policy=policy, games=games, scores=scores, board=STANDARD_BOARD).write(run)
    write_report(run)
    return scores


def _play_over_http(run: Path, delay: float | None) -> tuple[Path, dict[str, Any]]:
    """The game's recording, and how it ended."""
    import agents
    from agents.measure.evaluation.referee import Referee
    from procsnake.cli.start.match import as_json
    from procsnake.cli.start.watching import watch
    from serve.arena import Look, create_app
    from serve.server import running, warm_up

    agent = agents.make(str(run))
    warm_up({agent.name: agent})
    record = run / "replays" / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    with running(create_app({agent.name: agent}, look=Look())) as url:
        print(f"{agent.name} is served at {url}; it meets {', '.join(RIVALS)}")
        seats: list[agents.Agent | str] = [url, *map(agents.make, RIVALS)]
        names = ["yours (over HTTP)", *RIVALS]
        referee = Referee(seats, names=names, seed=int(time.time()), recording=record)
        watch(referee, _hurrying(delay))
    return record, as_json(referee)


def _headline(text: str) -> None:
    print(f"\n{RULE}\n{text}\n{RULE}", flush=True)
