from __future__ import annotations

import dataclasses

import pytest
import yaml

from envs.battlesnake.observations import PLANE_SCALES, REACH_PLANE_SCALES
from envs.common.errors import ConfigError, UnknownNameError
from train.config import Experiment, list_experiments
from train.settings import ALGORITHMS, DQNSettings, PPOSettings

MINIMAL = {"name": "x", "env": {"name": "identity"}, "budget": {"total_agent_steps": 10}}


@pytest.mark.parametrize("name", list_experiments())
def test_shipped_experiments_load_and_survive_a_round_trip(name):
    experiment = Experiment.load(name)
    assert Experiment.from_dict(experiment.to_dict()) == experiment


def test_overrides_are_converted_to_the_type_of_their_key():
    experiment = Experiment.load(
        "battlesnake-ppo",
        [
            "ppo.learning_rate=3e-4",
            "ppo.num_steps=1e2",
            "ppo.target_kl=null",
            "env.options.num_games=8",
            "budget.max_minutes=2",
        ],
    )
    assert experiment.settings.learning_rate == 3e-4
    assert experiment.settings.num_steps == 100
    assert isinstance(experiment.settings.num_steps, int)
    assert experiment.settings.target_kl is None
    assert experiment.env.options["num_games"] == 8
    assert experiment.budget.max_minutes == 2.0


def test_overrides_of_one_load_are_not_in_the_next():
    shipped = Experiment.load("battlesnake-ppo")
    assert Experiment.load("battlesnake-ppo", ["env.options.num_games=3"]) != shipped
    assert Experiment.load("battlesnake-ppo") == shipped


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("ppo.learning_rat=1", "Did you mean 'ppo.learning_rate'"),
        ("pppo.gamma=1", "Did you mean 'ppo'"),
        ("algorithm=pppo", "Did you mean 'ppo'"),
        ("algorithm=[ppo]", "algorithm"),
    ],
)
def test_unknown_keys_and_names_are_refused_with_the_nearest(override, message):
    with pytest.raises(UnknownNameError, match=message):
        Experiment.load("battlesnake-ppo", [override])


@pytest.mark.parametrize(
    "override",
    [
        "ppo.num_steps=many",
        "ppo.num_steps=0",
        "ppo.gamma=1.5",
        "ppo.anneal_lr=2",
        f"ppo.learning_rate=1{400 * '0'}",
        "ppo=3",
        "seed=-1",
        "seed=4294967296",
        "no-equals",
        "name=a/b",
        "ppo.clip_coef=[1]",
        "ppo.learning_rate=[1]",
        "ppo.learning_rate=[[0, 1e-3]]",
        "ppo.learning_rate=[[0, 1e-3], [100, 2]]",
        "ppo.learning_rate=[[0, 1e-3], [100, fast]]",
        "ppo.ent_coef=[[10, 0.1], [20, 0.2]]",
        "ppo.ent_coef=[[0, 0.1], [20, 0.2], [20, 0.1]]",
        "evaluation={games: 10}",
        "evaluation={every_minutes: 1, opponents: [random]}",
        "evaluation={every_minutes: 1, games: 0}",
        "evaluation.ratings={random: strong, greedy: 1200}",
        "stop={metric: win_rate, at_least: much}",
    ],
)
def test_values_of_the_wrong_type_or_range_are_refused(override):
    with pytest.raises(ConfigError, match=override.split("=")[0].replace(".", r"\.")):
        Experiment.load("battlesnake-ppo", [override])


def test_ratings_are_numbers_however_yaml_reads_them():
    overrides = ["evaluation.every_minutes=1", "evaluation.ratings={flood: 1e3, greedy: 1200}"]
    ratings = Experiment.load("battlesnake-ppo", overrides).evaluation.ratings
    assert ratings == {"flood": 1000.0, "greedy": 1200.0}
    assert set(map(type, ratings.values())) == {float}


def test_a_section_that_a_run_left_empty_can_be_filled(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        yaml.safe_dump(Experiment.load("battlesnake-ppo", ["evaluation=null"]).to_dict())
    )
    assert "evaluation: null" in path.read_text()
    assert Experiment.load(path, ["evaluation.every_minutes=0.5"]).evaluation.every_minutes == 0.5


def test_a_schedule_is_a_number_or_knots():
    knots = Experiment.load(
        "battlesnake-ppo", ["ppo.learning_rate=[[0, 1e-3], [1e6, 0]]"]
    ).settings.learning_rate
    assert knots == [[0.0, 1e-3], [1e6, 0.0]]
    assert Experiment.load("battlesnake-ppo", ["ppo.ent_coef=1e-2"]).settings.ent_coef == 0.01


def test_an_experiment_keeps_the_section_of_its_own_algorithm_only():
    every = {name: dataclasses.asdict(settings()) for name, settings in ALGORITHMS.items()}
    old = {**MINIMAL, "algorithm": "dqn", **every, "dqn": {**every["dqn"], "gamma": 0.5}}
    experiment = Experiment.from_dict(old)
    assert (experiment.algorithm, experiment.settings.gamma) == ("dqn", 0.5)
    assert set(experiment.to_dict()) & {"settings", "algorithm", *ALGORITHMS} == {
        "algorithm",
        "dqn",
    }


def test_sections_of_other_algorithms_are_checked():
    with pytest.raises(ConfigError, match=r"apex\.gamma is 2"):
        Experiment.from_dict({**MINIMAL, "algorithm": "dqn", "apex": {"gamma": 2}})


def test_the_only_section_says_which_algorithm_trains():
    assert Experiment.from_dict(MINIMAL).settings == PPOSettings()
    assert Experiment.from_dict({**MINIMAL, "dqn": {"gamma": 0.5}}).settings == DQNSettings(
        gamma=0.5
    )
    with pytest.raises(ConfigError, match=r"sections for ppo and dqn.* add the key algorithm"):
        Experiment.from_dict({**MINIMAL, "dqn": {}, "ppo": {}})


def test_overrides_of_another_algorithm_are_refused():
    with pytest.raises(
        ConfigError, match=r"'dqn\.gamma=0\.5' is for dqn, but the experiment's algorithm is ppo"
    ):
        Experiment.load("battlesnake-ppo", ["dqn.gamma=0.5"])
    chosen = Experiment.load("battlesnake-ppo", ["dqn.gamma=0.5", "algorithm=dqn"])
    assert chosen.settings == DQNSettings(gamma=0.5)
    with pytest.raises(ConfigError, match=r"ppo\.gamma"):
        chosen.override(["ppo.gamma=0.5"])


@pytest.mark.parametrize("key", ["settings", "dqn.algorithm", "dqn.trainer", "dqn.uses_ray"])
def test_what_the_code_adds_is_no_key(key):
    with pytest.raises(UnknownNameError, match=key):
        Experiment.load("battlesnake-dqn", [f"{key}=x"])


def test_a_run_without_an_end_is_refused():
    with pytest.raises(ConfigError, match="budget"):
        Experiment.from_dict({**MINIMAL, "budget": {}})


def test_a_missing_key_is_named():
    with pytest.raises(ConfigError, match=r"env\.name"):
        Experiment.from_dict({**MINIMAL, "env": {}})


def test_unknown_experiments_and_unreadable_files(tmp_path):
    with pytest.raises(UnknownNameError, match="battlesnake-ppo"):
        Experiment.load("battlesnake-pp")
    with pytest.raises(ConfigError, match="no experiment file"):
        Experiment.load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"is a folder; an experiment is a \.yaml file"):
        Experiment.load(tmp_path)
    (tmp_path / "experiment.txt").write_text("")
    with pytest.raises(ConfigError, match=r"txt is a file that doesn't end in \.yaml"):
        Experiment.load(tmp_path / "experiment.txt")
    with pytest.raises(UnknownNameError, match="unknown experiment"):
        Experiment.load("x" * 300)
    (tmp_path / "config.yaml").write_text("")
    with pytest.raises(
        ConfigError, match=rf"is the folder of a run.*train --config {tmp_path}/config\.yaml"
    ):
        Experiment.load(tmp_path)
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="YAML"):
        Experiment.load(tmp_path / "bad.yaml")


@pytest.mark.parametrize(("reach", "planes"), [(True, 16), (False, 12)])
def test_a_network_asks_the_observation_for_the_scales_of_its_planes(reach, planes):
    experiment = Experiment.load(
        "battlesnake-ppo", [f"env.options.observation.reach={str(reach).lower()}"]
    )
    scales = experiment.network.options["scales"]
    assert scales == [*PLANE_SCALES, *REACH_PLANE_SCALES][:planes]
    assert Experiment.from_dict(experiment.to_dict()) == experiment


def test_other_observations_have_no_scales_to_ask_for():
    with pytest.raises(ConfigError, match="one number per plane"):
        Experiment.load("battlesnake-ppo", ["env.options.observation=flat-51s"])
