"""The processes that share work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import active_children

import pytest

from agents.parallel import WorkerLostError, processes, spread
from tests.waiting import until

LENDS = """
import os, time
from agents.parallel import processes

if __name__ == "__main__":
    with processes(2) as pool:
        print(*{pool.submit(os.getpid).result() for _ in range(20)}, flush=True)
        time.sleep(60)
"""


def is_alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def double(number):
    if number < 0:
        raise ValueError(number)
    return 2 * number


def test_answers_come_in_order_and_what_is_raised_is_raised_here():
    told = []
    with processes(2) as pool:
        assert spread(pool, double, range(9), lambda *done: told.append(done)) == list(
            range(0, 18, 2)
        )
        with pytest.raises(ValueError, match="-1"):
            spread(pool, double, [1, -1, 2], lambda *_: None)
        assert spread(pool, double, [4], lambda *_: None) == [8]
    assert told == [(n, 9) for n in range(10)]


def kill_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_told_as_an_error_of_ours():
    with processes(2) as pool:
        for work in (kill_itself, double):
            with pytest.raises(WorkerLostError, match="part of the work was killed"):
                spread(pool, work, [0, 1, 2], lambda *_: None)


def take_long(started):
    started.touch()
    time.sleep(20)
    started.with_name("done").touch()


def test_an_exception_gives_up_what_they_are_at(tmp_path):
    started = tmp_path / "started"
    lent = []

    def interrupted():
        with processes(2) as pool:
            pool.submit(take_long, started)
            until(started.exists)
            lent.extend(child.pid for child in active_children())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert lent
    assert not any(map(is_alive, lent))
    assert not started.with_name("done").exists()


def test_nobody_is_left_when_the_process_that_lent_them_is_killed(tmp_path):
    script = tmp_path / "lends.py"
    script.write_text(LENDS)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as lender:
        lent = list(map(int, lender.stdout.readline().split()))
        assert lent
        assert all(map(is_alive, lent))
        lender.kill()
    until(lambda: not any(map(is_alive, lent)), seconds=30)
