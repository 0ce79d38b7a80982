"""The command line: `procsnake train | evaluate | play | serve | replay | quickstart`. It parses, calls and prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envs.errors import ConfigError, ProcsnakeError, UnknownNameError

USER_ERROR, INTERRUPTED = 2, 130
RULE = "─" * 100

TRAIN_HELP = """\
examples:
  procsnake train --list                              what can be trained
  procsnake train battlesnake-ppo                     three minutes of self-play on 11×11 with four snakes
  procsnake train battlesnake-ppo --minutes 30 --set ppo.learning_rate=3e-4 --set seed=1
  procsnake train --resume runs/battlesnake-ppo-…     go on after Ctrl-C or a crash
  procsnake train --config runs/…/config.yaml         the same run once more
"""
EVALUATE_HELP = """\
An agent is the name of a built-in one (random, greedy, flood), a run folder, or a policy bundle (folder or zip).

examples:
  procsnake evaluate runs/battlesnake-ppo-…           against all built-in opponents, three at a time and in duels
  procsnake evaluate flood --against greedy --games 1000
  procsnake evaluate RUN --against greedy --num-snakes 2 --ruleset wrapped
"""
PLAY_HELP = """\
A player is the name of a built-in agent, a run folder, a policy bundle, or the URL of any Battlesnake server.

examples:
  procsnake play runs/battlesnake-ppo-… flood greedy greedy
  procsnake play flood http://127.0.0.1:8000 --record game.jsonl --seed 7
"""
SERVE_HELP = """\
examples:
  procsnake serve runs/battlesnake-ppo-… --port 8000 --color '#3E338F' --head evil
  procsnake serve flood greedy                        two snakes on one server, at /snakes/flood and /snakes/greedy
  battlesnake play -u http://127.0.0.1:8000 -n me …   the official engine plays against it
"""
REPLAY_HELP = """\
A recording is what `procsnake play --record` and `battlesnake play --output` write, or the frames of an arena game.

examples:
  procsnake replay show game.jsonl                    watch it again; --turn 40 shows one board
  procsnake replay animate game.jsonl --out game.gif  or .svg, or .mp4
  procsnake replay to-test game.jsonl --turn 40 --snake me --out tests/test_turn_40.py
"""
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


class _Parser(argparse.ArgumentParser):
    """argparse, with one-line errors and a did-you-mean for commands."""

    def error(self, message: str) -> Any:
        self.exit(USER_ERROR, f"{self.prog}: {message}. See {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            self.exit(USER_ERROR, f"{self.prog}: {UnknownNameError('command', value, action.choices)}\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(prog="procsnake", description="Train agents for Battlesnake, measure them, and enter them in the arena.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Any, summary: str, epilog: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        sub.set_defaults(run=run)
        return sub

    _add_train(command("train", run_train, "Train an experiment, or continue a run.", TRAIN_HELP))
    _add_evaluate(command("evaluate", run_evaluate, "Play many games and print win rates with intervals.", EVALUATE_HELP))
    _add_play(command("play", run_play, "Play one game in the terminal, with local agents and over HTTP.", PLAY_HELP))
    _add_serve(command("serve", run_serve, "Serve snakes to any Battlesnake engine over HTTP.", SERVE_HELP))
    _add_replay(command("replay", run_replay, "Look at a recorded game, animate it, or make a test of a turn.", REPLAY_HELP))
    quickstart = command("quickstart", run_quickstart, "From nothing to a snake that plays over HTTP.", QUICKSTART_HELP)
    quickstart.add_argument("--experiment", default="battlesnake-ppo", help="what to train (default: %(default)s)")
    quickstart.add_argument("--minutes", type=float, help="how long to train (default: as the experiment says)")
    quickstart.add_argument("--games", type=_at_least(1), default=400, help="games a match-up (default: %(default)s)")
    quickstart.add_argument("--runs", default="runs", help="folder of the runs (default: %(default)s)")
    quickstart.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("experiment", nargs="?", help="name of an experiment")
    source.add_argument("--config", help="YAML file of an experiment, or config.yaml of a run")
    source.add_argument("--resume", metavar="RUN", help="folder of a run to continue")
    source.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value; may be repeated")
    parser.add_argument("--minutes", type=float, help="short for --set budget.max_minutes=…")
    parser.add_argument("--runs", default="runs", help="where run folders are made (default: %(default)s)")


def _add_game(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--width", type=int, default=11, help="board width (default: %(default)s)")
    parser.add_argument("--height", type=int, default=11, help="board height (default: %(default)s)")
    parser.add_argument("--ruleset", default="standard", help="official ruleset (default: %(default)s)")
    parser.add_argument("--map", default="standard", help="official map (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="games repeat with their seed (default: %(default)s)")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="who is measured")
    parser.add_argument(
        "--against", help="one opponent for all other seats (default: each built-in one, by threes and in duels)"
    )
    parser.add_argument("--num-snakes", type=_at_least(2), default=4, help="snakes a game (default: %(default)s)")
    parser.add_argument("--games", type=_at_least(1), default=200, help="games a match-up (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    _add_game(parser)


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("players", nargs="+", help="two to sixteen players, or one for a solo game")
    parser.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")
    parser.add_argument("--timeout", type=_at_least(1), default=500, help="milliseconds a player has for a move")
    parser.add_argument("--record", metavar="FILE", help="write the game as JSON lines, as the official command line does")
    _add_game(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="+", help="agents to serve; the first answers at /")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s; 0.0.0.0: all)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0: any free one (default: %(default)s)")
    parser.add_argument("--color", default="#128a7a", help="colour of the snake, #RRGGBB (default: %(default)s)")
    parser.add_argument("--head", default="bendr", help="head of the snake (default: %(default)s)")
    parser.add_argument("--tail", default="freckled", help="tail of the snake (default: %(default)s)")
    parser.add_argument("--author", default="", help="who made it")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "animate", "to-test"), help="what to do with it")
    parser.add_argument("recording", help="file of the recorded game")
    parser.add_argument("--turn", type=_at_least(0), help="turn to show or to test")
    parser.add_argument("--snake", help="id or name of the snake to test (default: the first that dies with the turn)")
    parser.add_argument("--agent", default="flood", help="who has to pass the test (default: %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="file to write: .gif, .svg or .mp4, or the test")
    parser.add_argument("--delay", type=float, default=0.12, help="seconds between two turns on screen")


def _at_least(low: int) -> Any:
    def number(text: str) -> int:
        value = int(text)
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is less than {low}")
        return value

    return number


# The commands.


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
    result = _train(experiment, options.runs, options.resume)
    return 0 if result.finished else INTERRUPTED


def run_evaluate(options: argparse.Namespace) -> int:
    """`procsnake evaluate`."""
    from agents.evaluation import STANDARD_OPPONENTS, evaluate, table

    opponents = [[_resolve(options.against)] * (options.num_snakes - 1)] if options.against else STANDARD_OPPONENTS
    scores = evaluate(
        _agent(options.agent),
        opponents,
        num_games=options.games,
        width=options.width,
        height=options.height,
        settings=_settings(options),
        seed=options.seed,
        on_score=None
        if options.json
        else lambda score: print(f"… {len(score.opponents)} × {score.opponents[0]}", file=sys.stderr),
    )
    print(json.dumps([score.to_dict() for score in scores], indent=2) if options.json else table(scores))
    return 0


def run_play(options: argparse.Namespace) -> int:
    """`procsnake play`."""
    from serve.referee import Referee

    seats = [player if _is_url(player) else _agent(player) for player in options.players]
    referee = Referee(
        seats,
        settings=_settings(options),
        width=options.width,
        height=options.height,
        seed=options.seed,
        timeout_ms=options.timeout,
        recording=options.record,
    )
    _watch(referee, options.delay)
    return 0


def run_serve(options: argparse.Namespace) -> int:
    """`procsnake serve`."""
    from serve.arena import Look, create_app
    from serve.server import listen, warm_up

    look = Look(color=options.color, head=options.head, tail=options.tail, author=options.author)
    agents = {agent.name: agent for agent in map(_agent, options.agents)}
    server = listen(create_app(agents, look=look), host=options.host, port=options.port)
    print("warming up …", flush=True)
    warm_up(agents)
    print(f"serving {', '.join(agents)} at {server.url} (Ctrl-C stops)", flush=True)
    server.run()
    return 0


def run_replay(options: argparse.Namespace) -> int:
    """`procsnake replay`."""
    from envs.battlesnake.recording import Recording, to_test

    recording = Recording.read(options.recording)
    if options.action == "animate":
        from envs.battlesnake.render.animation import save_animation

        print(f"written: {save_animation(recording, options.out or Path(options.recording).with_suffix('.gif'))}")
    elif options.action == "to-test":
        if options.turn is None:
            raise ConfigError("to-test needs the turn to test: --turn N")
        test = to_test(recording, options.turn, snake=options.snake, agent=options.agent)
        if options.out:
            _write_whole(Path(options.out), test)
        print(f"written: {options.out}" if options.out else test, end="\n" if options.out else "")
    else:
        from envs.battlesnake.render.ansi import draw_board

        boards = recording.boards() if options.turn is None else [recording.board(options.turn)]
        _draw_all((draw_board(board, color=sys.stdout.isatty()) for board in boards), options.delay)
    return 0


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
  progress.csv      metrics by iteration (also TensorBoard events in tensorboard/)
  checkpoints/      to go on from
  bundle/           the exported policy: ONNX, weights, card.json
  evaluation.json   the win rates above
  replays/          {record.name}: the game you just saw

next
  procsnake serve {run}                          enter it: give the arena your server's URL
  procsnake play {run} flood flood greedy        watch another game
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
    result = _train(None if runs else experiment, options.runs, str(runs[-1]) if runs else None)
    return result.path if result.finished else None


def _train(experiment: Any, runs: str, resume: str | None) -> Any:
    from train.run import train

    result = train(experiment, runs_dir=runs, resume=resume, command="procsnake " + " ".join(sys.argv[1:]))
    if result.finished:
        print(f"run: {result.path}\npolicy: {result.bundle}")
    return result


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
    _write_whole(kept, json.dumps({"key": key, "scores": [asdict(score) for score in scores]}, indent=2) + "\n")


def _play_over_http(run: Path, delay: float) -> Path:
    from serve.arena import Look, create_app
    from serve.referee import Referee
    from serve.server import running, warm_up

    agent = _agent(str(run))
    warm_up({agent.name: agent})
    record = run / "replays" / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    with running(create_app({agent.name: agent}, look=Look())) as url:
        print(f"{agent.name} is served at {url}; it meets flood, greedy and greedy")
        seats = [url, *map(_agent, ("flood", "greedy", "greedy"))]
        names = ["yours (over HTTP)", "flood", "greedy 1", "greedy 2"]
        _watch(Referee(seats, names=names, seed=int(time.time()), recording=record), delay)
    return record


def _watch(referee: Any, delay: float) -> None:
    from envs.battlesnake.render.ansi import draw

    frames = referee.play()
    _draw_all((draw(frame.state, 0, names=referee.names, color=sys.stdout.isatty()) for frame in frames), delay)
    result = referee.result
    ending = "a draw" if result.winner is None else f"{result.winner} wins"
    print(f"{ending} after {result.turns} turns")


def _draw_all(pictures: Iterable[str], delay: float) -> None:
    """Draw each board over the last one; without a terminal only the last is printed."""
    live = sys.stdout.isatty()
    lines, picture = 0, ""
    for picture in pictures:
        if live:
            print(f"\x1b[{lines}F\x1b[J" * bool(lines) + picture, flush=True)
            lines = picture.count("\n") + 1
            time.sleep(delay)
    if not live:
        print(picture)


def _write_whole(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror or error}. Choose another place") from error


# What the words on the command line stand for.


def _resolve(name: str) -> str:
    """A run folder stands for the policy that it exported."""
    return str(Path(name) / "bundle") if (Path(name) / "bundle").is_dir() else name


def _agent(name: str) -> Any:
    import agents

    return agents.make(_resolve(name))


def _is_url(text: str) -> bool:
    return "://" in text


def _settings(options: argparse.Namespace) -> Any:
    from envs.battlesnake.settings import Settings

    return Settings(ruleset=options.ruleset, map=options.map)


def _headline(text: str) -> None:
    print(f"\n{RULE}\n{text}\n{RULE}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
