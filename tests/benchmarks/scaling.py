"""How training scales: `python -m tests.benchmarks.scaling [workers|plan|machines] [--quick]
[--json]`.

`workers`: decisions played and steps of the optimiser a second against the number of env runners,
on this machine. `plan`: what a decision costs each stage on the way from playing to learning,
measured in one process on one thread, and what follows for 10 to 1000 env runners: which stage is
full first. Networks and settings are those of battlesnake-ppo and battlesnake-apex. `machines`:
what the main process does with the fragments of 1 to 100 machines, whose env runners sleep instead
of playing (`tests.benchmarks.sleeping_machines`): with PPO as it was before fragments went by
reference, with PPO now, and with APPO."""

from __future__ import annotations

import math
import pickle
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.utils.actor_manager import CallResult, FaultTolerantActorManager
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from tests.benchmarks import sleeping_machines
from tests.benchmarks.measure import arguments, tell
from train.algorithms import build_algorithm
from train.cluster.speeds import Constants, fullest, stages
from train.config import Experiment
from train.dqn import Drawn
from train.ppo import PPOConfig, PPORunner
from train.rllib.fragment_flow import PLAY, FragmentFlow
from train.rllib.ray_runtime import num_processes, running_ray
from train.rollouts.replay_buffer import ReplayBuffer
from train.settings import APPOSettings

WORKERS = (10, 30, 100, 300, 1000)
RUNNERS_A_MACHINE = 72
"""The processors of ml.c5.18xlarge."""
PROCESSES = 8
MOST_OF_TRUE_SIZE = 10
"""Machines whose fragments this one has the memory for. Those of more are empty, which the main
process can't see.
"""
WEIGHT_BYTES = 1_600_000


def per_cpu_second(work: Callable[[], int], runs: int) -> float:
    """What `work` does, by the median of its runs; the first isn't counted."""
    work()
    rates = []
    for _ in range(runs):
        began = time.process_time()
        done = work()
        rates.append(done / max(time.process_time() - began, 1e-9))
    return statistics.median(rates)


def experiment(name: str, *overrides: str) -> Experiment:
    """The experiment with one thread everywhere and nothing but training."""
    return Experiment.load(name, ["budget.max_minutes=60", "evaluation=null", *overrides])


@contextmanager
def built(chosen: Experiment) -> Iterator[Any]:
    """The experiment's algorithm, on a Ray of its own."""
    with running_ray(num_processes(chosen)):
        algorithm = build_algorithm(chosen)
        try:
            yield algorithm
        finally:
            algorithm.stop()


def measure_ppo(runs: int) -> Constants:
    """PPO: whole fragments go to the main process, every decision is learned from in each epoch."""
    chosen = experiment("battlesnake-ppo", "ppo.num_threads=1")
    with built(chosen) as algorithm:
        runner = algorithm.env_runner
        learners = algorithm.learner_group
        fragments: list[Any] = []

        def play() -> int:
            fragments[:] = runner.sample()
            runner.get_metrics()
            return sum(fragment.agent_steps() for fragment in fragments)

        def learn() -> int:
            timesteps = {
                "num_env_steps_sampled_lifetime": 0,
                "agent_steps_before": 0,
                "fraction_done": 0.0,
            }
            learners.update(episodes=list(fragments), timesteps=timesteps, num_epochs=1)
            return sum(fragment.agent_steps() for fragment in fragments)

        played = per_cpu_second(play, runs)
        learned = per_cpu_second(learn, runs)
        size, unpacked = _transport(fragments[0], fragments[0].agent_steps(), runs)
        return Constants(
            played_a_second=played,
            bytes_a_decision=size,
            unpacked_a_second=unpacked,
            learned_a_second=learned,
            uses=chosen.settings.num_epochs,
            weight_bytes=_weight_bytes(learners),
            decisions_a_fetch=fragments[0].agent_steps(),
            remembered_a_second=math.inf,
        )


def measure_apex(runs: int) -> Constants:
    """APEX, by DQN in one process with APEX's settings: rollouts go to shards, batches of them to
    the learner.
    """
    settings = asdict(experiment("battlesnake-apex").settings)
    kept = {
        name: value
        for name, value in settings.items()
        if name in asdict(experiment("battlesnake-dqn").settings)
    }
    chosen = Experiment.from_dict(
        {
            **experiment("battlesnake-apex").to_dict(),
            "algorithm": "dqn",
            "num_env_runners": 0,
            "dqn": {**kept, "epsilon": 0.1},
        }
    )
    with built(chosen) as algorithm:
        runner = algorithm.env_runner
        memory = ReplayBuffer.of(algorithm.config.settings, num_rings=1, seed=0)
        rollouts: list[Any] = []

        def play() -> int:
            rollouts[:] = runner.sample()
            runner.get_metrics()
            return rollouts[0].agent_steps()

        # A start is known only when the steps after it are.
        for _ in range(2 * chosen.settings.n_step):
            play()
            memory.add(rollouts[0])

        def remember() -> int:
            taken = 0
            while taken < chosen.settings.train_batch_size:
                memory.add(rollouts[0])
                taken += rollouts[0].agent_steps()
            for _ in range(
                max(
                    1,
                    round(chosen.settings.replay_ratio * taken / chosen.settings.train_batch_size),
                )
            ):
                memory.sample(chosen.settings.train_batch_size, beta=0.4)
            return taken

        def learn() -> int:
            return len(
                algorithm._learn(
                    Drawn.of(memory.sample(chosen.settings.train_batch_size, beta=0.4)), 0
                )
            )

        played = per_cpu_second(play, runs)
        remembered = per_cpu_second(remember, runs)
        learned = per_cpu_second(learn, runs)
        size, unpacked = _transport(rollouts[0], rollouts[0].agent_steps(), runs)
        return Constants(
            played_a_second=played,
            bytes_a_decision=size,
            unpacked_a_second=unpacked,
            learned_a_second=learned,
            uses=chosen.settings.replay_ratio,
            weight_bytes=_weight_bytes(algorithm.learner_group),
            decisions_a_fetch=rollouts[0].agent_steps(),
            remembered_a_second=remembered,
        )


def _transport(thing: Any, decisions: int, runs: int) -> tuple[float, float]:
    """(Bytes a decision, decisions unpacked a CPU second): pickled as Ray does it, arrays apart,
    and copied once.
    """
    buffers: list[Any] = []
    head = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    raw = [bytes(buffer.raw()) for buffer in buffers]

    def unpack() -> int:
        for _ in range(20):
            pickle.loads(head, buffers=[bytearray(part) for part in raw])
        return 20 * decisions

    return (len(head) + sum(map(len, raw))) / decisions, per_cpu_second(unpack, runs)


def _weight_bytes(learner_group: Any) -> float:
    state = learner_group.get_state(components=["learner/rl_module"], inference_only=True)[
        "learner"
    ]["rl_module"]
    return float(
        sum(np.asarray(weights).nbytes for module in state.values() for weights in module.values())
    )


def measure_workers(name: str, workers: int, seconds: float) -> dict[str, float]:
    """Decisions and steps of the optimiser a second of wall time, once learning has begun."""
    algorithm_name = Experiment.load(name).algorithm
    more = ["apex.learning_starts=2000"] if algorithm_name == "apex" else []
    chosen = experiment(
        name, f"num_env_runners={workers}", f"{algorithm_name}.num_threads=1", *more
    )
    with built(chosen) as algorithm:

        def updates(iterations: int) -> float:
            if algorithm_name == "apex":
                return algorithm._updates
            return iterations * chosen.settings.num_epochs * chosen.settings.num_minibatches

        iterations = 0
        limit = time.monotonic() + 60
        while (iterations < 2 or updates(iterations) == 0) and time.monotonic() < limit:
            algorithm.train()
            iterations += 1
        began = time.perf_counter()
        steps = algorithm.agent_steps()
        before = updates(iterations)
        iterations = iterations
        while time.perf_counter() - began < seconds:
            algorithm.train()
            iterations += 1
        wall = time.perf_counter() - began
        return {
            "decisions_a_second": (algorithm.agent_steps() - steps) / wall,
            "updates_a_second": (updates(iterations) - before) / wall,
        }


def run_workers(quick: bool) -> dict[str, Any]:
    """The table of `workers`."""
    found = {}
    counts = (1, 2) if quick else (1, 2, 4)
    print(f"{'experiment':18} {'env runners':>12} {'decisions/s':>12} {'updates/s':>10}")
    for name in ("battlesnake-ppo", "battlesnake-apex"):
        for count in counts if name.endswith("apex") else (0, *counts):
            rates = measure_workers(name, count, 5 if quick else 20)
            found[f"{name}/{count}"] = rates
            print(
                f"{name:18} {count:12} {rates['decisions_a_second']:12,.0f}"
                f" {rates['updates_a_second']:10.1f}",
                flush=True,
            )
    return found


def run_plan(quick: bool) -> dict[str, Any]:
    """The tables of `plan`."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name, measure in (("PPO", measure_ppo), ("APEX", measure_apex)):
        constants = measure(3 if quick else 15)
        found[name] = {"constants": asdict(constants), "plan": _print_plan(name, constants)}
    return found


def _print_plan(name: str, constants: Constants) -> list[dict[str, Any]]:
    print(f"\n{name}: what one thread does in a second of CPU time")
    for key, value in asdict(constants).items():
        print(f"  {key:22} {value:14,.1f}")
    print(
        "  env runners   shards      played/s   full first     through/s   next full   learner"
        " threads until then"
    )
    rows = []
    for workers in WORKERS:
        shards = 0 if math.isinf(constants.remembered_a_second) else math.ceil(workers / 16)
        through = stages(constants, workers, learner_speed=1.0, shards=max(1, shards))
        others = {stage: rate for stage, rate in through.items() if stage != "learn"}
        row = {
            "workers": workers,
            "shards": shards,
            "played": through["play"],
            "full": fullest(through),
            "through": min(through.values()),
            "next": fullest(others),
            "learner_threads": min(others.values()) / through["learn"],
        }
        rows.append(row)
        print(
            f"  {workers:11} {shards:8} {row['played']:13,.0f} {row['full']:>12}"
            f" {row['through']:13,.0f} {row['next']:>11} {row['learner_threads']:28,.1f}"
        )
    return rows


class Simulation:
    """The main process of a run on `machines` machines, without a world, a network or an algorithm.

    What it does with env runners is done by the same code as in training: RLlib's actor manager,
    `FragmentFlow`, and the taking in of metrics. Learners take no time."""

    def __init__(self, machines: int, *, seconds: float, learners: int = 8) -> None:
        fragment, metrics = _a_small_fragment()
        if machines > MOST_OF_TRUE_SIZE:
            fragment = sleeping_machines.Packed(None)
        runners = RUNNERS_A_MACHINE * machines
        processes = min(PROCESSES, machines)
        actor: Any = ray.remote(sleeping_machines.Machines).options(
            num_cpus=0, max_concurrency=math.ceil(runners / processes)
        )
        hosts = [actor.remote(fragment, metrics, seconds=seconds) for _ in range(processes)]
        self.runners = runners
        self.hosts = hosts
        self.learners = [
            ray.remote(sleeping_machines.Learner).options(num_cpus=0).remote()
            for _ in range(learners)
        ]
        self.actors = FaultTolerantActorManager([hosts[k % processes] for k in range(runners)])
        ray.get([host.apply.remote(func=lambda _: None) for host in hosts])
        self.metrics = MetricsLogger(root=True)
        self.weights = ray.put(np.zeros(WEIGHT_BYTES, np.uint8))
        settings = APPOSettings()
        self.fragments = settings.fragments_per_update(runners)
        self.flow = FragmentFlow(settings.max_lag * self.fragments)

    def stop(self) -> None:
        """End all processes."""
        for actor in (*self.hosts, *self.learners):
            ray.kill(actor)

    def synchronous(self, *, by_reference: bool) -> int:
        """An iteration of PPO. Returns the number of fragments."""
        method = "play_ahead" if by_reference else "play"
        arguments = {"parts": 1, "source": None} if by_reference else {}
        answers = _values(self.actors.foreach_actor(method, kwargs=arguments))
        self._take_in([metrics for _, metrics in answers])
        self._learn([played.references[0] if by_reference else played for played, _ in answers])
        self.actors.foreach_actor("set_state", kwargs={"state": self.weights}, timeout_seconds=0.0)
        return len(answers)

    def asynchronous(self) -> int:
        """An update of APPO. Returns the number of fragments."""
        while len(self.flow.waiting) < self.fragments:
            self.flow.ask(self.actors, "play_ahead", {"parts": 1, "source": None})
            answers = _values(self.actors.fetch_ready_async_reqs(tags=PLAY, timeout_seconds=0.01))
            self.flow.waiting.extend(played for played, _ in answers)
            self._take_in([metrics for _, metrics in answers])
        self._learn([played.references[0] for played in self.flow.take(self.fragments)])
        return self.fragments

    def _take_in(self, metrics: list[Any]) -> None:
        if metrics:
            self.metrics.aggregate(metrics, key="env_runners")

    def _learn(self, experience: list[Any]) -> None:
        shares = [experience[k :: len(self.learners)] for k in range(len(self.learners))]
        ray.get(
            [
                learner.update.remote(share)
                for learner, share in zip(self.learners, shares, strict=True)
                if share
            ]
        )


def _values(results: Iterable[CallResult]) -> list[Any]:
    """What env runners returned. Raises the error of one that failed: here nothing is to fail, as
    it may in training.
    """
    values = []
    for result in results:
        if not result.ok:
            raise result.get()
        values.append(result.get())
    return values


def _a_small_fragment() -> tuple[Any, Any]:
    """(A fragment of battlesnake-ppo at the least size that `train.cluster.sizes` makes, its
    metrics).
    """
    chosen = experiment("battlesnake-ppo", "ppo.num_steps=16", "env.options.num_games=16")
    runner = PPORunner(config=PPOConfig.from_experiment(chosen), worker_index=0)
    (fragment,) = runner.sample()
    return sleeping_machines.Packed(fragment), sleeping_machines.Packed(runner.get_metrics())


def run_machines(quick: bool, counts: Sequence[int]) -> dict[str, Any]:
    """The table of `machines`."""
    found: dict[str, Any] = {}
    print(
        "machines  env runners                       way  fragments/s  main process: CPU-ms per"
        " fragment  so at most/s"
    )
    for machines in counts[:1] if quick else counts:
        with running_ray(1):
            simulation = Simulation(machines, seconds=1.0)
            ways: dict[str, Callable[[], int]] = {
                "PPO, fragments by value": partial(simulation.synchronous, by_reference=False),
                "PPO, by reference": partial(simulation.synchronous, by_reference=True),
                "APPO": simulation.asynchronous,
            }
            for way, iterate in ways.items():
                if machines > MOST_OF_TRUE_SIZE and way == "PPO, fragments by value":
                    continue
                row = _pace(iterate, seconds=5 if quick else 10)
                found[f"{machines}/{way}"] = row
                print(
                    f"{machines:8} {simulation.runners:12} {way:>25}"
                    f" {row['fragments_a_second']:12,.0f} {1000 * row['cpu_a_fragment']:34.2f}"
                    f" {1 / row['cpu_a_fragment']:14,.0f}",
                    flush=True,
                )
            simulation.stop()
    return found


def _pace(iterate: Callable[[], int], *, seconds: float) -> dict[str, float]:
    """Fragments per second of wall time, and CPU seconds of this process per fragment, over at
    least two iterations.
    """
    iterate()
    fragments = 0
    iterations = 0
    began = time.perf_counter()
    cpu = time.process_time()
    while iterations < 2 or time.perf_counter() - began < seconds:
        fragments += iterate()
        iterations += 1
    wall = time.perf_counter() - began
    return {
        "fragments_a_second": fragments / wall,
        "cpu_a_fragment": (time.process_time() - cpu) / fragments,
    }


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("what", nargs="?", choices=["workers", "plan", "machines"], default="plan")
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument(
        "--machines",
        type=int,
        nargs="+",
        default=[1, 3, 10, 30, 100],
        help="for machines: how many",
    )
    options = parser.parse_args()
    runs = {
        "workers": run_workers,
        "plan": run_plan,
        "machines": partial(run_machines, counts=options.machines),
    }
    tell(options, {options.what: runs[options.what](options.quick)})


if __name__ == "__main__":
    main()
