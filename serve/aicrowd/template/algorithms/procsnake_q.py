"""Ray 0.8.6's DQN and APEX with a torch policy that doesn't crash. Everything else is Ray's."""

from __future__ import annotations

from ray.rllib.agents.dqn.apex import ApexTrainer
from ray.rllib.agents.dqn.dqn import DQNTrainer
from ray.rllib.agents.dqn.dqn_tf_policy import DQNTFPolicy
from ray.rllib.agents.dqn.dqn_torch_policy import DQNTorchPolicy

from algorithms.aligned_torch import AlignedTorch


class PolicyTorch(AlignedTorch, DQNTorchPolicy):
    pass


def policy_class(config):
    return PolicyTorch if config["framework"] == "torch" else DQNTFPolicy


ProcsnakeDQN = DQNTrainer.with_updates(name="ProcsnakeDQN", get_policy_class=policy_class)
ProcsnakeAPEX = ApexTrainer.with_updates(name="ProcsnakeAPEX", get_policy_class=policy_class)
