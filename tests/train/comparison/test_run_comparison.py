from __future__ import annotations

import json
import math
import shlex

import numpy as np
import pytest
import scipy.stats

import procsnake
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.measure.pages.reading import Page
from tests.train.runs.report.test_page import a_run
from train.comparison.run_comparison import compare_runs, rows_of
from train.runs.curves.statistics import difference, holm, mean_line, p_value, reached_at
from train.runs.folder import RunError

SLOW = (10.0, 11.0, 12.0)
FAST = (20.0, 22.0, 24.0)
OTHER = (9.0, 12.0, 13.5)


def columns(minutes, episodes, values, **more):
    pairs = {"minutes": minutes, "episodes": episodes, "episode_return_mean": values, **more}
    return {name: np.array(column, np.float64) for name, column in pairs.items()}


def test_the_test_and_the_interval_are_welchs():
    expected = scipy.stats.ttest_ind(FAST, OTHER, equal_var=False)
    assert p_value(FAST, OTHER) == pytest.approx(expected.pvalue)
    found = difference(FAST, OTHER)
    interval = expected.confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx(
        (10.5, interval.low, interval.high)
    )


def test_of_one_seed_there_is_a_difference_but_no_test():
    assert difference([3.0], SLOW).value == pytest.approx(-8.0)
    assert math.isnan(difference([3.0], SLOW).low)
    assert math.isnan(p_value([3.0], SLOW))
    assert math.isnan(difference([], SLOW).value)


def test_seeds_that_dont_vary_are_equal_or_not():
    assert (p_value([2.0, 2.0], [2.0, 2.0]), p_value([2.0, 2.0], [1.0, 1.0])) == (1.0, 0.0)


def test_several_p_values_are_adjusted_as_holm_did():
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1; the largest may not be below the one before it.
    assert holm([0.04, math.nan, 0.01, 0.02])[2] == pytest.approx(0.03)
    assert holm([0.04, math.nan, 0.01, 0.02]) == pytest.approx(
        [0.04, math.nan, 0.03, 0.04], nan_ok=True
    )
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_where_there_is_no_difference_one_in_twenty_tests_shows_one_at_most():
    draws = np.random.default_rng(0).normal(size=(1000, 2, 5))
    shown = sum(p_value(first, second) < 0.05 for first, second in draws)
    assert (
        25 <= shown <= 68
    )  # binomial, 1 in 20: ± 2.7 standard deviations; Welch's test errs downwards for few seeds


def test_what_a_run_had_reached_ignores_what_came_later_and_counts_each_episode_the_same():
    run = columns(
        [1, 7.9, 8.5, 10, 11],
        [50, 50, 1, 3, 99],
        [100, 100, 10, 2, 1000],
        agent_steps=[10, 79, 85, 100, 110],
    )
    assert reached_at(run, "episode_return_mean", 10) == pytest.approx((10 + 3 * 2) / 4)
    assert reached_at(run, "episode_return_mean", 100, by="agent_steps") == pytest.approx(
        (10 + 3 * 2) / 4
    )
    assert math.isnan(reached_at(run, "episode_return_mean", 0.5))


def test_what_was_measured_now_and_then_counts_by_its_last_value_before():
    run = columns([1, 2, 9, 10, 12], [1] * 5, [0] * 5, win_rate=[0.1, 0.3, math.nan, math.nan, 0.9])
    assert reached_at(run, "win_rate", 10) == 0.3


@pytest.mark.parametrize(
    "metric", ["win_rate_vs_flood", "mean_turns_vs_flood", "mean_length_vs_flood", "mean_kl_loss"]
)
def test_what_is_no_mean_over_episodes_does_not_depend_on_them(metric):
    """No episode of training ended in one of the iterations, as in all of a cloned policy, and many
    did in the other.
    """
    run = columns(
        [1, 8.5, 9, 10], [1, 0, 50, 1], [0] * 4, **{metric: [math.nan, 100, 200, math.nan]}
    )
    assert reached_at(run, metric, 10) == 150
    assert list(mean_line("", [run], metric, points=2).y) == [100, 200]


@pytest.fixture
def runs(tmp_path):
    """Three seeds each of three settings: returns of about 11, of about 22, and of 11.5 with more
    noise.
    """
    made = []
    for gamma, returns in ((0.5, SLOW), (0.9, FAST), (0.7, OTHER)):
        for seed, value in enumerate(returns):
            folder = tmp_path / f"{gamma}-{seed}"
            folder.mkdir()
            made.append(
                a_run(
                    folder,
                    name="snakes",
                    seed=seed,
                    ppo={"gamma": gamma},
                    columns={"episode_return_mean": value},
                )
            )
    return made


def test_groups_of_seeds_are_tested_against_the_first(runs):
    found = compare_runs(runs, ["episode_return_mean"])
    first, fast, other = found.results
    assert (found.by, found.at) == ("minutes", 0.5)
    assert (first.by_seed, first.verdict) == (list(SLOW), "")
    alone = [
        scipy.stats.ttest_ind(values, SLOW, equal_var=False).pvalue for values in (FAST, OTHER)
    ]
    assert (fast.difference.value, fast.p, fast.verdict) == (
        pytest.approx(11.0),
        pytest.approx(2 * alone[0]),
        "higher",
    )
    assert (other.p, other.verdict) == (pytest.approx(alone[1]), "no difference shown")
    turned = compare_runs(runs[3:6] + runs[:3], ["episode_return_mean"]).results[1]
    assert (turned.difference.value, turned.verdict) == (pytest.approx(-11.0), "lower")


def test_a_run_that_is_named_twice_is_one_seed(runs, tmp_path):
    """As with `procsnake compare runs/first runs/*`, which says what the others are compared
    with.
    """
    (tmp_path / "link").symlink_to(runs[0])
    again = [runs[0], *runs, tmp_path / "link", f"{runs[3]}/"]
    assert (
        compare_runs(again, ["episode_return_mean"]).results
        == compare_runs(runs, ["episode_return_mean"]).results
    )


def test_one_seed_says_so(runs):
    heads, rows = rows_of(compare_runs([*runs[:3], runs[3]], ["episode_return_mean"]))
    assert rows[1] == ["episode_return_mean", "snakes #2", "1", "20", "+9", "", "one seed: no test"]
    assert len(heads) == len(rows[0])


def test_what_cant_be_compared_is_refused(runs, tmp_path):
    with pytest.raises(ConfigError, match="nothing but their seeds"):
        compare_runs(runs[:3])
    with pytest.raises(ConfigError, match=r"ends at 0\.5 minutes"):
        compare_runs(runs, at=3.0)
    with pytest.raises(UnknownNameError, match="Did you mean 'win_rate'"):
        compare_runs(runs, ["winrate"])
    with pytest.raises(RunError, match="is not a run"):
        compare_runs([tmp_path, *runs])


def test_the_command_prints_writes_and_says_what_tells_the_groups_apart(
    runs, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = [
        "compare",
        *map(str, runs),
        *shlex.split("--metrics episode_return_mean --x agent_steps --at 2000"),
    ]
    assert procsnake.main(words) == 0
    told = capsys.readouterr().out
    assert "at 2,000 decisions" in told
    assert "snakes #2: ppo.gamma=0.9" in told
    assert [line.split()[-1] for line in told.splitlines() if "snakes #2  " in line] == ["higher"]
    page = Page((tmp_path / "outputs" / "compared.html").read_text())
    page.assert_needs_nothing_else()
    assert "higher" in page.text
    assert [line["name"] for line in next(iter(page.charts.values()))["lines"]] == [
        "snakes",
        "snakes #2",
        "snakes #3",
    ]
    assert procsnake.main([*words, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures == json.loads((tmp_path / "outputs" / "compared.json").read_text())
    assert figures["results"][1]["verdict"] == "higher"
