"""Inference as RLlib documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from envs.common.errors import ConfigError
from tests.train.rllib.small_runs import small


def test_single_actions_are_the_modules(one_ray):
    algorithm = small().build_algo()
    try:
        algorithm.train()
        seen = np.full((1, 1, 4), 9, np.uint8)
        logits = algorithm.get_module().forward_inference({"obs": torch.from_numpy(seen[None])})[
            "action_dist_inputs"
        ][0]
        assert algorithm.compute_single_action(seen, explore=False) == int(logits.argmax())
        mask = np.arange(4) != int(logits.argmax())
        assert algorithm.compute_single_action(seen, action_mask=mask, explore=False) == int(
            logits.argsort()[-2]
        )
        assert len({algorithm.compute_single_action(seen) for _ in range(60)}) > 1
        with pytest.raises(ConfigError, match="get_module"):
            algorithm.get_policy()
        before = algorithm.get_module().state_dict()
        algorithm.train()
        after = algorithm.get_module().state_dict()
        assert any(not torch.equal(before[name], after[name]) for name in before)
    finally:
        algorithm.stop()
