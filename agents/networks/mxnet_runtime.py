"""MXNet 1.9.1, its last release, beside NumPy 1.26: the one place that knows how. Take `mx` from here.

While MXNet is imported it names six aliases that NumPy 1.24 dropped. They come back for that moment; nobody else sees them.
"""

from __future__ import annotations

import platform
import warnings
from types import ModuleType

import numpy as np

from envs.errors import MissingDependencyError

_DROPPED = {"bool": bool, "object": object, "int": int, "float": float, "complex": complex, "str": str}


def _import_mxnet() -> ModuleType:
    for name, builtin in _DROPPED.items():
        setattr(np, name, builtin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mxnet
    except (ImportError, OSError) as error:
        install = "pip install 'procsnake[mxnet]'"
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            install = (
                f"procsnake train battlesnake-dqn, the same on torch: MXNet has no wheel for {platform.system()} on"
                f" {platform.machine()}, only for Linux on x86_64"
            )
        raise MissingDependencyError("mxnet", feature="the readable DQN", install=install) from error
    finally:
        for name in _DROPPED:
            delattr(np, name)
    return mxnet


mx = _import_mxnet()


def to_mxnet(values: np.ndarray) -> mx.nd.NDArray:
    """A copy as MXNet's array. (`mx.nd.array` asks SciPy for names that it is about to drop.)"""
    return mx.nd.from_numpy(np.ascontiguousarray(values), zero_copy=False)
