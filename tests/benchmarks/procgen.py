"""How fast PPO trains on Procgen: `python -m tests.benchmarks.procgen [--quick] [--json]`.

coinrun, easy, 64 games, IMPALA [16, 32, 32] and 256, 3 epochs of 8 minibatches. The players take
turns, each in a process of its own, because memory settings can't be taken back: procsnake; a loop
as CleanRL's ppo_procgen has it (float32, channels first, torch's own threads), as its users run it;
the same with procsnake's memory settings; RLlib's own PPO with the same network; procsnake with
`stem_stride` 2. "network" makes only the network's passes that an iteration of procsnake needs, so
its figures say what is left to gain without another network. A turn is one iteration: one rollout
and the learning from it. The first isn't counted. Takes half an hour on 2 cores; `--players` makes
it shorter."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from gymnasium.wrappers.utils import RunningMeanStd
from ray.rllib.algorithms.ppo import PPOConfig as StockPPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env
from torch import nn

from agents import networks
from envs.procgen.games import load_library
from tests.benchmarks.measure import arguments, machine, tell
from train.compute.allocator import keep_freed_memory
from train.compute.bfloat16 import has_fast_bfloat16
from train.compute.threads import ThreadTuner
from train.config import Experiment
from train.ppo import PPOConfig
from train.rllib.ray_runtime import running_ray

GAMES = 64
EPOCHS = 3
MINIBATCHES = 8
ACTIONS = 15
GAMMA = 0.999
GAE_LAMBDA = 0.95
CLIP = 0.2
VF_COEF = 0.5
ENT_COEF = 0.01
LEARNING_RATE = 5e-4


def native_games(game: str = "coinrun", seed: int = 0) -> Any:
    """The library's own vector environment, as its users make it."""
    return load_library().ProcgenEnv(
        GAMES, game, num_levels=200, start_level=0, distribution_mode="easy", rand_seed=seed
    )


class Residual(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(planes, planes, 3, padding=1)
        self.second = nn.Conv2d(planes, planes, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(torch.relu(x))))


class PlainNetwork(nn.Module):
    """IMPALA with torch's defaults: float32, channels first."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 32)):
            layers += [
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
            ]
            layers += [Residual(outputs), Residual(outputs)]
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.ReLU(), nn.Linear(2048, 256), nn.ReLU())
        self.actor = nn.Linear(256, ACTIONS)
        self.critic = nn.Linear(256, 1)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(observations.permute(0, 3, 1, 2) / 255.0)
        return self.actor(features), self.critic(features).squeeze(-1)


class Loop:
    """PPO in one file, as CleanRL's users run it: rollout into float32 tensors, GAE, minibatch
    epochs.

    Rewards are divided by the deviation of their discounted sum, as in CleanRL's `ppo_procgen.py`
    (gymnasium's NormalizeReward, then limits of 10)."""

    def __init__(self, num_steps: int, game: str = "coinrun", seed: int = 0) -> None:
        torch.manual_seed(seed)
        np.random.seed(seed)
        self.games = native_games(game, seed)
        self.network = PlainNetwork()
        self.num_steps = num_steps
        self.returns = np.zeros(GAMES)
        self.spread = RunningMeanStd(shape=())
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, eps=1e-5)
        self.next_obs = torch.Tensor(self.games.reset()["rgb"])
        self.next_done = torch.zeros(GAMES)

    def iterate(self) -> int:
        """One iteration; env steps."""
        shape = (self.num_steps, GAMES)
        self.obs = torch.zeros((*shape, 64, 64, 3))
        self.actions, self.logprobs, self.rewards, self.dones, self.values = (
            torch.zeros(shape) for _ in range(5)
        )
        for step in range(self.num_steps):
            self._play(step)
        self._learn(*self._advantages())
        return self.num_steps * GAMES

    def _play(self, step: int) -> None:
        self.obs[step], self.dones[step] = self.next_obs, self.next_done
        with torch.no_grad():
            logits, self.values[step] = self.network(self.next_obs)
            policy = torch.distributions.Categorical(logits=logits)
            action = policy.sample()
        self.actions[step], self.logprobs[step] = action, policy.log_prob(action)
        seen, reward, done, _ = self.games.step(action.numpy())
        self.rewards[step] = torch.tensor(self._normalised(reward, done))
        self.next_obs = torch.Tensor(seen["rgb"])
        self.next_done = torch.Tensor(done)

    def _normalised(self, reward: np.ndarray, done: np.ndarray) -> np.ndarray:
        self.returns = self.returns * GAMMA * (1 - done) + reward
        self.spread.update(self.returns)
        return np.clip(reward / np.sqrt(self.spread.var + 1e-8), -10, 10).astype(np.float32)

    def _advantages(self) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            next_value = self.network(self.next_obs)[1]
        advantages = torch.zeros_like(self.rewards)
        last = torch.zeros(GAMES)
        following = self.next_done
        for step in reversed(range(self.num_steps)):
            going_on = 1.0 - following
            delta = self.rewards[step] + GAMMA * next_value * going_on - self.values[step]
            advantages[step] = last = delta + GAMMA * GAE_LAMBDA * going_on * last
            next_value = self.values[step]
            following = self.dones[step]
        return advantages.flatten(), (advantages + self.values).flatten()

    def _learn(self, advantages: torch.Tensor, returns: torch.Tensor) -> None:
        obs = self.obs.flatten(0, 1)
        actions = self.actions.flatten()
        logprobs = self.logprobs.flatten()
        values = self.values.flatten()
        order = np.arange(len(obs))
        for _ in range(EPOCHS):
            np.random.shuffle(order)
            for part in np.array_split(order, MINIBATCHES):
                logits, value = self.network(obs[part])
                policy = torch.distributions.Categorical(logits=logits)
                ratio = (policy.log_prob(actions[part]) - logprobs[part]).exp()
                advantage = (advantages[part] - advantages[part].mean()) / (
                    advantages[part].std() + 1e-8
                )
                policy_loss = torch.max(
                    -advantage * ratio, -advantage * ratio.clamp(1 - CLIP, 1 + CLIP)
                ).mean()
                near = values[part] + (value - values[part]).clamp(-CLIP, CLIP)
                value_loss = (
                    0.5
                    * torch.max((value - returns[part]) ** 2, (near - returns[part]) ** 2).mean()
                )
                loss = policy_loss - ENT_COEF * policy.entropy().mean() + VF_COEF * value_loss
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
                self.optimizer.step()


class StockGames(VectorEnv):
    """The library's batch for RLlib's runner."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(self) -> None:
        self.games = native_games()
        self.num_envs = GAMES
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(ACTIONS)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, GAMES
        )
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, GAMES)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        return self.games.reset()["rgb"], {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        seen, rewards, done, _ = self.games.step(np.asarray(actions))
        return seen["rgb"], rewards, done, np.zeros(GAMES, bool), {}


class StockModule(TorchRLModule, ValueFunctionAPI):
    """The plain network as an RLlib user would wrap it."""

    def setup(self) -> None:
        self.network = PlainNetwork()

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        logits, values = self.network(batch[Columns.OBS].float())
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.VF_PREDS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        return self.network(batch[Columns.OBS].float())[1]


def batched(num_steps: int, *more: str) -> Callable[[], int]:
    """Ours; work that returns env steps."""
    overrides = [
        f"env.options.num_games={GAMES}",
        f"ppo.num_steps={num_steps}",
        f"ppo.num_minibatches={MINIBATCHES}",
        *more,
    ]
    return _iterations(
        PPOConfig.from_experiment(Experiment.load("procgen-ppo", overrides)), num_steps
    )


def halved(num_steps: int) -> Callable[[], int]:
    """Ours with the stem that halves the picture."""
    return batched(num_steps, "network.options.stem_stride=2")


def passes(num_steps: int, **options: int) -> Callable[[], int]:
    """Only the passes of our network: a batch of the games for each step, and each minibatch
    forward and backward.
    """
    keep_freed_memory()
    ThreadTuner(None)
    network = networks.build("impala", (64, 64, 3), ACTIONS, **options)
    seen, part = (
        torch.randint(256, (n, 64, 64, 3), dtype=torch.uint8)
        for n in (GAMES, num_steps * GAMES // MINIBATCHES)
    )

    def answer(pictures: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=has_fast_bfloat16()):
            logits, values = network(pictures)
        return logits.sum() + values.sum()

    def work() -> int:
        with torch.inference_mode():
            for _ in range(num_steps):
                answer(seen)
        for _ in range(EPOCHS * MINIBATCHES):
            answer(part).backward()
        return num_steps * GAMES

    return work


def halved_passes(num_steps: int) -> Callable[[], int]:
    """The same of the network whose stem halves the picture."""
    return passes(num_steps, stem_stride=2)


def stock(num_steps: int) -> Callable[[], int]:
    """RLlib's own PPO."""
    register_env("coinrun", lambda _: StockGames())
    config = StockPPOConfig().environment("coinrun")
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=GAMES,
        rollout_fragment_length=num_steps,
        gym_env_vectorize_mode="vector_entry_point",
    )
    config.training(
        train_batch_size_per_learner=num_steps * GAMES,
        minibatch_size=num_steps * GAMES // MINIBATCHES,
        num_epochs=EPOCHS,
        lr=LEARNING_RATE,
        gamma=GAMMA,
        lambda_=GAE_LAMBDA,
        entropy_coeff=ENT_COEF,
        use_kl_loss=False,
        grad_clip=0.5,
        grad_clip_by="global_norm",
    )
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=StockModule)).debugging(
        seed=0, log_level="ERROR"
    )
    return _iterations(config, num_steps)


def _iterations(config: Any, num_steps: int) -> Callable[[], int]:
    algorithm = config.build_algo()

    def work() -> int:
        algorithm.train()
        return num_steps * GAMES

    return work


def loop(num_steps: int) -> Callable[[], int]:
    """CleanRL's way."""
    return Loop(num_steps).iterate


def tuned_loop(num_steps: int) -> Callable[[], int]:
    """CleanRL's way with procsnake's memory settings."""
    keep_freed_memory()
    return loop(num_steps)


PLAYERS: dict[str, Callable[[int], Callable[[], int]]] = {
    "procsnake": batched,
    "CleanRL-style": loop,
    "CleanRL-style, memory": tuned_loop,
    "RLlib": stock,
    "procsnake, stem_stride 2": halved,
    "network": passes,
    "network, stem_stride 2": halved_passes,
}


def serve(player: str, num_steps: int) -> None:
    """A player's process: one iteration for each line that comes in."""
    with running_ray(num_cpus=1):
        work = PLAYERS[player](num_steps)
        work()
        print("ready", flush=True)
        for _ in sys.stdin:
            cpu = time.process_time()
            wall = time.perf_counter()
            steps = work()
            print(
                json.dumps(
                    [steps / (time.process_time() - cpu), steps / (time.perf_counter() - wall)]
                ),
                flush=True,
            )


def compare(players: list[str], num_steps: int, rounds: int) -> dict[str, list[list[float]]]:
    """Rates (by CPU time, by wall time) of each player, a round after the other."""
    rates: dict[str, list[list[float]]] = {player: [] for player in players}
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.procgen",
        "--steps",
        str(num_steps),
        "--player",
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes: dict[str, Any] = {}
    try:
        for player in players:
            # One after the other: procsnake measures how many threads pay, and that depends on who
            # else is running.
            processes[player] = process = subprocess.Popen(  # type: ignore[call-overload]
                [*command, player], **pipes
            )
            _await(player, process, "ready")
            print(f"  {player} is ready", flush=True)
        for turn in range(rounds):
            for player, process in processes.items():
                process.stdin.write("go\n")
                process.stdin.flush()
                rates[player].append(json.loads(_await(player, process, "[")))
                by_cpu, by_wall = rates[player][-1]
                print(
                    f"  round {turn + 1} of {rounds}: {player} {by_wall:.0f} steps/s, {by_cpu:.0f}"
                    " per CPU-s",
                    flush=True,
                )
    finally:
        for process in processes.values():
            process.stdin.close()
            process.wait()
    return rates


def _await(player: str, process: Any, start: str) -> str:
    """The next line that begins with `start`; libraries print lines of their own."""
    for line in process.stdout:
        if line.startswith(start):
            return line
    raise SystemExit(f"the process of {player} ended; see its error above")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter rollouts and fewer rounds")
    parser.add_argument(
        "--players",
        nargs="+",
        choices=PLAYERS,
        default=list(PLAYERS),
        help="the first is compared with",
    )
    parser.add_argument("--player", choices=PLAYERS, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help="steps of a rollout (default: 128)")
    parser.add_argument("--rounds", type=int, help="turns of each player (default: 5)")
    options = parser.parse_args()
    num_steps = options.steps or (8 if options.quick else 128)
    rounds = options.rounds or (2 if options.quick else 5)
    if options.player:
        serve(options.player, options.steps)
        return
    print(
        "procsnake procgen",
        machine(),
        f"bf16 {has_fast_bfloat16()}, {num_steps} steps of {GAMES} games, {rounds} rounds",
    )
    rates = compare(options.players, num_steps, rounds)
    first = options.players[0]
    figures = {}
    for player, own in rates.items():
        by_cpu, by_wall = (statistics.median(column) for column in zip(*own, strict=True))
        ratio_cpu, ratio_wall = (
            statistics.median(
                ours[k] / theirs[k] for ours, theirs in zip(rates[first], own, strict=True)
            )
            for k in (0, 1)
        )
        spread = f"{min(r[1] for r in own):.0f} … {max(r[1] for r in own):.0f}"
        print(
            f"{player:24} {by_wall:7.0f} steps/s ({spread}) {by_cpu:7.0f} steps/CPU-s"
            f"   {first}: {ratio_wall:5.2f} × by wall, {ratio_cpu:5.2f} × by CPU"
        )
        figures[player] = {
            "per_s": by_wall,
            "per_cpu_s": by_cpu,
            "ratio": ratio_wall,
            "ratio_by_cpu": ratio_cpu,
        }
    tell(options, figures)


if __name__ == "__main__":
    main()
