"""Plays games as tasks of a Ray cluster, which take a fixture and return a game.

Of `agents`, only this file and `agents.search.tuning.on_cluster` know Ray. Every machine of the
cluster must have procsnake, and the players' bundles and files of rules at the same paths.
`ray.init` must have been called before."""

from __future__ import annotations

import functools
from collections.abc import Callable

import ray
from ray.exceptions import RayError, RayTaskError

from agents.agent import Agent
from agents.measure.tournament.game import BrokenOffError, Fixture, play_game, ready_players
from agents.measure.tournament.settings import Game, Match
from agents.measure.tournament.workers import GameWorkers, WorkerError, portable
from agents.parallel import WorkerLostError
from envs.common.strangers.printable import in_one_line

_LOOK_EVERY_S = 0.2


def cluster_cpus() -> int:
    """Return how many CPUs the cluster has, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cannot_play(error: RayTaskError) -> WorkerError:
    """Return the error for a node that failed for another reason than playing."""
    return WorkerError(f"a node of the cluster can't play: {in_one_line(error.cause)}")


class OnCluster(GameWorkers):
    """Plays games wherever the cluster has a free CPU. If a node or process is lost, its game is
    played again on another one.

    After `stop`, running games continue but nobody waits for them. They aren't cancelled,
    because Ray 2.60 ends the whole process if a task is cancelled just as it ends."""

    def __init__(self, match: Match, count: int, say: Callable[[str], None] | None = None) -> None:
        super().__init__(match, count, say)
        # The match goes to each node once. Ray's own retries would be silent.
        self._sent = ray.put(match)
        self._task = ray.remote(num_cpus=1, max_retries=0)(_play)
        self._stopped = False

    def _play_once(self, fixture: Fixture) -> Game:
        if self._stopped:
            raise BrokenOffError("the workers were stopped")
        game = self._task.remote(self._sent, fixture)
        try:
            while not ray.wait([game], timeout=_LOOK_EVERY_S)[0]:
                if self._stopped:
                    raise BrokenOffError("the workers were stopped")
            answer: Game | Exception = ray.get(game)
        except RayTaskError as error:
            # The agents' errors come back as answers. This one was raised before an agent played,
            # for example because procsnake is missing on the node.
            raise cannot_play(error) from error
        except RayError as error:
            raise WorkerLostError(
                f"a worker of the cluster was lost ({type(error).__name__})"
            ) from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        self._stopped = True


def _play(match: Match, fixture: Fixture) -> Game | Exception:
    """Play a game on a node. Returns the error if one is raised, so that Ray doesn't wrap it."""
    try:
        return play_game(match, fixture, _ready(match))
    except Exception as error:
        return portable(error)


@functools.lru_cache(maxsize=1)
def _ready(match: Match) -> list[Agent | str]:
    """The players, made once per process of a node, because Ray plays many games in a process."""
    return ready_players(match)
