"""Draws the scores of `data/procgen/benchmark.json`, which `procsnake benchmark procgen` wrote. Its
`measured` was added: command, machine, load and processor time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envs.common.palette import ROLES, TEAL

RESULT = Path(__file__).parent / "data" / "procgen" / "benchmark.json"


def scores_of(game: str) -> list[dict[str, Any]]:
    """The game's scores on unseen levels, random play's last."""
    scores = json.loads(RESULT.read_text(encoding="utf-8"))["scores"]
    own = [score for score in scores if (score["game"], score["split"]) == (game, "test")]
    return sorted(own, key=lambda score: score["player"] == "random")


def procgen_scores(path: Path) -> None:
    """Draw each seed's return on unseen levels with its interval, beside random play."""
    from matplotlib.figure import Figure

    games = json.loads(RESULT.read_text(encoding="utf-8"))["protocol"]["games"]
    figure = Figure(figsize=(8, 2.6), layout="constrained")
    for axes, game in zip(figure.subplots(1, len(games)), games, strict=True):
        scores = scores_of(game)
        for place, score in enumerate(scores):
            low, high = score["interval"]
            ends = [[score["mean_return"] - low], [high - score["mean_return"]]]
            is_random = score["player"] == "random"
            colour = ROLES["muted"][0] if is_random else TEAL
            axes.errorbar(
                score["mean_return"], -place, xerr=ends, fmt="o", color=colour, elinewidth=3
            )
        names = [f"seed {seed}" for seed in range(len(scores) - 1)]
        axes.set_yticks([-place for place in range(len(scores))], [*names, "random"])
        axes.set_title(game.capitalize(), loc="left", fontweight="bold")
        axes.set_xlabel("return on unseen levels", color=ROLES["muted"][0])
        axes.set_xlim(left=-0.2)
        axes.set_ylim(0.5 - len(scores), 0.5)
        axes.grid(axis="x", color=ROLES["line"][0])
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=140, metadata={"Software": None})


MAKERS = {"procgen-scores.png": procgen_scores}
