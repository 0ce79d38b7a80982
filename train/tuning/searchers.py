"""Chooses a trial's values: at random, or by Optuna from the scores of earlier trials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from train.settings.sections import Tune
from train.tuning.space import Choice, Space, algorithm_of

_MOST_DRAWN = 10
"""Optuna draws its first trials by chance: a third of all, but no more than this, which is its own
default.
"""


def searcher_of(settings: Tune, spaces: Mapping[str, Space], *, seed: int) -> Any:
    """Return Ray Tune's search algorithm for `settings.searcher`.

    For random values, Ray Tune needs the search space. Optuna draws from `spaces` itself, so Ray
    Tune must get none."""
    if settings.searcher == "random":
        from ray.tune.search import BasicVariantGenerator

        # Population-based training pauses a trial for others, which have to be there by then. How
        # many of them run is limited by the processors that Ray has.
        most = 0 if settings.scheduler == "pbt" else settings.concurrent
        return BasicVariantGenerator(max_concurrent=most, random_state=seed)
    import optuna
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    # Each study would be told on stderr, and each trial besides.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    drawn = min(_MOST_DRAWN, max(2, settings.trials // 3))
    chooser = OptunaSearch(
        partial(suggest, spaces=spaces),
        metric=settings.metric,
        mode=settings.mode,
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=drawn),
    )
    return ConcurrencyLimiter(chooser, max_concurrent=settings.concurrent)


def suggest(trial: Any, *, spaces: Mapping[str, Space]) -> dict[str, Any]:
    """Return the values that an `optuna.Trial` is to try, by key.

    If `algorithm` is searched, only keys of the trial's algorithm are drawn, so that other
    algorithms' scores don't affect them."""
    values: dict[str, Any] = {}
    for key in sorted(spaces, key=lambda key: key != "algorithm"):
        if (
            "algorithm" not in values
            or (algorithm_of(key) or values["algorithm"]) == values["algorithm"]
        ):
            values[key] = _suggested(trial, key, spaces[key])
    return values


def _suggested(trial: Any, key: str, space: Space) -> Any:
    if isinstance(space, Choice):
        # By number, because Optuna warns of categories that are lists.
        return space.values[trial.suggest_categorical(key, range(len(space.values)))]
    if space.scale == "discount":
        return 1 - trial.suggest_float(key, 1 - space.high, 1 - space.low, log=True)
    log = space.scale == "log"
    if space.whole:
        return trial.suggest_int(key, int(space.low), int(space.high), log=log)
    return trial.suggest_float(key, space.low, space.high, log=log)
