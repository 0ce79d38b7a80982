"""Plays blocks of self-play as tasks of a Ray cluster, as `agents.measure.tournament.on_cluster`
plays single games.

Every machine of the cluster must have procsnake, and the player's files, such as its learned
evaluation, at the same paths. `ray.init` must have been called before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from agents.measure.tournament.on_cluster import cannot_play, cluster_cpus
from agents.parallel import WorkerLostError
from agents.search.tuning.self_play import SelfPlay, block_file
from envs.common.errors import ProcsnakeError

_RETRIES = 2
_AHEAD = 2


def blocks_on_cluster(settings: SelfPlay, blocks: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield each block's number and its file, in the order in which they end. A block whose machine
    is lost is played anew.

    If this ends early, the blocks under way are played to their end, for nobody: Ray 2.60 ends the
    whole process if a task is cancelled at the moment at which it ends. So no more are under way
    than keep the cluster busy.

    Raises what playing raises, `WorkerError` if a machine can't play, and `WorkerLostError` if a
    block's machines are lost again and again."""
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(block_file)
    waiting = iter(blocks)
    pending: dict[Any, int] = {}
    try:
        while True:
            for block in islice(waiting, max(0, _AHEAD * cluster_cpus() - len(pending))):
                pending[task.remote(settings, block)] = block
            if not pending:
                return
            done, _ = ray.wait(list(pending))
            yield pending[done[0]], ray.get(done[0])
            del pending[done[0]]
    except RayTaskError as error:
        if isinstance(error.cause, ProcsnakeError):
            raise error.cause from error
        raise cannot_play(error) from error
    except RayError as error:
        raise WorkerLostError(
            f"workers of the cluster were lost repeatedly ({type(error).__name__})"
        ) from error
