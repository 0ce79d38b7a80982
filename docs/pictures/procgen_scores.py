"""Draws the scores of `data/procgen/without-bfloat16/sixteen.json`, which `procsnake benchmark
procgen` wrote."""

from __future__ import annotations

import json
from pathlib import Path

from envs.common.palette import ROLES, TEAL
from envs.procgen.scores import PPO, normalised

RESULT = Path(__file__).parent / "data" / "procgen" / "without-bfloat16" / "sixteen.json"
_MUTED = ROLES["muted"][0]


def procgen_scores(path: Path) -> None:
    """Draw each game's normalised score on unseen levels, beside random play and OpenAI's PPO."""
    from matplotlib.figure import Figure

    scores = json.loads(RESULT.read_text(encoding="utf-8"))["scores"]
    unseen = [score for score in scores if score["split"] == "test"]
    own = [score for score in unseen if score["player"] != "random"]
    own.sort(key=lambda score: score["normalised"])
    random = {score["game"]: score["normalised"] for score in unseen if score["player"] == "random"}
    games = [score["game"] for score in own]

    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    published = [float(normalised(PPO[game].unseen_8m, game)) for game in games]
    axes.scatter(
        published,
        games,
        marker="D",
        s=22,
        facecolor="none",
        edgecolor=_MUTED,
        label="OpenAI's PPO, 8 million decisions",
    )
    axes.scatter([random[game] for game in games], games, s=22, color=_MUTED, label="random play")
    for place, score in enumerate(own):
        low, high = normalised(score["interval"], score["game"])
        axes.plot([low, high], [place, place], color=TEAL, linewidth=3)
    middles = [score["normalised"] for score in own]
    axes.scatter(middles, games, s=36, color=TEAL, zorder=3, label="procsnake, 0.5 million")
    axes.set_xlabel("normalised return on unseen levels", color=_MUTED)
    axes.grid(axis="x", color=ROLES["line"][0])
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    figure.savefig(path, dpi=140, metadata={"Software": None})


MAKERS = {"procgen-scores.png": procgen_scores}
