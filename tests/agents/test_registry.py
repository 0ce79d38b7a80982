from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import agents
from agents.bundle import BundleError
from agents.effort import Effort
from agents.heuristics import FloodFill
from agents.measure.evaluation.episodes import bundle_of_a_world
from agents.options_file import OptionsFile, OptionsFileError
from agents.player import EVALUATION
from agents.policy import Policy
from agents.registry import _FACTORIES, content_of, options_of
from agents.search.evaluation.evaluate import Weights
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_features import NUM_FEATURES
from agents.search.evaluation.learned_weights import Phase
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.bundles import make_bundle


@pytest.mark.parametrize("name", ["flood", "greedy", "random"])
def test_agents_bear_the_name_they_are_made_by(name):
    assert agents.make(name).name == name
    assert name in agents.names()


def test_options_reach_the_agent():
    assert agents.make("flood", hungry=10).hungry == 10
    assert agents.make("flood?ample=2").ample == 2, "a whole number is a number, too"
    assert agents.make("flood", hungry=np.int64(10)).hungry == 10


def test_a_path_makes_a_policy(bundle_path):
    assert isinstance(agents.make(bundle_path), Policy)
    assert agents.make(str(bundle_path), sample=True).sample


def test_a_run_that_learned_an_evaluation_is_the_search_with_it(tmp_path):
    zeros = LearnedEvaluation(width=7, height=7, phases=(Phase.of(None, [0.0] * NUM_FEATURES),))
    zeros.write(tmp_path / EVALUATION)
    snake = agents.make(f"{tmp_path}?near=5", nodes=30)
    assert (snake.name, snake.nodes, snake.near, snake.learned.phases) == (
        "alphabeta",
        30,
        5,
        zeros.phases,
    )
    assert agents.make(f"{tmp_path}?evaluation=hand-written").learned is None
    assert options_of(str(tmp_path)) == options_of("alphabeta")
    assert bundle_of_a_world(str(tmp_path)) is None, "so that evaluate and play make it as a snake"


def test_a_run_that_learned_an_evaluation_takes_the_options_of_the_search(tmp_path):
    run = tmp_path / "run"
    rules = tmp_path / "my_rule.py"
    run.mkdir()
    LearnedEvaluation(width=7, height=7, phases=(Phase.of(None, [0.0] * NUM_FEATURES),)).write(
        run / EVALUATION
    )
    rules.write_text("def rule(me): return [0, 0, 0, 1]")
    path = options_file(tmp_path / "tuned.yaml")
    assert Effort(nodes=20).make(f"{run}?options={path}").near == 9
    assert agents.make(f"{rules}+{run}?options={path}", nodes=20).base.near == 9


def test_a_misspelt_name_is_answered_with_the_near_one():
    with pytest.raises(
        UnknownNameError, match=r"unknown agent 'greedi'. Did you mean 'greedy'.*policy bundle"
    ):
        agents.make("greedi")


def test_a_path_that_is_not_there_is_a_missing_bundle():
    with pytest.raises(BundleError, match="no policy bundle at runs/nothing"):
        agents.make("runs/nothing")


def test_an_unknown_option_is_named():
    with pytest.raises(ConfigError, match=r"agent 'flood'.*hungri"):
        agents.make("flood", hungri=1)


def test_register_adds_an_agent(monkeypatch):
    monkeypatch.setattr("agents.registry._FACTORIES", dict(_FACTORIES))
    agents.register("starving", lambda: FloodFill(hungry=0))
    assert agents.make("starving").hungry == 0


def test_an_option_is_of_the_kind_that_it_is_declared_with(monkeypatch):
    """A whole number as default doesn't make it one."""
    monkeypatch.setattr("agents.registry._FACTORIES", dict(_FACTORIES))
    given = []

    def made(*, bonus: float = 0, count: int = 1) -> FloodFill:
        given.append((bonus, count))
        return FloodFill()

    agents.register("mine", made)
    agents.make("mine?bonus=0.5")
    assert given == [(0.5, 1)]
    with pytest.raises(ConfigError, match="it must be a whole number"):
        agents.make("mine?count=0.5")


def test_a_name_may_bring_options():
    search = agents.make("alphabeta?nodes=300&near=5", nodes=20, max_rivals=1)
    assert (search.nodes, search.near, search.max_rivals) == (300, 5, 1)
    assert agents.make("mcts?root=regret&sample=true").sample is True


@pytest.mark.parametrize("name", ["flood?", "flood?hungry", "flood?=3"])
def test_options_in_a_name_are_written_in_one_way(name):
    with pytest.raises(ConfigError, match="option"):
        agents.make(name)


def test_options_in_a_name_are_checked_like_others():
    with pytest.raises(ConfigError, match="hungri"):
        agents.make("flood?hungri=1")


def test_rules_alone_take_no_options(tmp_path):
    path = tmp_path / "my_rule.py"
    path.write_text("def rule(me): return [0, 0, 0, 1]")
    with pytest.raises(ConfigError, match=r"my_rule.py.*weight"):
        agents.make(f"{path}?weight=5")
    assert agents.make(f"{path}+flood?hungry=10").base.hungry == 10


@pytest.mark.parametrize(
    ("player", "told"),
    [
        ("alphabeta?nodes=20_000", "nodes is '20_000'; it must be a whole number from 1"),
        ("alphabeta?nodes=true", "nodes is True"),
        ("alphabeta?threads=1.5", "threads is 1.5; it must be a whole number"),
        ("alphabeta?max_depth=2.5", "max_depth is 2.5"),
        ("alphabeta?near=far", "near is 'far'"),
        ("alphabeta?near=-5", "near is -5"),
        ("alphabeta?margin_ms=far", "margin_ms is 'far'; it must be a number"),
        ("alphabeta?evaluation=5", "evaluation is 5; it must be a name or a file"),
        ("mcts?cpu_ms=far", "cpu_ms is 'far'; it must be a number from 0.1"),
        ("mcts?simulations=1e3", "simulations is 1000.0"),
        ("champion-duel?threads=two", "threads is 'two'"),
        (
            "champion-duel?sample=False",
            "sample is 'False'; it must be true or false, in small letters",
        ),
        ("champion-duel?symmetries=no", "symmetries is 'no'; it must be true or false"),
        ("mcts?sample=1", "sample is 1; it must be true or false"),
        ("random?seed=x", "agent 'random' can't be made: seed is 'x'; it must be a whole number"),
        ("random?seed=true", "seed is True; it must be a whole number"),
        ("flood?hungry=abc", "hungry is 'abc'; it must be a whole number"),
        ("flood?ample=much", "ample is 'much'; it must be a number"),
        ("alphabeta?nodez=5", "can't be made: unknown option 'nodez'. Did you mean 'nodes'"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1 is the URL of a server"),
        ("http://127.0.0.1:1+alphabeta", "is the URL of a server"),
    ],
)
def test_options_of_another_type_are_refused(player, told):
    with pytest.raises(ConfigError, match=told):
        agents.make(player)


def test_the_options_of_a_name_are_those_that_make_takes(bundle_path):
    assert {"nodes", "cpu_ms", "near"} <= options_of("alphabeta?near=3")
    assert {"cpu_ms", "simulations"} <= options_of(f"{bundle_path}+mcts")
    assert "policy" not in options_of(f"{bundle_path}+mcts")
    assert "nodes" in options_of("my_rule.py+alphabeta")
    assert "nodes" not in options_of("flood") | options_of(str(bundle_path)) | options_of(
        "my_rule.py"
    )


def options_file(path, **fields):
    OptionsFile(
        **{
            "agent": "alphabeta",
            "options": {"near": 9, "weights": {"cell": 8}},
            "against": "alphabeta",
            **fields,
        }
    ).write(path)
    return path


def test_a_file_may_bring_options_and_those_beside_it_win(tmp_path, bundle_path):
    path = options_file(tmp_path / "tuned.yaml")
    search = agents.make(f"alphabeta?options={path}&weights.hunger=300", nodes=20)
    assert (search.near, search.nodes, search.weights) == (9, 20, Weights(cell=8, hunger=300))
    assert agents.make("alphabeta", options=path, near=4).near == 4
    assert agents.make(f"alphabeta?options={path}&weights.cell=5").weights == Weights(cell=5)
    assert agents.make(f"{bundle_path}+alphabeta?options={path}").near == 9


def test_what_a_name_stands_for_changes_with_its_files_and_not_with_what_tells_of_them(
    tmp_path, bundle_path
):
    rules = tmp_path / "rules.py"
    path = options_file(tmp_path / "tuned.yaml")
    run = tmp_path / "run"
    learned = LearnedEvaluation(width=7, height=7, phases=(Phase.of(None, [0.0] * NUM_FEATURES),))
    run.mkdir()

    def contents():
        searches = (
            f"alphabeta?options={path}",
            f"{run}?near=5",
            f"alphabeta?evaluation={run / EVALUATION}",
            "alphabeta",
        )
        below = ("flood", run, bundle_path, f"{bundle_path}+mcts")
        return [
            content_of(one)
            for one in (
                *searches,
                str(rules),
                *(f"{rules}+{one}" for one in below),
                f"{bundle_path}+mcts",
            )
        ]

    rules.write_text("def nothing(me):\n    return [True] * 4\n")
    learned.write(run / EVALUATION)
    before = contents()
    replace(OptionsFile.read(path), accepted=True).write(path)
    replace(learned, training={"accepted": True}).write(run / EVALUATION)
    assert contents() == before
    rules.write_text("def nothing(me):\n    return [False] * 4\n")
    options_file(path, options={"near": 8})
    replace(learned, phases=(Phase.of(None, [1.0] * NUM_FEATURES),)).write(run / EVALUATION)
    is_other = [now != then for now, then in zip(contents(), before, strict=True)]
    assert is_other == [True] * 3 + [False] + [True] * 5 + [False]


def test_another_policy_at_the_same_path_is_another_player(tmp_path):
    def contents(of):
        make_bundle(tmp_path / "run" / "bundle", network=of)
        return [
            content_of(f"{tmp_path}/{name}")
            for name in ("run", "run+mcts", "run/bundle?sample=true")
        ]

    first = contents("snake-cnn")
    second = contents("mlp")
    assert not set(first) & set(second)


def test_a_file_of_options_says_at_its_top_whether_a_test_has_accepted_it(tmp_path):
    path = options_file(tmp_path / "tuned.yaml")
    assert path.read_text().startswith("# NOT ACCEPTED")
    replace(OptionsFile.read(path), accepted=True).write(path)
    assert path.read_text().startswith("# It has passed")
    assert OptionsFile.read(path).accepted


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a: [", "is not a file of options"),
        ("- 1", "is not a file of options"),
        ("procsnake_options: 9", "reads version 1"),
        (
            "{procsnake_options: 1, agent: alphabeta, options: [1], against: alphabeta}",
            "its options is \\[1\\]",
        ),
        (
            "{procsnake_options: 1, agent: mcts, options: {}, against: mcts}",
            "options of 'mcts', not of 'alphabeta'",
        ),
    ],
)
def test_another_file_than_one_of_options_is_refused(tmp_path, content, told):
    (tmp_path / "other.yaml").write_text(content)
    with pytest.raises(OptionsFileError, match=told):
        agents.make(f"alphabeta?options={tmp_path / 'other.yaml'}")
    with pytest.raises(OptionsFileError, match="can't be read"):
        agents.make("alphabeta?options=nowhere.yaml")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("weights.cel=3", "unknown weight 'cel'. Did you mean 'cell'"),
        ("weights.cell=900", r"weights.cell is 900; it must be a whole number from 0 to 30"),
        ("weights.cell=2.5", "weights.cell is 2.5"),
        ("weights=3", "weights are 3"),
    ],
)
def test_weights_in_a_name_are_checked(query, told):
    with pytest.raises((ConfigError, UnknownNameError), match=told):
        agents.make(f"alphabeta?{query}")
