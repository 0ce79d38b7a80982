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
    """Return the `huggingface_hub.ModelCard` of a bundle for `address`.

    Its results are the card's ratings and the measurements of the run in the folder `run`, with
    their intervals. `license` is a licence by its name on the Hub; without it the metadata names
    none."""
    hub = library()
    world = str(card.environment["name"])
    tags = [_TASK, "onnx", world.replace("/", "-")]
    family = world.partition("/")[0]
    if family not in tags:
        tags.insert(2, family)
    if card.algorithm:
        tags.append(card.algorithm)
    data = hub.ModelCardData(
        library_name="procsnake",
        pipeline_tag=_TASK,
        license=license,
        tags=tags,
        model_name=address.repository.partition("/")[2],
        # The library asks for a name wherever there are results, and refuses an empty list of them.
        eval_results=_results(hub, card, run) or None,
    )
    return hub.ModelCard(f"---\n{data.to_yaml()}\n---\n\n{card.readme(str(address))}")


def _results(hub: Any, card: Card, run: Path | None) -> Sequence[Any]:
    """Return the card's ratings, and what was measured of the run."""
    world = str(card.environment["name"])
    results = []
    ratings = card.metrics.get("ratings")
    if isinstance(ratings, dict):
        for name, rating in ratings.items():
            results.append(_result(hub, world, world, "rating", str(name), str(rating)))
    if run:
        results += _measurements(hub, world, run)
    return results


def _measurements(hub: Any, world: str, run: Path) -> list[Any]:
    """Return what `procsnake evaluate` left in the run's folder, if it measured this policy."""
    if record := read_record(run):
        board = record.board
        size = f"{board['width']}×{board['height']}"
        where = f"{board['ruleset']} on {size}, map {board['map']}{record.unusual}"
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
    results = []
    if episodes := read_world_record(run):
        for score in episodes.scores:
            low, high = score.interval
            value = (
                f"{score.mean_return:.3f} in {score.episodes} episodes ({low:.3f} to {high:.3f})"
            )
            name = f"mean return of {score.player}"
            results.append(_result(hub, score.world, score.world, "mean_return", name, value))
    return results


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
