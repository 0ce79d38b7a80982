from __future__ import annotations

import inspect

import pytest

import agents
from agents.player import Player
from agents.search.evaluation.evaluate import CROWD, Weights
from agents.search.mcts import MCTS
from agents.search.options import ranges_of
from agents.search.tuning.parameters import (
    SEARCH_CLASSES,
    choose,
    flat,
    nested,
    parameters_of,
    search_of,
    with_values,
)
from envs.common.errors import ConfigError, UnknownNameError

EFFORT = {
    "policy",
    "nodes",
    "simulations",
    "cpu_ms",
    "margin_ms",
    "threads",
    "weights",
    "crowd_weights",
}
"""What a test of equal effort gives both players, and the weights, whose entries are parameters."""
CHOICES = {"root", "sample", "seed", "evaluation"}


@pytest.mark.parametrize("search", SEARCH_CLASSES)
def test_every_option_that_is_a_number_is_a_parameter_with_its_default(search):
    known = parameters_of(search)
    options = inspect.signature(SEARCH_CLASSES[search]).parameters
    numbers = set(options) - EFFORT - CHOICES
    groups = (
        {"weights": Weights(), "crowd_weights": CROWD}
        if search == "alphabeta"
        else {"weights": Weights()}
    )
    assert set(known) == numbers | {
        f"{group}.{name}" for group in groups for name in Weights._fields
    }
    for name in numbers:
        assert known[name].start == options[name].default
        assert known[name].is_integer == (type(options[name].default) is int)
    for group, usual in groups.items():
        for name, value in usual._asdict().items():
            assert known[f"{group}.{name}"].start == value
            assert known[f"{group}.{name}"].is_integer


@pytest.mark.parametrize("search", SEARCH_CLASSES)
def test_agents_take_both_ends_of_every_range(search):
    for name, one in parameters_of(search).items():
        for value in (one.low, one.high):
            made = agents.make(with_values(search, {name: one.plain(value)}))
            group, _, entry = name.rpartition(".")
            found = getattr(getattr(made, group), entry) if group else getattr(made, name)
            # Without a policy MCTS has no batches.
            assert found == one.plain(value) or name == "batch"


def test_a_player_brings_starting_values(tmp_path):
    known = parameters_of("alphabeta?near=3&weights.cell=9&nodes=70")
    assert (known["near"].start, known["weights.cell"].start, known["max_rivals"].start) == (
        3,
        9,
        2,
    )
    assert (
        with_values("alphabeta?near=3&weights.cell=9&nodes=70", {"near": 4, "weights.hunger": 5})
        == "alphabeta?near=4&nodes=70&weights.cell=9&weights.hunger=5"
    )
    crowd = parameters_of("alphabeta?weights.cell=9&crowd_weights.hunger=5")
    names = ("crowd_weights.cell", "crowd_weights.hunger", "crowd_weights.length", "weights.hunger")
    assert [crowd[name].start for name in names] == [9, 5, CROWD.length, Weights().hunger]


def test_what_is_asked_for_is_chosen_with_its_schedule():
    known = parameters_of("alphabeta")
    assert [one.name for one in choose(known, ["all"])] == list(known)
    assert [one.name for one in choose(known, ["weights"])] == [
        f"weights.{name}" for name in Weights._fields
    ]
    assert [one.name for one in choose(known, ["crowd_weights"])] == [
        f"crowd_weights.{name}" for name in Weights._fields
    ]
    near, cell, hunger = choose(
        known, ["near", "weights.cell:3", "weights.hunger:50:0.01"], r_end=0.05
    )
    assert (near.c_end, near.r_end) == (1, 0.05)
    assert (cell.c_end, cell.r_end) == (3, 0.05)
    assert (hunger.c_end, hunger.r_end) == (50, 0.01)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("weights.hungr", "unknown parameter 'weights.hungr'. Did you mean 'weights.hunger'"),
        ("hunger", "Did you mean 'weights.hunger'"),
        ("near:x", "NAME:C_END"),
        ("near:1:2:3", "NAME:C_END"),
        ("near:0", "c_end of near is 0"),
        ("near:1:-1", "r_end of near is -1"),
    ],
)
def test_what_cannot_be_tuned_is_refused(asked, told):
    with pytest.raises((ConfigError, UnknownNameError), match=told):
        choose(parameters_of("alphabeta"), [asked])


def test_a_start_outside_the_range_is_refused():
    with pytest.raises(ConfigError, match="near starts at 99; it must be from 1 to 24"):
        parameters_of("alphabeta?near=99")
    with pytest.raises(UnknownNameError, match="unknown search 'alphabeat'"):
        parameters_of("alphabeat")


@pytest.mark.parametrize("group", ["weights", "crowd_weights"])
def test_weights_without_names_are_refused(group):
    with pytest.raises(ConfigError, match="weights are 3; they must be given by name"):
        parameters_of(f"alphabeta?{group}=3")


def test_searches_are_known_with_policies_and_options():
    assert search_of("runs/first+mcts?near=3") == "mcts"
    assert search_of("alphabeta") == "alphabeta"
    assert search_of("battlesnake-ppo") is None


def test_options_are_nested_and_back():
    values = {"near": 3, "weights.cell": 9}
    assert nested(values) == {"near": 3, "weights": {"cell": 9}}
    assert flat(nested(values)) == values
    assert nested({"near": 3}) == {"near": 3}


def test_a_player_keeps_options_of_all_kinds_beside_values():
    given = "mcts?sample=true&cpu_ms=2.5&weights.cell=4"
    player = Player.of(with_values(given, {"near": 3, "weights.cell": 9}))
    assert player.made == "mcts"
    assert player.options == {"sample": True, "cpu_ms": 2.5, "near": 3, "weights": {"cell": 9}}
    assert agents.make(with_values(given, {"near": 3})).sample is True


def test_only_annotated_arguments_have_ranges():
    assert set(ranges_of(Weights)) == set(Weights._fields)
    assert "seed" not in ranges_of(MCTS)
