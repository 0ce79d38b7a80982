"""Plays games as tasks of a Ray cluster, which take a fixture and return a game.

Of `agents`, only this file and `agents.tuning.on_cluster` know Ray. Every machine of the cluster must have procsnake, and the
players' bundles and files of rules at the same paths. `ray.init` must have been called before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from agents.agent import Agent
from agents.tournament.game import BrokenOffError, Fixture, play_game, ready_players
from agents.tournament.settings import Game, Match
from agents.tournament.workers import GameWorkers, WorkerError, WorkerLostError, portable


def cluster_cpus() -> int:
    """Return how many CPUs the cluster has, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


class OnCluster(GameWorkers):
    """Plays games wherever the cluster has a free CPU. If a node or process is lost, its game is played anew on another one."""

    def __init__(self, match: Match, count: int, say: Callable[[str], None] | None = None) -> None:
        super().__init__(match, count, say)
        # The match goes to each node once. Ray's own retries would be silent.
        self._sent, self._task = ray.put(match), ray.remote(num_cpus=1, max_retries=0)(_play)
        self._lock, self._stopped = threading.Lock(), False
        self._running: set[Any] = set()

    def _play_once(self, fixture: Fixture) -> Game:
        with self._lock:
            if self._stopped:
                raise BrokenOffError("the workers were stopped")
            game = self._task.remote(self._sent, fixture)
            self._running.add(game)
        try:
            answer: Game | Exception = ray.get(game)
        except RayTaskError as error:
            # The agents' errors come back as answers: this one was raised before, as where procsnake is missing.
            raise WorkerError(f"a node of the cluster can't play: {' '.join(str(error.cause).split())[:300]}") from error
        except RayError as error:
            if self._stopped:
                raise BrokenOffError("its task was cancelled") from error
            raise WorkerLostError(f"a worker of the cluster was lost ({type(error).__name__})") from error
        finally:
            with self._lock:
                self._running.discard(game)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for game in running:
            ray.cancel(game, force=True)


def _play(match: Match, fixture: Fixture) -> Game | Exception:
    """A game on a node, or what was raised."""
    try:
        return play_game(match, fixture, _ready(match))
    except Exception as error:
        return portable(error)


@functools.lru_cache(maxsize=1)
def _ready(match: Match) -> list[Agent | str]:
    """The players, once per process of a node: Ray plays many games in one."""
    return ready_players(match)
