"""How the kernels of this world are compiled: `@kernel` in place of Numba's `njit`.

Numba's on-disk cache looks at the file that holds a kernel, not at the files of the kernels which it calls, so a cached
caller would go on using an old callee. The cache folder is therefore named by a hash of every source file of this package
that speaks of kernels (for kernels of `agents`: of that one, too): those which hold them and those whose constants they use.
Kernels release the GIL: several threads may step different boards of one state. `PROCSNAKE_BOUNDSCHECK=1` compiles them with
bounds checks, `NUMBA_DISABLE_JIT=1` leaves them plain Python.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core import event

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
        numba_config.CACHE_DIR = str(folder)
    return folder is not None


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` in nopython mode, inlined into its callers, without the GIL, cached on disk.

    Kernels can't allocate: Numba's reference counting is off, because counting the arrays of a `Boards` in and out of every
    small function took most of the time of a step (measured: 100 ns a call of `is_certain_death`, 2 ns without).
    """
    cache = _prepare_cache(function)
    return numba.njit(cache=cache, nogil=True, boundscheck=BOUNDSCHECK, forceinline=True, _nrt=False)(function)


def allocating_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for functions that need scratch arrays: set-up and the like, which run once a game."""
    return numba.njit(cache=_prepare_cache(function), nogil=True, boundscheck=BOUNDSCHECK, _nrt=True)(function)


def compiled_for(function: Callable[..., Any], *arguments: Any, constants: tuple[int, ...] = ()) -> Callable[..., Any]:
    """The kernel for arguments of just these types; it must be called with no others.

    Numba looks at the type of every array at every call, which for a `Boards` takes longer than a turn of the game: 6 µs.
    `constants` are the values of the last parameters: loops of known length become vector instructions.
    """
    if numba_config.DISABLE_JIT:
        return function
    types = (*map(numba.typeof, arguments), *map(numba.types.literal, constants))
    function.compile(types)
    return function.get_overload(types)


class _Announcer(event.Listener):
    """Says once why the first call takes a while. Kernels that come out of the cache make no such event."""

    announced = False

    def on_start(self, event: event.Event) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if not self.announced and module.startswith("envs.battlesnake"):
            _Announcer.announced = True
            print("procsnake: compiling the game engine; this takes about a minute, once …", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcer())
