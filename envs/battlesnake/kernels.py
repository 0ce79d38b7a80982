"""How the kernels of this world are compiled: with `@kernel` in place of Numba's `njit`.

Numba's on-disk cache checks the file that holds a kernel, but not the files of the kernels that it calls. A cached caller would
go on using an old callee. So the cache folder is named by a hash of every source file of this package that contains the word
"kernel": these are the files with kernels and with the constants that they use. For kernels of `agents` the hash also covers
that package. The place of the sources doesn't count: a second clone finds what the first one compiled.

Kernels release the GIL, so several threads may step different boards of one state. `PROCSNAKE_BOUNDSCHECK=1` compiles them with
bounds checks; `NUMBA_DISABLE_JIT=1` leaves them plain Python.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher

_ANNOUNCED = "PROCSNAKE_COMPILING_ANNOUNCED"
BOUNDSCHECK = os.environ.get("PROCSNAKE_BOUNDSCHECK", "") == "1"


def _root() -> Path:
    default = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "procsnake")
    return Path(os.environ.get("PROCSNAKE_CACHE") or default) / "numba"


def _sources(folder: Path) -> list[bytes]:
    sources = (path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return [source for source in sources if b"kernel" in source]


@lru_cache
def _cache_folder(package: str) -> Path | None:
    """Where the kernels of `envs` or `agents` are kept; None, and they are compiled anew in each process, if it isn't writable.

    Kernels of agents call those of the world, never the other way round.
    """
    world = Path(__file__).parent
    sources = _sources(world) + (_sources(world.parents[1] / "agents") if package == "agents" else [])
    digest = hashlib.sha256(b"".join(sources))
    digest.update(f"{numba.__version__} {sys.version} {BOUNDSCHECK}".encode())
    folder = _root() / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    return folder


def _prepare_cache(function: Callable[..., Any]) -> bool:
    """Point Numba at the function's folder; False if it can't be cached.

    A user's own kernels are compiled anew in each process: no hash knows of them.
    """
    package = function.__module__.partition(".")[0]
    folder = _cache_folder(package) if package in ("envs", "agents") else None
    if folder is not None:
        numba_config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return folder is not None


class _Locator(_CacheLocator):
    """Knows a file by its module and content, where Numba's own locators go by its path and, before 0.68, by its date."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._function, self._file, self._folder = function, file, numba_config.CACHE_DIR  # type: ignore[attr-defined]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        locator = cls(py_func, py_file)
        locator.ensure_cache_path()
        return locator

    def get_cache_path(self) -> str:
        return os.path.join(self._folder, self._function.__module__)

    def get_source_stamp(self) -> str:
        return hashlib.sha256(Path(self._file).read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _KernelCache(FunctionCache):
    _impl_class = _CacheImpl


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with Numba, and keep the result in the cache folder of the function's package, if that can be written."""
    compiled: Callable[..., Any] = numba.njit(nogil=True, boundscheck=BOUNDSCHECK, **options)(function)
    if _prepare_cache(function) and isinstance(compiled, Dispatcher):
        compiled._cache = _KernelCache(function)  # type: ignore[attr-defined]
    return compiled


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` in nopython mode: inlined into its callers, without the GIL, and cached on disk.

    Numba's reference counting is off, because counting the arrays of a `Boards` in and out of every small function took most of
    the time of a step (measured: a call of `is_certain_death` took 100 ns with it and 2 ns without). Therefore kernels can't
    allocate arrays; `allocating_kernel` is for those that must.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def allocating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` as `kernel` does, but with reference counting, so that it may allocate scratch arrays.

    It is meant for work that is done once per game, such as the set-up.
    """
    return _compiled(function, _nrt=True)


def compiled_for(function: Callable[..., Any], *arguments: Any, constants: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Return the kernel's machine code for arguments of exactly these types. It must be called with no other types.

    Numba looks up the type of every array at every call. For a `Boards` this takes 6 µs, longer than a turn of the game.
    `constants` fixes the values of the last parameters, so that loops of known length become vector instructions.
    """
    if not isinstance(function, Dispatcher):
        return function
    types = (*map(numba.typeof, arguments), *map(numba.types.literal, constants))
    function.compile(types)
    return function.get_overload(types)


class _Announcer(event.Listener):
    """Says why the first call takes a while. Kernels that come out of the cache make no such event."""

    def on_start(self, event: event.Event) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        # The environment, because processes that this one starts have no more to say.
        if module.startswith("envs.battlesnake") and not os.environ.get(_ANNOUNCED):
            os.environ[_ANNOUNCED] = "1"
            print(f"procsnake: {_announcement(_cache_folder('envs'))} …", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


def _announcement(folder: Path | None) -> str:
    """What is compiled and how long it takes; the whole engine is announced once for each cache folder."""
    if folder is None:
        return f"compiling the game engine; this takes about a minute each time, because {_root()} can't be written"
    try:
        (folder / "announced").touch(exist_ok=False)
    except OSError:
        return "compiling a part of the game engine that was not needed before"
    return "compiling the game engine; this takes about a minute, once"


class _Interruption(event.Listener):
    """Holds Ctrl-C back until a function is compiled.

    Numba calls back from LLVM's C code, where `KeyboardInterrupt` is lost: half the engine stays without code, and the failure
    looks like another.
    """

    def __init__(self) -> None:
        self._depth, self._is_wanted = 0, False
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
            before, self._before = self._before, None
            signal.signal(signal.SIGINT, before)
            if self._is_wanted:
                self._is_wanted = False
                signal.raise_signal(signal.SIGINT)

    def _ask(self, number: int, frame: Any) -> None:
        self._is_wanted = True
        print("procsnake: stopping, once this function is compiled …", file=sys.stderr, flush=True)


event.register("numba:compile", _Announcer())
_INTERRUPTION = _Interruption()
event.register("numba:compile", _INTERRUPTION)
