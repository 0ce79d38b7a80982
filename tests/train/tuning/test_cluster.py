"""A search on a Ray cluster: nodes of Ray's own test cluster on this machine."""

from __future__ import annotations

import pytest
import ray

from envs.common.errors import ConfigError
from tests.ray_cluster import ray_cluster
from tests.train.experiments import toy
from train.tuning.tune import tune

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]


def test_trials_run_on_the_cluster_and_what_it_has_no_room_for_is_refused(tmp_path):
    search = (
        toy("identity", steps=2048)
        .search(["ppo.gamma=0.9,0.99"])
        .override(["tune.trials=2", "tune.concurrent=2"])
    )
    with ray_cluster({"num_cpus": 1}, {"num_cpus": 1}) as cluster:
        ray.shutdown()
        result = tune(search, runs_dir=tmp_path, cluster=cluster.address)
        assert [trial.percent_done for trial in result.trials] == [100, 100]
        with pytest.raises(ConfigError, match="a trial needs 9 CPUs, but the cluster has 2"):
            tune(search.override(["num_env_runners=8"]), runs_dir=tmp_path, cluster=cluster.address)
