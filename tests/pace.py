"""What `make test-fast` leaves out: the tests marked `slow`. They are named here, in one list, and
not where they stand.

A test that starts Ray or PostgreSQL is slow by its fixture. The others took more than about half a
second of processor time, or their files more than about four, with the engine compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

SLOW_FIXTURES = {"one_ray", "postgres"}
SLOW = (
    "tests/agents/heuristics/test_common_rules.py",
    "tests/agents/heuristics/test_flood_fill.py::test_reach_agrees_with_an_independent_search",
    "tests/agents/heuristics/test_random_legal.py::test_same_board_same_answer_and_the_seed",
    "tests/agents/hub/test_commands.py",
    "tests/agents/hub/test_push.py::test_a_champion_that_was_pushed",
    "tests/agents/measure/analysis/",
    "tests/agents/measure/evaluation/test_battlesnake.py",
    "tests/agents/measure/evaluation/test_procgen.py",
    "tests/agents/measure/evaluation/test_procgen_aggregates.py",
    "tests/agents/measure/evaluation/test_record.py",
    "tests/agents/measure/evaluation/test_referee.py::test_a_served_agent_plays_over_http_as_it",
    "tests/agents/measure/pages/test_figure.py",
    "tests/agents/measure/sprt/test_commands.py::test_it_tells_the_verdict_keeps_the_games_and",
    "tests/agents/measure/sprt/test_page.py::test_the_verdict_says_what_was_measured_and_claims",
    "tests/agents/measure/sprt/test_play.py",
    "tests/agents/measure/sprt/test_statistics.py::test_each_hypothesis_is_taken_where_nothing",
    "tests/agents/measure/sprt/test_statistics.py::"
    "test_of_planted_tests_no_more_are_wrong_than_agreed",
    "tests/agents/measure/tournament/test_bracket.py::test_a_bracket_that_was_killed",
    "tests/agents/measure/tournament/test_play.py",
    "tests/agents/measure/tournament/test_ratings.py::test_planted_strengths_are_recovered_and",
    "tests/agents/measure/tournament/test_strangers_stores.py",
    "tests/agents/measure/tournament/test_workers.py",
    "tests/agents/networks/test_impala.py",
    "tests/agents/networks/test_max_pool.py",
    "tests/agents/networks/test_networks.py::test_shapes_types_and_the_onnx_form",
    "tests/agents/networks/test_sparse_linear.py",
    "tests/agents/search/alphabeta/test_agent.py",
    "tests/agents/search/alphabeta/test_best_response.py::test_what_is_not_soon_lost_is_left_to",
    "tests/agents/search/evaluation/test_learned.py::test_the_largest_weights_neither_overflow",
    "tests/agents/search/evaluation/test_learned_features.py",
    "tests/agents/search/evaluation/test_territory.py::test_fill_agrees_with_sets_of_points",
    "tests/agents/search/mcts/test_agent.py::test_it_finds_most_of_the_tactics_though_it_believes",
    "tests/agents/search/mcts/test_regret.py::test_rock_paper_scissors_comes_to_its_equilibrium",
    "tests/agents/search/test_make_unmake.py::test_taking_back_restores_the_board_and_the_hash",
    "tests/agents/search/tuning/test_commands.py",
    "tests/agents/search/tuning/test_play.py",
    "tests/agents/search/tuning/test_positions.py",
    "tests/agents/search/tuning/test_self_play.py",
    "tests/agents/search/tuning/test_spsa.py",
    "tests/agents/tactics/test_tactics.py",
    "tests/agents/test_bundle.py",
    "tests/agents/test_champions.py",
    "tests/agents/test_compliance.py::test_every_agent_is_sound_alone_and_under_the_pages_rule",
    "tests/agents/test_onnx_file.py",
    "tests/agents/test_opened_recording.py",
    "tests/agents/test_parallel.py",
    "tests/agents/test_policy.py",
    "tests/benchmarks/test_yardstick.py",
    "tests/docs/test_built_site.py",
    "tests/docs/test_recipes.py::test_an_experiment_takes_the_plane",
    "tests/envs/battlesnake/jit/test_cache.py",
    "tests/envs/battlesnake/maps/test_catalogue.py",
    "tests/envs/battlesnake/maps/test_draws.py",
    "tests/envs/battlesnake/maps/test_limits.py",
    "tests/envs/battlesnake/maps/test_maze.py",
    "tests/envs/battlesnake/observing/test_starter_pack.py::test_the_vector_environment_shows_them",
    "tests/envs/battlesnake/recording/test_files.py::test_to_test_gives_a_test",
    "tests/envs/battlesnake/recording/test_replayed.py::"
    "test_official_games_follow_the_rules_on_every_turn",
    "tests/envs/battlesnake/test_compliance.py::test_a_broken_update_is_named",
    "tests/envs/battlesnake/test_compliance.py::test_a_registered_map_plays_and_complies",
    "tests/envs/battlesnake/test_gym_env.py::test_gymnasium_checker_finds_nothing",
    "tests/envs/battlesnake/test_mutations.py",
    "tests/envs/battlesnake/test_properties.py",
    "tests/envs/battlesnake/test_rules.py::test_agrees_with_every_recorded_transition",
    "tests/serve/aicrowd/test_augment_template.py::test_pictures_are_changed_as_much_on_average",
    "tests/serve/aicrowd/test_check.py",
    "tests/serve/aicrowd/test_export.py",
    "tests/serve/aicrowd/test_kit.py",
    "tests/serve/aicrowd/test_ray_settings.py",
    "tests/serve/archive/",
    "tests/serve/browser/by_hand/test_routes.py",
    "tests/serve/browser/by_hand/test_terminal.py::test_a_game_at_a_real_terminal",
    "tests/serve/browser/review/test_opened_game.py",
    "tests/serve/browser/viewer/test_engine.py",
    "tests/serve/browser/viewer/test_routes.py",
    "tests/serve/ladder/test_commands.py::test_arena_is_asked_one_thing_at_a_time",
    "tests/serve/ladder/test_download.py",
    "tests/serve/ladder/test_entering.py",
    "tests/serve/ladder/test_evening.py",
    "tests/serve/ladder/test_keeping.py",
    "tests/serve/monitoring/test_draining.py::test_a_draining_server_takes_new_connections_and",
    "tests/serve/monitoring/test_logs.py::test_a_server_logs_which_game",
    "tests/serve/test_analyse.py",
    "tests/serve/test_arena.py",
    "tests/serve/test_background.py",
    "tests/serve/test_damaged_archives.py",
    "tests/serve/test_deploy.py",
    "tests/serve/test_doctor.py",
    "tests/serve/test_export_commands.py::test_from_a_run_to_a_checked_entry",
    "tests/serve/test_killed.py",
    "tests/serve/test_match.py",
    "tests/serve/test_openapi.py",
    "tests/serve/test_processes.py",
    "tests/serve/test_recorded_games.py",
    "tests/serve/test_server.py",
    "tests/serve/test_warm_up.py::test_afterwards_nothing_is_compiled_for_matches_evaluations_and",
    "tests/serve/test_watching.py::test_a_policy_of_procgen_draws_its_actions_as_where_it_is",
    "tests/serve/test_watching.py::test_random_play",
    "tests/serve/timing/test_margins.py",
    "tests/serve/transport/test_request_body.py",
    "tests/test_imports.py::test_no_modules_import_each_other_in_a_circle",
    "tests/test_locks.py::test_whatever_a_locked_package_needs_is_locked",
    "tests/test_procsnake.py",
    "tests/test_requirements.py",
    "tests/test_shadowing.py",
    "tests/test_skips.py",
    "tests/test_tab_key.py::test_bash_completes_by_the_printed_script",
    "tests/test_tab_key.py::test_nothing_slow_is_imported",
    "tests/test_wheel.py",
    "tests/train/cluster/test_live.py::test_what_follows",
    "tests/train/compute/test_muon.py::test_a_convolution_steps_as_torchs_muon_does_with_its",
    "tests/train/compute/test_to_host.py::test_a_rollout_by_one_copy_a_step_is_the_same",
    "tests/train/demonstrations/test_recorded.py",
    "tests/train/engines/test_kuberay.py",
    "tests/train/engines/test_launch_command.py::test_a_",
    "tests/train/engines/test_launch_command.py::test_all_engines",
    "tests/train/keys/test_experiment_keys.py::test_every_key_is_told_with_its_meaning_and_can_be",
    "tests/train/metrics/test_levels.py",
    "tests/train/rllib/test_build_and_train.py::test_a_trial_asks_for_what_is_configured",
    "tests/train/rllib/test_env_runner_fields.py",
    "tests/train/rllib/test_ray_runtime.py::test_a_ray_that_cant_start_is_told_in_a_line",
    "tests/train/rllib/test_rllib_fields.py",
    "tests/train/rllib/test_rllib_offline.py",
    "tests/train/rllib/test_worlds.py::test_a_world_that_fails_is_made_anew_where_that_is_asked",
    "tests/train/rollouts/test_recurrent.py",
    "tests/train/rollouts/test_replay_buffer.py::"
    "test_samples_are_the_n_step_transitions_that_took_place",
    "tests/train/runs/continuing/test_resuming.py",
    "tests/train/runs/curves/test_plot.py",
    "tests/train/runs/report/test_page.py",
    "tests/train/runs/sessions/test_evaluation.py",
    "tests/train/runs/sessions/test_initial_weights.py",
    "tests/train/runs/stored/test_mirror.py",
    "tests/train/runs/test_own_commit.py::test_of_a_checkout_it_is_the_checkouts",
    "tests/train/sagemaker/test_commands.py",
    "tests/train/sagemaker/test_hyperparameters.py::test_values_survive",
    "tests/train/sagemaker/test_source.py",
    "tests/train/test_cloning.py",
    "tests/train/test_imitation.py",
    "tests/train/test_learned_evaluation.py",
    "tests/train/test_mxnet_dqn.py",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files of slow tests unread where only the others are wanted."""
    is_asked = "not slow" in config.option.markexpr
    if not is_asked or not collection_path.is_relative_to(config.rootpath):
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    return True if name.startswith(SLOW) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        if names or item.nodeid.partition("[")[0].startswith(SLOW):
            item.add_marker(pytest.mark.slow)
