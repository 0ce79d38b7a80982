"""RLlib's configuration of a run: what all algorithms on the batched path set in it, and the experiment's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from train.algorithm_settings import PPOSettings, QSettings
from train.config import Experiment
from train.rllib.connector import fragments_to_batch
from train.rllib.modules import NetworkModule, has_fast_bfloat16
from train.worlds.build import world_options

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self

    from train.rollouts.batch_runner import BatchEnvRunner


class BatchedConfig(AlgorithmConfig):
    """RLlib's configuration for env runners that play a whole `BatchEnv`. `from_experiment` fills it in.

    `settings` are those of the experiment. Env runners and learners read them there; of RLlib's own fields only those are set
    that RLlib itself reads. A subclass names the algorithm and its settings in `__init__`, and its other classes by
    `runner_and_module` and RLlib's `get_default_learner_class`.
    """

    env: str  # type: ignore[assignment]  # RLlib's is untyped, and None at first
    settings: PPOSettings | QSettings

    @classmethod
    def from_experiment(cls, experiment: Experiment) -> Self:
        """Return the configuration of a run."""
        config, settings = cls(), experiment.settings
        assert isinstance(settings, PPOSettings | QSettings)
        config.settings = settings
        runner_class, module_class = config.runner_and_module()
        config.environment(experiment.env.name, env_config=world_options(experiment))
        config.env_runners(
            env_runner_cls=runner_class,
            num_env_runners=experiment.num_env_runners,
            rollout_fragment_length=settings.num_steps,
            create_env_on_local_worker=False,
            # There are no connectors on the batched path. Asking for their states after each iteration would wait for all that
            # env runners are doing, and take what they failed at with it.
            merge_env_runner_states=False,
            broadcast_env_runner_states=False,
        )
        config.learners(
            num_learners=experiment.num_learners,
            num_gpus_per_learner=experiment.num_gpus_per_learner,
            learner_connector=fragments_to_batch,
            add_default_connectors_to_learner_pipeline=False,
        )
        config.training(grad_clip=settings.max_grad_norm or None, grad_clip_by="global_norm")
        network = experiment.policy_network
        bf16 = has_fast_bfloat16(gpu=config.plays_on_gpu) if settings.bf16 is None else settings.bf16
        model_config = {"name": network.name, "options": dict(network.options), "bf16": bf16, "imports": experiment.modules}
        config.rl_module(rl_module_spec=RLModuleSpec(module_class=module_class, model_config=model_config))
        config.debugging(seed=experiment.seed, log_level="ERROR")
        return config

    @property
    def plays_on_gpu(self) -> bool:
        """Whether one process plays and learns, and has a GPU for both."""
        return self.num_gpus_per_learner > 0 and not self.num_learners and not self.num_env_runners

    def runner_and_module(self) -> tuple[type[BatchEnvRunner], type[NetworkModule]]:
        """Return the class that plays and the class that holds the network."""
        raise NotImplementedError

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=self.runner_and_module()[1])
