from __future__ import annotations

import csv
import math
import random
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from envs.common.errors import ConfigError, UnknownNameError
from tests.train.experiments import toy
from train.config import Experiment
from train.run import train
from train.runs.folder import RunError, RunFolder
from train.settings.sections import Tune
from train.tuning.space import Choice, NumberRange, parse_space, with_values
from train.tuning.tune import Trial, _scheduler, best_first, table, tune


def draws(space, count=2000):
    domain = space.domain()
    return [domain.sample(random_state=np.random.default_rng(k)) for k in range(count)]


def test_a_range_of_whole_numbers_has_both_ends():
    space = parse_space("k", "2..5")
    assert space == NumberRange(2, 5, "", whole=True)
    assert sorted(set(draws(space, 200))) == [2, 3, 4, 5]


@pytest.mark.parametrize("text", ["1e5..1e6:log", "100_000 .. 1e6:log"])
def test_a_whole_number_may_have_an_exponent(text):
    space = parse_space("dqn.replay_capacity", text)
    assert space == NumberRange(100_000, 1_000_000, "log", whole=True)
    assert set(map(type, draws(space, 20))) == {int}


@pytest.mark.parametrize("text", ["1.0..2.0", "1.5e3..1e6", "1e-1..1e1"])
def test_a_point_or_a_fraction_at_an_end_gives_fractions(text):
    assert not parse_space("k", text).whole


@pytest.mark.parametrize(("text", "log"), [("1e-4..1e-2:log", True), ("0.0001..0.01", False)])
def test_a_range_is_drawn_evenly_or_by_the_logarithm(text, log):
    seen = np.array(draws(parse_space("k", text)))
    assert seen.min() >= 1e-4
    assert seen.max() <= 1e-2
    # Half of the draws lie below the middle: of the logarithms 1e-3, of the numbers themselves
    # 5.05e-3.
    assert np.mean(seen < (1e-3 if log else 5.05e-3)) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,2.5,yes,3e-4,1e5", (1, 2.5, True, 3e-4, 100_000)), (["a", [1]], ("a", [1]))],
)
def test_choices_keep_their_types(text, values):
    space = parse_space("k", text)
    assert space == Choice(values)
    assert list(map(type, space.values)) == list(map(type, values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5..2",
        "0..1:log",
        "1..2:ln",
        "a..b",
        "1..2..3",
        "1..inf",
        "1..1e400",
        "0.9..1:discount",
        7,
        [],
    ],
)
def test_other_texts_are_no_search_space(text):
    with pytest.raises(ConfigError, match=r"ppo\.gamma"):
        parse_space("ppo.gamma", text)


def explored(search, values, count=4000):
    """What population-based training makes of a trial's `values`, as often as that."""
    spaces = {key: parse_space(key, text) for key, text in search.items()}
    scheduler = _scheduler(Tune(scheduler="pbt", search=search), spaces)
    trial = SimpleNamespace(config=values)
    random.seed(0)
    np.random.seed(0)
    return [scheduler._get_new_config(trial, trial)[0] for _ in range(count)]


def test_population_based_training_can_tune_a_discount():
    search = Experiment.load("procgen-pbt").tune.search
    new = explored({"ppo.gamma": search["ppo.gamma"]}, {"ppo.gamma": 0.99})
    seen = np.array([config["ppo.gamma"] for config in new])
    assert 0.9 <= seen.min() <= seen.max() <= 0.999
    # A quarter is drawn anew; of the others 1 - gamma is 0.01 · 1.2 or 0.01 / 1.2.
    assert np.mean((seen > 0.98) & (seen < 0.998)) > 0.75
    assert np.mean(np.isclose(1 - seen, 0.012)) == pytest.approx(0.375, abs=0.03)


@pytest.mark.parametrize(
    ("space", "value"),
    [("0.95..0.99", 0.97), ("1.0e-3..1.2e-3:log", 1.1e-3), ("100..120", 110), ("1..4:log", 2)],
)
def test_values_of_a_narrow_range_do_not_all_go_to_its_ends(space, value):
    parsed = parse_space("k", space)
    up = parsed.moved(value, up=True)
    down = parsed.moved(value, up=False)
    assert parsed.low <= down < value < up <= parsed.high
    assert parsed.moved(parsed.high, up=True) == parsed.high
    seen = [config["k"] for config in explored({"k": space}, {"k": value}, 200)]
    assert np.mean([parsed.low < one < parsed.high for one in seen]) > 0.4
    assert parsed.low <= min(seen) <= max(seen) <= parsed.high


def test_population_based_training_keeps_to_the_choices():
    new = explored(
        {"ppo.num_epochs": "1,2,4", "ppo.optimizer": "adam,muon"},
        {"ppo.num_epochs": 2, "ppo.optimizer": "adam"},
        100,
    )
    assert {config["ppo.num_epochs"] for config in new} == {1, 2, 4}
    assert {config["ppo.optimizer"] for config in new} == {"adam", "muon"}


def test_a_discount_is_drawn_by_the_logarithm_of_what_is_missing_to_one():
    seen = np.array(draws(parse_space("ppo.gamma", "0.9..0.999:discount")))
    assert 0.9 <= seen.min() < 0.91
    assert 0.998 < seen.max() <= 0.999
    assert np.mean(seen < 0.99) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        ("ppo.learning_rat=1..2", UnknownNameError, "Did you mean 'ppo.learning_rate'"),
        ("ppo.gamma=0.5..1.5", ConfigError, "ppo.gamma is 1.5"),
        (
            "ppo.num_steps=1.5e1..2e2",
            ConfigError,
            r"ppo.num_steps would draw .*ppo.num_steps is .*type int.*without a point",
        ),
        ("ppo.num_steps=16..64.0", ConfigError, r"ppo.num_steps would draw numbers such as 45\.6"),
        ("network.name=mlp,mpl", UnknownNameError, "Did you mean 'mlp'"),
        ("no-equals", ConfigError, "no-equals"),
        (
            "network.options.hidden_sizes=[64,64],[128,128]",
            ConfigError,
            r"hidden_sizes='\[64,64\],\[.*tune\.search",
        ),
        (
            "dqn.gamma=0.5..0.9",
            ConfigError,
            "dqn.gamma.* is for dqn, but the experiment's algorithm is ppo",
        ),
    ],
)
def test_a_search_that_can_not_be_is_refused_before_anything_starts(
    tmp_path, search, error, message
):
    with pytest.raises(error, match=message):
        tune(toy("identity").search([search]), runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_options_of_a_world_may_be_whole_numbers_too(tmp_path, monkeypatch):
    checked = []
    monkeypatch.setattr("train.tuning.tune.check", checked.append)
    monkeypatch.setattr("train.tuning.tune.running_ray", lambda *_: pytest.fail("all were checked"))
    with pytest.raises(pytest.fail.Exception, match="all were checked"):
        tune(toy("identity").search(["env.options.num_games=4..1e2"]), runs_dir=tmp_path)
    assert [repr(experiment.env.options["num_games"]) for experiment in checked] == ["4", "100"]


def test_a_file_in_the_place_of_the_runs_is_told_before_anything_is_tried(tmp_path, monkeypatch):
    monkeypatch.setattr("train.tuning.tune.check", lambda _: pytest.fail("an experiment was tried"))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file is a file where a folder is needed"):
        tune(toy("identity").search(["ppo.gamma=0.5..0.6"]), runs_dir=tmp_path / "file")


TWO_ALGORITHMS = ["algorithm=ppo,dqn", "ppo.gamma=0.8..0.9", "dqn.gamma=0.5..0.6"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("dqn.gamma=0.5..1.5", "dqn.gamma is 1.5"),
        ("apex.gamma=0.5..0.6", "apex, but the search tries the algorithms ppo, dqn"),
    ],
)
def test_a_search_over_algorithms_checks_each_ones_values_with_it(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        tune(toy("identity").search([*TWO_ALGORITHMS, change]), runs_dir=tmp_path)


def test_population_based_training_takes_one_algorithm(tmp_path):
    with pytest.raises(ConfigError, match="pbt copies a trial's weights"):
        tune(
            toy("identity").override(["tune.scheduler=pbt"]).search(TWO_ALGORITHMS),
            runs_dir=tmp_path,
        )


def test_values_with_commas_in_them_are_listed_in_yaml():
    chosen = toy("identity").override(
        ["tune.search={network.options.hidden_sizes: [[64, 64], [128, 128]]}"]
    )
    ((key, text),) = chosen.tune.search.items()
    assert parse_space(key, text) == Choice(([64, 64], [128, 128]))


def test_values_apply_to_trials_of_their_algorithm_only():
    values = {"algorithm": "dqn", "ppo.gamma": 0.8, "dqn.gamma": 0.5, "seed": 3}
    made = with_values(toy("identity"), values)
    assert (made.algorithm, made.settings.gamma, made.seed) == ("dqn", 0.5, 3)
    assert with_values(toy("identity"), {**values, "algorithm": "ppo"}).settings.gamma == 0.8


@pytest.mark.parametrize(("mode", "order"), [("max", [0.9, 0.5]), ("min", [0.5, 0.9])])
def test_a_trial_that_failed_or_has_no_score_is_never_the_best(mode, order):
    trials = [
        Trial(Path("x"), {}, score, 100, error)
        for score, error in ((math.nan, ""), (0.5, ""), (0.7, "it fell"), (0.9, ""))
    ]
    assert [trial.score for trial in best_first(trials, mode)[:2]] == order


def test_nothing_to_search_is_said():
    with pytest.raises(ConfigError, match="--search"):
        tune(toy("identity"))


@pytest.mark.parametrize(
    ("search", "room"),
    [
        (["num_env_runners=0,2"], [{"CPU": 1.0}] * 3),
        (["num_env_runners=1..4", "num_learners=0,2"], [{"CPU": 1.0}] * 7),
        (
            ["num_learners=2,3", "num_gpus_per_learner=0,1"],
            [{"CPU": 1.0}] + [{"CPU": 1.0, "GPU": 1.0}] * 3,
        ),
        (["num_gpus_per_learner=0,1"], [{"CPU": 1.0, "GPU": 1.0}]),
        (["ppo.gamma=0.5..0.9"], [{"CPU": 1.0}]),
    ],
)
def test_there_is_room_for_the_largest_trial(tmp_path, monkeypatch, search, room):
    """Otherwise its processes would wait for ever."""
    seen = []
    ended = [Trial(tmp_path, {}, 1.0, 100, "")]
    monkeypatch.setattr(
        "train.tuning.tune.running_ray",
        lambda num_cpus, cluster: nullcontext(seen.append(num_cpus)),
    )
    monkeypatch.setattr("train.tuning.tune._search", lambda *given: seen.append(given[-2]) or ended)
    tune(toy("identity").override(["tune.concurrent=2"]).search(search), runs_dir=tmp_path)
    assert seen == [2 * len(room), room]


def searched(tmp_path, *overrides, search=("ppo.learning_rate=1e-6,1e-2",), steps=8 * 1024):
    said: list[str] = []
    result = tune(
        toy("identity", steps=steps).override(overrides).search(search),
        runs_dir=tmp_path,
        say=said.append,
    )
    return result, said


@pytest.mark.long
def test_trials_are_runs_and_the_best_experiment_is_written_down(one_ray, tmp_path):
    """One learning rate learns in 8 iterations and the other doesn't, so the best is known
    beforehand.
    """
    result, said = searched(tmp_path, "tune.trials=4", "tune.concurrent=2", "seed=1")
    assert said[0] == f"4 trials, 2 at a time, in {result.path}"
    assert sum(line.startswith("trial ") for line in said) == len(result.trials) == 4
    rates = [trial.values["ppo.learning_rate"] for trial in result.trials]
    assert set(rates) == {1e-6, 1e-2}
    assert rates == sorted(rates, reverse=True)
    scores = [trial.score for trial in result.trials]
    assert scores == sorted(scores, reverse=True)
    for trial in result.trials:
        folder, experiment = RunFolder.open(trial.run)
        assert experiment.settings.learning_rate == trial.values["ppo.learning_rate"]
        assert float(folder.curve()[-1]["episode_return_mean"]) == pytest.approx(trial.score)
        assert (trial.run / "bundle" / "card.json").is_file()
        assert (trial.run / "report.html").is_file()
    best = Experiment.load(result.best_config)
    assert best.settings.learning_rate == 1e-2
    assert train(best, runs_dir=tmp_path, on_iteration=lambda row: True).path.is_dir()
    with open(result.path / "trials.csv") as file:
        assert [row["ppo.learning_rate"] for row in csv.DictReader(file)] == [
            str(rate) for rate in rates
        ]
    assert table(result).count("\n") == 4


@pytest.mark.long
def test_each_algorithm_gets_its_own_values(one_ray, tmp_path):
    result, said = searched(tmp_path, "tune.trials=4", "seed=1", search=TWO_ALGORITHMS, steps=2048)
    assert {trial.values["algorithm"] for trial in result.trials} == {"ppo", "dqn"}
    for trial in result.trials:
        own = trial.values["algorithm"]
        assert set(trial.values) == {"algorithm", f"{own}.gamma"}
        settings = RunFolder.open(trial.run)[1].settings
        assert (settings.algorithm, settings.gamma) == (own, trial.values[f"{own}.gamma"])
    with open(result.path / "trials.csv") as file:
        rows = list(csv.DictReader(file))
    assert all(
        bool(row[f"{name}.gamma"]) == (row["algorithm"] == name)
        for row in rows
        for name in ("ppo", "dqn")
    )
    assert sum(line.startswith("trial ") for line in said) == 4


def stopped_at(scheduler, name, scores):
    """The percent of its budget at which the scheduler stops a trial with these scores by percent;
    None if it never does.

    At 100 % a trial ends by itself.
    """
    from ray.tune.experiment import Trial

    trial = Trial("trial", stub=True, trial_id=name)
    scheduler.on_trial_add(None, trial)
    results = ({"percent_done": percent, "win_rate": scores(percent)} for percent in range(1, 100))
    decided = (scheduler.on_trial_result(None, trial, one) for one in results)
    return next(
        (percent for percent, decision in enumerate(decided, 1) if decision == "STOP"), None
    )


def test_asha_stops_trials_at_11_and_33_percent_and_lets_the_others_end():
    """A trial that is stopped has no last evaluation, and leaves no policy."""
    scheduler = _scheduler(Tune(scheduler="asha", metric="win_rate"), {})
    assert stopped_at(scheduler, "first", lambda percent: 0.5) is None
    assert stopped_at(scheduler, "bad", lambda percent: 0.1) == 11
    assert (
        stopped_at(scheduler, "no longer better", lambda percent: 0.6 if percent < 30 else 0.4)
        == 33
    )
    assert (
        stopped_at(
            scheduler, "good, but not the best", lambda percent: 0.6 if percent < 90 else 0.4
        )
        is None
    )


@pytest.mark.long
def test_asha_stops_bad_trials_early_and_they_can_be_resumed(one_ray, tmp_path):
    result, _ = searched(
        tmp_path, "tune.trials=6", "tune.scheduler=asha", "tune.concurrent=2", steps=30 * 1024
    )
    done = [trial.percent_done for trial in result.trials]
    assert done[0] == 100
    assert min(done) < 40
    stopped = next(trial.run for trial in result.trials if trial.percent_done < 100)
    iterations = len(RunFolder(stopped).curve())
    assert (
        train(resume=stopped, on_iteration=lambda row: True).metrics["iteration"] == iterations + 1
    )


@pytest.mark.long
def test_population_based_training_hands_on_weights_and_changes_values(one_ray, tmp_path):
    """A trial that learns nothing at 1e-6 can only have a return above chance by what it took over
    from one that does. All trials take part, however few may run at a time.
    """
    result, _ = searched(
        tmp_path,
        "tune.trials=3",
        "tune.scheduler=pbt",
        "seed=1",
        steps=30 * 1024,
    )
    assert all(trial.score > 0.6 for trial in result.trials)
    for trial in result.trials:
        iterations = [int(row["iteration"]) for row in RunFolder(trial.run).curve()]
        assert iterations == list(range(1, len(iterations) + 1))
