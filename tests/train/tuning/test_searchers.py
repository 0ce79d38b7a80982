from __future__ import annotations

import math
import sys

import pytest

from envs.common.errors import ConfigError
from tests.train.experiments import toy
from train.runs.folder import RunFolder
from train.settings.sections import Tune
from train.tuning.searchers import searcher_of, suggest
from train.tuning.space import parse_space
from train.tuning.tune import tune

optuna = pytest.importorskip("optuna", reason="the extra [optuna] is not installed")


def spaces_of(**texts):
    return {key.replace("__", "."): parse_space(key, text) for key, text in texts.items()}


def tried(settings, spaces, score, *, trials, seed=0):
    """What a searcher tries, if each trial's score is that of its values."""
    searcher = searcher_of(settings, spaces, seed=seed)
    values = []
    for number in range(trials):
        values.append(searcher.suggest(f"trial-{number}"))
        searcher.on_trial_complete(f"trial-{number}", {settings.metric: score(values[-1])})
    return values


def draws(spaces, count=60):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [suggest(study.ask(), spaces=spaces) for _ in range(count)]


@pytest.mark.parametrize("mode", ["max", "min"])
def test_later_trials_are_near_the_best_of_the_earlier_ones(mode):
    """The best rate is known: 1e-3. Chance draws a logarithm of 1e-6..1 that is 1.5 away from its
    own on average.
    """

    def score(values):
        away = abs(math.log10(values["ppo.learning_rate"]) + 3)
        return -away if mode == "max" else away

    settings = Tune(searcher="optuna", trials=40, mode=mode)
    values = tried(settings, spaces_of(ppo__learning_rate="1e-6..1:log"), score, trials=40)
    assert sum(abs(score(value)) for value in values[-20:]) / 20 < 0.75


def test_values_are_those_of_the_spaces():
    made = draws(
        spaces_of(
            ppo__num_epochs="2..4",
            ppo__gamma="0.5..0.9",
            ppo__gae_lambda="0.9..0.999:discount",
            seed="1e-4..1e-2:log",
            env=["a", [1, 2]],
        )
    )
    assert {values["ppo.num_epochs"] for values in made} == {2, 3, 4}
    assert all(0.5 <= values["ppo.gamma"] <= 0.9 for values in made)
    assert all(0.9 <= values["ppo.gae_lambda"] <= 0.999 for values in made)
    assert 0.3 < sum(values["ppo.gae_lambda"] > 0.99 for values in made) / len(made) < 0.7
    assert 0.3 < sum(values["seed"] < 1e-3 for values in made) / len(made) < 0.7
    assert all(values["env"] in ("a", [1, 2]) for values in made)


def test_an_algorithms_values_are_asked_for_with_it_only():
    made = draws(
        spaces_of(ppo__gamma="0.8..0.9", dqn__gamma="0.5..0.6", algorithm="ppo,dqn", seed="1..9")
    )
    assert {values["algorithm"] for values in made} == {"ppo", "dqn"}
    for values in made:
        assert set(values) == {"algorithm", "seed", f"{values['algorithm']}.gamma"}


def test_the_same_seed_tries_the_same_values():
    spaces = spaces_of(ppo__gamma="0.5..0.9")
    first, second, other = (
        tried(
            Tune(searcher="optuna"), spaces, lambda values: values["ppo.gamma"], trials=6, seed=seed
        )
        for seed in (1, 1, 2)
    )
    assert first == second != other


def test_population_based_training_chooses_its_own_values(tmp_path):
    experiment = (
        toy("identity")
        .override(["tune.scheduler=pbt", "tune.searcher=optuna"])
        .search(["ppo.gamma=0.5..0.9"])
    )
    with pytest.raises(ConfigError, match="so Optuna can't choose them"):
        tune(experiment, runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_optuna_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match="optuna"):
        tune(
            toy("identity").override(["tune.searcher=optuna"]).search(["ppo.gamma=0.5..0.9"]),
            runs_dir=tmp_path,
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_search_by_optuna_finds_the_learning_rate_that_learns(one_ray, tmp_path):
    """Under 1e-4 nothing is learned in 6 iterations; half of all random rates lie there, and asha
    ends those trials early.
    """
    changes = ["tune.searcher=optuna", "tune.scheduler=asha", "tune.trials=8", "tune.concurrent=2"]
    experiment = (
        toy("identity", steps=6 * 1024)
        .override(changes)
        .search(["ppo.learning_rate=1e-6..1e-2:log"])
    )
    said: list[str] = []
    result = tune(experiment, runs_dir=tmp_path, say=said.append)
    assert sum(line.startswith("trial ") for line in said) == len(result.trials) == 8
    best = result.trials[0]
    assert best.values["ppo.learning_rate"] > 1e-3
    assert RunFolder.open(best.run)[1].settings.learning_rate == best.values["ppo.learning_rate"]
