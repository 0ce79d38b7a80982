"""The commands `procsnake evaluate`, `tournament`, `sprt`, `champions`, `push` and `replay`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agents.opened_recording import open_recording, position_of, turn_of
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.printable import printable
from envs.common.shell_command import shell_command
from envs.common.terminal import Progress, columns, draw_all, wants_color
from envs.common.whole_files import make_folder_of, write_whole
from procsnake.cli.command_line import (
    Commands,
    add_game_options,
    add_imports,
    add_json,
    at_least,
    game_settings,
    pause,
    print_json,
    refuse_game_options,
    refuse_given,
)
from procsnake.cli.compete.push import PUSH_HELP, add_push, run_push
from procsnake.cli.effort_options import add_effort, effort_of, tell_own_efforts
from procsnake.cli.measure.sprt import SPRT_HELP, add_sprt, run_sprt
from procsnake.cli.measure.tournament import TOURNAMENT_HELP, add_tournament, run_tournament
from procsnake.cli.position_options import add_position, chosen_position
from procsnake.cli.worlds import register_worlds

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.bundle import Bundle
    from agents.measure.evaluation import MatchupScore
    from agents.opened_recording import Position
    from envs.battlesnake.recording import Recording

_SEATS = 4
"""Snakes in a game of `evaluate` against one opponent, unless it says how many."""
_SOLO_BOARDS = "7,11,19"
_EPISODES = 200
_GAMES = 200
EVALUATE_HELP = """\
An agent is the name of a built-in one (random, greedy, flood), a run folder, or a policy bundle (folder, zip or
hf://user/name). A policy of another world than Battlesnake plays episodes of its own world: on levels that it never saw in
Procgen, else beside random play.

examples:
  procsnake evaluate runs/battlesnake-ppo-…           # against all built-in opponents, three at a time and in duels
  procsnake evaluate flood --against greedy --games 1000
  procsnake evaluate RUN --against greedy --num-snakes 2 --ruleset wrapped
  procsnake evaluate mcts --against alphabeta --num-snakes 2 --time 5     # both search for 5 ms of processor time per move
  procsnake evaluate flood champion-standard --solo --games 50     # turns that they survive alone on Arena's three boards
  procsnake evaluate runs/procgen-ppo-… --levels train,test --episodes 500     # a Procgen policy, also on levels it never saw
  procsnake evaluate runs/a runs/b runs/c --levels test --report all.html      # several: interquartile mean, optimality gap
"""
REPLAY_HELP = """\
A recording is what `procsnake play --record` and `battlesnake play --output` write, a log of requests to /move (one per line),
a single request, or the frames of a game of Arena or of the engine before it.

examples:
  procsnake replay show game.jsonl                    # watch it again; --turn 40 shows one board
  procsnake replay animate game.jsonl --out game.gif  # or .svg, or .mp4
  procsnake replay to-test game.jsonl --turn 40 --snake me --out tests/test_turn_40.py
  procsnake replay ask request.json --agent champion-standard    # what would it play here, and why?
  procsnake replay to-test request.json --allow up,left --agent champion-standard
  procsnake replay show frames.json --width 11 --height 11      # frames don't tell the board's size
"""
CHAMPIONS_HELP = """\
A champion's name can stand wherever a policy bundle or an agent is asked for.

examples:
  procsnake match champion-standard flood flood flood --watch
  procsnake evaluate champion-standard
  procsnake play champion-starpilot --record film.mp4       # one of Procgen; --seed draws the level
  procsnake evaluate champion-starpilot --levels train,test --episodes 500
"""


def add_commands(command: Commands) -> None:
    """Add the commands of `agents`."""
    _add_evaluate(
        command(
            "evaluate",
            run_evaluate,
            "Play many games and print win rates with intervals.",
            EVALUATE_HELP,
        )
    )
    add_tournament(
        command(
            "tournament",
            run_tournament,
            "Let snakes play each other and rate them.",
            TOURNAMENT_HELP,
        )
    )
    add_sprt(
        command(
            "sprt",
            run_sprt,
            "Find out which of two players is stronger, in no more games than it takes.",
            SPRT_HELP,
        )
    )
    add_json(
        command(
            "champions",
            run_champions,
            "List the trained policies that come with procsnake.",
            CHAMPIONS_HELP,
        )
    )
    add_push(
        command(
            "push", run_push, "Put a policy on the Hugging Face Hub, with a model card.", PUSH_HELP
        )
    )
    _add_replay(
        command(
            "replay",
            run_replay,
            "Look at a recorded game, animate it, or make a test of a turn.",
            REPLAY_HELP,
        )
    )


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agents", nargs="+", metavar="agent", help="who is measured; for Procgen also several runs"
    )
    parser.add_argument(
        "--against",
        help=(
            "one opponent for all other seats (default: each built-in one, by threes and in duels)"
        ),
    )
    parser.add_argument(
        "--num-snakes",
        type=at_least(2),
        help=f"with --against: snakes per game (default: {_SEATS})",
    )
    parser.add_argument("--games", type=at_least(1), help=f"games per match-up (default: {_GAMES})")
    solo = "how many turns each agent survives alone, instead of games against others"
    parser.add_argument("--solo", action="store_true", help=solo)
    sides = f"with --solo: sides of the boards (default: {_SOLO_BOARDS}, Arena's)"
    parser.add_argument("--boards", metavar="SIDES", help=sides)
    longest = "with --solo: turns after which a game ends (default: 5000, as on Arena)"
    parser.add_argument("--max-turns", type=at_least(1), help=longest)
    add_effort(parser, wall=False)
    add_position(parser)
    add_json(parser)
    parser.add_argument(
        "--levels",
        help=(
            "Procgen: train, test, levels as start:num, or several with commas, beside the random"
            " agent"
        ),
    )
    parser.add_argument(
        "--episodes",
        type=at_least(1),
        help=f"other worlds than Battlesnake: how many (default: {_EPISODES})",
    )
    parser.add_argument(
        "--greedy",
        action="store_true",
        help="Procgen: the likeliest action in place of a drawn one",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="Procgen: page with curves and films (default: RUN/evaluation.html)",
    )
    add_imports(parser)
    add_game_options(parser)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("show", "animate", "ask", "to-test"), help="what to do with it"
    )
    parser.add_argument("recording", help="file of the recorded game")
    parser.add_argument("--turn", type=at_least(0), help="turn to show, to ask about or to test")
    snake = (
        "id or name of the snake to ask or to test (default: the one that was asked; for a test the"
        " first that dies then)"
    )
    parser.add_argument("--snake", help=snake)
    parser.add_argument(
        "--agent",
        default="flood",
        help="who is asked, or has to pass the test (default: %(default)s)",
    )
    parser.add_argument(
        "--allow", metavar="MOVES", help="for to-test: the moves that pass, as in up,left"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="file to write: .gif, .svg or .mp4, or the test"
    )
    parser.add_argument(
        "--delay", type=pause, default=0.12, help="seconds between two turns on screen"
    )
    for side in ("width", "height"):
        parser.add_argument(
            f"--{side}",
            type=at_least(1),
            help=f"{side} of the board, for frames of an arena game without it",
        )
    add_json(parser)


def run_evaluate(options: argparse.Namespace) -> int:
    """Run `procsnake evaluate`. Returns the exit code."""
    from agents.measure.evaluation import evaluate, opponents_text, table
    from agents.measure.evaluation.episodes import bundle_of_a_world

    if options.num_snakes and not options.against:
        raise ConfigError(
            f"--num-snakes is {options.num_snakes}, but without --against the games are against"
            " three of each built-in agent and against one; leave it out, or name the opponent:"
            " --against flood"
        )
    for agent in filter(None, (*options.agents, options.against)):
        register_worlds(agent, options.imports)
    if options.solo:
        return _evaluate_solo(options)
    refuse_given(options, ("boards", "max_turns"), "--solo alone; leave it out, or add --solo")
    if options.levels:
        return _evaluate_on_levels(options)
    if bundle := bundle_of_a_world(options.agents[0]):
        return _evaluate_in_its_world(bundle, options)
    if len(options.agents) > 1:
        raise ConfigError(
            f"one agent is measured at a time, not {', '.join(options.agents)}; several are for"
            " Procgen's --levels"
        )
    _refuse_other_worlds_options(options)
    games = options.games or _GAMES
    position = chosen_position(options)
    effort = effort_of(options)
    players = list(filter(None, (options.agents[0], options.against)))
    tell_own_efforts(effort, ((player, player) for player in players))
    agent, *against = map(effort.make, players)
    with Progress(lines=False) as progress:

        def tell(turn: int, over: int) -> None:
            progress.show(f"turn {turn}, {over} of {games} games over")

        scores = evaluate(
            agent,
            _opponents(against, options.num_snakes, position),
            num_games=games,
            width=options.width,
            height=options.height,
            settings=game_settings(options),
            seed=options.seed,
            on_score=lambda score: print(f"… {opponents_text(score.opponents)}", file=sys.stderr),
            on_turn=None if options.json else tell,
            position=None if position is None else position.state,
        )
    print_json([score.to_dict() for score in scores]) if options.json else print(table(scores))
    if not options.against and position is None:
        _keep_scores(Path(options.agents[0]), scores, options)
    return 0


def _opponents(
    against: Sequence[Agent], num_snakes: int | None, position: Position | None
) -> Sequence[Sequence[str | Agent]]:
    """The groups that the agent meets: at a position, there are as many others as it has."""
    from agents.measure.evaluation import STANDARD_OPPONENTS

    if position is None:
        if against:
            return [list(against) * ((num_snakes or _SEATS) - 1)]
        return STANDARD_OPPONENTS
    others = len(position.names) - 1
    if num_snakes or not others:
        raise ConfigError(
            f"the position has {others + 1} snakes, of which the first is the agent's; leave out"
            " --num-snakes"
        )
    names = dict.fromkeys(name for group in STANDARD_OPPONENTS for name in group)
    if against:
        return [list(against) * others]
    return [[name] * others for name in names]


def _refuse_other_worlds_options(options: argparse.Namespace) -> None:
    refuse_given(
        options, ("episodes", "report", "greedy"), "other worlds than Battlesnake; leave it out"
    )


def _refuse_battlesnakes_options(options: argparse.Namespace) -> None:
    what_for = "games of Battlesnake, not for episodes of other worlds; leave it out"
    refuse_given(
        options, ("against", "num_snakes", "games", "nodes", "time", "position", "turn"), what_for
    )
    refuse_game_options(options, what_for)


def _evaluate_solo(options: argparse.Namespace) -> int:
    from agents.measure.evaluation.solo import MAX_TURNS, evaluate_solo, table

    if options.against or options.levels:
        raise ConfigError("with --solo nobody else plays; leave out --against and --levels")
    _refuse_other_worlds_options(options)
    refuse_given(options, ("position", "turn"), "games against others; with --solo, leave it out")
    what_for = "games against others; with --solo, --boards has the sides of the boards"
    refuse_game_options(options, what_for, only=("width", "height"))
    boards = _SOLO_BOARDS if options.boards is None else options.boards
    sides = boards.split(",")
    if not all(side.isdecimal() and len(side) < 3 for side in sides):
        raise ConfigError(
            f"--boards is {boards!r}; it is the sides of square boards with commas between, as"
            " 7,11,19"
        )
    effort = effort_of(options)
    tell_own_efforts(effort, ((player, player) for player in options.agents))
    played = {
        "num_games": options.games or _GAMES,
        "settings": game_settings(options),
        "seed": options.seed,
    }
    scores = []
    left_out = list[ProcsnakeError]()
    for agent in map(effort.make, options.agents):
        for side in map(int, sides):
            print(f"… {agent.name} on {side}×{side}", file=sys.stderr)
            try:
                scores += evaluate_solo(
                    agent, [(side, side)], max_turns=options.max_turns or MAX_TURNS, **played
                )
            except ProcsnakeError as error:
                left_out.append(error)
                print(f"left out {agent.name} on {side}×{side}: {error}", file=sys.stderr)
    if not scores:
        raise left_out[0]
    print_json([score.to_dict() for score in scores]) if options.json else print(table(scores))
    return 0


def _keep_scores(run: Path, scores: Sequence[MatchupScore], options: argparse.Namespace) -> None:
    """A run is measured against all built-in opponents: its report shall say what came of it."""
    from agents.measure.evaluation.record import EvaluationRecord, board_of, policy_of

    policy = policy_of(run)
    if policy is None:
        return
    board = board_of(options.width, options.height, game_settings(options))
    kept = EvaluationRecord(
        policy=policy, games=options.games or _GAMES, scores=scores, board=board
    ).write(run)
    print(
        f"written: {kept}; into the run's report: {shell_command('report', run)}", file=sys.stderr
    )


def _evaluate_in_its_world(bundle: Bundle, options: argparse.Namespace) -> int:
    """As the world says that policies are measured."""
    from agents.measure.evaluation import episodes
    from agents.measure.evaluation.record import WorldRecord, policy_of

    world = episodes.world_of(bundle, num_games=1)
    world.close()
    if world.evaluation == "levels":
        options.levels = "test"
        return _evaluate_on_levels(options)
    if len(options.agents) > 1:
        raise ConfigError(
            f"one policy is measured at a time in the world {bundle.card.environment['name']!r}"
        )
    _refuse_battlesnakes_options(options)
    refuse_given(options, ("report", "greedy"), "Procgen; leave it out")
    scores = episodes.evaluate(
        bundle, episodes=options.episodes or _EPISODES, seed=options.seed, threads=usable_cores()
    )
    (
        print_json([score.to_dict() for score in scores])
        if options.json
        else print(episodes.table(scores))
    )
    run = Path(options.agents[0])
    if policy := policy_of(run):
        kept = WorldRecord(policy=policy, scores=scores).write(run)
        print(
            f"written: {kept}; into the run's report: {shell_command('report', run)}",
            file=sys.stderr,
        )
    return 0


def _evaluate_on_levels(options: argparse.Namespace) -> int:
    from agents.measure.evaluation.procgen import aggregates_by_split, evaluate, table

    _refuse_battlesnakes_options(options)
    runs = [Path(agent) for agent in options.agents]
    one_run = runs[0] if len(runs) == 1 and (runs[0] / "bundle").is_dir() else None
    report = one_run and one_run / "evaluation.html"
    if options.report:
        report = Path(options.report)
    if report:
        make_folder_of(report)
    played = evaluate(
        options.agents,
        levels=options.levels,
        episodes=options.episodes or _EPISODES,
        seed=options.seed,
        greedy=options.greedy,
        threads=usable_cores(),
        say=None if options.json else lambda line: print(line, file=sys.stderr),
    )
    scores = [one.score for one in played]
    if options.json:
        together = {
            split: [one.to_dict() for one in own]
            for split, own in aggregates_by_split(scores).items()
        }
        print_json({"scores": [score.to_dict() for score in scores], "together": together})
    else:
        print(table(scores))
    if report:
        from agents.measure.evaluation.procgen_report import write_evaluation

        curve = one_run / "progress.csv" if one_run else None
        write_evaluation(report, ", ".join(run.name for run in runs), played, curve)
        print(f"written: {report}", file=sys.stderr if options.json else sys.stdout)
    return 0


def run_champions(options: argparse.Namespace) -> int:
    """Run `procsnake champions`. Returns the exit code."""
    from agents import champions

    print_json(champions.as_json()) if options.json else print(champions.table())
    return 0


def run_replay(options: argparse.Namespace) -> int:
    """Run `procsnake replay`. Returns the exit code."""
    from envs.battlesnake.recording import to_test

    _refuse_other_actions_options(options)
    recording = open_recording(options.recording, width=options.width, height=options.height)
    for side in ("width", "height"):
        if (asked := getattr(options, side)) not in (None, told := recording.boards()[0][side]):
            raise ConfigError(f"--{side} is {asked}, but the recording says {told}; leave it out")
    if options.action == "animate":
        from envs.battlesnake.render.animation import save_animation

        print(
            "written:"
            f" {save_animation(recording, options.out or Path(options.recording).with_suffix('.gif'))}"
        )
    elif options.action == "ask":
        _ask(recording, options)
    elif options.action == "to-test":
        turn = turn_of(recording, options.turn)
        allowed = None if options.allow is None else options.allow.split(",")
        test = to_test(recording, turn, snake=options.snake, agent=options.agent, allowed=allowed)
        if options.out:
            write_whole(Path(options.out), test)
        print(f"written: {options.out}" if options.out else test, end="\n" if options.out else "")
    else:
        from envs.battlesnake.render.ansi import draw_board

        if options.turn is None:
            boards = recording.boards()
        else:
            boards = [recording.board(options.turn)]
        draw_all(
            (draw_board(board, color=wants_color(), columns=columns()) for board in boards),
            options.delay,
        )
    return 0


def _ask(recording: Recording, options: argparse.Namespace) -> None:
    from agents.asking import ask, in_words
    from agents.workbench.bench import make_player

    position = position_of(recording, turn_of(recording, options.turn), snake=options.snake)
    answer = ask(make_player(options.agent), position)
    print_json(answer) if options.json else print(printable(in_words(answer), keep="\n"))


def _refuse_other_actions_options(options: argparse.Namespace) -> None:
    if options.action != "to-test":
        refuse_given(options, ["allow"], "to-test; leave it out")
    if options.action != "ask":
        refuse_given(options, ["json"], "ask; leave it out")
    if options.action in ("show", "ask") and options.out is not None:
        animate = shell_command("replay", "animate", options.recording, "--out", options.out)
        raise ConfigError(
            f"{options.action} prints to the terminal and writes no file, so --out is for the other"
            f" actions; try {animate}"
        )
    if options.action == "animate" and options.turn is not None:
        show = shell_command("replay", "show", options.recording, "--turn", options.turn)
        raise ConfigError(
            f"animate takes all turns, so --turn is for the other actions; one board: {show}"
        )
