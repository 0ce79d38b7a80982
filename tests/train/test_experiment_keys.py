"""`procsnake train --list` and `--help-keys`: what is told agrees with what is taken."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest

import procsnake
from agents import networks
from agents.networks.impala import Impala
from agents.networks.mlp import MLP
from agents.networks.q_network import QNetwork
from envs.battlesnake import BattlesnakeVectorEnv
from envs.battlesnake.settings import Settings
from train.config import EnvSettings, Experiment, list_experiments
from train.experiment_keys import keys
from train.option_keys import network_options, world_options


@pytest.mark.parametrize("name", list_experiments())
def test_every_key_is_told_with_its_meaning_and_can_be_set(name):
    experiment = Experiment.load(name)
    found = keys(experiment)
    assert not [key.key for key in found if not key.meaning]
    assert not {"env.options", "network.options"} & {key.key for key in found}
    told = {key.key: key for key in found}
    assert told[f"{experiment.algorithm}.gamma" if experiment.algorithm != "imitation" else "seed"]
    assert {"name", "env.name", "budget.max_minutes", "stop.metric", "evaluation.games"} <= set(told)
    given = {"name", "seed", "num_env_runners", f"{experiment.algorithm}.learning_rate"} & set(told)
    experiment.override([f"{key}={json.dumps(told[key].value)}" for key in given])


def test_values_are_the_experiments_and_defaults_the_dataclass(capsys):
    assert procsnake.main(["train", "battlesnake-ppo", "--set", "ppo.gamma=0.5", "--help-keys", "--json"]) == 0
    told = {key["key"]: key for key in json.loads(capsys.readouterr().out)}
    assert (told["ppo.gamma"]["value"], told["ppo.gamma"]["default"]) == (0.5, 0.99)
    assert told["ppo.gamma"]["meaning"] == "Discount factor, 0..1."
    assert (told["algorithm"]["value"], told["algorithm"]["default"]) == ("ppo", "ppo")
    assert not [key for key in told if key.startswith(("dqn.", "settings"))]


def test_the_list_says_what_each_is(capsys):
    assert procsnake.main(["train", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list_experiments()
    assert all(len(row["about"]) > 30 for row in rows)
    procsnake.main(["train", "--list"])
    assert rows[0]["about"].split()[0] in capsys.readouterr().out


WORLDS = ["battlesnake", "procgen/coinrun", "mixture", "several", "curriculum"]


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
    """The sources were read, not run: what the real constructors say counts."""
    for kind, told in (
        (BattlesnakeVectorEnv, world_options("battlesnake")),
        (MLP, network_options("mlp")),
        (Impala, network_options("impala")),
        (QNetwork, network_options("q-network")),
    ):
        taken = inspect.signature(kind).parameters.values()
        defaults = {one.name: one.default for one in taken if one.kind is one.KEYWORD_ONLY and one.name != "settings"}
        by_name = {option.name: option.default for option in told}
        assert {name: by_name[name] for name in defaults} == {
            name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()
        }
    rules = {field.name: field.default for field in dataclasses.fields(Settings) if field.name != "solo"}
    assert rules.items() <= {option.name: option.default for option in world_options("battlesnake")}.items()


def test_options_are_told_with_the_experiments_values(capsys):
    changed = ("--set", "env.options.self_play.share=0.25")
    assert procsnake.main(["train", "battlesnake-ppo", *changed, "--help-keys", "--json"]) == 0
    told = {key["key"]: key for key in json.loads(capsys.readouterr().out)}
    assert (told["env.options.self_play.share"]["value"], told["env.options.self_play.share"]["default"]) == (0.25, 0.5)
    assert (told["env.options.width"]["value"], told["env.options.max_turns"]["value"]) == (11, 1000)
    assert told["network.options.hidden_sizes"]["default"] == [64, 64]
    assert not {"env.options", "network.options"} & set(told)


def test_a_world_of_ones_own_keeps_its_options_in_one():
    experiment = dataclasses.replace(Experiment.load("battlesnake-ppo"), env=EnvSettings(name="corridor", options={"cells": 9}))
    (key,) = (key for key in keys(experiment) if key.key.startswith("env.options"))
    assert (key.key, key.value) == ("env.options", {"cells": 9})
