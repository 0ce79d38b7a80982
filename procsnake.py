"""The command line: it parses, calls and prints. Each package brings its own commands; `quickstart`
walks through all of them.

Other projects also use the names of procsnake's four packages. This module finds out whose packages
Python would import, because nobody else has this module's name: `require_own` refuses others'
packages, and `prefer_own` has ours found first."""

from __future__ import annotations

# Nothing of ours and nothing large is imported here: what Ctrl-C interrupts must be inside `main`,
# which tells it in a line.
import argparse
import errno
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.config import Experiment

HERE = Path(__file__).resolve().parent
OWN_PACKAGES = ("envs", "agents", "train", "serve")
USER_ERROR = 2
INTERRUPTED = 130
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

QUICKSTART_HELP = """\
Shows a champion's game while what training needs is compiled, trains a snake by self-play, measures it against the built-in
opponents, serves it and plays a game against it over HTTP. What an earlier run left is used again; a run that was interrupted
goes on. This is what `make play` calls.

examples:
  procsnake quickstart                                  # three minutes of training, then everything else
  procsnake quickstart --minutes 10 --games 100         # a longer training, a shorter measurement
  procsnake quickstart --experiment battlesnake-league  # another experiment
"""


class ShadowedPackageError(ImportError):
    """Python finds another project's package under the name of one of ours."""


def require_own(*names: str) -> None:
    """Raise `ShadowedPackageError` if another package than ours is imported, or would be, under one
    of these names.
    """
    for name in names:
        path = _place(name)
        if path not in (None, HERE / name):
            said = f"{path} hides procsnake's own package {name!r}, {HERE / name}"
            raise ShadowedPackageError(f"{said}. {_how_to_mend(name, path)}")


def _place(name: str) -> Path | None:
    """The folder or file that a package's name stands for; None if there is none."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module else importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None


def _how_to_mend(name: str, path: Path) -> str:
    if str(path.parent) in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return (
            "Another distribution has installed it: uninstall that, or install procsnake into an"
            " environment without it"
        )
    return (
        f"Python looks into {path.parent} first, as its working directory or by PYTHONPATH. Give"
        f" your {name!r} another name, or take the folder off the path: the command procsnake,"
        " unlike python -m procsnake, leaves the working directory out"
    )


class OwnPackages(importlib.abc.MetaPathFinder):
    """Finds procsnake's packages beside this module, whatever else is on the path."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in OWN_PACKAGES:
            return None
        return importlib.util.spec_from_file_location(fullname, HERE / fullname / "__init__.py")


def prefer_own() -> None:
    """Have procsnake's packages found first in this process. Ray's workers would look into the
    working directory before.
    """
    sys.meta_path.insert(0, OwnPackages())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 2 for what can't be done as it is asked for, 130
    after Ctrl-C.
    """
    try:
        _open_streams()
        try:
            require_own(*OWN_PACKAGES)
            return _run(build_parser().parse_args(arguments))
        finally:
            # As Python ends, it would be too late to tell what can't be written.
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nprocsnake: stopped; nothing is left half-written", file=sys.stderr)
        return INTERRUPTED
    except ShadowedPackageError as error:
        print(f"procsnake: {error}", file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        _leave_stdout()
        return 0
    except OSError as error:
        said = _said_of_surroundings(error)
        if said is None:
            raise
        print(f"procsnake: {said}", file=sys.stderr)
        if error.errno in _NO_ROOM:
            _leave_stdout()
        return USER_ERROR


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _said_of_surroundings(error: OSError) -> str | None:
    """What is told of stdout or a working directory that fails; None if the error is of something
    else.
    """
    # What goes wrong with any other file has the file's name.
    if error.filename is None and error.errno in _NO_ROOM:
        return f"the output can't be written: {error.strerror}"
    try:
        os.getcwd()
    except OSError:
        return "the working directory is gone; somebody has removed it. Go to another one"
    return None


def _open_streams() -> None:
    """Open the streams that are closed (`>&-`), which are None, and have stdout take what its
    encoding lacks.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in (
        "strict",
        "surrogateescape",
    ):
        sys.stdout.reconfigure(errors="replace")


def _leave_stdout() -> None:
    """Have what is still to be written go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    from agents.hub.commands import pin_addresses
    from envs.common.errors import MissingDependencyError, ProcsnakeError

    try:
        _name_runs(options)
        pin_addresses(options)
        return options.run(options) or 0
    except ModuleNotFoundError as error:
        missing: Exception | None = MissingDependencyError.of_extra(
            error, feature=f"procsnake {options.command}"
        )
        if missing is None:
            raise
    except ProcsnakeError as error:
        missing = error
    # A message shows what was wrong, such as a name in a file of a stranger's.
    from envs.common.printable import printable

    said = printable(missing, keep="\n")
    print(f"procsnake {options.command}: {said}", file=sys.stderr)
    return USER_ERROR


_NAMING_RUNS = (
    "against", "agent", "agents", "bundle", "config", "hint", "init_from", "players", "policy", "resume",
    "run_folders", "source",
)  # fmt: skip
"""The options, by their place in the parsed ones, that take the folder of a run."""


def _name_runs(options: argparse.Namespace) -> None:
    """Put the folder of a run into each option where `latest` or the beginning of a name stands for
    it, and say so.
    """
    from agents import champions, registry
    from train.config import list_experiments
    from train.runs.names import with_runs

    taken = frozenset((*registry.names(), *champions.names(), *list_experiments()))
    folder = getattr(options, "runs", None) or "runs"

    def named(word: str) -> str:
        run = with_runs(word, folder=folder, taken=taken)
        if run != word:
            print(f"{word} is {run}", file=sys.stderr)
        return run

    for name in _NAMING_RUNS:
        value = getattr(options, name, None)
        if isinstance(value, str):
            setattr(options, name, named(value))
        elif isinstance(value, list):
            setattr(options, name, [named(one) if isinstance(one, str) else one for one in value])


class ShowVersions(argparse.Action):
    """Prints the versions that a bug report needs. They are looked up only when they are asked
    for.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from agents.card import library_versions

        libraries = " ".join(f"{name} {version}" for name, version in library_versions().items())
        print(f"{libraries} python {platform.python_version()} {platform.platform()}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    import agents.commands
    import serve.commands
    import train.commands
    from envs.common.command_line import Commands, Parser, shell_command

    parser = Parser(
        prog="procsnake",
        description=(
            "Train agents for Battlesnake and Procgen, measure them, and compete with them."
        ),
        epilog=f"Begin with: {shell_command('quickstart')}. Each command's --help has examples.",
    )
    parser.add_argument(
        "--version",
        action=ShowVersions,
        nargs=0,
        help="show procsnake's version and its libraries', and exit",
    )
    command = Commands(parser)
    for floor in (train, agents, serve):
        floor.commands.add_commands(command)
    # `export aicrowd` writes experiments, too, and what serves knows nothing of training.
    parser.set_defaults(load_experiment=_load_experiment, override_experiment=_override_experiment)
    # `evaluate` and `play` meet policies of any world, and what measures and serves knows no runs.
    parser.set_defaults(register_worlds=_register_worlds)
    # `sprt` and `tournament` play on Ray clusters, which are joined as training joins them.
    parser.set_defaults(join_cluster=_join_cluster)
    # `train --from-games` learns from games that a server has kept or that were fetched.
    parser.set_defaults(recorded_games=_recorded_games)
    _add_quickstart(
        command(
            "quickstart",
            run_quickstart,
            "From nothing to a snake that plays over HTTP.",
            QUICKSTART_HELP,
        )
    )
    return parser


def _load_experiment(name_or_path: str, overrides: Sequence[str]) -> dict[str, Any]:
    """An experiment's settings, by name or file."""
    from train.config import Experiment

    return Experiment.load(name_or_path, overrides).to_dict()


def _override_experiment(settings: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Settings of a run with others in their place."""
    from train.config import Experiment

    return Experiment.from_dict(settings).override(overrides).to_dict()


def _register_worlds(player: str, modules: Sequence[str]) -> None:
    """Have `envs.make` know the worlds of `train`, and import `modules` and those that the run of
    `player` was trained with.

    The modules that the run's configuration names are imported only if this machine wrote it: a
    stranger's names code."""
    import train.worlds.build  # noqa: F401  registers the worlds of training
    from agents.registry import split_name
    from envs.common.parts import import_modules
    from train.runs.folder import CONFIG, RunFolder

    import_modules(modules)
    # A player may be NAME=RUN, RUN/bundle, RUN+mcts or RUN?option=value.
    path = Path(split_name(player)[1].partition("?")[0].partition("+")[0])
    run = path.parent if path.name == "bundle" else path
    if os.path.isfile(run / CONFIG):
        folder, experiment = RunFolder.open(run)
        if folder.has_own_config():
            import_modules(experiment.modules)


def _recorded_games(names: Sequence[str]) -> list[Path]:
    """The files and folders that are meant: paths, and games by their ids."""
    from envs.common.command_line import kept_at
    from serve.archive.option import default_database
    from serve.recorded_games import files_of

    return files_of(names, default_database(), folder=Path(kept_at("games-to-learn")))


def _join_cluster(address: str) -> AbstractContextManager[None]:
    """Belong to the Ray cluster at this address, "auto" for this machine's, for as long as the
    context lasts.
    """
    from train.rllib.ray_runtime import running_ray

    return running_ray(0, address)


def _add_quickstart(quickstart: argparse.ArgumentParser) -> None:
    from envs.common.command_line import add_json, at_least, pause

    add_json(quickstart)
    quickstart.add_argument(
        "--experiment", default="battlesnake-ppo", help="what to train (default: %(default)s)"
    )
    quickstart.add_argument(
        "--minutes", type=float, help="how long to train (default: as the experiment says)"
    )
    quickstart.add_argument(
        "--games", type=at_least(1), default=400, help="games a match-up (default: %(default)s)"
    )
    quickstart.add_argument(
        "--runs", default="runs", help="folder of the runs (default: %(default)s)"
    )
    hurried = f"{TURN_S:g}, and none after {SHOWN_S:.0f} seconds"
    quickstart.add_argument(
        "--delay", type=pause, help=f"seconds between two turns on screen (default: {hurried})"
    )


def run_quickstart(options: argparse.Namespace) -> int:
    """Run `procsnake quickstart`: train, measure, serve, play, and say where everything lies."""
    from envs.common.command_line import print_json, progress_on_stderr

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
the run lies in {run}
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
    from envs.common.command_line import shell_command

    commands = {
        shell_command("serve", run): "enter it: give the arena your server's URL",
        shell_command("match", run, "champion-standard", "--watch"): "watch another game",
        shell_command("play", "--human", "--against", run): "play against it yourself",
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
    from train.commands import train_and_tell
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
        and not is_compiled("_advance_boards")
    ):
        _headline("0  a first game, while the engine is compiled (about a minute, once)")
        _show_first_game_while_compiling(options.delay)
    _headline(f"1  train: {experiment.name}, by {experiment.algorithm}")
    finished = [run for run in runs if (run / "bundle" / "card.json").is_file()]
    if finished:
        print(f"using the run that is there: {finished[-1]} (remove it to train anew)")
        return finished[-1]
    result = train_and_tell(
        None if runs else experiment, options.runs, str(runs[-1]) if runs else None
    )
    return result.path if result.finished else None


def _require_a_snake(experiment: Experiment, name_or_path: str) -> None:
    """Raise `ConfigError` if what an experiment trains can't be served as a snake."""
    from envs.battlesnake.observations import is_observation_type
    from envs.common.command_line import shell_command
    from envs.common.errors import ConfigError

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
        with closing(single_world(experiment)) as made:
            if not is_observation_type(contracts(experiment, made)["observation"]["type"]):
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
    command = [sys.executable, str(HERE / "procsnake.py"), *arguments]
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

    kept = read_record(run)
    if kept and kept.games == games and kept.board == STANDARD_BOARD:
        print(table(kept.scores))
        return kept.scores
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
    from serve.arena import Look, create_app
    from serve.match import as_json
    from serve.server import running, warm_up
    from serve.watching import watch

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


if __name__ == "__main__":
    sys.exit(main())
