from __future__ import annotations

import numpy as np
import torch
import tree
from ray.rllib.utils.minibatch_utils import ShardEpisodesIterator

from train.rllib.connector import FragmentsToBatch
from train.rollouts.fragment import Fragment


def fragment(first, last):
    return Fragment(
        {"obs": np.arange(first, last, dtype=np.uint8)[:, None], "advantages": np.arange(first, last, dtype=np.float32)}, 50
    )


def test_rllib_takes_it_for_one_leaf():
    assert len(tree.flatten([[fragment(0, 3)], [fragment(3, 9)]])) == 2


def test_a_slice_has_its_entries_and_its_share_of_env_steps():
    part = fragment(0, 100)[20:50]
    assert part.agent_steps() == len(part) == 30
    assert part.env_steps() == 15
    assert part.columns["obs"][0, 0] == 20


def test_sharding_over_learners_loses_nothing_and_is_even():
    shards = list(ShardEpisodesIterator([fragment(0, 70), fragment(70, 101)], num_shards=2, len_lookback_buffer=0))
    lengths = [sum(len(f) for f in shard) for shard in shards]
    entries = sorted(int(x) for shard in shards for f in shard for x in f.columns["advantages"])
    assert entries == list(range(101))
    assert abs(lengths[0] - lengths[1]) <= 1


def test_the_connector_joins_fragments_in_order_and_copies_a_lone_one_only_if_it_must():
    joined = FragmentsToBatch()(episodes=[fragment(0, 3), fragment(3, 5)])["default_policy"]
    assert joined["advantages"].tolist() == [0, 1, 2, 3, 4]
    assert joined["obs"].dtype == torch.uint8
    lone = fragment(0, 4)
    tensor = FragmentsToBatch()(episodes=[lone])["default_policy"]["advantages"]
    assert tensor.numpy().ctypes.data == lone.columns["advantages"].ctypes.data
    lone.columns["advantages"].setflags(write=False)
    tensor = FragmentsToBatch()(episodes=[lone])["default_policy"]["advantages"]
    assert tensor.numpy().ctypes.data != lone.columns["advantages"].ctypes.data
