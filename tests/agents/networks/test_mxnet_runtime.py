"""MXNet works beside NumPy 1 only; beside NumPy 2 the error says how to get it, and NumPy keeps its
names.
"""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest

from envs.common.errors import MissingDependencyError

HOW = (
    r"make -C \S+ \.venv-mxnet/\.installed"
    if sys.version_info < (3, 13)
    else r"python3\.12 -m venv \.venv-mxnet"
)
IS_FOR_THIS_MACHINE = (platform.system(), platform.machine()) == ("Linux", "x86_64")


@pytest.mark.skipif(not IS_FOR_THIS_MACHINE, reason="MXNet has wheels for Linux on x86_64 alone")
def test_beside_numpy_2_it_is_refused_with_the_way_to_an_environment_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "__version__", "2.2.6")
    monkeypatch.setitem(vars(np), "bool", np.bool_)
    monkeypatch.delitem(sys.modules, "agents.networks.mxnet_runtime", raising=False)
    with pytest.raises(MissingDependencyError, match=rf"NumPy is 2\.2\.6 here.* {HOW}"):
        import agents.networks.mxnet_runtime  # noqa: F401
    assert vars(np)["bool"] is np.bool_


def test_where_mxnet_has_no_wheel_the_same_algorithm_on_torch_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "__version__", "2.2.6")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.delitem(sys.modules, "agents.networks.mxnet_runtime", raising=False)
    with pytest.raises(MissingDependencyError, match="no wheel for Darwin on arm64") as caught:
        import agents.networks.mxnet_runtime  # noqa: F401
    assert ("train", "battlesnake-dqn") in caught.value.next_commands.values()
