from __future__ import annotations

import argparse
import json
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import envs
from agents.networks import build
from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError
from procsnake.cli.measure import benchmark_battlesnake
from train.comparison import battlesnake_benchmark
from train.comparison.battlesnake_benchmark import (
    CONTENDERS,
    USUAL,
    benchmark,
    experiment_of,
    rows_of,
)
from train.runs.curves.statistics import (
    SeedEstimate,
    bootstrap_interval,
    mean,
    mean_line,
    ratio,
    reached,
)

HAS_MXNET = find_spec("mxnet") is not None


def columns(minutes, episodes, values):
    pairs = {"minutes": minutes, "episodes": episodes, "episode_return_mean": values}
    return {name: np.array(column, np.float64) for name, column in pairs.items()}


def test_the_mean_has_students_interval():
    # t.975 with 2 degrees of freedom is 4.302653; the standard error of 1, 2, 3 is 1/sqrt(3).
    found = mean([1.0, 2.0, 3.0])
    assert (found.value, found.low) == pytest.approx((2.0, 2.0 - 4.302653 / math.sqrt(3)), abs=1e-5)
    assert math.isnan(mean([5.0]).low)


def test_a_ratio_is_that_of_geometric_means_with_welchs_interval():
    # Logarithms ln 2 and ln 8 around ln 4 against a baseline that doesn't vary: standard error
    # ln(4)/2, 1 degree of freedom, whose t.975 is tan(0.475 pi) = 12.7062.
    found = ratio([2.0, 8.0], [1.0, 1.0])
    assert found.value == pytest.approx(4.0)
    assert found.high == pytest.approx(
        4.0 * math.exp(math.tan(0.475 * math.pi) * math.log(4) / 2), rel=1e-6
    )
    assert found.low * found.high == pytest.approx(16.0)


def test_a_ratio_of_one_seed_has_no_interval_and_of_nothing_no_value():
    assert ratio([30.0], [3.0]).value == pytest.approx(10.0)
    assert math.isnan(ratio([30.0], [3.0]).low)
    assert math.isnan(ratio([0.0], [3.0]).value)
    assert math.isnan(ratio([math.nan], [3.0]).value)
    assert ratio([6.0, 6.0], [2.0, 2.0]).low == pytest.approx(3.0)


def test_estimates_go_through_json():
    for estimate in (SeedEstimate(2.0), SeedEstimate(math.nan), SeedEstimate(2.0, 1.0, 3.0)):
        text = json.dumps(estimate.to_dict(), allow_nan=False)
        assert SeedEstimate.from_dict(json.loads(text)).text() == estimate.text()


def test_what_was_reached_counts_each_episode_of_the_last_fifth_the_same():
    run = columns([1, 7.9, 8.5, 9, 10], [50, 50, 1, 0, 3], [100, 100, 10, math.nan, 2])
    assert reached(run, "episode_return_mean", 10) == pytest.approx((10 + 3 * 2) / 4)
    assert math.isnan(reached(run, "episode_return_mean", 100))


def test_seeds_are_brought_onto_one_grid_before_they_are_averaged():
    """Two seeds that rise alike but were measured at different times: no zigzag, and where one is
    missing no point.
    """
    early = np.arange(0.0, 10.0, 0.7)
    late = np.arange(1.0, 12.0, 1.3)
    runs = [
        columns(x, np.ones(len(x)), 5 * x + offset) for x, offset in ((early, 0.0), (late, 10.0))
    ]
    line = mean_line("x", runs, "episode_return_mean", points=30)
    assert (line.x[0], line.x[-1]) == (1.0, pytest.approx(early[-1]))
    np.testing.assert_allclose(line.y, 5 * line.x + 5, atol=1.5)
    assert (np.diff(line.y) > 0).all()
    np.testing.assert_allclose(line.high - line.low, 10.0, atol=3.0)


def test_a_point_is_the_mean_of_the_episodes_around_it_each_counting_the_same():
    run = columns([0, 0.9, 1.0, 1.1, 2.0], [1, 1, 2, 5, 1], [0, 8, 4, 2, 6])
    line = mean_line("x", [run], "episode_return_mean", points=3)
    np.testing.assert_allclose(line.x, [0.0, 1.0, 2.0])
    # (8 + 2 * 4 + 5 * 2) / 8 episodes at minute 1.04, a straight line from 0 at 0.
    assert line.y[1] == pytest.approx(26 / 8 / ((0.9 + 2 + 5.5) / 8))
    assert line.low is None


def test_what_was_measured_now_and_then_is_met_by_the_line():
    run = columns(
        np.arange(101.0),
        np.ones(101),
        np.where(np.arange(101) % 50 == 0, np.arange(101.0) ** 2, math.nan),
    )
    line = mean_line("x", [run], "episode_return_mean", points=101)
    np.testing.assert_allclose(line.y[[0, 25, 50, 100]], [0, 1250, 2500, 10_000])


def test_what_a_longer_run_went_on_to_do_is_no_part_of_the_shorter_ones_end():
    long, short = (
        columns(np.arange(n + 1.0), np.ones(n + 1), np.minimum(np.arange(n + 1.0), 10.0))
        for n in (1000, 10)
    )
    assert mean_line("x", [long, short], "episode_return_mean", points=11).y[-1] == pytest.approx(
        10.0
    )


def test_without_a_common_stretch_there_is_no_line():
    runs = [columns([1.0, 2.0], [1, 1], [0, 1]), columns([3.0, 4.0], [1, 1], [0, 1])]
    assert not len(mean_line("x", runs, "episode_return_mean").x)
    assert not len(mean_line("x", runs[:1], "never_measured").x)


def test_the_interval_is_that_of_scipys_bootstrap():
    values = np.random.default_rng(1).normal(3.0, 2.0, size=(12, 2))
    found = bootstrap_interval(values)
    expected = scipy.stats.bootstrap(
        (values,), np.mean, axis=0, method="percentile", n_resamples=20_000, rng=0
    )
    np.testing.assert_allclose(found, expected.confidence_interval, atol=0.12)
    assert (bootstrap_interval(values) == found).all()


def test_all_play_the_same_board_for_the_same_time():
    made = {name: experiment_of(name, minutes=15, seed=2, cores=4) for name in CONTENDERS}
    for experiment in made.values():
        options = experiment.env.options
        assert (options["width"], options["height"], options["num_snakes"], options["rewards"]) == (
            11,
            11,
            4,
            "starter-pack",
        )
        assert (
            experiment.budget.max_minutes,
            experiment.budget.total_agent_steps,
            experiment.seed,
        ) == (15, None, 2)
    assert {made[name].num_env_runners for name in ("dqn-all", "apex")} == {4}
    assert made["dqn-1"].num_env_runners == 0
    frozen = made["mxnet-dqn"].settings
    # The starter pack's own values (its command line's defaults).
    assert (frozen.update_every, frozen.batch_size, frozen.lr_start, frozen.gamma, frozen.tau) == (
        20,
        64,
        5e-4,
        0.95,
        1e-3,
    )
    assert (frozen.eps_start, frozen.eps_end, frozen.eps_decay, frozen.mask_actions) == (
        1.0,
        0.01,
        0.995,
        False,
    )


def test_in_the_equal_baseline_only_trainer_and_network_differ():
    made = {name: experiment_of(name, minutes=15, seed=0, cores=2) for name in CONTENDERS}
    equal = made["mxnet-equal"]
    assert equal.env == made["dqn-1"].env == made["ppo"].env
    assert equal.settings.mask_actions
    world = envs.make("battlesnake", **{**equal.env.options, "num_games": 1})
    shape = world.single_observation_space.shape
    build("starter-pack", shape, 3, kind=equal.network.name, **equal.network.options)


def test_ratios_are_to_both_baselines_and_no_two_columns_have_one_name(monkeypatch):
    reward = {"mxnet-dqn": 2.0, "mxnet-equal": 10.0, "ppo": 40.0}
    keys = (*battlesnake_benchmark._FIGURES, "policy_won")
    monkeypatch.setattr(
        battlesnake_benchmark,
        "_figures_of",
        lambda runs, minutes: {key: [reward[runs[0].name]] for key in keys},
    )
    monkeypatch.setattr(battlesnake_benchmark, "_curves_of", lambda runs: {})
    result = battlesnake_benchmark._measure({name: [Path(name)] for name in reward}, 1, 2)
    heads, rows = rows_of(result)
    assert len(set(heads)) == len(heads)
    cells = dict(zip(heads, rows[-1], strict=True))
    assert (cells["reward, × mxnet-dqn"], cells["reward, × mxnet-equal"]) == ("20", "4")


def test_curves_are_drawn_from_the_kept_result(monkeypatch):
    histories = {
        "a": columns([1, 2, 3], [10, 10, 10], [0.0, 3.0, 6.0]),
        "b": columns([1, 2, 3], [10, 10, 10], [2.0, 5.0, 8.0]),
    }
    for history in histories.values():
        history["episode_len_mean"] = history["episode_return_mean"]
    monkeypatch.setattr(battlesnake_benchmark, "read_columns", lambda run: histories[run.name])
    curves = battlesnake_benchmark._curves_of([Path("a"), Path("b")])
    kept = json.loads(json.dumps({"contenders": {"ppo": {"curves": curves}}}))
    reward = battlesnake_benchmark.charts_of(kept)[0].lines[0]
    assert (reward.x[0], reward.x[-1]) == (1, 3)
    # The two seeds' ends are 6 and 8, between which the bootstrap's interval of two seeds lies.
    assert (reward.low[-1], reward.y[-1], reward.high[-1]) == (6, 7, 8)


def test_the_help_has_the_contenders_that_are_usual():
    parser = argparse.ArgumentParser()
    benchmark_battlesnake.add_options(parser)
    assert ",".join(USUAL) in "".join(parser.format_help().split())


def test_mistakes_are_told(tmp_path):
    with pytest.raises(UnknownNameError, match="apex"):
        benchmark(minutes=1, seeds=1, out=tmp_path, contenders=["apx"])
    with pytest.raises(ConfigError, match="minutes"):
        benchmark(minutes=0, seeds=1, out=tmp_path, contenders=USUAL)


@pytest.mark.skipif(HAS_MXNET, reason="MXNet is installed")
def test_without_mxnet_nothing_is_begun(tmp_path):
    with pytest.raises(MissingDependencyError, match="the readable DQN needs mxnet"):
        benchmark(minutes=1, seeds=1, out=tmp_path / "out", contenders=["ppo", "mxnet-dqn"])
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.skipif(not HAS_MXNET, reason="the extra [mxnet] is not installed")
def test_finished_seeds_are_not_run_again(tmp_path):
    said: list[str] = []
    first = benchmark(
        minutes=0.01, seeds=1, out=tmp_path, contenders=["mxnet-dqn"], say=said.append
    )
    runs = sorted((tmp_path / "runs").iterdir())
    again = benchmark(
        minutes=0.01, seeds=1, out=tmp_path, contenders=["mxnet-dqn"], say=said.append
    )
    assert sorted((tmp_path / "runs").iterdir()) == runs
    assert "finished before" in said[-1]
    assert again == first == json.loads((tmp_path / "benchmark.json").read_text())
    assert first["contenders"]["mxnet-dqn"]["ratio"]["mxnet-dqn"]["agent_steps"]["value"] == 1.0
    assert (tmp_path / "benchmark.png").read_bytes().startswith(b"\x89PNG")
    assert "MXNet DQN" in (tmp_path / "benchmark.html").read_text()
