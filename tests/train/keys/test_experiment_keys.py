"""`procsnake train --list` and `--help-keys`: what is told agrees with what is taken."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json

import pytest

import procsnake
from agents import networks
from agents.networks.options import OPTIONS
from envs.battlesnake import BattlesnakeVectorEnv
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.rewards import Rewards
from envs.battlesnake.settings import Settings
from envs.common.errors import ConfigError
from train.config import Experiment, list_experiments
from train.keys.experiment_keys import keys
from train.keys.option_keys import REQUIRED, Option, _fields, network_options, world_options
from train.settings.sections import EnvSettings


@pytest.mark.parametrize("name", list_experiments())
def test_every_key_is_told_with_its_meaning_and_can_be_set(name):
    experiment = Experiment.load(name)
    found = keys(experiment)
    assert not [key.key for key in found if not key.meaning]
    assert not {"env.options", "network.options"} & {key.key for key in found}
    told = {key.key: key for key in found}
    assert told[
        f"{experiment.algorithm}.gamma" if hasattr(experiment.settings, "gamma") else "seed"
    ]
    assert {"name", "env.name", "budget.max_minutes", "stop.metric", "evaluation.games"} <= set(
        told
    )
    given = {"name", "seed", "num_env_runners", f"{experiment.algorithm}.learning_rate"} & set(told)
    experiment.override([f"{key}={json.dumps(told[key].value)}" for key in given])


def test_values_are_the_experiments_and_defaults_the_dataclass(capsys):
    assert (
        procsnake.main(
            ["train", "battlesnake-ppo", "--set", "ppo.gamma=0.5", "--help-keys", "--json"]
        )
        == 0
    )
    told = {key["key"]: key for key in json.loads(capsys.readouterr().out)}
    assert (told["ppo.gamma"]["value"], told["ppo.gamma"]["default"]) == (0.5, 0.99)
    assert told["ppo.gamma"]["meaning"] == "Discount factor, 0..1."
    assert (told["algorithm"]["value"], told["algorithm"]["default"]) == ("ppo", "ppo")
    assert not [key for key in told if key.startswith(("dqn.", "settings"))]


def test_the_list_says_what_each_is(capsys):
    assert procsnake.main(["train", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sorted(row["name"] for row in rows) == list_experiments()
    assert all(len(row["about"]) > 30 for row in rows)
    procsnake.main(["train", "--list"])
    assert rows[0]["about"].split()[0] in capsys.readouterr().out


WORLDS = ["battlesnake", "procgen/coinrun", "mixture", "curriculum"]


@pytest.mark.parametrize("name", WORLDS)
def test_every_option_of_a_world_has_a_meaning(name):
    options = world_options(name)
    assert [option.name for option in options if len(option.meaning) < 15] == []
    assert len({option.name for option in options}) == len(options) > 2


@pytest.mark.parametrize("name", [*networks.names(), "attention"])
def test_every_option_of_a_network_has_a_meaning(name):
    options = network_options(name)
    assert len(options) >= 2
    assert [option.name for option in options if len(option.meaning) < 15] == []


def test_the_options_told_are_those_taken_with_the_defaults_taken():
    """The sources were read, not run: what the real constructors take counts."""
    for kind, told in (
        (BattlesnakeVectorEnv, world_options("battlesnake")),
        *(
            (kind, network_options(name))
            for name, kind in OPTIONS.items()
            if name != "starter-pack"
        ),
    ):
        taken = inspect.signature(kind).parameters.values()
        defaults = {
            one.name: one.default
            for one in taken
            if one.kind is one.KEYWORD_ONLY and one.name != "settings"
        }
        by_name = {option.name: option.default for option in told}
        assert {name: by_name[name] for name in defaults} == {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in defaults.items()
        }
    rules = {
        field.name: field.default for field in dataclasses.fields(Settings) if field.name != "solo"
    }
    assert (
        rules.items()
        <= {option.name: option.default for option in world_options("battlesnake")}.items()
    )


def test_the_last_field_is_an_option_also_without_a_docstring():
    (node,) = ast.parse(
        'class Shape:\n    width: int = 3\n    """How wide\n    it is."""\n    height: int\n'
    ).body
    assert list(_fields(node)) == [
        Option("width", 3, "How wide it is."),
        Option("height", REQUIRED, ""),
    ]


def test_options_are_told_with_the_experiments_values(capsys):
    changed = ("--set", "env.options.self_play.share=0.25")
    assert procsnake.main(["train", "battlesnake-ppo", *changed, "--help-keys", "--json"]) == 0
    told = {key["key"]: key for key in json.loads(capsys.readouterr().out)}
    assert (
        told["env.options.self_play.share"]["value"],
        told["env.options.self_play.share"]["default"],
    ) == (0.25, 0.5)
    assert (told["env.options.width"]["value"], told["env.options.max_turns"]["value"]) == (
        11,
        1000,
    )
    assert told["network.options.hidden_sizes"]["default"] == [64, 64]
    assert not {"env.options", "network.options"} & set(told)


def told_of(*words):
    found = keys(Experiment.load("battlesnake-ppo", words))
    return {key.key: key for key in found}


def test_every_key_within_observation_and_rewards_is_told_and_taken():
    told = told_of()
    within = {
        key: told[key]
        for key in told
        if key.startswith(("env.options.observation.", "env.options.rewards."))
    }
    assert {one.name for one in dataclasses.fields(EgocentricPlanes)} <= {
        key.rpartition(".")[2] for key in within
    }
    assert {key.rpartition(".")[2] for key in within if ".rewards." in key} == {
        one.name for one in dataclasses.fields(Rewards)
    }
    assert not [
        key for key, one in within.items() if len(one.meaning) < 40 and ".observation." in key
    ]
    assert (
        told["env.options.observation.radius"].value,
        told["env.options.observation.radius"].default,
    ) == (5, None)
    assert told["env.options.rewards.died"].value is None, "the experiment names a preset"
    options = Experiment.load(
        "battlesnake-ppo", ["env.options.rewards={died: -2, ate_food: 0.1}"]
    ).env.options
    assert told_of("env.options.rewards={died: -2}")["env.options.rewards.died"].value == -2
    BattlesnakeVectorEnv(**{**options, "num_games": 1}).close()


def test_every_key_of_every_kind_of_scale_is_told_and_taken():
    told = {key: one for key, one in told_of().items() if key.startswith("scale.")}
    instances = ("instance", "count")
    assert set(told) == {
        *(f"scale.{name}" for name in ("kind", "instance", "count", "workers", "mode")),
        *(f"scale.{group}.{name}" for group in ("learner", "rollout") for name in instances),
    }
    assert (told["scale.kind"].value, told["scale.kind"].default) == ("local", "local")
    assert "scale.kind=single or homogeneous:" in told["scale.instance"].meaning
    taken = {"kind": "heterogeneous", "mode": "two-jobs", "workers": 3}
    taken |= {
        "learner.instance": "ml.g5.xlarge",
        "rollout.instance": "ml.c5.4xlarge",
        "rollout.count": 2,
    }
    chosen = told_of(*(f"scale.{key}={value}" for key, value in taken.items()))
    assert {key: chosen[f"scale.{key}"].value for key in taken} == taken
    assert chosen["scale.learner.count"].default == 1
    assert chosen["scale.instance"].value is None


def test_keys_cannot_be_put_into_a_single_value():
    with pytest.raises(
        ConfigError,
        match=r"env\.options\.rewards is 'win', a single value.*env\.options\.rewards=\{died: -2\}",
    ):
        Experiment.load("battlesnake-ppo", ["env.options.rewards.died=-2"])


def test_a_network_of_ones_own_keeps_its_options_in_one_and_is_not_imported():
    told = told_of("network={name: nowhere_at_all:Net, options: {units: 3}}")
    assert told["network.name"].value == "nowhere_at_all:Net"
    assert {key: one.value for key, one in told.items() if key.startswith("network.options")} == {
        "network.options": {"units": 3}
    }


def test_a_world_of_ones_own_keeps_its_options_in_one():
    experiment = dataclasses.replace(
        Experiment.load("battlesnake-ppo"), env=EnvSettings(name="corridor", options={"cells": 9})
    )
    (key,) = (key for key in keys(experiment) if key.key.startswith("env.options"))
    assert (key.key, key.value) == ("env.options", {"cells": 9})
