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
        raise _missing(f"mxnet beside NumPy 1 (NumPy is {np.__version__} here)")
    for name, builtin in _DROPPED.items():
        setattr(np, name, builtin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mxnet
    except (ImportError, OSError) as error:
        raise _missing("mxnet") from error
    finally:
        for name in _DROPPED:
            delattr(np, name)
    return mxnet


def _missing(package: str) -> MissingDependencyError:
    feature = "the readable DQN"
    system = platform.system(), platform.machine()
    if system == ("Linux", "x86_64"):
        return MissingDependencyError(package, feature=feature, install=_how_to_install())
    return MissingDependencyError(
        package,
        feature=feature,
        install=f"Linux on x86_64, because MXNet has no wheel for {' on '.join(system)}.",
        next_commands={"the same on torch": ("train", "battlesnake-dqn")},
    )


def _how_to_install() -> str:
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
