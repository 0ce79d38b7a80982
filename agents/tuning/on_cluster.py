"""Plays blocks of self-play as tasks of a Ray cluster, as `agents.tournament.on_cluster` plays single games.

Every machine of the cluster must have procsnake, and the player's files, such as its learned evaluation, at the same paths.
`ray.init` must have been called before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ray
from ray.exceptions import RayError, RayTaskError

from agents.tournament.workers import WorkerError, WorkerLostError
from agents.tuning.self_play import SelfPlay, block_file
from envs.common.errors import ProcsnakeError

_RETRIES = 2


def blocks_on_cluster(settings: SelfPlay, blocks: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield each block's number and its file, in the order in which they end. A block whose machine is lost is played anew.

    Raises what playing raises, `WorkerError` if a machine can't play, and `WorkerLostError` if a block's machines are lost
    again and again.
    """
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(block_file)
    pending = {task.remote(settings, block): block for block in blocks}
    try:
        while pending:
            done, _ = ray.wait(list(pending))
            yield pending[done[0]], ray.get(done[0])
            del pending[done[0]]
    except RayTaskError as error:
        if isinstance(error.cause, ProcsnakeError):
            raise error.cause from error
        raise WorkerError(f"a node of the cluster can't play: {' '.join(str(error.cause).split())[:300]}") from error
    except RayError as error:
        raise WorkerLostError(f"workers of the cluster were lost again and again ({type(error).__name__})") from error
    finally:
        for task_left in pending:
            ray.cancel(task_left, force=True)
