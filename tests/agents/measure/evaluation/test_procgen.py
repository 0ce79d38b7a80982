"""Evaluation on levels: which they are, who is measured, and that the figures are those of the
episodes.
"""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import envs
import procsnake
from agents import bundle, networks
from agents.measure.evaluation import procgen as procgen_evaluation
from agents.measure.evaluation.procgen import (
    ProcgenScore,
    aggregates_by_split,
    chosen_levels,
    evaluate,
    score_matrix,
    table,
)
from agents.measure.evaluation.procgen_episodes import animation, pictures, play
from agents.measure.evaluation.procgen_report import _together
from envs.common.errors import ConfigError
from envs.procgen.games import load_library
from envs.procgen.make import innermost
from envs.procgen.vector_env import ProcgenVectorEnv
from tests.agents.measure.pages.reading import Page

OPTIONS = {"num_games": 64, "distribution_mode": "easy", "levels": "train:200"}
SMALL = {"depths": [4], "blocks": 0, "pooling": "average", "hidden": 8}


@pytest.fixture(scope="module")
def to_the_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy for starpilot whose likeliest action is always 7, right."""
    torch.manual_seed(0)
    network = networks.build("impala", (64, 64, 3), 15, **SMALL)
    with torch.no_grad():
        network.heads.actor.bias[7] = 50.0
    name = "procgen/starpilot"
    card = {
        "environment": {"name": name, "options": OPTIONS},
        "observation": {"type": name, "version": 1},
        "observation_shape": [64, 64, 3],
        "action": {"type": name, "version": 1, "num_actions": 15},
        "network": {"name": "impala", "options": SMALL},
    }
    return bundle.export(tmp_path_factory.mktemp("run") / "bundle", network=network, card=card)


@pytest.mark.parametrize(
    ("levels", "trained", "expected"),
    [
        ("train", "train:200", "train:200"),
        ("test", "train:200", "test:200"),
        ("test", "50:100", "test:150"),
        ("all", "train:200", "all"),
        ("300:10", "train:200", "300:10"),
    ],
)
def test_train_and_test_are_those_of_the_run(levels: str, trained: str, expected: str) -> None:
    assert chosen_levels(levels, trained) == expected


@pytest.mark.parametrize(("levels", "trained"), [("test", "all"), ("100:300", "train:200")])
def test_trained_levels_cannot_test(levels: str, trained: str) -> None:
    with pytest.raises(ConfigError, match=r"overlap|none are left"):
        chosen_levels(levels, trained)


def test_each_row_plays_as_many_episodes_and_all_can_be_played_again() -> None:
    options = {"distribution_mode": "easy", "levels": "train:5", "action_repeat": 3, "gap_stack": 2}
    world = envs.make("procgen/starpilot", num_games=3, **options)
    generator = np.random.default_rng(0)
    played = play(
        world, lambda world, begins: generator.integers(15, size=world.num_envs), 7, seed=0
    )
    world.close()
    assert len(played) == 9
    assert {episode.level for episode in played} <= set(range(5))
    for episode in played[-3:]:
        world = envs.make("procgen/starpilot", num_games=1, **options)
        world.restart(99)
        innermost(world).set_state([episode.start])
        for action in episode.actions:
            assert len(world.drain_episodes()["row"]) == 0
            world.advance(np.array([action]))
        columns = world.drain_episodes()
        assert columns["return"][0] == pytest.approx(episode.episode_return)
        assert columns["length"][0] == episode.length
        assert columns["level"][0] == episode.level
        world.close()


def test_the_pictures_are_those_of_the_episode() -> None:
    options = {"distribution_mode": "easy"}
    world = envs.make("procgen/starpilot", num_games=2, **options)
    episode = play(world, lambda world, begins: np.full(world.num_envs, 8), 3, seed=4)[-1]
    world.close()
    shown = list(pictures("procgen/starpilot", options, episode))
    moving = Image.open(io.BytesIO(animation("procgen/starpilot", options, episode)))
    assert (moving.format, moving.size) == ("GIF", (128, 128))
    last = Image.fromarray(shown[-1]).reduce(4)
    moving.seek(moving.n_frames - 1)
    assert (
        np.abs(np.asarray(moving.convert("RGB"), int) - np.asarray(last, int)).mean() < 8
    )  # of 64 colours
    assert len(shown) == len(episode.actions)
    again = ProcgenVectorEnv("starpilot", num_games=1, render_mode="rgb_array", **options)
    again.set_state([episode.start])
    for picture, action in zip(shown, episode.actions, strict=True):
        np.testing.assert_array_equal(picture, again.render()[0])  # type: ignore[index]
        again.advance(np.array([action]))
    assert again.terminated[0]
    again.close()


def test_a_policy_with_a_memory_plays_as_its_network_does_stepped_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The likeliest actions in each of three games, two episodes one after the other, each from an
    empty memory.
    """
    monkeypatch.setattr(procgen_evaluation, "GAMES_AT_ONCE", 3)
    torch.manual_seed(0)
    options = {"body": "impala", "body_options": SMALL, "units": 8}
    network = networks.build("recurrent", (64, 64, 3), 15, **options)
    with torch.no_grad():
        network.heads.actor.weight *= 100.0
        # A forget gate that is open: what was seen lasts for whole episodes.
        network.lstm.bias_ih_l0[8:16] = 4.0
    name = "procgen/starpilot"
    world_options = {"distribution_mode": "easy", "levels": "train:5", "num_games": 3}
    card = {
        "environment": {"name": name, "options": world_options},
        "observation": {"type": name, "version": 1},
        "observation_shape": [64, 64, 3],
        "action": {"type": name, "version": 1, "num_actions": 15},
        "network": {"name": "recurrent", "options": options},
    }
    path = bundle.export(tmp_path / "bundle", network=network, card=card)
    played, _ = evaluate([str(path)], levels="train", episodes=6, greedy=True)
    assert len(played.episodes) == 6
    assert sum(len(episode.actions) for episode in played.episodes) > 2 * 120
    assert len({action for episode in played.episodes for action in episode.actions}) > 1
    world = envs.make(name, **{**world_options, "num_games": 1})
    with torch.inference_mode():
        for episode in played.episodes:
            world.restart(0)
            innermost(world).set_state([episode.start])
            state = torch.zeros(1, 16)
            for action in episode.actions:
                logits, _, state = network(
                    torch.from_numpy(world.observations), torch.tensor([1]), state
                )
                # The likeliest, or as likely up to rounding.
                assert logits[0, action] > logits.max() - 1e-3
                world.advance(np.array([action]))
            assert world.terminated[0]
    world.close()


def test_the_policy_is_measured_beside_the_random_agent(to_the_right: Path) -> None:
    policy, random = evaluate([str(to_the_right)], levels="train", episodes=4)
    assert (policy.score.player, random.score.player) == ("policy", "random")
    world = envs.make("procgen/starpilot", **{**OPTIONS, "num_games": 4})
    expected = play(world, lambda world, begins: np.full(world.num_envs, 7), 4, seed=0)
    world.close()
    mean = np.mean([episode.episode_return for episode in expected])
    score = policy.score
    assert score.mean_return == pytest.approx(mean)
    assert score.interval[0] <= score.mean_return <= score.interval[1]
    assert score.normalised == pytest.approx((mean - 2.5) / 61.5)
    assert (score.split, score.levels) == ("train", "train:200")


def test_several_runs_are_put_together_and_the_random_agent_plays_once(to_the_right: Path) -> None:
    played = evaluate([str(to_the_right)] * 3, levels="train", episodes=2)
    assert [one.score.player for one in played] == ["policy", "random", "policy", "policy"]
    scores = [one.score for one in played]
    together = {one.name: one for one in aggregates_by_split(scores)["train"]}
    # Three equal runs: every aggregate is the score itself, without any doubt.
    worth = scores[0].normalised
    assert worth is not None
    assert together["interquartile mean"].value == pytest.approx(worth)
    assert together["optimality gap"].value == pytest.approx(1 - worth)
    assert together["mean"].interval == pytest.approx((worth, worth))
    assert "interquartile mean" in table(scores)
    assert not aggregates_by_split(scores[:2])


def _score(game: str, normalised: float | None, player: str = "policy") -> ProcgenScore:
    return ProcgenScore(
        player=player,
        game=game,
        split="test",
        levels="test:200",
        episodes=1,
        mean_return=0.0,
        interval=(0.0, 0.0),
        normalised=normalised,
        mean_length=1.0,
    )


def test_the_matrix_has_a_column_a_game_and_needs_as_many_runs_of_each() -> None:
    scores = [_score("maze", 0.1), _score("ninja", 0.2), _score("maze", 0.3), _score("ninja", 0.4)]
    matrix = score_matrix([*scores, _score("maze", 0.9, player="random")])
    assert matrix is not None
    np.testing.assert_allclose(matrix, [[0.1, 0.2], [0.3, 0.4]])
    assert score_matrix(scores[:3]) is None
    assert score_matrix([_score("maze", None)]) is None


def test_one_run_of_each_game_is_told_without_an_interval() -> None:
    scores = [_score("maze", 0.3), _score("ninja", 0.9)]
    assert "test: mean of the normalised scores 0.600 (-)" in table(scores)
    assert [one.to_dict()["interval"] for one in aggregates_by_split(scores)["test"]] == [None] * 3
    page = _together(scores)
    assert ">0.600<" in page
    assert "0.600 …" not in page
    assert "bootstrap" not in page


@pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning"
)  # imageio-ffmpeg 0.3, which Procgen wants, leaves its pipes open
def test_the_report_needs_nothing_else_and_shows_curve_references_and_films(
    to_the_right: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_library()
    run = to_the_right.parent
    (run / "progress.csv").write_text(
        "agent_steps,episode_return_mean,evaluation_return_mean\n"
        "100,2.5,\n200,3.5,3.0\n300,,\n400,5.5,4.0\n"
    )
    assert procsnake.main(["levels", str(run), "--levels", "train,test", "--episodes", "2"]) == 0
    page = (run / "evaluation.html").read_text()
    assert "evaluation.html" in capsys.readouterr().out
    Page(page).assert_needs_nothing_else()
    assert len(Page(page.partition("<details>")[0]).charts) == 2
    films = re.findall(r"data:video/mp4;base64,([A-Za-z0-9+/=]+)", page)
    assert len(films) == 4
    assert all(b"ftyp" in base64.b64decode(film)[:16] for film in films)
    for text in (
        "61.90",
        "18.40",
        "training",
        "evaluation",
        "test:200",
        "best: level",
        "worst: level",
    ):
        assert text in page


def test_a_world_without_options_has_its_defaults(to_the_right: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    card = json.loads((to_the_right / "card.json").read_text())
    kept = {name: card[name] for name in ("observation", "observation_shape", "action", "network")}
    network = networks.build("impala", (64, 64, 3), 15, **SMALL)
    path = bundle.export(
        tmp_path / "bundle",
        network=network,
        card={**kept, "environment": {"name": "procgen/starpilot"}},
    )
    policy, _ = evaluate([str(path)], levels="all", episodes=1)
    assert (policy.score.levels, policy.options) == ("all", {"num_games": 1, "levels": "all"})


def test_q_values_are_not_drawn_from(to_the_right: Path) -> None:
    drawn = evaluate([str(to_the_right)], levels="train", episodes=1)[0].episodes[0].actions
    card = json.loads((to_the_right / "card.json").read_text())
    assert card["network"]["name"] == "impala"
    network = networks.build("q-network", (64, 64, 3), 15, body="impala", body_options=SMALL)
    exported = bundle.export(
        to_the_right.parent / "q" / "bundle",
        network=network,
        card={
            **{k: card[k] for k in ("environment", "observation", "observation_shape", "action")},
            "network": {"name": "q-network", "options": {"body": "impala", "body_options": SMALL}},
        },
    )
    first, again = (
        evaluate([str(exported)], levels="train", episodes=1, greedy=greedy)[0]
        for greedy in (False, True)
    )
    np.testing.assert_array_equal(first.episodes[0].actions, again.episodes[0].actions)
    assert (drawn == 7).all()


def test_the_command_line_prints_the_scores(
    to_the_right: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_library()
    assert (
        procsnake.main(
            ["levels", str(to_the_right), "--levels", "test", "--episodes", "2", "--json"]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [score["levels"] for score in found["scores"]] == ["test:200"] * 2
    assert found["together"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--levels", "frist:2"], "levels"), (["--levels", "100:300"], "overlap")],
)
def test_bad_levels_are_refused_before_anything_is_played(
    to_the_right: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert procsnake.main(["levels", str(to_the_right), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_signs_of_life_come_from_each_player_while_it_plays(
    to_the_right: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procgen_evaluation, "GAMES_AT_ONCE", 3)
    said: list[str] = []
    evaluate([str(to_the_right)], levels="train", episodes=4, say=said.append)
    assert {line.split(":")[0] for line in said} == {
        "policy on procgen/starpilot, levels train",
        "random on procgen/starpilot, levels train",
    }
    monkeypatch.setattr(procgen_evaluation, "_SECONDS_BETWEEN_LINES", 0.0)
    more: list[str] = []
    evaluate([str(to_the_right)], levels="train", episodes=4, say=more.append)
    counts = [int(line.split(": ")[1].split()[0]) for line in more if line.startswith("policy")]
    assert counts == sorted(counts)
    assert set(counts) >= {0, 5}
    assert all(line.endswith("of 6 episodes …") for line in more)
