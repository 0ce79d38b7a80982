"""The levels that a game draws from. A level is a seed, 0..2^31-2; the same seed and options give
the same level.
"""

from __future__ import annotations

from typing import NamedTuple

from envs.common.errors import ConfigError

NUM_SEEDS = 2**31 - 1
"""The number of levels that exist."""


class Levels(NamedTuple):
    """The levels from `start` to `start + num - 1`."""

    start: int
    num: int

    @classmethod
    def parse(cls, text: str) -> Levels:
        """Read `"all"`, `"train:N"` (the first N levels), `"test:N"` (all but the first N) or
        `"start:num"`.

        Raises `ConfigError` for anything else, and for levels that don't exist.
        """
        start, _, num = str(text).partition(":")
        if text == "all":
            return cls(0, NUM_SEEDS)
        if not num.isdecimal() or not (start.isdecimal() or start in ("train", "test")):
            raise ConfigError(
                f"levels is {text!r}; it must be all, train:N, test:N or start:num, e.g. train:200"
                " or 500:1000"
            )
        count = int(num)
        if start == "train":
            levels = cls(0, count)
        elif start == "test":
            levels = cls(count, NUM_SEEDS - count)
        else:
            levels = cls(int(start), count)
        if levels.num < 1 or levels.start + levels.num > NUM_SEEDS:
            raise ConfigError(
                f"levels {text!r} are {levels.num} from {levels.start} on; there are 0 to"
                f" {NUM_SEEDS - 1}"
            )
        return levels

    def native(self) -> dict[str, int]:
        """Return the levels as options of the library, where a `num_levels` of 0 means all
        levels.
        """
        if self.num == NUM_SEEDS:
            return {"num_levels": 0, "start_level": 0}
        return {"num_levels": self.num, "start_level": self.start}


def require_disjoint(train: str, test: str) -> None:
    """Raise `ConfigError` if `test` has levels that are in `train`.

    `"all"` is accepted as the test of a subset, as in the benchmark's protocol: a random one of
    2^31 levels is hardly ever a trained one."""
    trained = Levels.parse(train)
    tested = Levels.parse(test)
    if tested.num == NUM_SEEDS and trained.num < NUM_SEEDS:
        return
    if trained.start < tested.start + tested.num and tested.start < trained.start + trained.num:
        hint = "train on fewer, e.g. train:200"
        if trained.start == 0 and trained.num < NUM_SEEDS:
            hint = f"try test:{trained.num}"
        raise ConfigError(
            f"levels {test!r} for testing overlap with levels {train!r} of training; {hint}"
        )
