"""Ray Tune's form of a range of discounts."""

from __future__ import annotations

from typing import Any


def discounts(low: float, high: float) -> Any:
    """Return Ray Tune's space of numbers from `low` to `high` where 1 − number is drawn evenly by
    its logarithm.
    """
    from ray import tune
    from ray.tune.search.sample import Domain, Sampler

    class Discounts(Sampler):
        """Draws 1 − number."""

        def sample(
            self, domain: Domain, config: Any = None, size: int = 1, random_state: Any = None
        ) -> Any:
            drawn = tune.loguniform(1 - high, 1 - low).sample(config, size, random_state)
            if size == 1:
                return 1 - drawn
            return [1 - number for number in drawn]

    domain = tune.uniform(low, high)
    domain.set_sampler(Discounts(), allow_override=True)
    return domain
