"""What every test leaves as it found it, and a browser for those that look at pages."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import launched

pytest_plugins = ["tests.pace", "tests.skips"]

# Ray's workers are nice by 15: beside other tests they would get a hundredth of the machine, and
# take minutes to their first rollout.
os.environ.update(RAY_worker_niceness="0")

# Where compiled modules are not kept, each of the processes that tests start compiles all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What collecting makes stays until the end: looking through it for garbage took a fifth of the time
# of collecting, and more in each search of a test.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# RLlib inspects the stack for each connector that it makes, and needs nothing but the frames. To
# add their source lines, Python searches all imported modules: half of the time of its tests.
inspect.stack = functools.partial(inspect.stack, 0)


# By default Hypothesis fails a test whose values are drawn slowly, as they are beside other work.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


# What a shell starts in the background ignores Ctrl-C, and what nohup starts ignores a closed
# terminal. So would all that the tests start, interrupt and hang up.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """`procsnake serve` has all loggers write to standard error, which in a test is closed when the
    test has ended.
    """
    root = logging.getLogger()
    before = list(root.handlers)
    level = root.level
    yield
    for handler in [
        handler
        for handler in root.handlers
        if handler not in before and type(handler) is logging.StreamHandler
    ]:
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser: the pages of the arena and the reports are looked at in it."""
    # Not for the session: while Playwright is open, no other test could run an event loop.
    with launched() as browser:
        yield browser
