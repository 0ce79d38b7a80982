"""Trainings on a Ray cluster of two nodes on this machine, also when one is lost or the command is
interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from envs.common.errors import ConfigError
from tests.ray_cluster import ray_cluster
from tests.train.comparison.test_trainings import long_one, running_in, training
from tests.waiting import until
from train.comparison.places import Begin, OnCluster, require_room
from train.comparison.trainings import is_finished, train_all
from train.runs.curves.history import read_columns
from train.runs.folder import RunError

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]
_LONGEST_S = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Its head has no CPU."""
    with ray_cluster({"num_cpus": 0}, {"num_cpus": 1}) as cluster:
        yield cluster


def test_trainings_end_in_order_on_the_machine_that_has_a_cpu_free(cluster, tmp_path):
    wanted = [training("one"), training("other")]
    runs = train_all(wanted, tmp_path, jobs=2, say=lambda _: None, begin=OnCluster)
    assert [run.name.split("-")[0] for run in runs] == ["one", "other"]
    assert all(is_finished(tmp_path, one.experiment) for one in wanted)


def test_a_training_that_fits_no_machine_is_refused(cluster):
    require_room(cores=1, jobs=1)
    with pytest.raises(ConfigError, match="largest machine has 1; try --jobs 2"):
        require_room(cores=2, jobs=1)


def test_a_training_whose_machine_is_lost_goes_on_elsewhere(cluster, tmp_path):
    (node,) = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]
    wanted = training(
        "long", budget={"total_agent_steps": 100_000}, checkpoints={"every_minutes": 0.005}
    )
    said: list[str] = []
    # Ray adds nodes in the main thread only.
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(train_all, [wanted], tmp_path, say=said.append, begin=OnCluster)
        until(lambda: any(tmp_path.glob("runs/*/checkpoints/[0-9]*")), seconds=_LONGEST_S)
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1, include_dashboard=False, dashboard_port=None)
        (run,) = ended.result(_LONGEST_S)
    changes = [line for line in said if line.endswith("…") or "lost" in line]
    assert changes[1:] == [
        "long: its machine was lost; it continues elsewhere",
        f"long: continuing {run} …",
    ]
    assert list(tmp_path.glob("runs/*")) == [run]
    assert read_columns(run)["agent_steps"][-1] >= 100_000


def test_what_fails_on_a_machine_is_told_with_its_log(cluster, tmp_path):
    broken = training(
        "broken",
        env={
            "name": "identity",
            "imports": ["tests.train.small_worlds"],
            "options": {"no_such": 1},
        },
    )
    with pytest.raises(RunError, match=r"broken ended with exit code 2; read .*broken-0\.log"):
        train_all([broken], tmp_path, say=lambda _: None, begin=OnCluster)


def test_one_that_is_told_to_end_saves_first_and_leaves_no_process(cluster, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_all(
            [long_one()],
            tmp_path,
            jobs=2,
            say=lambda _: None,
            begin=_interrupts_once_it_learns(tmp_path),
        )
    (run,) = tmp_path.glob("runs/*")
    assert any((run / "checkpoints").glob("[0-9]*"))
    assert not running_in(tmp_path)


def _interrupts_once_it_learns(folder: Path) -> Begin:
    """A training during which somebody presses Ctrl-C once it has learned something."""

    class Interrupted(OnCluster):
        def poll(self) -> int | None:
            if any(path.read_text().count("\n") > 1 for path in folder.glob("runs/*/progress.csv")):
                raise KeyboardInterrupt
            return super().poll()

    return Interrupted
