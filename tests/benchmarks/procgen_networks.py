"""What networks learn of Procgen in equal CPU time: `python -m tests.benchmarks.procgen_networks
--out FILE`.

Each network learns each game with each seed on 200 levels, on one thread, and is measured on levels
that it never saw: after `--steps` decisions (score per step) and after `--seconds` of CPU time
(score per hour). Measuring isn't counted. Settings are docs/procgen.md's for a CPU: `procgen-ppo`
with rollouts of 128 steps and two epochs of 16 minibatches. Further settings follow a network's
name, as in `stem+ppo.learning_rate=2e-4`. "cleanrl" is no network of procsnake's, but the whole
loop of `tests.benchmarks.procgen` with CleanRL's own settings (256 steps, three epochs of 8).

FILE gets a line of JSON per training. What is in it isn't trained again, so the same command goes
on where it was stopped; one with other `--steps` or `--seconds` needs another FILE. `--part 1/2`
and `--part 2/2` are two processes that share the work. Each training has a process of its own,
because procsnake's memory settings would help the loop and can't be taken back."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import envs
from agents.measure.evaluation.procgen_aggregates import aggregates, probability_of_improvement
from envs.common.errors import ProcsnakeError
from envs.procgen.scores import normalised
from tests.benchmarks.measure import arguments, machine
from tests.benchmarks.procgen import Loop
from train.config import Experiment
from train.ppo import PPOConfig
from train.rllib.ray_runtime import running_ray

NETWORKS = {
    "reference": [],
    "stem": ["network.options.stem_stride=2"],
    "stem-average": ["network.options.stem_stride=2", "network.options.pooling=average"],
    "average": ["network.options.pooling=average"],
}
CLEANRL = "cleanrl"
CLEANRL_STEPS = 256
SETTINGS = [
    "ppo.num_steps=128",
    "ppo.num_epochs=2",
    "ppo.num_minibatches=16",
    "ppo.num_threads=1",
    "evaluation=null",
]
GAMES_AT_ONCE = 64
EPISODES_PER_ROW = 2
Answer = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Logits and values of pictures, uint8 (B, 64, 64, 3)."""


def unseen_score(answer: Answer, game: str, levels: str = "test:200") -> float:
    """Mean return of 128 episodes, two per row, with actions drawn from the policy. Rows that are
    through aren't computed.
    """
    world = envs.make(
        f"procgen/{game}", num_games=GAMES_AT_ONCE, distribution_mode="easy", levels=levels
    )
    generator = np.random.default_rng(0)
    left = np.full(GAMES_AT_ONCE, EPISODES_PER_ROW)
    returns = []
    world.restart(0)
    with torch.inference_mode():
        while (rows := np.flatnonzero(left)).size:
            logits, _ = answer(torch.from_numpy(world.observations[rows]))
            actions = np.zeros(GAMES_AT_ONCE, np.int64)
            actions[rows] = (logits.numpy() + generator.gumbel(size=logits.shape)).argmax(1)
            world.advance(actions)
            ended = world.drain_episodes()
            for row, value in zip(ended["row"], ended["return"], strict=True):
                if left[row]:
                    left[row] -= 1
                    returns.append(float(value))
    world.close()
    return float(np.mean(returns))


def learn(network: str, game: str, seed: int, *, steps: int, seconds: float) -> dict[str, Any]:
    """Train until both marks are passed. Returns the scores at each, and the decisions and CPU
    seconds of training.
    """
    found: dict[str, Any] = {
        "network": network,
        "game": game,
        "seed": seed,
        "steps": steps,
        "seconds": seconds,
    }
    spent = 0.0
    done = 0
    with ExitStack() as stack:
        iterate, answer = (
            cleanrl(game, seed) if network == CLEANRL else procsnake(network, game, seed, stack)
        )
        while "per_hour" not in found or "per_step" not in found:
            before = time.process_time()
            done += iterate()
            spent += time.process_time() - before
            marks = {"per_step": done >= steps, "per_hour": spent >= seconds}
            reached = [mark for mark, is_passed in marks.items() if is_passed and mark not in found]
            if reached:
                score = unseen_score(answer, game)
                found.update(dict.fromkeys(reached, score))
                found.update({f"{mark}_at": [done, round(spent, 1)] for mark in reached})
    return found


def procsnake(
    network: str, game: str, seed: int, stack: ExitStack
) -> tuple[Callable[[], int], Answer]:
    """A function that makes an iteration and returns its decisions, and the policy. `stack` ends
    it.
    """
    stack.enter_context(running_ray(num_cpus=1))
    name, *further = network.split("+")
    overrides = [f"env.name=procgen/{game}", f"seed={seed}", *SETTINGS, *NETWORKS[name], *further]
    algorithm = PPOConfig.from_experiment(Experiment.load("procgen-ppo", overrides)).build_algo()
    stack.callback(algorithm.stop)

    def iterate() -> int:
        before = algorithm.agent_steps()
        algorithm.train()
        return algorithm.agent_steps() - before

    return iterate, algorithm.env_runner_group.local_env_runner.module.rollout


def cleanrl(game: str, seed: int) -> tuple[Callable[[], int], Answer]:
    """The same of the loop."""
    torch.set_num_threads(1)
    loop = Loop(CLEANRL_STEPS, game, seed)
    return loop.iterate, lambda pictures: loop.network(pictures.float())


def contender(text: str) -> str:
    """A network's name with its further settings, or "cleanrl"; refused before anything is
    trained.
    """
    if text == CLEANRL:
        return text
    name, *further = text.split("+")
    if name not in NETWORKS:
        raise argparse.ArgumentTypeError(
            f"{name!r} is none of {', '.join(NETWORKS)}, nor {CLEANRL} without settings"
        )
    try:
        Experiment.load("procgen-ppo", further)
    except ProcsnakeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def jobs(names: list[str], games: list[str], seeds: int) -> Iterator[tuple[str, str, int]]:
    """All networks of a game and a seed before the next, so that what is there at any time can be
    compared.
    """
    return ((name, game, seed) for seed in range(seeds) for game in games for name in names)


def read(path: Path, *, steps: int, seconds: float) -> list[dict[str, Any]]:
    """What has been trained so far. Ends the program if a line is of another budget; old lines
    don't say theirs.
    """
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for one in found:
        own = one.get("steps", steps), one.get("seconds", seconds)
        if own != (steps, seconds):
            raise SystemExit(
                f"{path} has results of --steps {own[0]} --seconds {own[1]:g}, not of {steps} and"
                f" {seconds:g}; ask for those, or choose another --out"
            )
    return found


def report(found: list[dict[str, Any]], names: list[str], games: list[str]) -> None:
    """Print the scores of the seeds that all networks and games have."""
    have = {(one["network"], one["game"], one["seed"]): one for one in found}
    seeds = [
        s
        for s in sorted({one["seed"] for one in found})
        if all((n, g, s) in have for n in names for g in games)
    ]
    print(f"{len(seeds)} seeds, {', '.join(games)}", machine())
    for mark in ("per_step", "per_hour") if seeds else ():
        scores = {}
        for name in names:
            raw = np.array([[have[name, game, seed][mark] for game in games] for seed in seeds])
            scores[name] = np.array(
                [[normalised(v, g) for g, v in zip(games, row, strict=True)] for row in raw], float
            )
            at = np.median(
                [have[name, game, seed][f"{mark}_at"] for game in games for seed in seeds], axis=0
            )
            figures = ", ".join(
                f"{one.name} {one.value:.3f} ({one.interval_in_words})"
                for one in aggregates(scores[name])[:2]
            )
            better = probability_of_improvement(scores[name], scores[names[0]])
            print(
                f"{mark} {name:24} {at[0]:8.0f} decisions {at[1]:6.1f} CPU-s  {figures}  returns"
                f" {raw.mean(0).round(2)}  better than {names[0]} with {better.value:.2f}"
                f" ({better.interval_in_words})"
            )


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument(
        "--out", type=Path, required=True, help="file of results, a line of JSON per training"
    )
    names = ", ".join([*NETWORKS, CLEANRL])
    parser.add_argument(
        "--networks",
        nargs="+",
        type=contender,
        default=list(NETWORKS),
        metavar="NAME[+KEY=VALUE…]",
        help=f"{names}; the first is compared with",
    )
    parser.add_argument(
        "--games", nargs="+", default=["coinrun", "starpilot"], help="games, without procgen/"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40_000, help="decisions of the first mark")
    parser.add_argument(
        "--seconds", type=float, default=150.0, help="CPU seconds of the second mark"
    )
    parser.add_argument("--part", default="1/1", help="K/N: every Nth training, from the Kth on")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    options = parser.parse_args()
    k, n = (int(number) for number in options.part.split("/"))
    budget = {"steps": options.steps, "seconds": options.seconds}
    todo = (
        []
        if options.report
        else list(jobs(options.networks, options.games, options.seeds))[k - 1 :: n]
    )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as alone:
        for name, game, seed in todo:
            if any(
                (one["network"], one["game"], one["seed"]) == (name, game, seed)
                for one in read(options.out, **budget)
            ):
                continue
            found = alone.submit(learn, name, game, seed, **budget).result()
            print(found, flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(found) + "\n")
    report(read(options.out, **budget), options.networks, options.games)


if __name__ == "__main__":
    main()
