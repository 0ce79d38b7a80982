"""What a push leaves on the Hub, and that it can be played from there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

import agents
from agents import bundle, champions
from agents.bundle import BundleError
from agents.hub import HubError
from agents.hub.push import push
from agents.measure.evaluation import MatchupScore
from agents.measure.evaluation.episodes import WorldScore
from agents.measure.evaluation.record import STANDARD_BOARD, EvaluationRecord, WorldRecord
from agents.policy import Policy
from tests.agents.boards import played_boards
from tests.agents.hub.stand_in import OTHERS_TOKEN, READ_TOKEN

# huggingface_hub's own, where it uploads over LFS.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")
FILES = {"card.json", "policy.onnx", "weights.safetensors", "README.md", ".gitattributes"}


@pytest.fixture
def pushed(hub, owner, bundle_path):
    return push(str(bundle_path), "hf://ada/snake")


def test_a_champion_that_was_pushed_plays_the_same_moves(hub, owner):
    there = push("champion-duel", "hf://ada/champion")
    assert len(hub.models["ada/champion"].messages) == 2  # the Hub's own first commit, and ours
    again = bundle.load(str(there.address))
    own = bundle.load("champion-duel")
    assert (again.onnx, again.weights) == (own.onnx, own.weights)
    ours = agents.make("champion-duel")
    theirs = agents.make(str(there.address))
    moves = 0
    for state, games, slots in played_boards(20, num_snakes=2):
        assert (
            ours.act_batch(state, games, slots).tolist()
            == theirs.act_batch(state, games, slots).tolist()
        )
        moves += len(games)
    assert moves > 300


def test_one_commit_has_the_bundle_and_its_address_names_it(hub, pushed):
    model = hub.models["ada/snake"]
    assert pushed.address.revision == model.branches["main"]
    assert pushed.url == f"{hub.url}/ada/snake/commit/{pushed.address.revision}"
    assert set(model.commits[pushed.address.revision]) == FILES
    assert model.messages[1:] == ["snake, by procsnake"]
    assert not model.private


def test_large_files_went_over_lfs_and_small_ones_in_the_commit(hub, pushed, bundle_path):
    assert set(hub.stored.values()) == {
        (bundle_path / name).read_bytes() for name in ("policy.onnx", "weights.safetensors")
    }


def test_the_player_is_called_as_the_repository(pushed):
    assert Policy.load(str(pushed.address)).name == "snake"


def test_whoever_edits_the_readme_on_the_site_breaks_nothing(hub, pushed):
    edited = hub.models["ada/snake"].commit({"README.md": b"My snake."})
    assert bundle.load(f"hf://ada/snake@{edited}").onnx == bundle.load(str(pushed.address)).onnx


def test_a_network_that_was_changed_on_the_way_is_refused(hub, pushed):
    changed = hub.models["ada/snake"].commit({"policy.onnx": b"another network"})
    with pytest.raises(BundleError, match=r"policy\.onnx.*cut off or changed"):
        bundle.load(f"hf://ada/snake@{changed}")


def test_the_same_again_makes_no_further_commit(hub, pushed, bundle_path):
    assert push(str(bundle_path), "hf://ada/snake").address == pushed.address
    assert len(hub.models["ada/snake"].commits) == 2


def test_a_branch_is_made_and_main_stays(hub, pushed, bundle_path):
    before = hub.models["ada/snake"].branches["main"]
    there = push("champion-duel", "hf://ada/snake", branch="trial", message="another one")
    branches = hub.models["ada/snake"].branches
    assert branches == {"main": before, "trial": there.address.revision}
    assert hub.models["ada/snake"].messages[-1] == "another one"


def test_private_is_private(hub, owner, bundle_path):
    push(str(bundle_path), "hf://ada/secret", private=True)
    assert hub.models["ada/secret"].private


def test_private_into_a_public_repository_is_refused(hub, pushed):
    with pytest.raises(HubError, match="ada/snake already exists and is public"):
        push("champion-duel", "hf://ada/snake", private=True)
    assert len(hub.models["ada/snake"].commits) == 2


def test_the_model_card_has_the_ratings_with_their_intervals(hub, owner):
    there = push("champion-standard", "hf://ada/champion", license="apache-2.0")
    text = hub.models["ada/champion"].commits[there.address.revision]["README.md"].decode()
    data = ModelCard(text).data
    assert (data.library_name, data.license, data.pipeline_tag) == (
        "procsnake",
        "apache-2.0",
        "reinforcement-learning",
    )
    assert data.model_name == "champion"
    assert {"reinforcement-learning", "onnx", "battlesnake", "ppo"} <= set(data.tags)
    ratings = json.loads((champions.path("champion-standard") / "card.json").read_text())[
        "metrics"
    ]["ratings"]
    assert {result.metric_name: result.metric_value for result in data.eval_results} == ratings
    assert all(
        re.fullmatch(r"[\d.]+ % of \d+ games \([\d.]+ to [\d.]+\)", rating)
        for rating in ratings.values()
    )
    assert "procsnake match hf://ada/champion flood --watch" in text


def test_what_was_measured_of_a_run_is_in_its_model_card(hub, owner, bundle_path, tmp_path):
    run = tmp_path / "first-run"
    run.mkdir()
    (run / "bundle").symlink_to(bundle_path)
    figures = {
        "games": 400,
        "points": 228.0,
        "wins": 228,
        "draws": 0,
        "capped": 0,
        "mean_turns": 90.0,
        "mean_length": 9.0,
        "causes": {},
    }
    score = MatchupScore(agent="first-run", opponents=["flood"] * 3, **figures)
    policy = json.loads((bundle_path / "card.json").read_text())["files"]["policy.onnx"]
    EvaluationRecord(
        policy=policy, games=400, scores=[score], board={**STANDARD_BOARD, "minimum_food": 9}
    ).write(run)
    there = push(str(run), "hf://ada/snake")
    (result,) = ModelCard(
        hub.models["ada/snake"].commits[there.address.revision]["README.md"].decode()
    ).data.eval_results
    assert (result.metric_type, result.metric_name) == (
        "win_rate",
        "wins against flood, flood, flood",
    )
    assert result.metric_value == "57.0% of 400 games (52.1 to 61.8 %)"
    assert result.dataset_name == "battlesnake: standard on 11×11, map standard, minimum_food 9"
    assert hub.models["ada/snake"].messages[-1] == "first-run, by procsnake"


def test_a_policy_of_another_world_has_its_mean_return(hub, owner, bundle_path, tmp_path):
    run = tmp_path / "corridor"
    run.mkdir()
    (run / "bundle").symlink_to(bundle_path)
    figures = {"world": "procgen/coinrun", "episodes": 200, "mean_length": 70.0}
    scores = [WorldScore(player="policy", mean_return=7.25, interval=(6.5, 8.0), **figures)]
    policy = json.loads((bundle_path / "card.json").read_text())["files"]["policy.onnx"]
    WorldRecord(policy=policy, scores=scores).write(run)
    there = push(str(run), "hf://ada/runner")
    (result,) = ModelCard(
        hub.models["ada/runner"].commits[there.address.revision]["README.md"].decode()
    ).data.eval_results
    assert (result.metric_type, result.dataset_type) == ("mean_return", "procgen/coinrun")
    assert result.metric_value == "7.250 in 200 episodes (6.500 to 8.000)"


def test_figures_of_another_policy_are_left_out(hub, owner, bundle_path, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "bundle").symlink_to(bundle_path)
    figures = {"world": "corridor", "episodes": 200, "mean_length": 70.0}
    scores = [WorldScore(player="policy", mean_return=7.25, interval=(6.5, 8.0), **figures)]
    WorldRecord(policy="an older one's", scores=scores).write(tmp_path / "run")
    there = push(str(tmp_path / "run"), "hf://ada/runner")
    assert (
        b"model-index" not in hub.models["ada/runner"].commits[there.address.revision]["README.md"]
    )


def test_a_card_without_ratings_claims_no_results(hub, pushed):
    text = hub.models["ada/snake"].commits[pushed.address.revision]["README.md"].decode()
    assert "model-index" not in text
    assert "license" not in ModelCard(text).data.to_dict()


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (None, "without a token with write permission.*HF_TOKEN.*hf auth login"),
        (READ_TOKEN, "has no model ada/snake|answers 403.*write permission"),
        (OTHERS_TOKEN, "has no model ada/snake|answers 403.*write permission"),
        ("hf_nobodys", "answers 401.*Invalid credentials"),
    ],
)
def test_only_the_owner_writes(hub, monkeypatch, bundle_path, token, message):
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(HubError, match=message) as told:
        push(str(bundle_path), "hf://ada/snake")
    assert hub.models == {}
    assert (token or "hf_") not in str(told.value)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("hf://ada/snake/folder", {}, "more than a repository"),
        ("hf://ada/snake@main", {}, "more than a repository.*--revision"),
        ("hf://ada/snake", {"branch": "a" * 40}, "is a commit"),
        ("hf://ada/snake", {"branch": "../x"}, "not an address"),
        ("ada/snake", {}, "it looks like hf://user/name"),
    ],
)
def test_impossible_targets_are_told_before_anything_is_asked(
    hub, owner, bundle_path, target, options, message
):
    with pytest.raises(HubError, match=message):
        push(str(bundle_path), target, **options)
    assert hub.asked == []


def test_what_is_no_bundle_is_not_pushed(hub, owner, tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"pickle")
    with pytest.raises(BundleError, match="is not a policy bundle"):
        push(str(tmp_path), "hf://ada/snake")
    assert hub.asked == []


def test_a_push_that_is_refused_half_way_leaves_no_commit(
    hub, owner, bundle_path: Path, monkeypatch
):
    monkeypatch.setattr(
        "tests.agents.hub.stand_in.MAX_REGULAR", 100
    )  # now the card belongs into LFS, as the Hub may say later
    monkeypatch.setattr(
        "tests.agents.hub.stand_in.Handler._verify", lambda *_: hub.visible("ada/none", "ada")
    )
    with pytest.raises(HubError):
        push(str(bundle_path), "hf://ada/snake")
    assert len(hub.models["ada/snake"].commits) == 1
