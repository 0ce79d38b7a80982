"""How the kernels of this world are compiled: with `@kernel` in place of Numba's `njit`.

Compiled kernels are kept on disk (`cache.py`).

Kernels release the GIL, so several threads may step different boards of one state.
`PROCSNAKE_BOUNDSCHECK=1` compiles them with bounds checks; `NUMBA_DISABLE_JIT=1` leaves them plain
Python."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.dispatcher import Dispatcher

from envs.battlesnake.jit.cache import BOUNDSCHECK, cache_folder, cache_of, root
from envs.battlesnake.jit.estimate import Estimate

_ANNOUNCED = "PROCSNAKE_COMPILING_ANNOUNCED"


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with Numba, and keep the result in the cache folder of the function's package, if
    that can be written.
    """
    compiled: Callable[..., Any] = numba.njit(nogil=True, boundscheck=BOUNDSCHECK, **options)(
        function
    )
    if isinstance(compiled, Dispatcher) and (cache := cache_of(function)) is not None:
        compiled._cache = cache  # type: ignore[attr-defined]
    return compiled


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` in nopython mode: inlined into its callers, without the GIL, and cached on
    disk.

    Numba's reference counting is off, because counting the arrays of a `Boards` in and out of every
    small function took most of the time of a step (measured: a call of `is_certain_death` took 100
    ns with it and 2 ns without). Therefore kernels can't allocate arrays; `allocating_kernel` is
    for those that must."""
    return _compiled(function, forceinline=True, _nrt=False)


def allocating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` as `kernel` does, but with reference counting, so that it may allocate
    scratch arrays.

    It is meant for work that is done once per game, such as the set-up.
    """
    return _compiled(function, _nrt=True)


def compiled_for(
    function: Callable[..., Any], *arguments: Any, constants: tuple[int, ...] = ()
) -> Callable[..., Any]:
    """Return the kernel's machine code for arguments of exactly these types. It must be called with
    no other types.

    Numba looks up the type of every array at every call. For a `Boards` this takes 6 µs, longer
    than a turn of the game. `constants` fixes the values of the last parameters, so that loops of
    known length become vector instructions."""
    if not isinstance(function, Dispatcher):
        return function
    types = (*map(numba.typeof, arguments), *map(numba.types.literal, constants))
    function.compile(types)
    return function.get_overload(types)


class _Announcer(event.Listener):
    """Says why the first call takes a while. Kernels from the cache cause no such event."""

    def on_start(self, event: event.Event) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        # In the environment, so that the processes that this one starts don't say it again.
        if module.startswith("envs.battlesnake") and not os.environ.get(_ANNOUNCED):
            os.environ[_ANNOUNCED] = "1"
            _ESTIMATE.is_wanted = True
            print(
                f"procsnake: {_announcement(cache_folder('envs'))} …", file=sys.stderr, flush=True
            )

    def on_end(self, event: event.Event) -> None:
        pass


def _announcement(folder: Path | None) -> str:
    """What is compiled and how long it takes; the whole engine is announced once for each cache
    folder.
    """
    if folder is None:
        return (
            f"compiling the game engine; this takes about a minute each time, because {root()}"
            " can't be written"
        )
    try:
        (folder / "announced").touch(exist_ok=False)
    except OSError:
        return "compiling a part of the game engine that was not needed before"
    return "compiling the game engine; this takes about a minute, once"


class _Interruption(event.Listener):
    """Holds Ctrl-C back until a function is compiled.

    Numba calls back from LLVM's C code, where `KeyboardInterrupt` is lost: half the engine would
    stay without code, and the failure would look like another."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_wanted = False
        self._before: Any = None

    def on_start(self, event: event.Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth == 0 and signal.getsignal(signal.SIGINT) is not None:
            self._before = signal.signal(signal.SIGINT, self._ask)
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._before is not None and (self._depth == 0 or self._is_wanted):
            before = self._before
            self._before = None
            signal.signal(signal.SIGINT, before)
            if self._is_wanted:
                self._is_wanted = False
                signal.raise_signal(signal.SIGINT)

    def _ask(self, number: int, frame: Any) -> None:
        self._is_wanted = True
        print("procsnake: stopping, once this function is compiled …", file=sys.stderr, flush=True)


_ESTIMATE = Estimate()
event.register("numba:compile", _Announcer())
event.register("numba:compile", _ESTIMATE)
_INTERRUPTION = _Interruption()
event.register("numba:compile", _INTERRUPTION)
