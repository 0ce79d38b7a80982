from __future__ import annotations

import getpass
import json
import re
import shlex
import socket

import numpy as np
import pytest

import agents
import procsnake
from agents import bundle, champions
from agents.card import BundleError, Card
from agents.export.shrink import shrink
from agents.measure.evaluation import play_games
from agents.measure.evaluation.procgen import evaluate
from agents.measure.evaluation.solo import evaluate_solo
from agents.policy import Policy
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.settings import Settings
from envs.procgen.games import load_library
from tests.agents.boards import played_boards
from tests.agents.bundles import make_bundle


def settings_of(card):
    return Settings(ruleset=card.environment["options"].get("ruleset", "standard"))


@pytest.mark.parametrize("name", champions.names())
def test_a_champion_is_whole_small_and_known_by_name(name):
    loaded = bundle.load(champions.path(name))  # checks every SHA-256
    assert sum(file.stat().st_size for file in champions.path(name).iterdir()) < 5e6
    assert loaded.card.command
    assert len(loaded.card.git_commit) == 40
    assert loaded.card.metrics["training_hours"] > 0
    assert loaded.card.metrics["ratings"]
    plays_snakes = loaded.card.environment["name"] == "battlesnake"
    assert (name in agents.names()) == plays_snakes
    if plays_snakes:
        assert agents.make(name).name == name
    else:
        with pytest.raises(
            BundleError, match=f"was trained in the world '{loaded.card.environment['name']}'"
        ):
            agents.make(name)


@pytest.mark.parametrize("name", [name for name in champions.snakes() if name != "champion-solo"])
def test_a_champion_wins_clearly_more_than_its_share_against_greedy(name):
    options = bundle.load(champions.path(name)).card.environment["options"]
    snakes = options.get("num_snakes", 4)
    players = [agents.make(name), *[agents.make("greedy")] * (snakes - 1)]
    settings = settings_of(bundle.load(champions.path(name)).card)
    results = play_games(players, num_games=60, settings=settings, seed=77)
    assert results.wins[0] / 60 > 1.5 / snakes


def test_the_champion_of_solo_survives_longer_than_flood():
    champion, flood = (
        evaluate_solo(agents.make(name), [(11, 11)], num_games=60, seed=77)[0]
        for name in ("champion-solo", "flood")
    )
    assert champion.interval[0] > flood.interval[1]


@pytest.mark.parametrize("name", sorted({*champions.names()} - {*champions.snakes()}))
def test_a_champion_of_procgen_scores_more_than_random_play_on_levels_that_it_never_saw(name):
    load_library()
    policy, random = (
        one.score for one in evaluate([name], levels="test", episodes=24, seed=77, threads=1)
    )
    assert (policy.player, random.player) == ("policy", "random")
    assert policy.interval[0] > random.interval[1]


def test_the_list_tells_what_a_card_tells():
    text = champions.table()
    for name in champions.names():
        card = bundle.load(champions.path(name)).card
        assert f"{name}: " in text
        assert card.git_commit[:9] in text


def test_shrinking_halves_the_files_and_hardly_changes_what_the_policy_says(tmp_path):
    source = make_bundle(tmp_path / "large", EgocentricPlanes(rotate=True))
    small = shrink(source, tmp_path / "small", command="train it so")
    before = Policy.load(source)
    after = Policy.load(small)
    assert after.card.command == "train it so"
    size = [sum(file.stat().st_size for file in path.iterdir()) for path in (source, small)]
    assert size[1] < 0.7 * size[0]
    state, boards, slots = played_boards(4)[5]
    shares = [policy.move_probabilities(state, boards, slots)[0] for policy in (before, after)]
    np.testing.assert_allclose(*shares, atol=0.02)
    assert not np.array_equal(*shares)
    # Both files hold the same weights.
    by_torch = Policy.load(small, "torch").move_probabilities(state, boards, slots)[0]
    np.testing.assert_allclose(by_torch, shares[1], atol=1e-5)


@pytest.mark.parametrize("name", champions.names())
def test_nothing_that_is_shipped_tells_of_the_machine_that_made_it(name):
    for file in ("card.json", "README.md"):
        text = (champions.path(name) / file).read_text(encoding="utf-8")
        assert not re.findall(
            r"(?<![\w.)])(?:/(?:tmp|home|root|work|Users|var|mnt)\b|[A-Z]:\\)[^\"'\s]*", text
        )
        for word in (socket.gethostname(), getpass.getuser()):
            assert not re.search(rf"\b{re.escape(word)}[@:]", text)


@pytest.mark.parametrize("name", champions.names())
def test_how_to_train_one_again_can_be_pasted(name, tmp_path):
    card = Card.from_dict(
        json.loads((champions.path(name) / "card.json").read_text(encoding="utf-8"))
    )
    for command in card.command.split(" && "):
        assert shlex.join(shlex.split(command)) == command
        assert procsnake.cli.main.build_parser().parse_args(shlex.split(command)[1:]).experiment
