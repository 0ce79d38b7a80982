"""Draws the game of a referee in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envs.common.terminal import columns, draw_all, wants_color

TURN_S = 0.12


def watch(referee: Any, delay: float | Callable[[], float]) -> None:
    """Draw the game of a `Referee` as it is played, with a `delay` per turn as in `draw_all`, and
    print the result.
    """
    from envs.battlesnake.render.ansi import draw

    def picture(frame: Any) -> str:
        names = referee.names
        looks = referee.customizations
        return draw(
            frame.state, 0, names, color=wants_color(), columns=columns(), customizations=looks
        )

    draw_all(map(picture, referee.play()), delay)
    tell_ending(referee)


def tell_ending(referee: Any) -> None:
    """Print which snakes' answers failed, and who won."""
    for slot, failures in sorted(referee.failures.items()):
        moves = f"{len(failures)} move" + "s" * (len(failures) > 1)
        print(
            f"{referee.names[slot]}: {moves} failed, so the last one was played again. The first:"
            f" {failures[0]}"
        )
    result = referee.result
    alone = "the game ended" if len(referee.seats) == 1 else "a draw"
    print(
        f"{alone if result.winner is None else f'{result.winner} wins'} after {result.turns} turns"
    )
