"""Makes MXNet 1.9.1, its last release, work beside NumPy 1.26. Import `mx` from here only.

While MXNet is imported, it uses six names that NumPy 1.24 dropped. This module restores them for that moment only.
"""

from __future__ import annotations

import platform
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.common.command_line import shell_command
from envs.common.errors import MissingDependencyError, pip_install

if TYPE_CHECKING:
    from mxnet.nd import NDArray

_DROPPED = {"bool": bool, "object": object, "int": int, "float": float, "complex": complex, "str": str}


def _import_mxnet() -> ModuleType:
    for name, builtin in _DROPPED.items():
        setattr(np, name, builtin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mxnet
    except (ImportError, OSError) as error:
        install = pip_install("procsnake[mxnet]")
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            install = (
                f"{shell_command('train', 'battlesnake-dqn')}, the same on torch: MXNet has no wheel for {platform.system()} on"
                f" {platform.machine()}, only for Linux on x86_64"
            )
        raise MissingDependencyError("mxnet", feature="the readable DQN", install=install) from error
    finally:
        for name in _DROPPED:
            delattr(np, name)
    return mxnet


mx: Any = _import_mxnet()


def to_mxnet(values: np.ndarray) -> NDArray:
    """Return a copy as MXNet's array. (`mx.nd.array` isn't used: it asks SciPy for names that SciPy is about to drop.)"""
    return mx.nd.from_numpy(np.ascontiguousarray(values), zero_copy=False)
