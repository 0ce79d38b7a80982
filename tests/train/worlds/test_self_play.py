from __future__ import annotations

import numpy as np
import pytest
import torch

from agents import make
from agents.agent import Agent
from agents.registry import register
from envs.battlesnake.state import ALIVE, UP
from envs.common.errors import ConfigError, UnknownNameError
from envs.wrappers import layers
from tests.train.rllib.test_env_runner import runner
from train.algorithms import build_algorithm
from train.config import Experiment
from train.run import train
from train.runs.folder import RunFolder
from train.worlds.build import make_world, without_training
from train.worlds.self_play import Pool, SelfPlay

WINDOW = {"view": "window", "radius": 3, "rotate": True}
BASE = {
    "name": "battlesnake",
    "num_games": 16,
    "width": 7,
    "height": 7,
    "num_snakes": 3,
    "observation": WINDOW,
}


class Suicidal(Agent):
    """Goes up, or where the neck is: gone within a board's height."""

    name = "suicidal"

    def act_batch(self, state, boards, slots):
        return np.full(len(boards), UP, np.int8)


register("suicidal", Suicidal)


class Network(torch.nn.Module):
    """Always prefers one action."""

    def __init__(self, action):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.eye(3)[action])

    def forward(self, observations):
        return self.bias.expand(len(observations), 3), torch.zeros(len(observations))


def world(**options):
    return make_world(
        {**BASE, "self_play": {"opponents": ["flood"], "past_every": None, **options}}
    )


def play(env, steps, choose=None):
    random = np.random.default_rng(0)
    for _ in range(steps):
        valid = env.valid.copy()
        shares = np.where(env.action_mask, random.random(env.action_mask.shape), -1)
        env.advance(choose(env) if choose else shares.argmax(1))
        yield valid


def test_rows_of_opponents_are_silent_and_those_of_the_learner_are_the_worlds():
    env = world(share=1.0)
    env.restart(1)
    assert env.valid.reshape(16, 3).sum(1).tolist() == [1] * 16
    for valid in play(env, 60):
        assert not env.rewards[~valid].any()
        assert not (env.terminated | env.truncated)[~valid].any()
        assert (env.valid <= env.world.valid).all()
        assert (env.valid.reshape(16, 3).sum(1) <= 1).all()
    columns = env.drain_episodes()
    assert len(columns["row"]) > 16
    assert set(columns) == set(env.drain_episodes())


def test_opponents_make_the_moves_that_they_choose():
    """With flood in every seat but one, its snakes move as flood moves."""
    env = world(share=1.0)
    env.restart(1)
    flood = make("flood")
    compared = 0
    for _ in range(30):
        state = env.world.state.copy()
        theirs = np.argwhere((state.arrays.cause == ALIVE) & ~env._mine)
        moves = flood.act_batch(state, *theirs.T)
        heads = [state.body(b, i)[0] for b, i in theirs]
        env.advance(np.ones(env.num_envs, int))
        for (b, i), (x, y), move in zip(theirs, heads, moves, strict=True):
            # On its first turn a snake counts as heading up, so there is no action for down.
            lived = env.world.state.arrays.turn[b] == state.arrays.turn[b] + 1 > 1
            if lived and env.world.state.arrays.cause[b, i] == ALIVE:
                dx, dy = ((0, 1), (0, -1), (-1, 0), (1, 0))[move]
                assert env.world.state.body(b, i)[0] == (x + dx, y + dy)
                compared += 1
    assert compared > 300


def test_without_a_share_it_is_plain_self_play():
    env = world(share=0.0)
    plain = make_world(BASE)
    env.restart(4)
    plain.restart(4)
    for _ in range(50):
        np.testing.assert_array_equal(env.valid, plain.valid)
        np.testing.assert_array_equal(env.observations, plain.observations)
        for each in (env, plain):
            each.advance(plain.action_mask.argmax(1))
        np.testing.assert_array_equal(env.rewards, plain.rewards)
        np.testing.assert_array_equal(env.terminated, plain.terminated)
    ours = env.drain_episodes()
    theirs = plain.drain_episodes()
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_the_league_knows_who_is_beaten():
    env = world(opponents=["suicidal", "flood"], share=1.0)
    env.restart(2)
    flood = make("flood")

    def as_flood(env):
        rows = np.flatnonzero(env.valid)
        actions = np.zeros(env.num_envs, int)
        actions[rows] = env._act_as_agent(flood, rows)
        return actions

    for _ in play(env, 500, as_flood):
        pass
    rates = env.drain_episodes()
    assert rates["league_suicidal"][0] > 0.7
    assert 0.25 < rates["league_flood"][0] < 0.75


IN_THE_OPEN = [(1, 3), (1, 2), (1, 1)]
AT_THE_EDGE = [(1, 6), (1, 5), (1, 4)]


@pytest.mark.parametrize(
    ("own", "other", "score"),
    [
        pytest.param(
            IN_THE_OPEN,
            AT_THE_EDGE,
            1.0,
            id="the learner survives the last turn, on which the opponent dies",
        ),
        pytest.param(AT_THE_EDGE, AT_THE_EDGE, 0.5, id="both die on the last turn"),
        pytest.param(
            AT_THE_EDGE,
            IN_THE_OPEN,
            0.0,
            id="the opponent survives the last turn, on which the learner dies",
        ),
    ],
)
def test_who_outlived_whom_is_decided_by_the_last_turn(own, other, score):
    """Both go up; the opponent's snake stands four columns to the right of the learner's."""
    league = {"opponents": ["suicidal"], "share": 1.0, "past_every": None}
    env = make_world({**BASE, "num_games": 1, "num_snakes": 2, "self_play": league})
    env.restart(0)
    env.world.state.clear(0)
    learner = int(env._mine[0].argmax())
    env.world.state.place_snake(0, learner, own)
    env.world.state.place_snake(0, 1 - learner, [(x + 4, y) for x, y in other])
    env.advance(np.ones(2, int))
    assert env.pool.fixed[0].win_rate == pytest.approx(0.5 + (score - 0.5) / 200)


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_the_win_rate_forgets_meetings_at_the_rate_of_its_memory(score):
    pool = Pool(["random"], most_past=0, exponent=1.0, memory=4)
    for _ in range(3):
        pool.note(pool.fixed[0], score)
    assert pool.fixed[0].win_rate == pytest.approx(score + (0.5 - score) * 0.75**3)


def test_the_hard_to_beat_are_met_most():
    pool = Pool(["random", "greedy", "flood"], most_past=0, exponent=2.0, least=0.0)
    for opponent, rate in zip(pool.fixed, (1.0, 0.5, 0.0), strict=True):
        opponent.win_rate = rate
    met = [opponent.name for opponent in pool.draw(np.random.default_rng(0), 5000)]
    assert met.count("random") == 0
    assert met.count("flood") / 5000 == pytest.approx(0.8, abs=0.03)


def test_past_selves_join_keep_their_weights_and_make_room():
    env = world(opponents=[], share=1.0, past_every=2, most_past=2)
    env.restart(0)
    assert env.valid.all()  # nobody there yet
    network = Network(0)
    for _ in range(2):
        env.remember(network)
    with torch.no_grad():
        network.bias[:] = torch.eye(3)[2]
    assert [o.player.bias.tolist() for o in env.pool.past] == [[1, 0, 0]]
    for _ in play(env, 80):
        pass
    assert not env.valid.all()
    assert 0.5 < env.drain_episodes()["league_past"][0] <= 1
    for _ in range(4):
        env.remember(network)
    assert [o.name for o in env.pool.past] == ["past 2", "past 3"]
    seated = {id(seat) for seats in env._seats for seat in seats if seat is not None}
    assert seated <= {id(o) for o in env.pool.past}


def test_the_same_seed_is_the_same_league():
    a = world(share=0.5)
    b = world(share=0.5)
    for env in (a, b):
        env.restart(9)
        for _ in play(env, 100):
            pass
    ours = a.drain_episodes()
    theirs = b.drain_episodes()
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name])
    np.testing.assert_array_equal(a.observations, b.observations)
    np.testing.assert_array_equal(a.valid, b.valid)


@pytest.mark.parametrize(
    "options",
    [
        {"share": 2.0},
        {"learners": 3},
        {"opponents": []},
        {"exponent": -1},
        {"shares": 1},
        {"seed": None},
        {"seed": -1},
    ],
)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigError):
        world(**options)
    with pytest.raises(UnknownNameError, match="flood"):
        world(opponents=["flod"])


def test_augmentation_and_novelty_are_the_learners_alone():
    """Opponents see and play the same games as without them, and only the learner's rows are
    paid.
    """
    wide = {**BASE, "observation": {**WINDOW, "radius": 6}}
    league = {"opponents": ["flood"], "past_every": 1, "share": 1.0}
    plain = make_world({**wide, "self_play": league})
    changed = make_world({**wide, "self_play": league, "rnd": {"coef": 1.0}, "augment": ["cutout"]})
    for env in (plain, changed):
        env.restart(1)
        env_of(env).remember(Network(0))
    paid = differences = 0
    for _ in range(60):
        valid = plain.valid.copy()
        for env in (plain, changed):
            env.advance(np.where(plain.valid, plain.action_mask.argmax(1), 0))
        np.testing.assert_array_equal(env_of(changed).observations, plain.observations)
        np.testing.assert_array_equal(changed.valid, plain.valid)
        assert not changed.rewards[~valid].any()
        paid += (changed.rewards > plain.rewards)[valid].sum()
        differences += (changed.observations != plain.observations).sum()
    assert paid > 100
    assert differences > 1000
    assert [opponent.name for opponent in env_of(changed).pool.past] == ["past 1"]


def env_of(world):
    """Its layer of self-play."""
    return next(layer for layer in layers(world) if isinstance(layer, SelfPlay))


def test_symmetries_turn_what_the_learner_sees_and_not_the_pool(one_ray):
    """A runner that sees half of everything mirrored does what it decided; past selves see the
    boards as they are.
    """
    options = {name: value for name, value in BASE.items() if name != "name"}
    league = {"opponents": [], "share": 0.5, "past_every": 1, "most_past": 2}
    played = runner("battlesnake", options={**options, "self_play": league}, symmetries=True)
    mirrored = done = 0
    advance = played.env.advance
    decide = played.decide

    def deciding(entry, *rest):
        nonlocal mirrored
        as_it_is = played.env.observations[entry["rows"]]
        mirrored += (entry["obs"] != as_it_is).any(axis=(1, 2, 3)).sum()
        for seen, board, drawn in zip(entry["obs"], as_it_is, played._views._drawn, strict=True):
            np.testing.assert_array_equal(seen, board[:, ::-1] if drawn else board)
        decide(entry, *rest)
        deciding.chosen = entry["actions"]
        deciding.rows = entry["rows"]

    def advancing(actions):
        nonlocal done
        turned = np.where(played._views._drawn, 2 - deciding.chosen, deciding.chosen)
        np.testing.assert_array_equal(actions[deciding.rows], turned)
        assert played.env.action_mask[deciding.rows, turned].all()
        done += len(turned)
        advance(actions)

    played.decide, played.env.advance = deciding, advancing
    for _ in range(3):
        played.sample(num_timesteps=30 * played.env.num_games)
    assert len(played.env.pool.past) == 2
    assert 0.3 < mirrored / done < 0.6


def plain_values(progress):
    """With arrays in place of tensors, for comparing."""
    if isinstance(progress, dict):
        return {name: plain_values(value) for name, value in progress.items()}
    if isinstance(progress, list | tuple):
        return [plain_values(value) for value in progress]
    return progress.numpy() if isinstance(progress, torch.Tensor) else progress


@pytest.mark.parametrize("num_env_runners", [0, pytest.param(2, marks=pytest.mark.long)])
def test_a_resumed_run_has_the_pool_its_win_rates_and_the_stage_of_before(
    one_ray, tmp_path, num_env_runners
):
    stages = [
        {
            "name": "battlesnake",
            "until": until,
            "options": {**size, "num_snakes": 2, "observation": WINDOW},
        }
        for size, until in (({"width": 5, "height": 5}, 300), ({"width": 7, "height": 7}, None))
    ]
    league = {"opponents": ["random", "suicidal"], "share": 0.8, "past_every": 2, "most_past": 2}
    if num_env_runners:
        league["opponents"] = ["random"]
    experiment = Experiment.from_dict(
        {
            "name": "league",
            "env": {
                "name": "curriculum",
                "options": {"num_games": 8, "stages": stages, "self_play": league},
            },
            "network": {"name": "mlp", "options": {"hidden_sizes": [8]}},
            "ppo": {"num_steps": 16, "num_threads": 1},
            "budget": {"total_agent_steps": 10**9},
            "checkpoints": {"every_minutes": 0.0},
            "num_env_runners": num_env_runners,
        }
    )
    run = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 7).path
    checkpoint, counters = RunFolder(run).newest_checkpoint()
    assert counters["iteration"] == 7
    first, second = (build_algorithm(experiment) for _ in range(2))
    try:
        first.restore_from_path(str(checkpoint))
        kept = plain_values(first._ask_for_progress())
        assert len(kept) == max(1, num_env_runners)
        for runner_progress in kept.values():
            world_progress = runner_progress["world"]["Curriculum"]
            pool = world_progress["world"]["SelfPlay"]["pool"]
            assert world_progress["stage"] == 1
            assert world_progress["decisions"] > 300
            assert len(pool["past"]) == 2
            assert pool["fixed"]["random"] != 0.5
            weights = [network["heads.actor.weight"] for _, _, network in pool["past"]]
            assert (weights[0] != weights[1]).any()
        # What it plays on with joins what was there; the numbers of past selves go on.
        for _ in range(4):
            first.train()
        later = plain_values(first._ask_for_progress())
        assert later != kept
        for number, runner_progress in later.items():
            before, after = (p["world"]["Curriculum"] for p in (kept[number], runner_progress))
            assert after["stage"] == 1
            assert after["decisions"] > before["decisions"]
            assert (
                after["world"]["SelfPlay"]["pool"]["born"]
                > before["world"]["SelfPlay"]["pool"]["born"]
            )
        # And that is what the next checkpoint holds.
        first.save_to_path(str(tmp_path / "again"))
        second.restore_from_path(str(tmp_path / "again"))
        np.testing.assert_equal(plain_values(second._ask_for_progress()), later)
    finally:
        first.stop()
        second.stop()


def test_a_policy_is_measured_without_the_pool():
    assert without_training({"width": 7, "self_play": {}}) == {"width": 7}


def test_the_runner_learns_from_the_learners_rows_alone_and_the_pool_grows(one_ray):
    options = {**{name: value for name, value in BASE.items() if name != "name"}, "num_games": 8}
    league = {"opponents": ["random"], "share": 1.0, "past_every": 1, "most_past": 3}
    played = runner("battlesnake", options={**options, "self_play": league})
    for _ in range(4):
        (fragment,) = played.sample(num_timesteps=20 * played.env.num_games)
        # One learner in each of 8 games of three: no more than 8 decisions a step.
        assert 0 < len(fragment) <= 8 * 20
    assert len(played.env.pool.past) == 3
    assert played.get_metrics()["episode_sums"]["league_random"].peek() >= 0


def test_the_seed_decides_who_sits_where():
    seats = []
    for seed in (0, 0, 1):
        env = world(share=1.0, seed=seed)
        env.restart(5)
        seats.append(env.valid.tolist())
    assert seats[0] == seats[1] != seats[2]


def test_a_restart_with_the_same_seed_seats_the_same_again_whatever_was_played():
    env = world(share=1.0)
    env.restart(5)
    seats = env.valid.tolist()
    for _ in play(env, 30):
        pass
    env.restart(5)
    assert env.valid.tolist() == seats
    env.restart(6)
    assert env.valid.tolist() != seats
