from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

from agents.measure.evaluation.procgen import POLICY, RANDOM, evaluate
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.procgen.scores import EASY
from procsnake import main
from train.comparison.procgen_benchmark import _aggregates, benchmark, comparable
from train.comparison.procgen_page import _aggregates as aggregates_on_page
from train.comparison.procgen_protocol import preset
from train.runs.folder import BUNDLE

SMALL = (
    "env.options.num_games=4", "ppo.num_steps=8", "ppo.num_minibatches=2", "ppo.num_epochs=1",
    "network.options.depths=[2, 2, 2]", "network.options.hidden=8",
)  # fmt: skip


def protocol(**changes):
    chosen = {
        "games": ("coinrun", "maze"),
        "seeds": 2,
        "steps": 64,
        "episodes": 4,
        "overrides": SMALL,
    }
    return preset("small", **{**chosen, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmark")
    said = []
    return benchmark(protocol(), out=out, jobs=2, say=said.append), out, said


@pytest.mark.long
def test_scores_are_those_that_the_runs_policies_have_when_they_are_evaluated(made):
    found, out, _ = made
    policies = [score for score in found["scores"] if score["player"] == POLICY]
    assert [(s["game"], s["split"]) for s in policies] == [
        (game, split)
        for game in ("coinrun", "maze")
        for _ in range(2)
        for split in ("train", "test")
    ]
    again = evaluate(
        [str(out / found["runs"]["maze, seed 1"] / BUNDLE)], levels="test", episodes=4, threads=1
    )[0].score
    assert policies[-1] == json.loads(json.dumps(again.to_dict()))
    assert again.levels == "test:200"


@pytest.mark.long
def test_aggregates_are_those_of_the_unseen_levels(made):
    found, _, _ = made
    unseen = [s for s in found["scores"] if (s["player"], s["split"]) == (POLICY, "test")]
    normalised = [
        (s["mean_return"] - EASY[s["game"]].blind)
        / (EASY[s["game"]].highest - EASY[s["game"]].blind)
        for s in unseen
    ]
    aggregates = {one["name"]: one["value"] for one in found["aggregates"]}
    assert aggregates["mean"] == pytest.approx(np.mean(normalised))
    assert aggregates["optimality gap"] == pytest.approx(np.mean(1 - np.minimum(normalised, 1)))


@pytest.mark.long
def test_nothing_that_is_there_is_done_again(made):
    found, out, said = made
    assert sum(line.endswith("training …") for line in said) == 4
    files = {
        path: path.stat().st_mtime_ns
        for path in [*out.glob("runs/*/config.yaml"), *out.glob("scores/*")]
    }
    again = []
    assert benchmark(protocol(), out=out, jobs=2, say=again.append) == found
    assert [line for line in again if "before" not in line] == []
    assert files == {path: path.stat().st_mtime_ns for path in files}
    # With other episodes it is measured again, but not trained.
    benchmark(protocol(episodes=8), out=out, jobs=2, say=again.append)
    assert sum("measuring" in line for line in again) == 2


@pytest.mark.long
def test_the_page_has_each_games_row_curve_and_film(made):
    _, out, _ = made
    page = (out / "benchmark.html").read_text()
    assert page.count("data:video/mp4") == 2
    assert "An episode of each game: the one in the middle" in page
    # What made it is told in words, not as Python writes it.
    assert "[&#x27;" not in page
    assert ">None<" not in page
    assert {"8.2", "5.3"} <= set(re.findall(r">([\d.]+)<", page)), (
        "OpenAI's PPO after 8 M steps on unseen levels of both games"
    )
    assert "http" not in re.sub(
        r"http://www\.w3\.org/\S+", "", page.split("</style>")[-1].split("<script")[0]
    )


@pytest.mark.long
def test_a_benchmark_is_level_with_itself_and_not_compared_with_other_games(made):
    _, out, _ = made
    file = str(out / "benchmark.json")
    assert (
        benchmark(protocol(), out=out, jobs=2, against=file, say=lambda _: None)["against"]["value"]
        == 0.5
    )
    with pytest.raises(ConfigError, match="games"):
        comparable(file, protocol(games=("maze",)))


@pytest.mark.parametrize("scores", [[[0.3, 0.9]], [[0.6]]])
def test_aggregates_of_a_single_seed_have_no_interval(scores):
    found = _aggregates(np.array(scores))
    assert {one["interval"] for one in found} == {None}
    (mean,) = (one for one in found if one["name"] == "mean")
    assert mean["value"] == pytest.approx(0.6)
    assert "0.600 " not in aggregates_on_page({"aggregates": json.loads(json.dumps(found))})


def test_the_command_tells_figures_of_a_single_seed_without_an_interval(
    tmp_path, capsys, monkeypatch
):
    """With the numbers of a benchmark that was made, because making one trains."""
    one = protocol(games=("coinrun",), seeds=1)
    scores = [
        {"game": "coinrun", "split": split, "player": player, "mean_return": 5.0, "normalised": 0.6}
        for split in one.splits
        for player in (POLICY, RANDOM)
    ]
    found = {
        "protocol": one.to_dict(),
        "scores": scores,
        "aggregates": _aggregates(np.array([[0.6]])),
    }
    monkeypatch.setattr("train.comparison.procgen_benchmark.benchmark", lambda *_, **__: found)
    assert (
        main(["benchmark", "procgen", "--seeds", "1", "--games", "coinrun", "--out", str(tmp_path)])
        == 0
    )
    assert re.search(r"mean +0\.600 +-\n", capsys.readouterr().out)


def test_a_file_that_is_no_benchmark_is_refused(tmp_path):
    wrong = tmp_path / "wrong.json"
    for text in (
        "",
        "[]",
        "{}",
        '{"protocol": {"games": ["coinrun"], "minutes": 1}, "scores": [{}]}',
    ):
        wrong.write_text(text)
        with pytest.raises(ConfigError, match=r"wrong\.json isn't the result of a benchmark"):
            comparable(str(wrong), protocol())
    with pytest.raises(ConfigError, match="can't be read"):
        comparable(str(tmp_path / "missing.json"), protocol())


def test_the_plan_says_hours_and_cost(capsys, tmp_path):
    words = [
        *shlex.split("benchmark procgen --dry-run --json --jobs 2 --price 0.5 --out"),
        str(tmp_path),
    ]
    assert main(words) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["trainings"], plan["finished"], plan["hours"], plan["cost"]) == (9, 0, 2.5, 1.25)
    assert not any(tmp_path.iterdir())


def test_the_plan_names_games_and_seeds_and_says_what_its_hours_are(capsys, tmp_path):
    assert main(["benchmark", "procgen", "--dry-run", "--jobs", "2", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert (
        "9 trainings, 0 finished: coinrun, starpilot, bigfish, with the seeds 0 to 2 each\n" in told
    )
    assert "hours by the clock, for all trainings: 2.5 " in told
    assert (
        main(
            [
                *shlex.split("benchmark procgen --dry-run --games maze --seeds 1 --out"),
                str(tmp_path),
            ]
        )
        == 0
    )
    assert "1 training, 0 finished: maze, with the seed 0\n" in capsys.readouterr().out


@pytest.mark.parametrize("dry", [["--dry-run"], []])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--levels", "foo"], "levels is 'foo'"),
        (["--against", "missing.json"], "missing.json can't be read"),
        (["--out", "file"], "file is a file where a folder is needed"),
    ],
)
def test_the_plan_refuses_what_the_benchmark_would(capsys, tmp_path, monkeypatch, words, said, dry):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["benchmark", "procgen", *words, *dry]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("has_bfloat16", "ppo", "cpu"), [(True, 370, 1500), (False, 75, 400)])
def test_the_plan_counts_hours_at_the_speed_of_its_experiment_on_such_a_processor(
    capsys, tmp_path, monkeypatch, has_bfloat16, ppo, cpu
):
    monkeypatch.setattr("train.compute.bfloat16.has_fast_bfloat16", lambda: has_bfloat16)

    def hours(*more):
        words = [
            *shlex.split("benchmark procgen --dry-run --json --jobs 1 --out"),
            str(tmp_path),
            "--preset",
            "easy",
        ]
        assert main([*words, *more]) == 0
        return json.loads(capsys.readouterr().out)["hours"]

    assert hours() == pytest.approx(16 * 3 * 25e6 / (ppo * usable_cores()) / 3600)
    one = ("--games", "coinrun")
    assert hours(*one, "--experiment", "procgen-ppo-cpu") == pytest.approx(hours(*one) * ppo / cpu)
    assert hours(*one, "--experiment", "procgen-ppo-lars") == hours(*one)
