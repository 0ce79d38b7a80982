"""Parts of a user's own: what is named is found, a stranger's name runs nothing, and each mistake
is named.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from agents import networks
from envs.battlesnake import BattlesnakeVectorEnv
from envs.battlesnake.observations import (
    EgocentricPlanes,
    OwnObservation,
    choose_observation,
    observation_from_contract,
)
from envs.battlesnake.rewards import EVENTS, choose_rewards
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.parts import Parts, import_modules, modules_named_in


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module; the name is its own, so that no test sees another's."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def write(text: str) -> str:
        names.append(f"own_parts_{tmp_path.name}_{len(names)}")
        (tmp_path / f"{names[-1]}.py").write_text(text)
        return names[-1]

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_a_named_modules_part_is_found_and_a_strangers_is_not_imported(module, tmp_path):
    name = module(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef part(): ...\n")
    parts = Parts("thing", "procsnake.none", {"one": 1})
    with pytest.raises(ConfigError, match=f"--imports {name}"):
        parts.find(f"{name}:part")
    assert not (tmp_path / "ran").exists()
    import_modules([name])
    assert parts.find(f"{name}:part").__name__ == "part"
    with pytest.raises(UnknownNameError, match="Did you mean 'part'"):
        parts.find(f"{name}:pert")


@pytest.mark.parametrize("place", ["os:system", "builtins:eval", "subprocess:run"])
def test_what_python_has_imported_is_not_thereby_trusted(place):
    with pytest.raises(ConfigError, match="was not told to import"):
        networks.build(place, (1,), 1)
    with pytest.raises(ConfigError, match="was not told to import"):
        observation_from_contract({"type": place, "version": 1})
    with pytest.raises(ConfigError, match="was not told to import"):
        choose_rewards(place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
    ],
)
def test_a_module_that_fails_is_named_with_its_mistake(module, text, message):
    name = module(text)
    with pytest.raises(ConfigError, match=f"{name}.*{message}"):
        import_modules([name])


def test_a_module_that_is_not_found_is_looked_for_where_python_is_told_to():
    with pytest.raises(
        ConfigError, match=r"no_such_file\.py is in this folder: export PYTHONPATH=\."
    ):
        import_modules(["no_such_file"])


def test_only_module_and_name_are_read_as_a_place():
    options = {
        "levels": "train:200",
        "at": "http://x",
        "own": ["a.b:C", {"type": "d:E"}],
        "range": "1..2:log",
        "two": "f:g:h",
    }
    assert list(modules_named_in(options)) == ["a.b", "d"]


def test_a_reward_function_pays_and_a_wrong_one_is_refused_at_once(module):
    name = module(
        "def hunter(events): return events[:, 3] * -2.0\ndef total(events): return events.sum()\n"
    )
    import_modules([name])
    world = BattlesnakeVectorEnv(num_games=2, num_snakes=2, rewards=f"{name}:hunter")
    world.restart(0)
    paid = []
    for _ in range(60):
        world.advance(np.ones(world.num_envs, np.int64))
        paid.append(world.rewards[world.terminated].copy())
    assert EVENTS[3] == "died"
    assert set(np.concatenate(paid)) == {-2.0, 0.0} or set(np.concatenate(paid)) == {-2.0}
    with pytest.raises(ConfigError, match=r"'total' returns .* \(\) for the events of two snakes"):
        BattlesnakeVectorEnv(num_games=1, rewards=f"{name}:total")


class Bent(OwnObservation):
    """Its contract holds what its constructor doesn't take."""

    def __init__(self) -> None:
        self.planes = EgocentricPlanes()

    space = observe = None


def test_an_observation_type_that_no_bundle_could_hold_is_refused_at_once(module):
    name = module("class Blind: num_actions = 4\n")
    import_modules([name, __name__])
    with pytest.raises(ConfigError, match="lacks space and observe and contract"):
        choose_observation(f"{name}:Blind", 2)
    with pytest.raises(ConfigError, match="can't be made again from its contract"):
        choose_observation(f"{__name__}:Bent", 2)
