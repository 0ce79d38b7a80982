"""Trains, or continues the run of an earlier start of the job: `python -m
procsnake.begin_or_continue CONFIG RUNS`.

An engine that lost the head starts the job again on another machine. RUNS belongs to the job and is
in a file system that outlasts machines, or an address such as s3://bucket/runs/NAME."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from envs.common.errors import ProcsnakeError
from train.runs.continuing.earlier import earlier_run, earlier_stored_run
from train.runs.stored.object_store import StoredFolder, is_address


def words(config: str, runs: str) -> list[str]:
    """Return the words of `procsnake train` for a job with this experiment and this folder or
    address of runs.
    """
    run: StoredFolder | Path | None
    if is_address(runs):
        run = earlier_stored_run(StoredFolder.at(runs))
    else:
        run = earlier_run(Path(runs))
    if run is None:
        return ["train", "--cluster", "auto", "--config", config, "--runs", runs]
    # The job's own earlier life wrote it, on another machine, and has ended.
    return ["train", "--cluster", "auto", "--resume", str(run), "--trust"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train or continue. Returns the exit code of `procsnake train`."""
    config, runs = sys.argv[1:] if arguments is None else arguments
    try:
        command = words(config, runs)
    except ProcsnakeError as error:
        print(f"procsnake: {error}", file=sys.stderr, flush=True)
        return 1
    import procsnake

    return procsnake.main(command)


if __name__ == "__main__":
    sys.exit(main())
