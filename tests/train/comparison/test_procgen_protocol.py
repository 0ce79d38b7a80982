from __future__ import annotations

import pytest

from envs.common.errors import ConfigError, UnknownNameError
from train.comparison.procgen_protocol import PRESETS, Protocol, preset


def test_the_papers_protocols():
    """Cobbe et al. 2020: easy is 25 M steps on 200 levels, hard 200 M on 500 (sections 2.2 and
    2.3); sixteen games.
    """
    easy = PRESETS["easy"]
    hard = PRESETS["hard"]
    assert (easy.distribution_mode, easy.levels, easy.steps) == ("easy", "train:200", 25_000_000)
    assert (hard.distribution_mode, hard.levels, hard.steps) == ("hard", "train:500", 200_000_000)
    assert len(easy.games) == len(hard.games) == 16


def test_all_trainings_of_a_seed_come_before_the_next_seed_and_differ_in_game_and_seed_only():
    protocol = preset("small", seeds=2, overrides=("ppo.num_epochs=2",))
    experiments = [training.experiment for training in protocol.trainings(num_threads=1)]
    assert [(e.seed, e.env.name) for e in experiments] == [
        (seed, f"procgen/{game}") for seed in (0, 1) for game in ("coinrun", "starpilot", "bigfish")
    ]
    alike = set()
    for experiment in experiments:
        data = experiment.to_dict()
        data["env"]["name"] = data["name"] = data["seed"] = None
        alike.add(str(data))
        assert (experiment.budget.max_minutes, experiment.budget.total_agent_steps) == (30.0, None)
        assert (
            experiment.settings.num_epochs,
            experiment.settings.num_threads,
            experiment.evaluation,
        ) == (2, 1, None)
    assert len(alike) == 1


def test_the_algorithm_may_be_another_than_the_experiments():
    (training,) = preset("small", games=("maze",), seeds=1, overrides=("algorithm=dqn",)).trainings(
        num_threads=2
    )
    made = training.experiment
    assert (made.algorithm, made.env.name, made.settings.num_threads) == ("dqn", "procgen/maze", 2)


@pytest.mark.parametrize(
    ("override", "option"),
    [
        ("seed=7", "--seeds"),
        ("seed=0", "--seeds"),
        ("env.name=procgen/maze", "--games"),
        ("env.options.levels=train:500", "--levels"),
        ("env.options={}", "--levels"),
        ("env.options.distribution_mode=hard", "--mode"),
        ("budget.max_minutes=5", "--minutes"),
        ("budget={max_minutes: 5}", "--minutes"),
        ("budget.total_agent_steps=1000", "--steps"),
    ],
)
def test_what_is_the_protocols_own_is_not_overridden(override, option):
    with pytest.raises(ConfigError, match=f"{override.partition('=')[0]}.*ask for it by {option}"):
        preset("small", overrides=(override,)).trainings(num_threads=1)


def test_minutes_and_steps_take_each_others_place():
    assert (preset("small", steps=100).minutes, preset("easy", minutes=5.0).steps) == (None, None)


def test_unseen_levels_count_unless_all_are_trained_on():
    assert PRESETS["easy"].splits == ("train", "test")
    assert PRESETS["all"].splits == ("all",)


def test_hours_are_those_of_the_fullest_core():
    """Nine trainings of half an hour, two at a time, are five after each other."""
    assert preset("small").hours(jobs=2, steps_per_second=1) == 2.5
    assert preset("easy").hours(jobs=16, steps_per_second=1000) == pytest.approx(3 * 25_000 / 3600)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": 0}, "seeds is 0"),
        ({"minutes": float("nan")}, "minutes is nan"),
        ({"minutes": 1.0, "steps": 1}, "give one of them"),
        ({"games": ("maze", "maze")}, "once"),
        ({"games": ()}, "once"),
        ({"levels": "foo"}, "levels is 'foo'"),
        ({"levels": "test:200"}, "leaves none to measure on"),
    ],
)
def test_impossible_protocols_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        Protocol(
            **{
                "games": ("coinrun",),
                **({} if "minutes" in changes else {"minutes": 30.0}),
                **changes,
            }
        )


def test_wrong_names_are_refused():
    with pytest.raises(UnknownNameError, match="coinrun"):
        preset("small", games=("coinrum",))
    with pytest.raises(UnknownNameError, match="small"):
        preset("smal")
    with pytest.raises(ConfigError, match="trained in battlesnake"):
        preset("small", experiment="battlesnake-ppo").trainings(1)
