"""What is recorded, and evaluations on what was recorded. Ray's data library, which takes a minute
for it, has a stand-in that is read in this process."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.fs
import pytest
import ray
import ray.data
import torch
from ray.exceptions import RayError
from ray.rllib.algorithms import algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SPACES
from ray.rllib.offline.offline_evaluation_runner import OfflineEvaluationRunner
from ray.rllib.offline.offline_evaluation_runner_group import OfflineEvaluationRunnerGroup
from ray.rllib.offline.offline_prelearner import OfflinePreLearner
from ray.rllib.utils.compression import pack, unpack
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from ray.rllib.utils.replay_buffers.episode_replay_buffer import EpisodeReplayBuffer

from envs.common.errors import ConfigError
from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import small
from tests.train.rllib.stand_ins import Calls, Handle
from tests.train.small_worlds import IdentityWorld
from train.dqn import DQNConfig
from train.ppo import PPO, PPOConfig
from train.pqn import PQNConfig
from train.rllib.batched_config import BatchedConfig

# Ray's data library sets what it has deprecated itself.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
ROWS = 32
Probe = Callable[[Any], Any]


class Written:
    """Stands in for a dataset of Ray's that is written."""

    files: list[tuple[str, str, list[Any], dict[str, Any]]] = []

    def __init__(self, rows: list[Any]) -> None:
        self.rows = list(rows)

    def __getattr__(self, method: str) -> Any:
        return lambda path, **kwargs: self.files.append((method, path, self.rows, kwargs))


@pytest.fixture
def written(monkeypatch) -> list[Any]:
    monkeypatch.setattr(Written, "files", [])
    monkeypatch.setattr(ray.data, "from_items", Written)
    return Written.files


def recorded(written: list[Any], **fields: Any) -> list[Any]:
    """What two samples of an env runner write."""
    config = small().offline_data(output="/records", **fields)
    config.validate()
    runner = config.env_runner_cls(config=config, worker_index=0, num_workers=0)
    runner.sample()
    runner.sample()
    runner.stop()
    return written


def test_each_decision_is_written_once(written):
    files = recorded(written)
    assert [(method, path) for method, path, *_ in files] == [
        ("write_parquet", "/records/identity/run-000000-00001".replace("-00001", f"-{n}".zfill(6)))
        for n in (1, 2)
    ]
    rows = [row for *_, rows, _ in files for row in rows]
    assert len(rows) == 2 * ROWS == len({row[Columns.EPS_ID] for row in rows})
    for row in rows:
        lit = int(unpack(row[Columns.OBS]).argmax())
        assert row[Columns.REWARDS] == (lit == row[Columns.ACTIONS])
        assert row[Columns.TERMINATEDS]
        assert not row[Columns.TRUNCATEDS]
        assert row[Columns.ACTION_LOGP] < 0


RECORDED: dict[str, tuple[dict[str, Any], Probe]] = {
    "output_max_rows_per_file": (
        {"output_max_rows_per_file": 20},
        lambda files: [len(rows) for *_, rows, _ in files],
    ),
    "output_write_remaining_data": (
        {"output_write_remaining_data": True, "output_max_rows_per_file": 20},
        lambda files: sum(len(rows) for *_, rows, _ in files),
    ),
    "output_compress_columns": (
        {"output_compress_columns": []},
        lambda files: type(files[0][2][0][Columns.OBS]),
    ),
    "output_write_method": ({"output_write_method": "write_json"}, lambda files: files[0][0]),
    "output_write_method_kwargs": (
        {"output_write_method_kwargs": {"compression": "zstd"}},
        lambda files: files[0][3].get("compression"),
    ),
    "output_filesystem": (
        {"output_filesystem": "s3", "output_filesystem_kwargs": {"region": "eu-west-1"}},
        lambda files: type(files[0][3]["filesystem"]),
    ),
    "output_filesystem_kwargs": (
        {"output_filesystem": "s3", "output_filesystem_kwargs": {"region": "eu-west-1"}},
        lambda files: getattr(files[0][3]["filesystem"], "region", None),
    ),
}


@shows(*RECORDED)
@pytest.mark.parametrize("field", RECORDED)
def test_a_changed_value_changes_what_is_recorded(written, field):
    fields, probe = RECORDED[field]
    changed = probe(recorded(written, **fields))
    written.clear()
    without = {name: value for name, value in fields.items() if name != field}
    if field == "output_filesystem_kwargs":
        without = {**fields, "output_filesystem_kwargs": {"region": "us-east-1"}}
    if field == "output_filesystem":
        without = {}
    assert changed != probe(recorded(written, **without))


def test_files_are_full_and_nothing_is_lost(written):
    fields = {"output_max_rows_per_file": 20, "output_write_remaining_data": True}
    files = [rows for *_, rows, _ in recorded(written, **fields)]
    assert [len(rows) for rows in files] == [20, 20, 20, 4]
    assert all(row[Columns.TERMINATEDS] for rows in files for row in rows)


@shows("output")
def test_without_output_nothing_is_written(written):
    config = small()
    config.validate()
    config.env_runner_cls(config=config, worker_index=0, num_workers=0).sample()
    assert not written


class Rows:
    """Stands in for a dataset of Ray's that is read."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self.batch = batch
        self.calls: list[str] = []

    def materialize(self) -> Rows:
        self.calls.append("materialize")
        return self

    def map_batches(
        self, kind: Any, *, fn_constructor_kwargs: Any, batch_size: int, **kwargs: Any
    ) -> Rows:
        self.calls.append("map")
        self.map_kwargs = kwargs
        self.batch_size = batch_size
        self.mapper = kind(**fn_constructor_kwargs)
        return self

    def iterator(self) -> Rows:
        return self

    def iter_torch_batches(self, **kwargs: Any) -> list[dict[str, Any]]:
        self.iter_kwargs = kwargs
        return [self.mapper(self.batch)]


def decisions(*, compressed: bool = True) -> dict[str, Any]:
    """A batch of `ROWS` recorded rows, as Ray's data library hands it over."""
    world = IdentityWorld(num_games=ROWS)
    world.restart(0)
    seen = [world.observations[row].copy() for row in range(ROWS)]
    values = [pack(one) for one in seen] if compressed else seen
    return {
        Columns.EPS_ID: np.array([str(row) for row in range(ROWS)]),
        Columns.OBS: np.array(values, dtype=object) if compressed else np.array(values),
        Columns.NEXT_OBS: np.array(values, dtype=object) if compressed else np.array(values),
        Columns.ACTIONS: np.arange(ROWS) % 4,
        Columns.REWARDS: np.ones(ROWS, np.float32),
        Columns.TERMINATEDS: np.ones(ROWS, bool),
        Columns.TRUNCATEDS: np.zeros(ROWS, bool),
    }


class Reads:
    """What was asked of Ray's data library."""

    def __init__(self, monkeypatch: Any) -> None:
        self.batch = decisions()
        self.method = self.path = None
        self.kwargs: dict[str, Any] = {}
        # Nothing is put anywhere: there is no Ray.
        monkeypatch.setattr(ray, "put", lambda value: value)
        for method in ("read_parquet", "read_json"):
            monkeypatch.setattr(ray.data, method, self._reader(method))

    def _reader(self, method: str) -> Any:
        def read(path: Any, **kwargs: Any) -> Rows:
            self.method, self.path, self.kwargs = method, path, kwargs
            return Rows(self.batch)

        return read


@pytest.fixture
def reads(monkeypatch) -> Reads:
    return Reads(monkeypatch)


def judging(kind: type[BatchedConfig] = PPOConfig, **fields: Any) -> Any:
    config = small(kind).offline_data(input_=["/records"])
    config.evaluation(offline_evaluation_interval=1)
    for field, value in fields.items():
        setattr(config, field, value)
    return config


def group(**fields: Any) -> OfflineEvaluationRunnerGroup:
    """RLlib's runners of an offline evaluation, as an algorithm makes them."""
    config = judging(**fields)
    config.validate()
    evaluation = config.get_evaluation_config_object()
    evaluation.validate()
    evaluation.freeze()
    world = IdentityWorld(num_games=1)
    single = world.single_observation_space, world.single_action_space
    spaces = {INPUT_ENV_SPACES: single, DEFAULT_MODULE_ID: single}
    torch.manual_seed(1)
    spec = config.get_multi_rl_module_spec(spaces=spaces, inference_only=False)
    return OfflineEvaluationRunnerGroup(
        config=evaluation,
        local_runner=True,
        module_state=spec.build().get_state(),
        module_spec=spec,
        spaces=spaces,
    )


def loss(runners: OfflineEvaluationRunnerGroup) -> float:
    return float(runners.local_runner.run()[DEFAULT_MODULE_ID]["total_eval_loss"].peek())


class _Runner(OfflineEvaluationRunner):
    """A user's own."""


class _PreLearner(OfflinePreLearner):
    """A user's own."""


class _Buffer(EpisodeReplayBuffer):
    """A user's own."""


def _renamed() -> dict[str, Any]:
    batch = decisions()
    batch["chosen"] = batch.pop(Columns.ACTIONS)
    return batch


def _old_batches() -> dict[str, Any]:
    """Rows of several steps each, as RLlib's old stack recorded them."""
    batch = decisions(compressed=False)
    return {name: column[:, None] for name, column in batch.items()}


OLD = {"input_read_sample_batches": True, "input_compress_columns": []}
JUDGED: dict[str, tuple[dict[str, Any], Callable[[Any, Any], Any]]] = {
    "input_": ({"input_": ["/other"]}, lambda reads, data: reads.path),
    "input_read_method": ({"input_read_method": "read_json"}, lambda reads, data: reads.method),
    "input_read_method_kwargs": (
        {"input_read_method_kwargs": {"shuffle": "files"}},
        lambda reads, data: reads.kwargs,
    ),
    "input_filesystem": (
        {"input_filesystem": pyarrow.fs.LocalFileSystem()},
        lambda reads, data: "filesystem" in reads.kwargs,
    ),
    "input_filesystem_kwargs": (
        {"input_filesystem": "s3", "input_filesystem_kwargs": {"region": "eu-west-1"}},
        lambda reads, data: reads.kwargs["filesystem"].region,
    ),
    "materialize_data": ({"materialize_data": True}, lambda reads, data: data.calls),
    "materialize_mapped_data": ({"materialize_mapped_data": False}, lambda reads, data: data.calls),
    "map_batches_kwargs": (
        {"map_batches_kwargs": {"num_cpus": 0.5}},
        lambda reads, data: data.map_kwargs,
    ),
    "ignore_final_observation": (
        {"ignore_final_observation": True},
        lambda reads, data: float(
            np.sum(data.mapper._map_to_episodes(reads.batch)["episodes"][0].get_observations(-1))
        ),
    ),
    "input_compress_columns": (
        {"input_compress_columns": []},
        lambda reads, data: type(
            data.mapper._map_to_episodes(reads.batch)["episodes"][0].get_observations(0)
        ),
    ),
    "input_read_sample_batches": (
        {"input_read_sample_batches": True},
        lambda reads, data: hasattr(data.mapper, "episode_buffer"),
    ),
    "prelearner_class": (
        {"prelearner_class": _PreLearner},
        lambda reads, data: type(data.mapper),
    ),
    "prelearner_buffer_class": (
        {**OLD, "prelearner_buffer_class": _Buffer},
        lambda reads, data: type(data.mapper.episode_buffer),
    ),
    "prelearner_buffer_kwargs": (
        {**OLD, "prelearner_buffer_kwargs": {"capacity": 77}},
        lambda reads, data: data.mapper.episode_buffer.capacity,
    ),
    "input_read_batch_size": (
        {**OLD, "input_read_batch_size": 5},
        lambda reads, data: data.batch_size,
    ),
    "offline_eval_batch_size_per_runner": (
        {"offline_eval_batch_size_per_runner": 5},
        lambda reads, data: data.batch_size,
    ),
}
"""RLlib's fields of recorded data: (values, what is looked at)."""


@shows(*JUDGED)
@pytest.mark.parametrize("field", JUDGED)
def test_a_changed_value_changes_what_is_read(reads, field):
    fields, probe = JUDGED[field]
    changed = probe(reads, group(**fields).offline_data.data)
    without = {name: value for name, value in fields.items() if name != field}
    if field == "input_filesystem_kwargs":
        without = {**fields, field: {"region": "us-east-1"}}
    assert probe(reads, group(**without).offline_data.data) != changed


@shows("input_read_schema")
def test_columns_of_other_names_are_read_where_they_are_named(reads):
    expected = loss(group())
    reads.batch = _renamed()
    schema = {"input_read_schema": {Columns.ACTIONS: "chosen"}}
    assert loss(group(**schema)) == pytest.approx(expected)
    with pytest.raises(KeyError, match=Columns.ACTIONS):
        loss(group())


def test_rows_of_rllibs_old_stack_are_read(reads):
    reads.batch = _old_batches()
    assert loss(group(**OLD)) > 0


def _of_runner(name: str) -> Probe:
    return lambda runners: getattr(runners, name)


RUNNERS: dict[str, tuple[Any, Probe]] = {
    "offline_eval_runner_class": (_Runner, _of_runner("runner_cls")),
    "offline_loss_for_module_fn": (lambda runner, **_: torch.tensor(7.0), loss),
    "dataset_num_iters_per_eval_runner": (
        2,
        lambda runners: runners.local_runner.run()["__all_modules__"][
            "dataset_num_iters_evaluated"
        ].peek(),
    ),
    "iter_batches_kwargs": (
        {"prefetch_batches": 3},
        lambda runners: (loss(runners), runners.offline_data.data.iter_kwargs)[1],
    ),
}
"""RLlib's fields of the runners of an offline evaluation."""


@shows(*RUNNERS)
@pytest.mark.parametrize("field", RUNNERS)
def test_a_changed_value_changes_the_runners(reads, field):
    value, probe = RUNNERS[field]
    assert probe(group(**{field: value})) != probe(group())


@shows("restart_failed_offline_eval_runners", "ignore_offline_eval_runner_failures")
@pytest.mark.parametrize(
    ("restarts", "ignores", "ends"),
    [(True, False, False), (False, True, False), (False, False, True)],
)
def test_a_failure_of_a_runner_apart_ends_the_evaluation_unless_it_is_tolerated(
    reads, monkeypatch, restarts, ignores, ends
):
    Calls(monkeypatch)
    runners = group(
        restart_failed_offline_eval_runners=restarts, ignore_offline_eval_runner_failures=ignores
    )
    runners._worker_manager.add_actors([Handle("fails"), Handle("answers")])

    def ask() -> list[Any]:
        return runners.foreach_runner(_reply, local_runner=False)

    if ends:
        with pytest.raises(RayError, match="fails"):
            ask()
    else:
        assert ask() == ["answers"]
    assert runners.healthy_runner_ids == [2]


def _reply(runner: str) -> str:
    if runner == "fails":
        raise ValueError(runner)
    return runner


@shows("max_requests_in_flight_per_offline_eval_runner")
def test_a_runner_apart_has_as_many_requests_at_a_time_as_configured(reads, monkeypatch):
    Calls(monkeypatch)
    for most in (1, 7):
        runners = group(max_requests_in_flight_per_offline_eval_runner=most)
        runners._worker_manager.add_actors([Handle("answers")])
        requests = [runners.foreach_runner_async(_reply) for _ in range(9)]
        assert sum(requests) == most


class Apart:
    """Stands in for RLlib's group of one runner that is apart from this process, and plays no
    part where `answers` is False. Each time that it is asked 50 seconds pass.
    """

    num_healthy_remote_runners = 1

    def __init__(self, runner: Any, *, answers: bool) -> None:
        self.runner = runner
        self.answers = answers
        self.results: list[Any] = []

    def time(self) -> float:
        return 50.0 * len(self.results)

    def foreach_runner_async(self, *, func: Any) -> None:
        self.results.append(func(self.runner))

    def fetch_ready_async_reqs(self, **_: Any) -> list[Any]:
        return [(1, self.results[-1])] if self.answers else []


@shows("offline_evaluation_duration", "offline_evaluation_timeout_s")
def test_runners_apart_are_asked_as_often_and_waited_for_as_long_as_configured(reads, monkeypatch):
    runner = group().local_runner

    def rounds(*, answers: bool, **fields: Any) -> int:
        config = judging(num_offline_eval_runners=1, **fields)
        config.validate()
        judge: Any = PPO.__new__(PPO)
        judge.config = config
        judge._iteration = 0
        judge.metrics = MetricsLogger(root=True)
        judge.offline_eval_runner_group = apart = Apart(runner, answers=answers)
        monkeypatch.setattr(algorithm, "time", SimpleNamespace(time=apart.time))
        judge._evaluate_offline_with_fixed_duration()
        return len(apart.results)

    assert rounds(answers=True) == 1
    assert rounds(answers=True, offline_evaluation_duration=3) == 3
    assert rounds(answers=False) == 3
    assert rounds(answers=False, offline_evaluation_timeout_s=7) == 1


OFFLINE_RESOURCES: dict[str, Any] = {
    "num_offline_eval_runners": 2,
    "num_cpus_per_offline_eval_runner": 3,
    "num_gpus_per_offline_eval_runner": 0.5,
    "custom_resources_per_offline_eval_runner": {"a": 1},
}


@shows(*OFFLINE_RESOURCES)
@pytest.mark.parametrize("field", OFFLINE_RESOURCES)
def test_a_trial_asks_for_what_its_offline_evaluation_needs(field):
    config = judging(num_offline_eval_runners=1)
    before = PPO.default_resource_request(config)
    setattr(config, field, OFFLINE_RESOURCES[field])
    assert PPO.default_resource_request(config) != before


@shows(
    "offline_evaluation_interval",
    "callbacks_on_evaluate_offline_start",
    "callbacks_on_evaluate_offline_end",
)
@pytest.mark.long
def test_training_is_judged_by_what_was_recorded(one_ray, reads):
    called: list[str] = []
    config = judging(lr=0.05, num_epochs=8).callbacks(
        on_evaluate_offline_start=lambda **_: called.append("start"),
        on_evaluate_offline_end=lambda **_: called.append("end"),
    )
    config.evaluation(offline_evaluation_interval=2)
    trained = config.build_algo()
    try:
        assert "evaluation" not in trained.train()
        module = trained.train()["evaluation"]["offline_eval_runners"][DEFAULT_MODULE_ID]
        batch = decisions(compressed=False)
        logits = trained.get_module().forward_inference(
            {"obs": torch.from_numpy(batch[Columns.OBS])}
        )[Columns.ACTION_DIST_INPUTS]
        expected = torch.nn.functional.cross_entropy(
            logits, torch.from_numpy(batch[Columns.ACTIONS])
        )
    finally:
        trained.stop()
    assert module["total_eval_loss"] == pytest.approx(float(expected), rel=1e-2)
    assert called == ["start", "end"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The minimum number of concurrent actors")  # of so few rows
def test_what_was_recorded_is_read_back_by_rays_own_library(one_ray, tmp_path):
    """Without a stand-in: Ray's data library writes the rows, and an offline evaluation reads them.
    An untrained policy finds each of the four actions about as likely.
    """
    config = small().offline_data(output=str(tmp_path), output_max_rows_per_file=ROWS)
    config.validate()
    runner = config.env_runner_cls(config=config, worker_index=0, num_workers=0)
    runner.sample()
    runner.stop()
    folder = tmp_path / "identity"
    rows = ray.data.read_parquet([str(part) for part in folder.iterdir()]).take_all()
    assert len(rows) == ROWS
    for row in rows:
        assert row[Columns.TERMINATEDS]
        lit = int(unpack(row[Columns.OBS]).argmax())
        assert row[Columns.REWARDS] == (lit == row[Columns.ACTIONS])
    judged = small().offline_data(input_=[str(part) for part in folder.iterdir()])
    judged.training(lr=0.0)
    judged.evaluation(offline_evaluation_interval=1)
    trained = judged.build_algo()
    try:
        found = trained.train()["evaluation"]["offline_eval_runners"][DEFAULT_MODULE_ID]
    finally:
        trained.stop()
    assert found["total_eval_loss"] == pytest.approx(math.log(4), abs=0.1)


def test_what_cannot_be_judged_is_said_before_anything_starts():
    with pytest.raises(ConfigError, match="offline_evaluation_interval=1"):
        small().offline_data(input_=["/records"]).validate()
    with pytest.raises(ConfigError, match="lstm_units"):
        judging().training(lstm_units=8).validate()
    with pytest.raises(ConfigError, match="num_offline_eval_runners=1"):
        judging(offline_evaluation_duration=3).validate()


@pytest.mark.parametrize("kind", [DQNConfig, PQNConfig])
def test_q_values_have_no_likelihood(reads, kind):
    with pytest.raises(ConfigError, match="offline_loss_for_module_fn"):
        loss(group(kind=kind))


def test_q_values_are_judged_by_the_users_function(reads):
    mean = group(
        kind=DQNConfig,
        offline_loss_for_module_fn=lambda self, *, fwd_out, **_: fwd_out["atoms"].mean(),
    )
    assert np.isfinite(loss(mean))
