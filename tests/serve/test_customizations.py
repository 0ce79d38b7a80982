"""How snakes look: as told by flags, by the bundle's card, or each in its own colour."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import agents
from envs.common.errors import ConfigError, UnknownNameError
from serve.customizations import Look


def a_policy(weights="abc", **config):
    card = SimpleNamespace(
        config=config, files={"policy.onnx": weights}, algorithm="ppo", git_commit="0123456789"
    )
    return SimpleNamespace(name="policy", card=card)


def test_flags_win_over_the_card_and_the_card_over_what_is_made_up():
    policy = a_policy(look={"color": "#010203", "head": "evil"})
    assert Look.of(policy) == Look(color="#010203", head="evil", version="procsnake ppo 0123456")
    assert Look.of(policy, {"head": "bendr", "tail": None, "color": None}).head == "bendr"


def test_two_snakes_are_told_apart_and_each_is_always_the_same():
    looks = [Look.of(agents.make(name)).color for name in ("flood", "greedy", "random")]
    looks += [Look.of(a_policy(weights)).color for weights in ("abc", "abd")]
    assert len(set(looks)) == 5
    assert Look.of(a_policy("abc")).color == looks[3]


@pytest.mark.parametrize(
    "look", [{"color": "red"}, {"color": 5}, {"author": "x" * 101}, {"head": ["evil"]}]
)
def test_a_look_that_is_none_is_refused(look):
    with pytest.raises(ConfigError):
        Look.of(a_policy(look=look))
    with pytest.raises(UnknownNameError, match="color"):
        Look.of(a_policy(look={"colour": "#010203"}))
