"""Makes the documentation's pictures: `make pictures`, or `python docs/pictures/make.py NAME …`.

Only those are made whose code or data has changed since, by the hashes in `made.json`; named ones
are always made."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
MADE = HERE / "made.json"
_LOOK = ("envs/common/palette.py",)
_CHART = ("docs/pictures/draw.py", "agents/measure/pages/figure.py", *_LOOK)
_REPORT = ("docs/pictures/screens.py", "agents/measure/pages/static/*", *_LOOK)
_RUN_REPORT = (*_REPORT, "train/runs/report/*.py")
_VIEWER = ("docs/pictures/screens.py", "serve/browser/viewer/static/*.css", *_LOOK)
_BOARD = ("docs/pictures/boards.py", *_LOOK)
_DIAGRAM = ("docs/pictures/diagrams.py", *_LOOK)
_FIRST_SNAKE = (*_CHART, "docs/pictures/data/first-snake/*")
_CURVES = (*_CHART, "docs/pictures/data/compare/benchmark.json")
SOURCES: dict[str, tuple[str, ...]] = {
    "analysis.png": _VIEWER,
    "analysis-dark.png": _VIEWER,
    "answer.svg": _DIAGRAM,
    "architecture.svg": _DIAGRAM,
    "compare.png": _CURVES,
    "curves-apex.png": _CURVES,
    "curves-dqn.png": _CURVES,
    "curves-mxnet-dqn.png": _CURVES,
    "curves-ppo.png": _CURVES,
    "first-snake-causes.png": _FIRST_SNAKE,
    "first-snake-learning.png": _FIRST_SNAKE,
    "first-snake-length.png": _FIRST_SNAKE,
    "first-snake-rates.png": _FIRST_SNAKE,
    "first-snake-speed.png": _FIRST_SNAKE,
    "first-snake-wins.png": _FIRST_SNAKE,
    "games.png": _VIEWER,
    "heuristics.png": _BOARD,
    "house.svg": _DIAGRAM,
    "maps.png": _BOARD,
    "planes.png": _BOARD,
    "play.png": _VIEWER,
    "procgen.png": _BOARD,
    "procgen-levels.png": _BOARD,
    "procgen-modes.png": _BOARD,
    "procgen-scores.png": (
        "docs/pictures/procgen_scores.py",
        "docs/pictures/data/procgen/without-bfloat16/sixteen.json",
        *_LOOK,
    ),
    "report.png": _RUN_REPORT,
    "report-dark.png": _RUN_REPORT,
    "report-phone.png": _RUN_REPORT,
    "rulesets.png": _BOARD,
    "snake-curves.png": (
        "docs/pictures/snake_curves.py",
        "docs/pictures/data/snakes/*",
        "agents/measure/pages/figure.py",
        *_LOOK,
    ),
    "sprt.png": (*_REPORT, "docs/pictures/data/sprt.db"),
    "tournament.png": (*_REPORT, "docs/pictures/data/tournament.db"),
    "viewer.png": _VIEWER,
    "viewer-dark.png": _VIEWER,
    "viewer-phone.png": _VIEWER,
    "win-probability.png": (*_CHART, "agents/measure/analysis/win_probability.json"),
}
"""By picture: the files whose text or data it shows, as patterns."""


def source_hash(name: str) -> str:
    """Return the hash of all that a picture is made of."""
    digest = hashlib.sha256()
    for pattern in SOURCES[name]:
        paths = sorted(REPOSITORY.glob(pattern))
        if not paths:
            raise FileNotFoundError(f"{name} is made of {pattern}, which is not there")
        for path in paths:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def stale() -> list[str]:
    """Return the pictures that are missing, or whose code or data has changed."""
    made = json.loads(MADE.read_text(encoding="utf-8")) if MADE.exists() else {}
    return [
        name
        for name in SOURCES
        if made.get(name) != source_hash(name) or not (HERE / name).is_file()
    ]


def main(names: list[str]) -> None:
    """Make the pictures `names`, or all stale ones."""
    import boards
    import diagrams
    import draw
    import procgen_scores
    import screens
    import snake_curves

    names = names or stale()
    makers = {
        **dict(draw.makers()),
        **boards.MAKERS,
        **diagrams.MAKERS,
        **procgen_scores.MAKERS,
        **snake_curves.MAKERS,
    }
    for name in names:
        if name in makers:
            makers[name](HERE / name)
            print(f"made: {name}", flush=True)
    taken = screens.take([name for name in names if name not in makers])
    missing = set(stale()) - {*names, *taken}
    made = {name: source_hash(name) for name in SOURCES if name not in missing}
    MADE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
