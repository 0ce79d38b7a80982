from __future__ import annotations

from envs.common.plain_values import flat


def test_values_are_named_by_all_keys_that_lead_to_them():
    settings = {"seed": 1, "env": {"name": "x", "options": {"size": [1, 2], "food": {}}}}
    assert flat(settings) == {
        "seed": 1,
        "env.name": "x",
        "env.options.size": [1, 2],
        "env.options.food": {},
    }
    assert flat({"count": 2}, "scale.") == {"scale.count": 2}
