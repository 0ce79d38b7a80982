"""Draws a referee's game in the terminal as it is played, and tells who won."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from envs.common.command_line import columns, draw_all, wants_color

if TYPE_CHECKING:
    import numpy as np

    from agents.evaluation.episodes import ShownEpisode


def watch(referee: Any, delay: float) -> None:
    """Draw the game of a `Referee` as it is played, `delay` seconds per turn, and tell how it ended."""
    from envs.battlesnake.render.ansi import draw

    def picture(frame: Any) -> str:
        names, looks = referee.names, referee.customizations
        return draw(frame.state, 0, names, color=wants_color(), columns=columns(), customizations=looks)

    draw_all(map(picture, referee.play()), delay)
    tell_ending(referee)


def watch_episode(episode: ShownEpisode, delay: float, *, keep: bool) -> list[np.ndarray]:
    """Draw an episode as it is played, `delay` seconds per step. Returns its pictures if they are to be kept."""
    from envs.pictures import as_text

    kept: list[np.ndarray] = []

    def drawn() -> Iterator[str]:
        for picture in episode.pictures():
            if keep:
                kept.append(picture)
            yield as_text(picture, color=wants_color(), columns=columns())

    draw_all(drawn(), delay)
    return kept


def tell_ending(referee: Any) -> None:
    """Print which snakes' answers failed, and who won."""
    for slot, failures in sorted(referee.failures.items()):
        moves = f"{len(failures)} move" + "s" * (len(failures) > 1)
        print(f"{referee.names[slot]}: {moves} failed, so the last one was played again. The first: {failures[0]}")
    result = referee.result
    print(f"{'a draw' if result.winner is None else f'{result.winner} wins'} after {result.turns} turns")
