from __future__ import annotations

import numpy as np
import torch
import tree
from ray.rllib.utils.minibatch_utils import ShardEpisodesIterator

from train.rllib.connector import FragmentsToBatch
from train.rollouts.fragment import Fragment


def fragment(first, last):
    return Fragment(
        {
            "obs": np.arange(first, last, dtype=np.uint8)[:, None],
            "advantages": np.arange(first, last, dtype=np.float32),
        },
        50,
    )


def test_rllib_takes_it_for_one_leaf():
    assert len(tree.flatten([[fragment(0, 3)], [fragment(3, 9)]])) == 2


def test_a_slice_has_its_entries_and_its_share_of_env_steps():
    part = fragment(0, 100)[20:50]
    assert part.agent_steps() == len(part) == 30
    assert part.env_steps() == 15
    assert part.columns["obs"][0, 0] == 20


def test_sharding_over_learners_loses_nothing_and_is_even():
    shards = list(
        ShardEpisodesIterator(
            [fragment(0, 70), fragment(70, 101)], num_shards=2, len_lookback_buffer=0
        )
    )
    lengths = [sum(len(f) for f in shard) for shard in shards]
    entries = sorted(int(x) for shard in shards for f in shard for x in f.columns["advantages"])
    assert entries == list(range(101))
    assert abs(lengths[0] - lengths[1]) <= 1


def batch_of(*fragments, device="cpu"):
    module = torch.nn.Linear(1, 1, device=device)
    return FragmentsToBatch()(rl_module={"default_policy": module}, episodes=list(fragments))[
        "default_policy"
    ]


def test_the_connector_joins_fragments_in_order_and_copies_a_lone_one_only_if_it_must():
    joined = batch_of(fragment(0, 3), fragment(3, 5))
    assert joined["advantages"].tolist() == [0, 1, 2, 3, 4]
    assert joined["obs"].dtype == torch.uint8
    lone = fragment(0, 4)
    tensor = batch_of(lone)["advantages"]
    assert tensor.numpy().ctypes.data == lone.columns["advantages"].ctypes.data
    lone.columns["advantages"].setflags(write=False)
    tensor = batch_of(lone)["advantages"]
    assert tensor.numpy().ctypes.data != lone.columns["advantages"].ctypes.data


def test_the_batch_is_on_the_modules_device():
    """The device `meta` stands in for a GPU."""
    assert {column.device.type for column in batch_of(fragment(0, 3), device="meta").values()} == {
        "meta"
    }


def test_a_fragment_is_split_into_equal_stretches():
    parts = fragment(0, 101).split(3)
    assert [len(part) for part in parts] == [33, 34, 34]
    assert np.concatenate([part.columns["advantages"] for part in parts]).tolist() == list(
        range(101)
    )
