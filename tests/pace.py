"""What `make test-fast` leaves out: the tests marked `slow`. They are named here, in one list, and
not where they stand.

A test that starts Ray or PostgreSQL is slow by its fixture. The others took more than about 1.5 s
of processor time, with the engine compiled."""

from __future__ import annotations

import pytest

SLOW_FIXTURES = {"one_ray", "postgres"}
SLOW = (
    "tests/agents/measure/analysis/",
    "tests/agents/measure/evaluation/test_battlesnake.py",
    "tests/agents/measure/evaluation/test_procgen.py",
    "tests/agents/measure/evaluation/test_procgen_aggregates.py",
    "tests/agents/measure/evaluation/test_record.py",
    "tests/agents/hub/test_commands.py",
    "tests/agents/hub/test_push.py::test_a_champion_that_was_pushed",
    "tests/agents/networks/test_max_pool.py",
    "tests/agents/networks/test_sparse_linear.py",
    "tests/agents/measure/sprt/test_statistics.py::"
    "test_of_planted_tests_no_more_are_wrong_than_agreed",
    "tests/agents/measure/tournament/test_bracket.py::test_a_bracket_that_was_killed",
    "tests/agents/measure/tournament/test_workers.py",
    "tests/agents/search/tuning/test_commands.py",
    "tests/agents/search/tuning/test_play.py",
    "tests/agents/search/tuning/test_positions.py",
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
    "tests/serve/aicrowd/test_check.py::test_whatever",
    "tests/serve/aicrowd/test_export.py::test_every_export_keeps_every_rule",
    "tests/serve/aicrowd/test_kit.py",
    "tests/serve/archive/",
    "tests/serve/browser/by_hand/test_terminal.py::test_a_game_at_a_real_terminal",
    "tests/serve/ladder/test_download.py",
    "tests/serve/ladder/test_entering.py",
    "tests/serve/ladder/test_evening.py",
    "tests/serve/ladder/test_keeping.py",
    "tests/serve/test_analyse.py",
    "tests/serve/test_arena.py::test_nothing_that_arrives_is_an_internal_error",
    "tests/serve/test_background.py",
    "tests/serve/test_deploy.py",
    "tests/serve/test_doctor.py",
    "tests/serve/test_export_commands.py::test_from_a_run_to_a_checked_entry",
    "tests/serve/test_killed.py",
    "tests/test_tab_key.py::test_bash_completes_by_the_printed_script",
    "tests/test_tab_key.py::test_nothing_slow_is_imported",
    "tests/serve/monitoring/test_logs.py::test_a_server_logs_which_game",
    "tests/serve/test_openapi.py::test_whatever_fits_it_or_does_not_is_answered",
    "tests/serve/test_processes.py",
    "tests/serve/test_recorded_games.py",
    "tests/serve/test_server.py",
    "tests/serve/test_watching.py::test_random_play",
    "tests/serve/browser/viewer/test_engine.py",
    "tests/test_procsnake.py",
    "tests/test_requirements.py",
    "tests/test_shadowing.py",
    "tests/test_skips.py",
    "tests/test_wheel.py",
    "tests/train/cluster/test_live.py::test_what_follows",
    "tests/train/demonstrations/test_recorded.py",
    "tests/train/engines/test_launch_command.py::test_a_",
    "tests/train/engines/test_launch_command.py::test_all_engines",
    "tests/train/metrics/test_levels.py",
    "tests/train/rollouts/test_recurrent.py",
    "tests/train/rollouts/test_replay_buffer.py::"
    "test_samples_are_the_n_step_transitions_that_took_place",
    "tests/train/runs/sessions/test_evaluation.py",
    "tests/train/runs/sessions/test_initial_weights.py",
    "tests/train/runs/test_own_commit.py::test_of_a_checkout_it_is_the_checkouts",
    "tests/train/runs/continuing/test_resuming.py",
    "tests/train/sagemaker/test_commands.py",
    "tests/train/sagemaker/test_hyperparameters.py::test_values_survive",
    "tests/train/sagemaker/test_source.py",
    "tests/train/test_cloning.py",
    "tests/train/test_imitation.py",
    "tests/train/test_learned_evaluation.py",
    "tests/train/test_mxnet_dqn.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        if names or item.nodeid.partition("[")[0].startswith(SLOW):
            item.add_marker(pytest.mark.slow)
