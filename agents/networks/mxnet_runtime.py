"""Makes MXNet 1.9.1, its last release, work beside NumPy 1.26. Import `mx` from here only.

MXNet doesn't work beside NumPy 2, nor on Python 3.13, for which there is no NumPy 1. There it needs
an environment of its own. While MXNet is imported, it uses six names that NumPy 1.24 dropped. This
module restores them for that moment only."""

from __future__ import annotations

import platform
import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from envs.common.errors import (
    MissingDependencyError,
    install_beside,
    make_environment,
    pip_install,
)
from envs.common.shell_command import shell_command

if TYPE_CHECKING:
    from mxnet.nd import NDArray

_HAS_NUMPY_1 = np.lib.NumpyVersion(np.__version__) < "2.0.0"
_DROPPED = {
    "bool": bool,
    "object": object,
    "int": int,
    "float": float,
    "complex": complex,
    "str": str,
}


def _import_mxnet() -> ModuleType:
    if not _HAS_NUMPY_1:
        package = f"mxnet beside NumPy 1 (NumPy is {np.__version__} here)"
        raise MissingDependencyError(package, feature="the readable DQN", install=_how_to_install())
    for name, builtin in _DROPPED.items():
        setattr(np, name, builtin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mxnet
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            "mxnet", feature="the readable DQN", install=_how_to_install()
        ) from error
    finally:
        for name in _DROPPED:
            delattr(np, name)
    return mxnet


def _how_to_install() -> str:
    system = platform.system(), platform.machine()
    if system != ("Linux", "x86_64"):
        instead = shell_command("train", "battlesnake-dqn")
        return (
            f"{instead}, the same on torch: MXNet has no wheel for {' on '.join(system)}, only for"
            " Linux on x86_64"
        )
    if _HAS_NUMPY_1:
        return pip_install("procsnake[mxnet]")
    how = make_environment("mxnet") if sys.version_info < (3, 13) else None
    return how or install_beside("mxnet")


mx: Any = _import_mxnet()


def to_mxnet(values: np.ndarray) -> NDArray:
    """Return a copy as MXNet's array. (`mx.nd.array` isn't used: it asks SciPy for names that SciPy
    is about to drop.)
    """
    return mx.nd.from_numpy(np.ascontiguousarray(values), zero_copy=False)
