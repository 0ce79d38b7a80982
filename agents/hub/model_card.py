"""The README of a bundle on the Hub: the metadata by which the Hub finds and compares models, and
the card's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.card import Card
from agents.hub.address import Address
from agents.hub.client import library
from agents.measure.evaluation.record import read_record, read_world_record

_TASK = "reinforcement-learning"
"""The Hub's own name for what these models do; it is both their task and their pipeline."""


def model_card(
    card: Card, address: Address, *, run: Path | None = None, license: str | None = None
) -> Any:
    """Return the `huggingface_hub.ModelCard` of a bundle that goes to `address`.

    Its results are the card's ratings and what was measured of the run in the folder `run`, with
    their intervals. `license` is the Hub's name of one; without it the metadata says nothing of a
    licence."""
    hub = library()
    world = str(card.environment["name"])
    data = hub.ModelCardData(
        library_name="procsnake",
        pipeline_tag=_TASK,
        license=license,
        tags=[
            _TASK,
            "onnx",
            *dict.fromkeys([world.partition("/")[0], world.replace("/", "-")]),
            *([card.algorithm] if card.algorithm else []),
        ],
        model_name=address.repository.partition("/")[2],
        # The library asks for a name wherever there are results, and refuses an empty list of them.
        eval_results=_results(hub, card, run) or None,
    )
    return hub.ModelCard(f"---\n{data.to_yaml()}\n---\n\n{card.readme(str(address))}")


def _results(hub: Any, card: Card, run: Path | None) -> Sequence[Any]:
    world = str(card.environment["name"])
    ratings = card.metrics.get("ratings")
    rated = ratings.items() if isinstance(ratings, dict) else ()
    found = [_result(hub, world, world, "rating", f"{name}", f"{said}") for name, said in rated]
    return found + (_measured(hub, world, run) if run else [])


def _measured(hub: Any, world: str, run: Path) -> list[Any]:
    """What `procsnake evaluate` left in the run's folder, if it measured this policy."""
    if record := read_record(run):
        board = record.board
        where = (
            f"{board['ruleset']} on {board['width']}×{board['height']}, map"
            f" {board['map']}{record.unusual}"
        )
        return [
            _result(
                hub,
                world,
                f"{world}: {where}",
                "win_rate",
                f"wins against {', '.join(score.opponents)}",
                f"{score.win_rate:.1%} of {score.games} games ({_percent(score.interval)})",
                config=where,
            )
            for score in record.scores
        ]
    if episodes := read_world_record(run):
        return [
            _result(
                hub,
                score.world,
                score.world,
                "mean_return",
                f"mean return of {score.player}",
                f"{score.mean_return:.3f} in {score.episodes} episodes ({score.interval[0]:.3f} to"
                f" {score.interval[1]:.3f})",
            )
            for score in episodes.scores
        ]
    return []


def _percent(interval: tuple[float, float]) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def _result(
    hub: Any,
    kind: str,
    dataset: str,
    metric: str,
    name: str,
    value: str,
    *,
    config: str | None = None,
) -> Any:
    return hub.EvalResult(
        task_type=_TASK,
        dataset_type=kind,
        dataset_name=dataset,
        dataset_config=config,
        metric_type=metric,
        metric_name=name,
        metric_value=value,
    )
