"""Stands in for processes of env runners: calls are made in this process, at once. RLlib's own
manager of such processes asks them, and takes those that fail out of service.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.exceptions import RayTaskError

from train.rllib.batched_algorithm import _EnvRunnerGroup


class Answer:
    """What a call returned or raised, `seconds` after it was made."""

    def __init__(self, call: Callable[[], Any], seconds: float) -> None:
        self.seconds = seconds
        self._value: Any = None
        self._error: RayTaskError | None = None
        try:
            self._value = call()
        except Exception as error:
            self._error = RayTaskError("apply", str(error), error, ip="127.0.0.1")

    def get(self) -> Any:
        if self._error:
            raise self._error
        return self._value


class Handle:
    """Of a process that plays with `runner`, and takes `seconds` for each call."""

    def __init__(self, runner: Any, *, seconds: float = 0.0) -> None:
        self.runner = runner
        self.seconds = seconds
        self.apply = SimpleNamespace(remote=self._apply)

    def _apply(self, func: Callable[..., Any], **arguments: Any) -> Answer:
        return Answer(lambda: func(self.runner, **arguments), self.seconds)


class Calls:
    """How `ray` waits for such processes: not at all, but it notes how long it would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timeouts: list[float | None] = []
        self._get = ray.get
        monkeypatch.setattr(ray, "put", lambda value: value)
        monkeypatch.setattr(ray, "get", self._value_of)
        monkeypatch.setattr(ray, "wait", self._wait)

    def _value_of(self, asked: Any, **arguments: Any) -> Any:
        if isinstance(asked, ray.ObjectRef):
            return self._get(asked, **arguments)
        return asked.get() if isinstance(asked, Answer) else asked

    def _wait(
        self, answers: list[Answer], *, num_returns: int, timeout: float | None, fetch_local: bool
    ) -> tuple[list[Answer], list[Answer]]:
        self.timeouts.append(timeout)
        ready = [one for one in answers if timeout is None or one.seconds <= timeout]
        return ready, [one for one in answers if one not in ready]


def group_of(config: Any, *handles: Handle) -> Any:
    """RLlib's group of env runners, of this configuration and with these processes."""
    group: Any = _EnvRunnerGroup(config=config, _setup=False)
    group._local_env_runner = None
    group._worker_manager.add_actors(list(handles))
    return group
