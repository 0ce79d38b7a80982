"""The common part of every algorithm on RLlib: play on all env runners, count steps, log episodes,
restart learners.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import ray
import torch
from ray._private import state as ray_state
from ray.actor import ActorHandle
from ray.exceptions import RayActorError
from ray.rllib.algorithms import algorithm
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import (
    COMPONENT_LEARNER,
    COMPONENT_RL_MODULE,
    DEFAULT_AGENT_ID,
    DEFAULT_MODULE_ID,
)
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.actor_manager import FaultTolerantActorManager, RemoteCallResults
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    WEIGHTS_SEQ_NO,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from agents.networks.q_network import QNetwork
from envs.common.errors import ConfigError, ProcsnakeError
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner import EPISODE_SUMS, BatchEnvRunner
from train.rllib.env_runner_failures import Failures, clear_errors
from train.rllib.modules import NetworkModule
from train.rollouts.columns import ACTION_MASK

AGENT_STEPS_BEFORE = "agent_steps_before"
"""Key of the learner's `timesteps`: a count of decisions, which schedules follow. PPO and DQN count
those taken before this iteration; with APPO and APEX, which play on meanwhile, they are all that
were taken by then."""
LEARNER_SECONDS = "learner_seconds"
"""Metrics key: wall seconds of an iteration's updates."""
EPISODE_MEANS = "episode_means"
"""Metrics key: means over the episodes that ended in an iteration, by column of
`BatchEnv.drain_episodes`.
"""
RESTORED_LEARNERS = "restored_learners"
"""Metrics key: how often learners in processes of their own had to be started anew."""
RUNNERS = "runners"
"""Key of the env runners' part of a checkpoint: `BatchEnvRunner.progress` by the runner's
number.
"""
_SECONDS_BETWEEN_COPIES = 10.0
_PATIENCE = 0.1


class _EnvRunnerGroup(EnvRunnerGroup):
    """Env runners get their configuration by value.

    RLlib passes it through the object store. Of that Ray warns on stderr, in red: an env runner
    that dies could not be started anew if the configuration were lost there."""

    def _make_worker(self, *, config: Any, **arguments: Any) -> Any:
        if config is self._remote_config_obj_ref:
            by_value = self._remote_config
        else:
            by_value = config
        return super()._make_worker(config=by_value, **arguments)


class BatchedAlgorithm(Algorithm):
    """An RLlib `Algorithm` whose env runners play a whole `BatchEnv` each.

    The run sets `fraction_done` (0..1). If a learner in its own process dies, all learners are
    restarted with their state of some seconds ago."""

    # RLlib declares these as None until `setup`.
    config: BatchedConfig
    metrics: MetricsLogger
    env_runner_group: EnvRunnerGroup
    learner_group: LearnerGroup

    fraction_done: float = 0.0
    _failures: Failures | None = None
    _progress: dict[int, dict[str, Any]] = {}
    _learners_copy: dict[str, Any] | None = None
    _copied_at = 0.0
    _updates_since_copy = 0
    _restored_learners = 0
    _inference: tuple[int, NetworkModule] | None = None

    # In Tune's Trainable `config` is a dict.
    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]
        # RLlib has no setting for the class of the group.
        algorithm.EnvRunnerGroup = _EnvRunnerGroup  # type: ignore[misc]
        try:
            super().setup(config)
        finally:
            algorithm.EnvRunnerGroup = EnvRunnerGroup  # type: ignore[misc]

    def agent_steps(self) -> float:
        """Return the number of decisions taken so far, over all env runners."""
        key = (ENV_RUNNER_RESULTS, NUM_AGENT_STEPS_SAMPLED_LIFETIME, DEFAULT_AGENT_ID)
        return float(self.metrics.peek(key, default=0.0))

    def policy_weights(self) -> dict[str, Any]:
        """Return the state of the `train.rllib.modules.NetworkModule` that is trained."""
        state = self.learner_group.get_state(components="learner/rl_module")
        return next(iter(state["learner"]["rl_module"].values()))

    def load_policy_weights(self, weights: Mapping[str, Any]) -> None:
        """Give learners and env runners weights in the form of `policy_weights`."""
        self.learner_group.set_state(
            {COMPONENT_LEARNER: {COMPONENT_RL_MODULE: {DEFAULT_MODULE_ID: dict(weights)}}}
        )
        self.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.learner_group, inference_only=False
        )
        self._inference = None

    # How RLlib's users ask what a policy does.

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> NetworkModule | None:
        """Return the policy as the learners have it now, on the CPU. There is one, named
        `DEFAULT_MODULE_ID`.
        """
        if module_id != DEFAULT_MODULE_ID:
            return None
        if self._inference is None or self._inference[0] != self.iteration:
            module = self.config.get_rl_module_spec(
                spaces=self.spaces, inference_only=False
            ).build()
            assert isinstance(module, NetworkModule)
            module.set_state(self.policy_weights())
            module.eval()
            self._inference = self.iteration, module
        return self._inference[1]

    def get_policy(self, policy_id: str = DEFAULT_MODULE_ID) -> Any:
        """Refuse: RLlib's new API stack has no policies."""
        raise ConfigError(
            "RLlib's new API stack has modules in the place of policies: algorithm.get_module()"
            " returns it, and algorithm.compute_single_action(observation) asks it"
        )

    # The further arguments of RLlib's old stack mean nothing here.
    def compute_single_action(  # type: ignore[override]
        self, observation: Any, *, action_mask: Any = None, explore: bool | None = None
    ) -> int:
        """Return the action for one observation: drawn from the policy with `explore`, else the
        likeliest.

        `explore` is by default the configuration's; a network of Q values answers with the best
        action in any case. `action_mask`, bool (actions,), is the world's. Raises `ConfigError` for
        a policy with a memory."""
        module = self.get_module()
        draws = self.config.explore if explore is None else explore
        assert module is not None
        if self.config.settings.is_recurrent:
            raise ConfigError(
                "a policy with a memory (lstm_units) needs its state; call"
                " get_module().forward_inference"
            )
        batch = {Columns.OBS: torch.as_tensor(np.asarray(observation))[None]}
        if action_mask is not None:
            batch[ACTION_MASK] = torch.as_tensor(np.asarray(action_mask, np.bool_))[None]
        with torch.inference_mode():
            logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
        if draws and not isinstance(module.network, QNetwork):
            return int(torch.distributions.Categorical(logits=logits).sample())
        return int(logits.argmax())

    def restore_from_path(self, *args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            # Checkpoints of NumPy 1 name numpy.core, which NumPy 2 still reads.
            warnings.filterwarnings("ignore", "numpy.core", DeprecationWarning)
            super().restore_from_path(*args, **kwargs)
        self._learners_copy = self._inference = None

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(RUNNERS, components, not_components):
            state[RUNNERS] = self._ask_for_progress()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._progress = state.get(RUNNERS, {})
        group = self.env_runner_group
        if self._progress and group.num_remote_workers() == 0:
            self._local_runner().carry_on(self._progress_for(0))
        self._hand_out_progress(group.healthy_env_runner_ids())

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        restored = super().restore_env_runners(env_runner_group)
        # RLlib also restores those of an evaluation, which count from 1 as well.
        if env_runner_group is self.env_runner_group:
            self._hand_out_progress(restored)
        return restored

    def _local_runner(self) -> BatchEnvRunner:
        runner = self.env_runner_group.local_env_runner
        assert isinstance(runner, BatchEnvRunner)
        return runner

    def _ask_for_progress(self) -> dict[int, dict[str, Any]]:
        """That of each env runner by its number; of one that can't answer now, what it last
        answered.
        """
        group = self.env_runner_group
        ask: Callable[[Any], tuple[int, dict[str, Any]]] = _progress_of_one
        answers = group.foreach_env_runner(
            ask,
            local_env_runner=group.num_remote_workers() == 0,
            timeout_seconds=self.config.sample_timeout_s,
        )
        self._progress = {**self._progress, **dict(answers)}
        return self._progress

    def _progress_for(self, number: int) -> dict[str, Any]:
        """What env runner `number` goes on from: with more of them than before, some begin where
        another is.
        """
        known = self._progress
        return known.get(number) or known[sorted(known)[number % len(known)]]

    def _hand_out_progress(self, numbers: list[int]) -> None:
        """To remote env runners that are in service."""
        in_service = self.env_runner_group.healthy_env_runner_ids()
        numbers = [number for number in numbers if number in in_service]
        if self._progress and numbers:
            self.env_runner_group.foreach_env_runner(
                "carry_on",
                kwargs=[{"progress": self._progress_for(number)} for number in numbers],
                local_env_runner=False,
                remote_worker_ids=numbers,
                timeout_seconds=self.config.env_runner_restore_timeout_s,
            )

    def _play_on_all(self, method: str = "play", **arguments: Any) -> list[tuple[Any, Any]]:
        """What `method(**arguments)` of each env runner returns, at the same time; those that fail
        or are slow are left out.

        Raises `EnvRunnerError` where that is hopeless.
        """
        if self.env_runner_group.num_remote_workers() == 0:
            return self._play_here(method, **arguments)
        timeout = self.config.sample_timeout_s
        answers = self._answers(
            lambda actors: actors.foreach_actor(method, kwargs=arguments, timeout_seconds=timeout)
        )
        return [answer for _, answer in answers]

    def _play_here(self, method: str, **arguments: Any) -> list[tuple[Any, Any]]:
        """The same of this process, which plays where there are no env runners apart."""
        with clear_errors(self.config.world_name):
            return [getattr(self._local_runner(), method)(**arguments)]

    def _answers(
        self, ask: Callable[[FaultTolerantActorManager], RemoteCallResults]
    ) -> list[tuple[int, Any]]:
        """The number and the answer of the env runners that have one. Raises `EnvRunnerError` if
        more failed than the configuration tolerates.
        """
        config = self.config
        if self._failures is None:
            self._failures = Failures(
                config.world_name,
                config.num_env_runners,
                tolerates=config.ignore_env_runner_failures or config.restart_failed_env_runners,
                in_a_row=config.num_consecutive_env_runner_failures_tolerance,
            )
        actors = self.env_runner_group._worker_manager
        in_service = actors.healthy_actor_ids()
        if not in_service:
            if not config.restart_failed_env_runners:
                self._failures.give_up("restart_failed_env_runners is False")
            if all(_is_dead(actor) for actor in actors.actors().values()):
                limit = f"max_num_env_runner_restarts is {config.max_num_env_runner_restarts}"
                self._failures.give_up(f"Ray starts none again ({limit})")
            time.sleep(_PATIENCE)
        results = ask(actors).result_or_errors
        answers = [(result.actor_id, result.get()) for result in results if result.ok]
        # What an env runner fails at after its first error belongs to the same failure.
        errors: dict[int, Exception] = {}
        for result in results:
            if not result.ok and result.actor_id in in_service:
                errors.setdefault(result.actor_id, result.get())
        if answers and (self._failures.tolerates or not errors):
            self._failures.forget()
            return answers
        for error in errors.values():
            self._failures.note(error)
        return []

    def _update_learners(self, **arguments: Any) -> list[dict[str, Any]]:
        """`LearnerGroup.update`, once more if a learner dies over it. RLlib neither restarts
        learners nor goes on without.
        """
        if not self.config.num_learners:
            return self.learner_group.update(**arguments)
        try:
            return self._copy_and_update(**arguments)
        except Exception as error:
            # Ray's own message would be a whole traceback.
            if isinstance(cause := getattr(error, "cause", None), ProcsnakeError):
                raise cause from None
            known = self._learners_copy
            if known is None or not self._has_lost_a_learner():
                raise
        self._replace_learners(known)
        return self._copy_and_update(**arguments)

    def _copy_and_update(self, **arguments: Any) -> list[dict[str, Any]]:
        if (
            self._learners_copy is None
            or time.monotonic() - self._copied_at > _SECONDS_BETWEEN_COPIES
        ):
            self._learners_copy = self.learner_group.get_state()
            self._copied_at = time.monotonic()
            self._updates_since_copy = 0
        self._updates_since_copy += 1
        return self.learner_group.update(**arguments)

    def _log_learned(self, results: list[dict[str, Any]]) -> None:
        """Take in the learners' metrics of an update."""
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        if self.config.num_learners:
            key = (LEARNER_RESULTS, DEFAULT_MODULE_ID, RESTORED_LEARNERS)
            self.metrics.log_value(key, self._restored_learners, window=1)

    def _has_lost_a_learner(self) -> bool:
        # Of several learners those that live on fail, too: they can't reach the one that is gone.
        try:
            ray.get(
                [learner.__ray_ready__.remote() for learner in self.learner_group._workers or ()]
            )
        except RayActorError:
            return True
        return False

    def _replace_learners(self, known: dict[str, Any]) -> None:
        group = self.learner_group
        config = self.config
        for learner in group._workers or ():
            ray.kill(learner)
        group.shutdown()
        spec = config.get_multi_rl_module_spec(spaces=self.spaces, inference_only=False)
        self.learner_group = config.build_learner_group(rl_module_spec=spec)
        # Env runners only take weights with a higher number than theirs.
        known[COMPONENT_LEARNER][WEIGHTS_SEQ_NO] += self._updates_since_copy
        self.learner_group.set_state(known)
        self._restored_learners += 1

    def _log_played(self, results: list[Any]) -> None:
        """Take in the env runners' metrics. Sums and counts add up over them, so these are means
        over every episode.
        """
        self.metrics.aggregate(results, key=ENV_RUNNER_RESULTS)
        count = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_EPISODES))
        if not count:
            return
        sums = self.metrics.peek((ENV_RUNNER_RESULTS, EPISODE_SUMS))
        for name, key in (("return", EPISODE_RETURN_MEAN), ("length", EPISODE_LEN_MEAN)):
            self.metrics.log_value((ENV_RUNNER_RESULTS, key), sums[name] / count, window=1)
        for name, total in sums.items():
            self.metrics.log_value(
                (ENV_RUNNER_RESULTS, EPISODE_MEANS, name), total / count, window=1
            )


def _is_dead(actor: ActorHandle) -> bool:
    """Whether Ray won't start an actor's process again."""
    return bool(ray_state.actors(actor._actor_id.hex()).get("State") == "DEAD")


def _progress_of_one(runner: BatchEnvRunner) -> tuple[int, dict[str, Any]]:
    return runner.worker_index, runner.progress()
