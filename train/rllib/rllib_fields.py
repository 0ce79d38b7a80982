"""Says for each field of RLlib's `AlgorithmConfig` (Ray 2.60) whether it is supported, or a changed
value is refused.

`SAME_MEANING` are fields that an algorithm's own settings have, too, under our names. `REFUSED`
says what to use instead. `RELICS` are refused as well: RLlib keeps them for messages or for its old
API stack, and its new stack doesn't read them. All others are supported.
tests/train/rllib/test_rllib_fields.py walks all fields of the installed Ray."""

from __future__ import annotations

SET_BY_RLLIB = frozenset(
    {"_is_frozen", "_is_online", "_per_module_overrides", "algo_class", "in_evaluation"}
)
"""Fields that RLlib and its algorithms set, and no user."""
SAME_MEANING = {
    "lr": "learning_rate",
    "gamma": "gamma",
    "grad_clip": "max_grad_norm",
    "num_epochs": "num_epochs",
    "rollout_fragment_length": "num_steps",
    "train_batch_size": "train_batch_size",
    "learning_starts": "learning_starts",
}
"""Our settings by RLlib's fields, where an algorithm has the setting."""
OTHER_NAMES = {
    "lambda_": "gae_lambda",
    "lambda": "gae_lambda",
    "clip_param": "clip_coef",
    "vf_loss_coeff": "vf_coef",
    "entropy_coeff": "ent_coef",
    "kl_coeff": "kl_coef",
    "num_steps_sampled_before_learning_starts": "learning_starts",
}
"""Our settings by what RLlib's own PPO and DQN call them. `training` takes them, and our own."""

_EPISODES = "rows are written and read, one per decision; those of an episode stand together"
_CONNECTOR = (
    "change what the world shows: an observation type, or a BatchWrapper registered with"
    " envs.register"
)
_ONE_POLICY = (
    "one policy plays all rows of a world; env.options.self_play trains it against its past selves"
)
_NO_STATES = "there are no connectors whose states could be merged or handed out"
_ALL_GAMES = (
    "a world plays all its games in one call; its option num_threads spreads them over threads"
)
_RECORDED = (
    "learn from recorded games with `procsnake train --from-games`, or with RLlib's own BC, MARWIL"
    " or CQL"
)
_WEIGHTS = "weights are handed out by our own weight servers"
_NO_RESTORING = "RLlib never restores runners of an offline evaluation"

REFUSED = {
    # Worlds hand over whole arrays, which no connector goes through.
    "_env_to_module_connector": _CONNECTOR,
    "add_default_connectors_to_env_to_module_pipeline": _CONNECTOR,
    "_module_to_env_connector": _CONNECTOR,
    "add_default_connectors_to_module_to_env_pipeline": _CONNECTOR,
    "merge_env_runner_states": _NO_STATES,
    "broadcast_env_runner_states": _NO_STATES,
    "_dont_auto_sync_env_runner_states": _NO_STATES,
    "use_env_runner_state_server": f"{_WEIGHTS} (APPO, APEX)",
    "episode_lookback_horizon": "rollouts are flat arrays; lstm_units gives the policy a memory",
    "batch_mode": (
        "rollouts have rollout_fragment_length steps; values are estimated where an episode goes on"
    ),
    "sync_filters_on_rollout_workers_timeout_s": _NO_STATES,
    "gym_env_vectorize_mode": _ALL_GAMES,
    "remote_worker_envs": _ALL_GAMES,
    "normalize_actions": "actions are discrete",
    "clip_actions": "actions are discrete",
    "create_local_env_runner": (
        "this process always makes an env runner, which has no world of its own where others play;"
        " leave it at True, or give it a world with create_env_on_local_worker=True"
    ),
    "num_aggregator_actors_per_learner": "learners fetch fragments themselves",
    "max_requests_in_flight_per_aggregator_actor": "learners fetch fragments themselves",
    "max_requests_in_flight_per_learner": "APPO's max_lag bounds what is on its way",
    "episodes_to_numpy": "rollouts are arrays already",
    "framework_str": "the networks are torch's",
    "_use_msgpack_checkpoints": (
        "checkpoints are pickled; `procsnake export` writes weights for other programs"
    ),
    "torch_compile_learner_what_to_compile": (
        "torch_compile_learner compiles the network's forward pass, never a whole update"
    ),
    "enable_env_runner_and_connector_v2": "only RLlib's new API stack is used",
    "enable_rl_module_and_learner": "only RLlib's new API stack is used",
    "policies": _ONE_POLICY,
    "policy_mapping_fn": _ONE_POLICY,
    "policies_to_train": "training trains the one policy; algorithm.evaluate() plays without",
    # Offline data.
    "offline_data_class": _RECORDED,
    "dataset_num_iters_per_learner": _RECORDED,
    "input_read_episodes": _EPISODES,
    "output_write_episodes": _EPISODES,
    "prelearner_use_recorded_module_states": "rows hold no states of a policy with a memory",
    "offline_evaluation_parallel_to_training": (
        "RLlib evaluates on recorded data when the training step is done;"
        " evaluation_parallel_to_training is for worlds"
    ),
    "offline_eval_rl_module_inference_only": "recorded decisions are judged by the whole module",
    "offline_eval_runner_restore_timeout_s": _NO_RESTORING,
    "offline_eval_runner_health_probe_timeout_s": _NO_RESTORING,
    "max_num_offline_eval_runner_restarts": _NO_RESTORING,
    "callbacks_on_offline_eval_runners_recreated": _NO_RESTORING,
    "offline_evaluation_type": (
        "recorded decisions are judged by offline_loss_for_module_fn; RLlib's importance"
        " sampling weighs actions that it draws again"
    ),
}

RELICS = frozenset(
    {
        "_disable_action_flattening",
        "_disable_execution_plan_api",
        "_disable_initialize_loss_from_dummy_batch",
        "_disable_preprocessor_api",
        "_enable_rl_module_api",
        "_fake_gpus",
        "_is_atari",
        "_prior_exploration_config",
        "_tf_policy_handles_more_than_one_loss",
        "action_mask_key",
        "actions_in_input_normalized",
        "always_attach_evaluation_results",
        "auto_wrap_old_gym_envs",
        "broadcast_offline_eval_runner_states",
        "buffer_size",
        "checkpoint_trainable_policies_only",
        "clip_rewards",
        "collect_metrics_timeout",
        "compress_observations",
        "custom_async_evaluation_function",
        "disable_env_checking",
        "eager_max_retraces",
        "eager_tracing",
        "enable_async_evaluation",
        "enable_connectors",
        "enable_tf1_exec_eagerly",
        "env_task_fn",
        "evaluation_num_episodes",
        "exploration_config",
        "export_native_model_files",
        "extra_python_environs_for_driver",
        "extra_python_environs_for_worker",
        "fake_sampler",
        "input_config",
        "input_evaluation",
        "input_spaces_jsonable",
        "keep_per_episode_custom_metrics",
        "local_tf_session_args",
        "metrics_episode_collection_timeout_s",
        "metrics_smoothing_episodes",
        "min_iter_time_s",
        "min_sample_timesteps_per_reporting",
        "min_time_s_per_reporting",
        "min_train_timesteps_per_reporting",
        "model",
        "monitor",
        "num_gpus",
        "observation_filter",
        "observation_fn",
        "off_policy_estimation_methods",
        "offline_sampling",
        "ope_split_batch_by_episode",
        "optimizer",
        "output_config",
        "output_max_file_size",
        "policy_map_cache",
        "policy_map_capacity",
        "policy_states_are_swappable",
        "postprocess_inputs",
        "prelearner_module_synch_period",
        "preprocessor_pref",
        "prioritized_replay",
        "prioritized_replay_alpha",
        "prioritized_replay_beta",
        "prioritized_replay_eps",
        "remote_env_batch_wait_ms",
        "render_env",
        "replay_batch_size",
        "replay_mode",
        "replay_sequence_length",
        "sample_collector",
        "sampler_perf_stats_ema_coef",
        "shuffle_buffer_size",
        "simple_optimizer",
        "synchronize_filters",
        "tf_session_args",
        "timesteps_per_iteration",
        "torch_compile_worker",
        "torch_compile_worker_dynamo_backend",
        "torch_compile_worker_dynamo_mode",
        "update_worker_filter_stats",
        "use_worker_filter_stats",
        "validate_offline_eval_runners_after_construction",
        "worker_cls",
    }
)

INSTEAD = {
    "exploration_config": "use training(epsilon=…) with DQN, and training(ent_coef=…) with PPO",
    "model": 'use rl_module(model_config={"name": …, "options": …})',
    "num_gpus": "use learners(num_gpus_per_learner=…)",
    "observation_filter": f"there are no connectors; {_CONNECTOR}",
}
"""What does the same as some of `RELICS`."""
