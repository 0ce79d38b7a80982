"""How fast a GPU is with the network of `procgen-ppo-lars`: `python -m tests.benchmarks.procgen_gpu
[--rounds N] [--json]`.

Each figure is the median over rounds of the milliseconds of one call: a step of learning (forward,
back, Adam, bfloat16) from a minibatch on the GPU, a decision for pictures that lie on the CPU (its
answers come back in one copy, and for comparison one by one), and the way of a whole rollout onto
the GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from agents.networks.impala import Impala
from tests.benchmarks.measure import arguments, machine, tell
from train.compute.to_host import to_host
from train.config import Experiment

MINIBATCH = 1024
ROLLOUT = 8192
"""Decisions; those of `procgen-ppo-lars`."""
VARIANTS = {"as shipped": {}, "width: 1": {"width": 1}, "stem_stride: 2": {"stem_stride": 2}}
GAMES = (64, 128, 256)
WARM_UP = 3


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    """Of one `call`, until the GPU has finished: the median."""
    taken = []
    for _ in range(WARM_UP + rounds):
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken.append(1e3 * (time.perf_counter() - began))
    return statistics.median(taken[WARM_UP:])


def step_of_learning(network: torch.nn.Module, pictures: torch.Tensor) -> Callable[[], object]:
    """A function that makes one step with any loss, which costs as much as that of PPO."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-4, eps=1e-5)

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            logits, values = network(pictures)
        optimizer.zero_grad()
        (torch.log_softmax(logits, -1)[:, 0].mean() + values.square().mean()).backward()
        optimizer.step()

    return step


def one_by_one(columns: dict[str, torch.Tensor]) -> object:
    """Copy each column by itself."""
    return {name: column.cpu() for name, column in columns.items()}


def decision(
    network: torch.nn.Module,
    pictures: torch.Tensor,
    bring: Callable[[dict[str, torch.Tensor]], object] = to_host,
) -> Callable[[], object]:
    """A function that answers pictures on the CPU with what PPO keeps of a decision there."""

    @torch.inference_mode()
    def decide() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            logits, values = network(pictures.to("cuda"))
        log_probabilities, actions = torch.log_softmax(logits, -1).max(-1)
        bring({"actions": actions, "logp": log_probabilities, "values": values})

    return decide


def measure(rounds: int) -> dict[str, float]:
    """Print the milliseconds of each work, and return them by name."""
    options = dict(Experiment.load("procgen-ppo-lars").network.options)
    rollout = torch.randint(0, 256, (ROLLOUT, 64, 64, 6), dtype=torch.uint8)
    minibatch = rollout[:MINIBATCH].to("cuda")
    measured = {}
    for name, changed in VARIANTS.items():
        network = Impala((64, 64, 6), 15, **{**options, **changed}).to("cuda")
        measured[f"learning, {name}"] = milliseconds(step_of_learning(network, minibatch), rounds)
        for games in GAMES if not changed else ():
            measured[f"deciding for {games} games"] = milliseconds(
                decision(network, rollout[:games].clone()), rounds
            )
            measured[f"... for {games} games, one by one"] = milliseconds(
                decision(network, rollout[:games].clone(), one_by_one), rounds
            )
    compiled = torch.compile(Impala((64, 64, 6), 15, **options).to("cuda"))
    measured["learning, torch.compile"] = milliseconds(
        step_of_learning(compiled, minibatch), rounds
    )
    measured["a rollout's way"] = milliseconds(lambda: rollout.to("cuda"), rounds)
    pinned = rollout.pin_memory()
    measured["a rollout's way, pinned"] = milliseconds(lambda: pinned.to("cuda"), rounds)
    for name, taken in measured.items():
        print(f"{name:32} {taken:7.2f} ms")
    return measured


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="calls of each kind (default: 15)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch finds no GPU here")
    print("procsnake on a GPU", machine(), torch.__version__, torch.cuda.get_device_name(0))
    tell(options, measure(options.rounds))


if __name__ == "__main__":
    main()
