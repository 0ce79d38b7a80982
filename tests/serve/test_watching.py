"""`procsnake play` in other worlds than Battlesnake."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

import envs
import procsnake
from agents.bundle import load
from agents.measure.evaluation.episodes import ShownEpisode, drawn, likeliest
from envs.procgen.games import load_library
from tests.agents.measure.evaluation.test_episodes import run, steps  # noqa: F401  (fixtures)


def test_random_play_in_a_game_of_procgen_is_shown_and_told(capsys):
    load_library()
    options = ["--levels", "7:1", "--seed", "3", "--delay", "0", "--json"]
    assert procsnake.main(["watch", "procgen/bigfish", *options]) == 0
    told = json.loads(capsys.readouterr().out)

    world = envs.make("procgen/bigfish", num_games=1, levels="7:1")
    generator = np.random.default_rng(3)
    world.restart(3)
    episode_return = 0.0
    length = 0
    ended = False
    while not ended:
        world.advance(generator.random((1, 15)).argmax(1))
        episode_return = episode_return + float(world.rewards[0])
        length = length + 1
        ended = bool(world.terminated[0])
    world.close()
    assert told == {"return": episode_return, "length": length, "ended": True}


def test_a_policy_of_procgen_draws_its_actions_as_where_it_is_measured(capsys):
    load_library()
    bundle = load("champion-starpilot")
    options = {**bundle.card.environment["options"], "num_games": 1, "levels": "7:1"}

    def told_by(decide):
        world = envs.make("procgen/starpilot", **options)
        episode = ShownEpisode(world, decide, seed=3)
        length = len(list(episode.pictures()))
        world.close()
        return {"return": episode.episode_return, "length": length, "ended": True}

    assert (
        procsnake.main(
            shlex.split("watch champion-starpilot --levels 7:1 --seed 3 --delay 0 --json")
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told == told_by(drawn(bundle, np.random.default_rng(3)))
    assert told != told_by(likeliest(bundle))


@pytest.mark.usefixtures("steps")
def test_a_policy_plays_in_the_world_that_is_named_or_in_its_own(capsys, run):  # noqa: F811
    for players in ([str(run)], ["steps", str(run)]):
        assert procsnake.main(["watch", *players, "--json", "--delay", "0"]) == 0
        assert json.loads(capsys.readouterr().out) == {"return": 2.0, "length": 2, "ended": True}


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["procgen/coinrum"], "Did you mean 'procgen/coinrun'"),
        (["procgen/coinrun", "flood"], "flood is not a policy that plays procgen/coinrun"),
        (["procgen/coinrun", "RUN"], "was trained in steps, not in procgen/coinrun"),
        (["procgen/coinrun", "--levels", "some"], "levels is 'some'"),
        (["steps", "RUN", "--mode", "easy"], "can't be made with options"),
    ],
)
def test_what_cannot_be_played_is_said(capsys, run, arguments, said):  # noqa: F811
    assert (
        procsnake.main(["watch", *(str(run) if word == "RUN" else word for word in arguments)]) == 2
    )
    assert said in capsys.readouterr().err
