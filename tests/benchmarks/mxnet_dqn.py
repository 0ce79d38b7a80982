"""How fast the readable DQN trains: `python -m tests.benchmarks.mxnet_dqn [--quick] [--json]`.

Env steps a second with learning, 11×11, 4 snakes, in the starter pack's configuration (one game, a
batch of 64 every 20 decisions) and in procsnake's own. The reference, in the same run and on the
same engine and network, does what the starter pack's loop does and ours doesn't: it asks the
network for one snake at a time, doesn't compile it, keeps a list of tuples for each snake, and
stacks a batch out of them. Its engine is ours, so it is kinder than the pack's own loop, which was
measured apart (24 to 60 env steps a second on two shared cores)."""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.measure import arguments, tell
from train.config import Experiment
from train.mxnet_dqn import MXNetDQN, Transitions


class OneByOne(MXNetDQN):
    """The same training, done snake by snake."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        for network in (self.learner.network, self.learner.target):
            network.hybridize(active=False)
        self.memories: list[deque[Transitions]] = [
            deque(maxlen=5000) for _ in range(self.world.num_envs)
        ]
        self.taken = [0] * self.world.num_envs

    def choose(self) -> np.ndarray:
        actions = np.zeros(self.world.num_envs, np.int64)
        for row in np.flatnonzero(self.world.valid):
            if random.random() < self.epsilon:
                actions[row] = random.randrange(self.num_actions)
            else:
                actions[row] = self.learner.q_values(self.world.observations[row : row + 1])[
                    0
                ].argmax()
        return actions

    def play(self) -> int:
        before = self.replay.added
        decisions = super().play()
        for row in range(decisions):
            place = (before + row) % self.settings.buffer_size
            self.memories[row].append(
                Transitions(*(column[place] for column in self.replay._columns))
            )
            self.taken[row] += 1
        return decisions

    def learn(self, decisions: int) -> list[dict[str, float]]:
        told = []
        for row in range(decisions):
            if (
                self.taken[row] % self.settings.update_every == 0
                and len(self.memories[row]) > self.settings.batch_size
            ):
                drawn = random.sample(self.memories[row], self.settings.batch_size)
                told.append(
                    self.learner.update(
                        Transitions(*(np.stack(column) for column in zip(*drawn, strict=True)))
                    )
                )
        return told


def env_steps_a_second(
    make: Callable[[Experiment], MXNetDQN], name: str, *, runs: int, seconds: float
) -> dict[str, float]:
    """Median over the runs, by wall and by CPU time; learning has begun before the clock starts."""
    trainer = make(Experiment.load(name, ["mxnet_dqn.num_steps=20"]))
    # Play, not chance, is what has to be fast: exploration ends early in a training.
    trainer.games = 1e6
    while trainer.learner.updates < 3:
        trainer.train()
    by_wall = []
    by_cpu = []
    for _ in range(runs):
        steps = 0
        wall = time.perf_counter()
        cpu = time.process_time()
        while time.perf_counter() - wall < seconds:
            steps += trainer.train()["env_runners"]["num_env_steps_sampled"]
        by_wall.append(steps / (time.perf_counter() - wall))
        by_cpu.append(steps / (time.process_time() - cpu))
    trainer.stop()
    return {
        "wall": statistics.median(by_wall),
        "cpu": statistics.median(by_cpu),
        "lowest": min(by_wall),
        "highest": max(by_wall),
    }


def main() -> None:
    """Print the table and, with --json, one JSON object as the last line."""
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, help="of a run (default: 6, or 2 with --quick)")
    options = parser.parse_args()
    runs = 3 if options.quick else 5
    seconds = options.seconds or (2.0 if options.quick else 6.0)
    frozen = "battlesnake-mxnet-starter-pack"
    cases: dict[str, Any] = {
        "snake by snake (reference)": (OneByOne, frozen),
        "starter pack's configuration": (MXNetDQN, frozen),
        "procsnake's configuration": (MXNetDQN, "battlesnake-mxnet"),
    }
    found = {
        title: env_steps_a_second(make, name, runs=runs, seconds=seconds)
        for title, (make, name) in cases.items()
    }
    reference = next(iter(found.values()))
    print(f"{'env steps a second':<32} {'wall':>8} {'spread':>18} {'by CPU':>8} {'× by CPU':>12}")
    for title, rates in found.items():
        spread = f"{rates['lowest']:.0f} … {rates['highest']:.0f}"
        times = rates["cpu"] / reference["cpu"]
        print(f"{title:<32} {rates['wall']:>8.0f} {spread:>18} {rates['cpu']:>8.0f} {times:>12.1f}")
    tell(options, {"env_steps_per_second": found})


if __name__ == "__main__":
    main()
