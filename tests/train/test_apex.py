from __future__ import annotations

import math
import time
from contextlib import suppress

import numpy as np
import pytest
import ray
from ray.exceptions import RayError

from envs.common.errors import ConfigError
from tests.train.experiments import has_played, toy_q, train_until
from train.algorithms import build_algorithm
from train.apex import APEXConfig, APEXRunner, ReplayShard, first_td_errors, ladder_epsilons
from train.rollouts.n_step import GOES_ON, TERMINATED, TRUNCATED
from train.run import train


def apex(world="identity", **settings):
    return toy_q(world, algorithm="apex", **{"num_env_runners": 2, **settings})


def config_of(world, **settings):
    return APEXConfig.from_experiment(apex(world, bf16=False, **settings))


def test_epsilons_form_the_papers_ladder():
    """Page 6: epsilon_i = 0.4^(1 + 7 i / (N - 1))."""
    assert ladder_epsilons(8, 0.4, 7.0) == pytest.approx([0.4**k for k in range(1, 9)])
    assert ladder_epsilons(1, 0.4, 7.0) == pytest.approx([0.4])


def test_each_game_of_each_env_runner_has_its_own_place_on_the_ladder(one_ray):
    config = config_of("corridor", options={"num_games": 3})
    runners = [APEXRunner(config=config, worker_index=k) for k in (1, 2)]
    epsilons = np.concatenate([runner.epsilons for runner in runners])
    np.testing.assert_allclose(
        epsilons, np.repeat([0.4 ** (1 + 7 * i / 5) for i in range(6)], 2), rtol=1e-6
    )


def test_first_td_errors_equal_those_worked_out_entry_by_entry():
    rng = np.random.default_rng(0)
    n = 3
    steps = 20
    rows = 4
    gamma = 0.9
    shape = (steps + n, rows)
    grids = {name: rng.normal(size=shape) for name in ("rewards", "taken", "best", "final")}
    grids["endings"] = rng.choice(
        [GOES_ON, TERMINATED, TRUNCATED], shape, p=[0.7, 0.15, 0.15]
    ).astype(np.uint8)
    errors = first_td_errors(grids, n, gamma)
    for t in range(steps):
        for row in range(rows):
            target = 0.0
            for k in range(n):
                target += gamma**k * grids["rewards"][t + k, row]
                ending = grids["endings"][t + k, row]
                if ending == TRUNCATED:
                    target += gamma ** (k + 1) * grids["final"][t + k, row]
                if ending != GOES_ON:
                    break
            else:
                target += gamma**n * grids["best"][t + n, row]
            assert errors[t, row] == pytest.approx(abs(target - grids["taken"][t, row]), abs=1e-6)


def test_a_workers_priorities_are_the_td_errors_that_the_learner_would_find(one_ray):
    """With its own network as target: over two rollouts, so that stretches lie across their
    border.
    """
    import torch

    from train.dqn import dqn_losses

    config = config_of("counting", learning_starts=1, num_env_runners=1, double_q=False)
    runner = APEXRunner(config=config, worker_index=1)
    shard = ReplayShard(config, 0)
    for _ in range(6):
        (rollout,) = runner.sample()
        shard.add(rollout)
    _, _, (drawn,) = shard.sample(batch_size=256, num_batches=1, beta=0.4)
    batch = columns_of(drawn)
    with torch.inference_mode():
        atoms = {
            name: runner.module.network.atoms(torch.from_numpy(batch[column]))
            for name, column in (("atoms", "obs"), ("target_atoms", "new_obs"))
        }
        columns = {name: torch.from_numpy(column) for name, column in batch.items()}
        _, errors = dqn_losses(atoms, columns, torch.zeros(1), double_q=False)
    replay = shard._replay
    priorities = replay._tree[drawn.cells]
    np.testing.assert_allclose(priorities, (errors.numpy() + 1e-6) ** 0.6, rtol=1e-3)
    assert len(np.unique(priorities)) > 50


def test_a_shard_forgets_what_belongs_to_an_earlier_life(one_ray):
    config = config_of("counting", learning_starts=1, num_env_runners=1)
    runner = APEXRunner(config=config, worker_index=1)
    shard = ReplayShard(config, 0)
    for _ in range(3):
        shard.add(runner.sample()[0])
    life, mass, (drawn,) = shard.sample(batch_size=8, num_batches=1, beta=0.4)
    errors = [(drawn.cells, drawn.stamps, np.full(8, 1e9))]
    shard.update_priorities("another life", errors)
    assert shard.sample(batch_size=8, num_batches=0, beta=0.4)[1] == mass
    shard.update_priorities(life, errors)
    assert shard.sample(batch_size=8, num_batches=0, beta=0.4)[1] > 1e5


def columns_of(drawn):
    (fragment,) = drawn.experience["episodes"]
    return fragment.columns


@pytest.mark.parametrize("num_learners", [1, 3])
def test_a_batch_for_learners_apart_stays_with_its_shard(one_ray, num_learners):
    """The main process gets a reference for each learner; together these are one batch, of which
    nobody has a part twice.
    """
    config = config_of("counting", learning_starts=1, num_env_runners=1, n_step=3, gamma=0.9)
    runner = APEXRunner(config=config, worker_index=1)
    shard = ReplayShard(config.learners(num_learners=num_learners), 0)
    for _ in range(6):
        shard.add(runner.sample()[0])
    _, _, (drawn,) = shard.sample(batch_size=64, num_batches=1, beta=0.4)
    assert list(drawn.experience) == ["episodes_refs"]
    parts = [fragment.columns for (fragment,) in ray.get(drawn.experience["episodes_refs"])]
    assert len(parts) == num_learners
    assert max(len(part["obs"]) for part in parts) - min(len(part["obs"]) for part in parts) <= 1
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    check_counting(whole)
    np.testing.assert_array_equal(
        whole["obs"], shard._replay._flat(shard._replay._obs)[drawn.cells]
    )


def number_of(observations):
    return np.ascontiguousarray(observations).reshape(len(observations), 8).view(np.int64)[:, 0]


def check_counting(batch):
    """Every transition over three steps of the counting world, worked out from its first number
    alone.
    """
    n_step = 3
    gamma = 0.9
    first = number_of(batch["obs"]).tolist()
    following = number_of(batch["new_obs"]).tolist()
    for k, number in enumerate(first):
        total = 0.0
        steps = 0
        discount = 1.0
        while steps < n_step:
            total += gamma**steps * ((number + steps) % 7)
            ended = (number + steps) % 10 == 0
            cut = (number + steps) % 25 == 0
            steps += 1
            if ended or cut:
                break
        discount = 0.0 if ended else gamma**steps
        assert batch["rewards"][k] == pytest.approx(total, abs=1e-5)
        assert batch["discounts"][k] == pytest.approx(discount, abs=1e-6)
        assert ended or following[k] == number + steps


@pytest.mark.long
def test_learns_exports_and_keeps_its_replay_ratio(one_ray, tmp_path):
    from agents import bundle

    result = train(apex(replay_ratio=2.0), runs_dir=tmp_path)
    assert result.finished
    assert result.metrics["agent_steps"] >= 20_000
    # The ladder's mean share of random actions, three quarters of which go wrong, is all that is
    # missing.
    expected = 1 - 0.75 * ladder_epsilons(128, 0.4, 7.0).mean()
    assert result.metrics["episode_return_mean"] == pytest.approx(expected, abs=0.03)
    assert result.metrics["replay_ratio"] == pytest.approx(2.0, rel=0.1)
    card = bundle.load(result.bundle).card
    assert card.algorithm == "apex"
    assert card.network["name"] == "q-network"


class SlowToAnswer(ReplayShard):
    """A shard on a machine that is busy with other work."""

    def ping(self):
        time.sleep(0.2)
        return super().ping()


def life_of(shard):
    return ray.get(shard.sample.remote(batch_size=1, num_batches=0, beta=0.4))[0]


def kill_and_wait_until_it_is_back(shard, seconds=600):
    """The kill takes a while to arrive, so that the first answers may be of the old life."""
    old_life = life_of(shard)
    until = time.monotonic() + seconds
    ray.kill(shard, no_restart=False)
    while time.monotonic() < until:
        with suppress(RayError):
            if life_of(shard) != old_life:
                return
        time.sleep(0.2)
    pytest.fail("the shard didn't come back")


@pytest.mark.long
def test_goes_on_when_an_env_runner_and_a_shard_are_killed_and_corrupts_no_transition(
    one_ray, monkeypatch
):
    monkeypatch.setattr("train.apex.ReplayShard", SlowToAnswer)
    settings = {
        "num_replay_shards": 2,
        "learning_starts": 200,
        "n_step": 3,
        "gamma": 0.9,
        "options": {"num_games": 8},
    }
    algorithm = build_algorithm(apex("counting", **settings))
    shards = algorithm._shard_actors

    def check_shards():
        for shard in shards:
            _, _, batches = ray.get(shard.sample.remote(batch_size=512, num_batches=4, beta=0.4))
            for drawn in batches:
                check_counting(columns_of(drawn))

    try:
        train_until(algorithm, lambda _, learned: learned.get("replay_ratio", 0) > 0)
        check_shards()
        ray.kill(algorithm.env_runner_group._worker_manager.actors()[1], no_restart=False)
        train_until(
            algorithm, lambda _, learned: learned.get("restored_env_runners", 0) >= 1, seconds=600
        )
        steps = algorithm.agent_steps()
        train_until(algorithm, lambda *_: algorithm.agent_steps() > steps + 2000)
        check_shards()
        # Back before the learner asks for anything: no request of its fails.
        kill_and_wait_until_it_is_back(shards[0])
        train_until(
            algorithm, lambda _, learned: learned.get("restored_shards", 0) >= 1, seconds=600
        )
        ray.kill(shards[0], no_restart=False)
        train_until(
            algorithm, lambda _, learned: learned.get("restored_shards", 0) >= 2, seconds=600
        )
        trained = algorithm._trained
        _, learned = train_until(algorithm, lambda *_: algorithm._trained > trained + 4000)
        assert math.isfinite(learned["qf_loss"])
        # The killed shard is filled and drawn from again.
        train_until(algorithm, lambda *_: algorithm._masses.get(0, 0.0) > 0.0)
        check_shards()
        assert learned["replay_ratio"] == pytest.approx(2.0, rel=0.1)
    finally:
        algorithm.stop()


@pytest.mark.long
def test_a_restored_algorithm_goes_on(one_ray, tmp_path):
    experiment = apex()
    first = build_algorithm(experiment)
    try:
        train_until(first, lambda *_: first.agent_steps() > 6000)
        first.save_to_path(str(tmp_path / "checkpoint"))
        steps = first.agent_steps()
    finally:
        first.stop()
    second = build_algorithm(experiment)
    try:
        second.restore_from_path(str(tmp_path / "checkpoint"))
        assert second.agent_steps() == steps
        result, _ = train_until(second, has_played)
        assert result["env_runners"]["episode_return_mean"] > 0.8
        train_until(second, lambda _, learned: learned.get("replay_ratio", 0) > 0)
    finally:
        second.stop()


def test_apex_without_env_runners_is_refused():
    with pytest.raises(ConfigError, match="num_env_runners is 0"):
        apex(num_env_runners=0)


def test_there_are_no_more_shards_than_env_runners(one_ray):
    """Each shard counts for its part of `learning_starts`, so with one that nobody fills learning
    would start too early.
    """
    config = config_of("counting", num_env_runners=1, num_replay_shards=3, learning_starts=600)
    runner = APEXRunner(config=config, worker_index=1)
    shard = ReplayShard(config, 0)
    numbers = []
    for _ in range(3):
        shard.add(runner.sample()[0])
        numbers.append(len(shard.sample(batch_size=8, num_batches=1, beta=0.4)[2]))
    # A rollout has 64 games of 4 steps.
    assert numbers == [0, 0, 1]
    assert config.num_shards == 1
