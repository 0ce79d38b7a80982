"""A bug in a part of a user's own is reported at the innermost line of their file, not at the
library's that it called.
"""

from __future__ import annotations

import sys

import pytest

from envs.common.errors import ProcsnakeError
from train.config import Experiment
from train.run import check

MODULE = """\
import numpy as np
import torch
from envs.battlesnake.observations import OwnObservation, EgocentricPlanes


def helper():
    return np.stack([np.zeros(2), np.zeros(3)])  # the bug


class Net(torch.nn.Module):
    def __init__(self, observation_shape, num_actions):
        super().__init__()
        self.layer = torch.nn.Linear(7, num_actions)

    def forward(self, observations):
        return self.layer(observations.float().flatten(1))  # the bug


class Unbuilt(torch.nn.Module):
    def __init__(self, observation_shape, num_actions):
        super().__init__()
        self.layer = torch.nn.Linear(-1, num_actions)  # the bug


class Seen(OwnObservation):
    def space(self, width, height):
        return EgocentricPlanes(radius=2).space(width, height)

    def observe(self, state, boards, slots):
        return helper()


def paid(events):
    return helper()
"""
LINES = [number for number, line in enumerate(MODULE.splitlines(), 1) if "# the bug" in line]


@pytest.mark.parametrize(
    ("override", "line", "function"),
    [
        ("network={name: users_part:Net}", LINES[1], "forward"),
        ("network={name: users_part:Unbuilt}", LINES[2], "__init__"),
        ("env.options.observation=users_part:Seen", LINES[0], "helper"),
        ("env.options.rewards=users_part:paid", LINES[0], "helper"),
    ],
)
def test_the_users_line_is_named(override, line, function, tmp_path, monkeypatch):
    file = tmp_path / "users_part.py"
    file.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_part", raising=False)
    network = [] if override.startswith("network") else ["network={name: mlp}"]
    experiment = Experiment.load("battlesnake-ppo", [override, *network])
    with pytest.raises(ProcsnakeError) as refused:
        check(experiment)
    assert str(refused.value).endswith(f"({file}, line {line}, in {function})")


def test_a_module_that_fails_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "users_broken.py").write_text(
        "import numpy as np\n\nONE = np.zeros(3).reshape(5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ProcsnakeError, match=r"users_broken\.py, line 3, in <module>\)$"):
        check(Experiment.load("battlesnake-ppo", ["network={name: users_broken:Net}"]))
