"""Where compiled kernels are kept on disk, so that they are compiled once per machine and not once
per process.

Numba's on-disk cache checks the file that holds a kernel, but not the files of the kernels that it
calls. A cached caller would go on using an old callee. So the cache folder is named by a hash of
the code of every source file of this package that contains the word "kernel": these are the files
with kernels and with the constants that they use. For kernels of `agents` the hash also covers that
package. Comments and docstrings don't count (`code_hash.py`), nor does the folder of the sources: a
second clone finds what the first one compiled.

Processes that need the same kernel at the same time compile it once: the first one compiles it, and
the others wait. Windows has no such locks, so there each process compiles what it doesn't find."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from envs.battlesnake.jit.code_hash import code_hash, function_hash
from envs.common.cache import cache_root

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None  # type: ignore[assignment]

BOUNDSCHECK = os.environ.get("PROCSNAKE_BOUNDSCHECK", "") == "1"
PATIENCE_S = 300.0
"""How long a process waits for another one that compiles the same kernel. Then it compiles the
kernel itself.
"""


def root() -> Path:
    """The folder of all compiled kernels."""
    return cache_root() / "numba"


def _sources(folder: Path) -> list[bytes]:
    sources = (path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return [source for source in sources if b"kernel" in source]


@lru_cache
def cache_folder(package: str) -> Path | None:
    """Return where the kernels of `envs` or `agents` are kept.

    None means that nothing can be written there, so that each process compiles them anew.

    Kernels of agents call those of the world, never the other way round.
    """
    world = Path(__file__).parents[1]
    sources = _sources(world)
    if package == "agents":
        sources += _sources(world.parents[1] / "agents")
    versions = f"{numba.__version__} {sys.version} {BOUNDSCHECK}"
    folder = root() / code_hash(sources, versions, root() / "sources")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    return folder


def is_compiled(name: str) -> bool:
    """Return whether the kernel of this name in `envs` has been compiled on this machine, from the
    sources of today.
    """
    folder = cache_folder("envs")
    return folder is not None and any(folder.glob(f"*/*.{name}-*.nbi"))


def cache_of(function: Callable[..., Any]) -> KernelCache | None:
    """The cache of one kernel; None if it can't be kept. A user's own kernels aren't kept, because
    no hash includes them.
    """
    module = function.__module__
    if not module.startswith(("envs.battlesnake.", "agents.")):
        return None
    folder = cache_folder(module.partition(".")[0])
    if folder is None:
        return None
    numba_config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return KernelCache(function)


@lru_cache
def _code_stamp(source: bytes) -> str:
    return code_hash([source], "", root() / "sources")


class _Locator(_CacheLocator):
    """Knows a kernel by its module and code, where Numba's own locators go by its file's path and,
    before 0.68, date.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._function = function
        self._file = file
        self._folder = numba_config.CACHE_DIR  # type: ignore[attr-defined]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        locator = cls(py_func, py_file)
        locator.ensure_cache_path()
        return locator

    def get_cache_path(self) -> str:
        return os.path.join(self._folder, self._function.__module__)

    def get_source_stamp(self) -> str:
        # The folder is named by the code that the first kernel of this process found. This file may
        # have changed since, its constants, too.
        return _code_stamp(Path(self._file).read_bytes())

    def get_disambiguator(self) -> str:
        # A line would change with a comment above it.
        return function_hash(self._function)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes: list[Any] = [_Locator]


class KernelCache(FunctionCache):
    """The compiled forms of one kernel, one per combination of argument types.

    A process that doesn't find what it needs holds the kernel's lock until it has compiled and
    saved it. No two processes can wait for each other, because kernels wait only for those that
    they call. Numba calls these methods under a lock of its own, which keeps other threads of this
    process out."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._lock_path = os.path.join(self.cache_path, f"{function.__qualname__}.lock")
        self._lock: int | None = None
        self._depth = 0

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        overload = super().load_overload(sig, target_context)
        if overload is None:
            self._acquire()
            # Another process may have compiled it while this one waited for the lock.
            overload = super().load_overload(sig, target_context)
            if overload is not None:
                self.release()
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        finally:
            self.release()

    def _acquire(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        try:
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o666)
            _wait_for(self._lock)
        except OSError:
            return  # A file system without locks, or another user's file.
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others compile this kernel. The lock's file stays, because somebody may be waiting at
        it.
        """
        self._depth -= 1
        if self._depth == 0 and self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _wait_for(lock: int) -> None:
    """Take the lock, or give up after a while: its holder may be stopped."""
    if fcntl is None:
        return
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return


class _Failures(event.Listener):
    """Releases the lock of a kernel that couldn't be compiled, because Numba never saves it."""

    def on_start(self, event: event.Event) -> None:
        pass

    def on_end(self, event: event.Event) -> None:
        dispatcher = event.data["dispatcher"]
        cache = getattr(dispatcher, "_cache", None)
        if isinstance(cache, KernelCache) and event.data["args"] not in dispatcher.overloads:
            cache.release()


event.register("numba:compile", _Failures())
