"""Ray 0.8.6's PPO with the details of procsnake's PPO.

* Advantages are standardised in each minibatch. Ray does so over the whole batch; doing both is the
  same as doing the last.
* Adam has epsilon 1e-5, where Ray has 1e-8.
* The weight of the KL penalty is doubled or halved if KL is 1.5 times off. Ray takes 1.5 and .5 if
  it is twice off.
* A learning-rate schedule reaches torch's optimiser. Ray 0.8.6 forgets to hand it on.
"""

from __future__ import annotations

from ray.rllib.agents.ppo import ppo_tf_policy, ppo_torch_policy
from ray.rllib.agents.ppo.ppo import PPOTrainer
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.policy import tf_policy, torch_policy
from ray.rllib.utils.framework import try_import_tf, try_import_torch

from algorithms.aligned_torch import AlignedTorch

tf = try_import_tf()
torch, _ = try_import_torch()

ADAM_EPSILON = 1e-5
TINY = 1e-8
LEAST_KL_SHARE = 1 / 64


def adapted_kl_coef(kl_coef, kl, target, least):
    """Return the weight of the penalty for the next batch, which is never below `least`."""
    if kl > 1.5 * target:
        return 2 * kl_coef
    return max(kl_coef / 2, least) if kl < target / 1.5 else kl_coef


def with_advantages(train_batch, advantages, loss, *arguments):
    """Return the loss with other advantages. The batch stays as Ray knows it."""
    own = train_batch[Postprocessing.ADVANTAGES]
    train_batch[Postprocessing.ADVANTAGES] = advantages(own)
    result = loss(*arguments, train_batch)
    train_batch[Postprocessing.ADVANTAGES] = own
    return result


def standardised_tf(advantages):
    mean, variance = tf.nn.moments(advantages, [0])
    count = tf.cast(tf.shape(advantages)[0], tf.float32)
    deviation = tf.sqrt(variance * count / tf.maximum(count - 1, 1))
    return (advantages - mean) / (deviation + TINY)


def standardised_torch(advantages):
    return (advantages - advantages.mean()) / (advantages.std() + TINY)


def loss_tf(policy, model, dist_class, train_batch):
    return with_advantages(
        train_batch, standardised_tf, ppo_tf_policy.ppo_surrogate_loss, policy, model, dist_class
    )


def loss_torch(policy, model, dist_class, train_batch):
    return with_advantages(
        train_batch,
        standardised_torch,
        ppo_torch_policy.ppo_surrogate_loss,
        policy,
        model,
        dist_class,
    )


class KLRuleTF(ppo_tf_policy.KLCoeffMixin):
    def update_kl(self, sampled_kl):
        least = self.config["kl_coeff"] * LEAST_KL_SHARE
        self.kl_coeff_val = adapted_kl_coef(self.kl_coeff_val, sampled_kl, self.kl_target, least)
        self.kl_coeff.load(self.kl_coeff_val, session=self.get_session())
        return self.kl_coeff_val


class KLRuleTorch(ppo_torch_policy.KLCoeffMixin):
    def update_kl(self, sampled_kl):
        least = self.config["kl_coeff"] * LEAST_KL_SHARE
        self.kl_coeff = adapted_kl_coef(self.kl_coeff, sampled_kl, self.kl_target, least)
        return self.kl_coeff


class ScheduleTorch(torch_policy.LearningRateSchedule):
    def on_global_var_update(self, global_vars):
        super().on_global_var_update(global_vars)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.cur_lr


PolicyTF = ppo_tf_policy.PPOTFPolicy.with_updates(
    name="ProcsnakePPOTF",
    loss_fn=loss_tf,
    optimizer_fn=lambda policy, config: tf.train.AdamOptimizer(policy.cur_lr, epsilon=ADAM_EPSILON),
    mixins=[
        tf_policy.LearningRateSchedule,
        tf_policy.EntropyCoeffSchedule,
        KLRuleTF,
        ppo_tf_policy.ValueNetworkMixin,
    ],
)
BasePolicyTorch = ppo_torch_policy.PPOTorchPolicy.with_updates(
    name="ProcsnakePPOTorch",
    loss_fn=loss_torch,
    optimizer_fn=lambda policy, config: torch.optim.Adam(
        policy.model.parameters(), lr=config["lr"], eps=ADAM_EPSILON
    ),
    mixins=[
        ScheduleTorch,
        torch_policy.EntropyCoeffSchedule,
        KLRuleTorch,
        ppo_torch_policy.ValueNetworkMixin,
    ],
)


class PolicyTorch(AlignedTorch, BasePolicyTorch):
    pass


ProcsnakePPO = PPOTrainer.with_updates(
    name="ProcsnakePPO",
    default_policy=PolicyTF,
    get_policy_class=lambda config: PolicyTorch if config["framework"] == "torch" else PolicyTF,
)
