"""How fast training is: `python -m tests.benchmarks.trainers [network|ppo|dqn|apex …] [--quick]
[--json]`.

PPO on the batched path beside RLlib's own PPO, single-agent and multi-agent, in one process by
turns: the same engine, network, precision and settings, one torch thread. 11×11, 4 snakes. Without
actions that are certain death, which for RLlib's own the adapters put right. Rates count the steps
of living snakes; RLlib's own single-agent path can't skip the dead ones, which wait for the end of
their game. `network`: what each setting saves of the snake CNN's own arithmetic. `dqn`: beside
RLlib's own DQN. `apex`: how busy it keeps two env runners and a learner, each a process; it needs
three free cores."""

from __future__ import annotations

import logging
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from ray.rllib.algorithms.ppo import PPOConfig as StockPPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from agents import networks
from envs.battlesnake import BattlesnakeVectorEnv
from tests.benchmarks.measure import arguments, machine, tell
from tests.train.rllib.rllib_own import own_dqn, own_ppo
from train.algorithms import build_algorithm
from train.compute.allocator import keep_freed_memory
from train.compute.bfloat16 import has_fast_bfloat16
from train.config import Experiment
from train.ppo import ppo_loss
from train.rllib.ray_runtime import running_ray
from train.rollouts.columns import ADVANTAGES, VALUE_TARGETS
from train.settings import PPOSettings

OBSERVATION = {"view": "window", "radius": 5, "rotate": True}
STEPS = 32
EPOCHS = 2
MINIBATCHES = 8
PARTS = ("network", "ppo", "dqn", "apex")
BEFORE = "two convolutions"
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny MLP": ("mlp", {"hidden_sizes": [32]}),
    "snake CNN": ("snake-cnn", {}),
    BEFORE: ("snake-cnn", {"channels": [32, 32], "strides": [2, 2]}),
}


class StockVectorEnv(VectorEnv):
    """The engine for RLlib's single-agent runner: one environment a snake, waiting snakes
    included.
    """

    metadata = BattlesnakeVectorEnv.metadata

    def __init__(self, num_games: int) -> None:
        self.games = BattlesnakeVectorEnv(num_games=num_games, observation=OBSERVATION)
        self.num_envs = self.games.num_envs
        self.observation_space = self.games.observation_space
        self.action_space = self.games.action_space
        self.single_observation_space = self.games.single_observation_space
        self.single_action_space = self.games.single_action_space
        self.living = self.rows = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        self.games.restart(seed)
        return self.games.observations.copy(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        games = self.games
        self.living += int(np.count_nonzero(games.valid))
        self.rows += self.num_envs
        games.advance(allowed(games, actions))
        games.drain_episodes()
        return (
            games.observations.copy(),
            games.rewards.copy(),
            games.terminated.copy(),
            games.truncated.copy(),
            {},
        )


class StockMultiAgentEnv(MultiAgentEnv):
    """One game of the engine for RLlib's multi-agent runner."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.game = BattlesnakeVectorEnv(
            num_games=1, observation=OBSERVATION, seed=options.get("seed")
        )
        self.possible_agents = [f"snake_{slot}" for slot in range(self.game.num_envs)]
        self.agents = list(self.possible_agents)
        self.observation_spaces = dict.fromkeys(
            self.possible_agents, self.game.single_observation_space
        )
        self.action_spaces = dict.fromkeys(self.possible_agents, self.game.single_action_space)
        self.game.restart()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        # The engine has begun the next game already.
        return self._shown(self.game.observations, self.game.valid), {}

    def step(self, action_dict: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        game = self.game
        acted = game.valid.copy()
        actions = np.array([action_dict.get(agent, 0) for agent in self.possible_agents])
        game.advance(allowed(game, actions))
        over = bool(game.drain_episodes()["game_over"].any())
        ended = game.terminated | game.truncated
        shown = self._shown(game.final_observations, ended) | (
            {} if over else self._shown(game.observations, game.valid)
        )
        by_agent = [(agent, row) for row, agent in enumerate(self.possible_agents) if acted[row]]
        return (
            shown,
            {agent: float(game.rewards[row]) for agent, row in by_agent},
            {agent: bool(game.terminated[row]) for agent, row in by_agent} | {"__all__": over},
            {agent: bool(game.truncated[row]) for agent, row in by_agent} | {"__all__": False},
            {},
        )

    def _shown(self, observations: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {self.possible_agents[row]: observations[row].copy() for row in np.flatnonzero(rows)}


def allowed(games: BattlesnakeVectorEnv, actions: np.ndarray) -> np.ndarray:
    """The actions, but an allowed one in place of each that is certain death."""
    mask = games.action_mask
    return np.where(mask[np.arange(len(actions)), actions], actions, mask.argmax(axis=1))


def batched(network: str, num_games: int) -> Any:
    """Ours."""
    name, options = NETWORKS[network]
    return build_algorithm(
        Experiment.from_dict(
            {
                "name": "benchmark",
                "env": {
                    "name": "battlesnake",
                    "options": {"num_games": num_games, "observation": OBSERVATION},
                },
                "network": {"name": name, "options": options},
                "ppo": {
                    "num_steps": STEPS,
                    "num_epochs": EPOCHS,
                    "num_minibatches": MINIBATCHES,
                    "num_threads": 1,
                },
                "budget": {"max_minutes": 1},
            }
        )
    )


def stock(network: str, num_games: int, *, multi_agent: bool = False) -> StockPPOConfig:
    """RLlib's own PPO with the same settings."""
    name, options = NETWORKS[network]
    model = {"name": name, "options": options, "bf16": has_fast_bfloat16()}
    rows = num_games * 4
    config = own_ppo(
        "snakes",
        rows=rows,
        steps=STEPS,
        minibatch_size=rows * STEPS // MINIBATCHES,
        model=model,
        lr=2.5e-4,
        num_epochs=EPOCHS,
    )
    config.environment(env_config={"num_games": num_games})
    config.env_runners(gym_env_vectorize_mode="vector_entry_point")
    if multi_agent:
        config.environment("snake-games")
        config.env_runners(num_envs_per_env_runner=num_games, gym_env_vectorize_mode="sync")
        config.multi_agent(policies={"shared"}, policy_mapping_fn=lambda *_, **__: "shared")
        config.rl_module(
            rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": config.rl_module_spec})
        )
    config.debugging(seed=0, log_level="ERROR")
    return config


@dataclass
class Measured:
    """Agent steps, CPU seconds and wall seconds of several rounds."""

    steps: list[int] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def time(self, work: Callable[[], int]) -> None:
        """One round."""
        cpu = time.process_time()
        wall = time.perf_counter()
        self.steps.append(work())
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)

    @property
    def per_cpu_s(self) -> float:
        return statistics.median(s / t for s, t in zip(self.steps, self.cpu, strict=True))

    @property
    def per_wall_s(self) -> float:
        return statistics.median(s / t for s, t in zip(self.steps, self.wall, strict=True))


def sampled_steps(runner: Any, **arguments: Any) -> Callable[[], int]:
    """Work: one rollout, without learning."""

    def work() -> int:
        steps = sum(episode.agent_steps() for episode in runner.sample(**arguments))
        # Else they would count as steps of the next iteration of training.
        runner.get_metrics()
        return steps

    return work


def trained_steps(algorithm: Any, results: list[dict[str, Any]]) -> Callable[[], int]:
    """Work: one iteration of training."""

    def work() -> int:
        results.append(algorithm.train())
        return int(sum(results[-1]["env_runners"]["num_agent_steps_sampled"].values()))

    return work


def living_steps(algorithm: Any, work: Callable[[], int]) -> Callable[[], int]:
    """The same work, counted without the snakes that wait."""
    adapter = algorithm.env_runner.env.unwrapped

    def counted() -> int:
        before = adapter.living
        work()
        return adapter.living - before

    return counted


def arithmetic(
    network: str,
    rows: int,
    size: int,
    *,
    seen: np.ndarray | None = None,
    bf16: bool | None = None,
    channels_last: bool = True,
) -> tuple[Callable[[], int], Callable[[], int]]:
    """Work: the network alone, in batches as training has them: the forward pass of rollouts
    (`rows`), and `EPOCHS` times forward, loss, backward, clipping and Adam (`size`). `seen`:
    observations from games, because some networks leave out zeros; by default random bytes. `bf16`:
    default as training chooses."""
    name, options = NETWORKS[network]
    space = BattlesnakeVectorEnv(num_games=1, observation=OBSERVATION).single_observation_space
    # The observations of a game may have more planes than those of this benchmark.
    shape_of_one = space.shape if seen is None else seen.shape[1:]
    built = networks.build(name, shape_of_one, 3, **options)
    bf16 = has_fast_bfloat16() if bf16 is None else bf16
    # Nothing moves: trained on one batch for long, gradients would become denormal numbers, which
    # are slow.
    optimizer = torch.optim.Adam(built.parameters(), lr=0.0, eps=1e-5)
    random = torch.Generator().manual_seed(0)
    shape = (max(rows, size), *shape_of_one)
    seen = (
        torch.randint(0, 20, shape, generator=random).to(torch.uint8)
        if seen is None
        else torch.from_numpy(seen.copy())
    )
    if not channels_last:
        built.to(memory_format=torch.contiguous_format)
        seen = seen.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
    noise = torch.randn(size, generator=random)
    as_drawn = torch.full((size,), -math.log(3))
    batch = {
        Columns.ACTIONS: torch.zeros(size, dtype=torch.int64),
        Columns.ACTION_LOGP: as_drawn,
        ADVANTAGES: noise,
        VALUE_TARGETS: noise,
        Columns.VF_PREDS: noise,
    }
    settings = PPOSettings()

    def forward(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return built(seen[:count])

    def inference() -> int:
        with torch.inference_mode():
            for _ in range(STEPS):
                forward(rows)
        return rows * STEPS

    def learning() -> int:
        for _ in range(EPOCHS * MINIBATCHES):
            optimizer.zero_grad(set_to_none=True)
            ppo_loss(*forward(size), batch, settings, ent_coef=0.01)[0].backward()
            torch.nn.utils.clip_grad_norm_(built.parameters(), 0.5)
            optimizer.step()
        return size * MINIBATCHES

    return inference, learning


def compare(network: str, num_games: int, rounds: int) -> dict[str, float]:
    """Print one network's table; returns its figures."""
    rows = num_games * 4
    few = max(1, num_games // 4)
    ours = batched(network, num_games)
    theirs = stock(network, num_games).build_algo()
    games = stock(network, few, multi_agent=True).build_algo()
    results: list[dict[str, Any]] = []
    played = ours.env_runner.sample()[0]
    alive = played.agent_steps() // STEPS
    inference, learning = arithmetic(
        network, alive, alive * STEPS // MINIBATCHES, seen=played.columns[Columns.OBS]
    )
    work = {
        ("sampling", "batched"): sampled_steps(ours.env_runner),
        ("sampling", "stock"): living_steps(
            theirs, sampled_steps(theirs.env_runner, num_timesteps=rows * STEPS)
        ),
        ("sampling", "stock multi-agent"): sampled_steps(
            games.env_runner, num_timesteps=few * STEPS
        ),
        ("training", "batched"): trained_steps(ours, results),
        ("training", "stock"): living_steps(theirs, trained_steps(theirs, [])),
        ("training", "stock multi-agent"): trained_steps(games, []),
        ("arithmetic", "inference"): inference,
        ("arithmetic", "learning"): learning,
    }
    measured = {name: Measured() for name in work}
    torch.set_num_threads(1)
    for task in work.values():
        task()
    for _ in range(rounds):
        for name, task in work.items():
            measured[name].time(task)
    adapter = theirs.env_runner.env.unwrapped
    print(
        f"  of the rows that RLlib's single-agent path steps, {adapter.living / adapter.rows:.0%}"
        " are living snakes"
    )
    for algorithm in (ours, theirs, games):
        algorithm.stop()
    key = network.replace(" ", "_").lower()
    figures = _show_rates(key, measured)
    _show_breakdown(results[-rounds:], sum(measured["training", "batched"].steps))
    own = sum(1 / measured["arithmetic", part].per_cpu_s for part in ("inference", "learning"))
    spent = 1 / measured["training", "batched"].per_cpu_s
    print(
        f"  the network's own arithmetic: {1e6 * own:.1f} of {1e6 * spent:.1f} CPU-µs a step, a"
        f" factor of {spent / own:.2f}\n"
    )
    return {**figures, f"{key}_times_the_networks_own_arithmetic": spent / own}


def _show_rates(key: str, measured: dict[tuple[str, str], Measured]) -> dict[str, float]:
    figures = {}
    for (what, who), m in measured.items():
        if what == "arithmetic":
            continue
        name = f"{key}_{what}_{who}".replace(" ", "_").replace("-", "_")
        figures[f"{name}_per_cpu_s"] = m.per_cpu_s
        line = (
            f"{f'  {what}, {who}':<32} {m.per_cpu_s:>9,.0f} steps/CPU-s {m.per_wall_s:>9,.0f}"
            " steps/s"
        )
        if who != "batched":
            ours = measured[what, "batched"]
            figures[f"{name}_ratio"] = ours.per_cpu_s / m.per_cpu_s
            by_wall = ours.per_wall_s / m.per_wall_s
            line += (
                f"   batched: {ours.per_cpu_s / m.per_cpu_s:5.1f} × by CPU, {by_wall:5.1f} × by"
                " wall time"
            )
        print(line, flush=True)
    return figures


def _show_breakdown(results: list[dict[str, Any]], steps: int) -> None:
    seconds = {
        phase: sum(result["env_runners"]["phase_seconds"][phase] for result in results)
        for phase in ("env", "inference", "collation")
    }
    seconds["learner"] = sum(result["learner_seconds"] for result in results)
    parts = ", ".join(f"{phase} {1e6 * spent / steps:.1f}" for phase, spent in seconds.items())
    print(f"  batched, wall-µs a step: {parts}")


def ablation(num_games: int, rounds: int) -> dict[str, float]:
    """Print what the snake CNN's arithmetic costs as each setting is added to those before; returns
    the figures.

    Call it before anything else: the allocator's setting can't be taken back.
    """
    rows = 3 * num_games
    figures = {}
    before = 0.0
    torch.set_num_threads(1)
    for name, network, bf16, channels_last in (
        ("float32, planes first", BEFORE, False, False),
        ("channels last", BEFORE, False, True),
        ("bfloat16", BEFORE, True, True),
        ("freed memory kept", BEFORE, True, True),
        ("patches", "snake CNN", True, True),
    ):
        if name == "freed memory kept":
            keep_freed_memory()
        both = arithmetic(
            network, rows, rows * STEPS // MINIBATCHES, bf16=bf16, channels_last=channels_last
        )
        measured = [Measured(), Measured()]
        for work in both:
            work()
        for _ in range(rounds):
            for one, work in zip(measured, both, strict=True):
                one.time(work)
        inference, learning = (1e6 / one.per_cpu_s for one in measured)
        rate = 1e6 / (inference + learning)
        before = before or rate
        figures[f"snake_cnn_arithmetic_{name.replace(', ', '_').replace(' ', '_')}_per_cpu_s"] = (
            rate
        )
        costs = f"inference {inference:5.1f}, learning {learning:5.1f} CPU-µs a step"
        print(f"  {name:<24} {costs}: {rate:7,.0f} steps/CPU-s, {rate / before:.2f} ×", flush=True)
    return figures


Q_SETTINGS = {
    "learning_rate": 1e-3,
    "num_steps": 16,
    "gamma": 0.99,
    "n_step": 3,
    "train_batch_size": 256,
    "replay_ratio": 1,
    "replay_capacity": 50_000,
    "learning_starts": 1,
    "target_update_freq": 100,
    "num_threads": 1,
}


def q_learning(
    algorithm: str,
    num_games: int,
    network: str = "tiny MLP",
    num_env_runners: int = 0,
    **settings: Any,
) -> Any:
    """Our DQN or APEX."""
    name, options = NETWORKS[network]
    data = {
        "name": "benchmark",
        "algorithm": algorithm,
        "env": {
            "name": "battlesnake",
            "options": {"num_games": num_games, "observation": OBSERVATION},
        },
        "network": {"name": name, "options": options},
        algorithm: {**Q_SETTINGS, **settings},
        "num_env_runners": num_env_runners,
        "budget": {"max_minutes": 1},
    }
    return build_algorithm(Experiment.from_dict(data))


def compare_dqn(num_games: int, rounds: int) -> dict[str, float]:
    """Print DQN's table, of training with the tiny MLP; returns its figures."""
    name, options = NETWORKS["tiny MLP"]
    settings = {**Q_SETTINGS, "epsilon": 0.05}
    model = {"name": name, "options": options, "bf16": has_fast_bfloat16()}
    vectorized = {"gym_env_vectorize_mode": "vector_entry_point"}
    config = own_dqn(
        "snakes",
        rows=4 * num_games,
        steps=Q_SETTINGS["num_steps"],
        settings=settings,
        model=model,
        **vectorized,
    )
    ours = q_learning("dqn", num_games, epsilon=0.05)
    theirs = config.environment(env_config={"num_games": num_games}).build_algo()
    results: list[dict[str, Any]] = []
    work = {
        "batched": trained_steps(ours, results),
        "stock": living_steps(theirs, trained_steps(theirs, [])),
    }
    measured = {("training", who): Measured() for who in work}
    torch.set_num_threads(1)
    for task in work.values():
        task()
    for _ in range(rounds):
        for who, task in work.items():
            measured["training", who].time(task)
    for algorithm in (ours, theirs):
        algorithm.stop()
    figures = _show_rates("dqn_tiny_mlp", measured)
    _show_breakdown(results[-rounds:], sum(measured["training", "batched"].steps))
    return figures


def idle_core_seconds() -> float:
    """What this machine's cores have been idle since it started, one after the other (Linux,
    proc(5)).
    """
    with open("/proc/stat") as file:
        return int(file.readline().split()[4]) / os.sysconf("SC_CLK_TCK")


def apex_pace(num_games: int, seconds: float) -> dict[str, float]:
    """Print which share of the time learner and env runners of APEX work, and its replay ratio;
    returns the figures.
    """
    # So much replay takes the learner about as long as playing takes two env runners.
    algorithm = q_learning(
        "apex", num_games, "snake CNN", num_env_runners=2, learning_starts=10_000, replay_ratio=0.15
    )
    try:
        while not algorithm._trained:
            algorithm.train()
        results = []
        began = time.perf_counter()
        trained = algorithm._trained
        steps = algorithm.agent_steps()
        idle = idle_core_seconds()
        while (wall := time.perf_counter() - began) < seconds:
            results.append(algorithm.train())
        ratio = (algorithm._trained - trained) / (algorithm.agent_steps() - steps)
        rate = (algorithm.agent_steps() - steps) / wall
        cores_busy = 1 - (idle_core_seconds() - idle) / wall / os.cpu_count()
    finally:
        algorithm.stop()
    learning = sum(result.get("learner_seconds", 0.0) for result in results)
    # RLlib's sum over an iteration in which nothing was played is NaN.
    playing = sum(
        np.nansum(list(result.get("env_runners", {}).get("phase_seconds", {}).values()))
        for result in results
    )
    figures = {
        "apex_learner_busy": learning / wall,
        "apex_env_runners_busy": playing / wall / 2,
        "apex_replay_ratio": ratio,
    }
    figures["apex_cores_busy"] = cores_busy
    print(
        f"  {rate:,.0f} steps/s; busy: learner {learning / wall:.0%}, each env runner"
        f" {playing / wall / 2:.0%}; replay ratio {ratio:.3f}, set to"
        f" {algorithm.config.settings.replay_ratio}; all cores {cores_busy:.0%}\n"
    )
    return figures


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", help="what to measure; default: everything")
    parser.add_argument(
        "--quick", action="store_true", help="fewer games and rounds; about a minute"
    )
    options = parser.parse_args()
    num_games, rounds = (32, 2) if options.quick else (128, 5)
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(PARTS)}")
    figures: dict[str, float] = {}
    print("procsnake trainers", machine(), f"{num_games} games, {rounds} rounds")
    if "network" in parts:
        print("snake CNN, its arithmetic alone", flush=True)
        figures |= ablation(num_games, rounds)
    keep_freed_memory()
    with running_ray(num_cpus=3):
        register_env("snakes", lambda config: StockVectorEnv(config["num_games"]))
        register_env("snake-games", StockMultiAgentEnv)
        for network in ("tiny MLP", "snake CNN") if "ppo" in parts else ():
            print(network, flush=True)
            figures |= compare(network, num_games, rounds)
        if "dqn" in parts:
            print("DQN, tiny MLP", flush=True)
            figures |= compare_dqn(num_games, rounds)
        if "apex" in parts:
            print("APEX, snake CNN", flush=True)
            figures |= apex_pace(num_games, seconds=8.0 if options.quick else 30.0)
    tell(options, figures)


if __name__ == "__main__":
    os.environ["RLLIB_TEST_NO_TF_IMPORT"] = "1"
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    main()
