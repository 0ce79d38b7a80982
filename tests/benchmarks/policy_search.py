"""Does a policy help alpha-beta? `python -m tests.benchmarks.policy_search [POLICY] [--snakes N]
[--games N] [--nodes N]`.

POLICY+alphabeta in one seat, alphabeta in the others, 11×11, standard rules, the same nodes a move
for all; seeded, so that the same command plays the same games. A share of the games is what it
would win if the policy made no difference."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import agents
from agents.measure.evaluation import play_games, wilson_interval
from agents.search import AlphaBeta
from tests.benchmarks.measure import arguments, machine

_AT_ONCE = 20
_MAX_TURNS = 3000


def main() -> None:
    parser = arguments(__doc__, with_json=False)
    parser.add_argument(
        "policy",
        nargs="?",
        default="champion-standard",
        help="run folder, bundle or champion (%(default)s)",
    )
    parser.add_argument(
        "--snakes", type=int, default=4, help="snakes a game (default: %(default)s)"
    )
    parser.add_argument(
        "--games", type=int, default=400, help="played by twenties (default: %(default)s)"
    )
    parser.add_argument(
        "--nodes", type=int, default=1000, help="nodes a move (default: %(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the first 20 games; the next 20 have the next (default: 0)",
    )
    options = parser.parse_args()
    print("procsnake policy + search", machine())
    print(f"a share of the games is {1 / options.snakes:.1%}", flush=True)
    advised = agents.make(f"{options.policy}+alphabeta", nodes=options.nodes)
    alone = AlphaBeta(nodes=options.nodes)
    seats = [advised, *[alone] * (options.snakes - 1)]

    def part(seed: int) -> tuple[int, int]:
        results = play_games(seats, num_games=_AT_ONCE, seed=seed, max_turns=_MAX_TURNS)
        return int(results.wins[0]), results.draws

    parts = -(-options.games // _AT_ONCE)
    games = won = drawn = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for wins, draws in pool.map(part, range(options.seed, options.seed + parts)):
            games = games + _AT_ONCE
            won = won + wins
            drawn = drawn + draws
            low, high = wilson_interval(won, games)
            print(
                f"{games:>5} games: won {won / games:.1%} ({low:.1%} to {high:.1%}), {drawn} drawn",
                flush=True,
            )


if __name__ == "__main__":
    main()
