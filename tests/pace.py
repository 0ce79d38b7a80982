"""What `make test-fast` leaves out: the tests marked `slow`. They are named here, in one list, and not where they stand.

A test that starts Ray or PostgreSQL is slow by its fixture. The others took more than about 1.5 s of an idle core.
"""

from __future__ import annotations

import pytest

SLOW_FIXTURES = {"one_ray", "postgres"}
SLOW = (
    "tests/agents/evaluation/",
    "tests/agents/tournament/test_play.py",
    "tests/agents/tournament/test_workers.py",
    "tests/agents/tuning/test_commands.py",
    "tests/agents/tuning/test_play.py",
    "tests/agents/tuning/test_positions.py",
    "tests/envs/battlesnake/test_maps",
    "tests/envs/battlesnake/test_mutations.py",
    "tests/envs/battlesnake/test_properties.py",
    "tests/envs/battlesnake/recording/test_files.py::test_to_test_gives_a_test",
    "tests/serve/archive/",
    "tests/serve/test_background.py",
    "tests/serve/test_deploy.py",
    "tests/serve/test_doctor.py",
    "tests/serve/test_processes.py",
    "tests/serve/test_server.py",
    "tests/serve/viewer/test_engine.py",
    "tests/test_procsnake.py",
    "tests/test_shadowing.py",
    "tests/test_skips.py",
    "tests/test_slim_install.py",
    "tests/train/rollouts/test_levels.py",
    "tests/train/rollouts/test_recurrent.py",
    "tests/train/runs/",
    "tests/train/sagemaker/test_commands.py",
    "tests/train/sagemaker/test_following.py",
    "tests/train/sagemaker/test_source.py",
    "tests/train/sagemaker/test_stack_and_image.py",
    "tests/train/test_imitation.py",
    "tests/train/test_mxnet_dqn.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        if names or item.nodeid.partition("[")[0].startswith(SLOW):
            item.add_marker(pytest.mark.slow)
