"""Ctrl-C while Numba compiles, when `KeyboardInterrupt` would be lost in LLVM's callbacks."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, sys
from numba.core import event
from envs.battlesnake.jit import decorators as kernels

class Interrupted(event.Listener):
    def on_start(self, event):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    def on_end(self, event):
        pass

listener = Interrupted()
event.register("numba:compile", listener)

@kernels.kernel
def inner(x):
    return x + 1

@kernels.kernel
def outer(x):
    return inner(x) + inner(2.5)

try:
    outer(1)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
event.unregister("numba:compile", listener)
print(kernels._INTERRUPTION._depth)
print(outer(1))
"""


def test_it_is_acknowledged_at_once_and_interrupts_when_the_function_is_compiled():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.splitlines() == ["interrupted True", "0", "5.5"], done.stderr
    assert "stopping" in done.stderr
    assert "Traceback" not in done.stderr
