"""Who finds the tactics suite's moves, in 50 ms each: `python -m tests.benchmarks.tactics [AGENT…]
[--json]`.

131 positions of `tests/agents/tactics`, each with one right move that trying everything confirms. A
policy, or whatever looks at the board and moves, takes no more time than it needs. Policies made
for 11×11 boards skip those that they can't see."""

from __future__ import annotations

import time

import agents
from agents.agent import Agent
from agents.card import BundleError
from tests.agents.tactics.test_tactics import PUZZLES
from tests.benchmarks.measure import arguments, machine, tell

THINKING_S = 0.05
DEFAULT = ("random", "greedy", "flood", "classics", *agents.champions.snakes(), "mcts", "alphabeta")


def solved(agent: Agent) -> dict[str, tuple[int, int]]:
    """By theme: how many were solved, of how many that the agent can play."""
    found: dict[str, tuple[int, int]] = {}
    for puzzle in PUZZLES:
        # Compiling, and a core that others took, are no thoughts of the agent's.
        try:
            agent.act(puzzle.state(), 0)
            move = agent.act(puzzle.state(), 0, time.monotonic() + THINKING_S).move
        except BundleError:
            continue
        right, tried = found.get(puzzle.theme, (0, 0))
        found[puzzle.theme] = right + (move == puzzle.move), tried + 1
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "agents",
        nargs="*",
        default=DEFAULT,
        help="as `agents.make` takes them (default: all built-in ones)",
    )
    options = parser.parse_args()
    print("procsnake tactics", machine())
    figures = {}
    for name in options.agents:
        searches = name.rpartition("+")[2] in ("alphabeta", "mcts")
        found = solved(agents.make(name, **({"margin_ms": 0.0} if searches else {})))
        right, tried = (sum(column) for column in zip(*found.values(), strict=True))
        figures[name] = right / tried
        themes = ", ".join(f"{theme} {r}/{n}" for theme, (r, n) in found.items())
        print(f"{name:<24} {right:>3} of {tried:<3} {right / tried:>7.1%}   {themes}", flush=True)
    tell(options, figures)


if __name__ == "__main__":
    main()
