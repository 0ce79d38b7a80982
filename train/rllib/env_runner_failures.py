"""Handles env runners that fail. A run continues while some env runners play, and ends with one
clear error if none does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from envs.common.errors import ProcsnakeError
from envs.common.strangers.printable import in_one_line
from envs.common.users_code import place_of

TOLERATED_FAILURES = 2
"""How often each env runner may fail in a row while none brings any experience: the default of
RLlib's `num_consecutive_env_runner_failures_tolerance`.
"""
_LOGGER = logging.getLogger(__name__)


class EnvRunnerError(ProcsnakeError):
    """The world or its env runner fails repeatedly, even after restarts."""


class RestartDelayedError(ProcsnakeError):
    """An env runner that failed waits for its restart."""


class LostExperienceError(ProcsnakeError):
    """A learner has nothing to learn from, because its experience was lost."""


class Failures:
    """Counts how often env runners failed since one of them last brought experience.

    Each may fail `in_a_row` times. Unless it `tolerates` failures, the first one is one too
    many."""

    def __init__(
        self,
        world: str,
        num_env_runners: int,
        *,
        tolerates: bool = True,
        in_a_row: int = TOLERATED_FAILURES,
    ) -> None:
        self.world = world
        self.tolerates = tolerates
        self._most = (in_a_row + 1) * num_env_runners if tolerates else 1
        self._count = 0
        self._cause = ""

    def forget(self) -> None:
        """Forget all failures, because an env runner has brought experience."""
        self._count = 0
        self._cause = ""

    def note(self, error: Exception) -> None:
        """Record that an env runner failed with `error`. Raises `EnvRunnerError` after too many
        failures.
        """
        self._count += 1
        _LOGGER.warning("an env runner failed: %s", cause_of(error))
        # What is known of a process that died says less than what was raised in one that lived.
        if getattr(error, "cause", None) is not None or not self._cause:
            self._cause = cause_of(error)
        if self._count >= self._most:
            times = f"{self._count} times in a row" if self._count > 1 else "once"
            raise EnvRunnerError(
                _message(self.world, f"its env runners did so {times}", self._cause)
            )

    def give_up(self, reason: str) -> NoReturn:
        """Raise `EnvRunnerError`, because no env runner is left and, for this `reason`, none will
        come back.
        """
        what = f"no env runner is left, and {reason}"
        raise EnvRunnerError(_message(self.world, what, self._cause or "an unknown cause"))


@contextmanager
def clear_errors(world: str) -> Iterator[None]:
    """Turn exceptions from playing `world` in this process into `EnvRunnerError`; a
    `ProcsnakeError` passes unchanged.
    """
    try:
        yield
    except ProcsnakeError:
        raise
    except Exception as error:
        raise EnvRunnerError(
            _message(world, "nothing could be started", cause_of(error))
        ) from error


def cause_of(error: Exception) -> str:
    """Return type, message and place of `error`, or of the error in another process that caused it
    (`RayTaskError`).
    """
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {in_one_line(cause)}{place_of(error)}"


def _message(world: str, what: str, cause: str) -> str:
    return f"playing the world {world!r} failed: {what}, with {cause}"
