"""No GPU is needed for these: they check who is refused, and who would play on one."""

from __future__ import annotations

import pytest
import torch

from envs.common.errors import ConfigError
from train.compute.gpus import require_gpus
from train.config import Experiment
from train.ppo import PPOConfig
from train.rllib import batched_config
from train.run import train


def experiment(settings: list[str]) -> Experiment:
    return Experiment.load("battlesnake-ppo", settings)


def test_a_run_without_its_gpu_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(
        ConfigError,
        match=r"1 GPU.*torch finds 0.*without CUDA; on the CPU: --set num_gpus_per_learner=0",
    ):
        train(experiment(["num_gpus_per_learner=1"]), runs_dir=tmp_path)


@pytest.mark.parametrize(
    ("each", "learners", "found", "enough"),
    [(0, 2, 0, True), (1, 0, 1, True), (1, 2, 1, False), (2, 2, 4, True)],
)
def test_each_process_that_learns_needs_its_gpus(monkeypatch, each, learners, found, enough):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    asked = experiment([f"num_gpus_per_learner={each}", f"num_learners={learners}"])
    if enough:
        require_gpus(asked)
        return
    with pytest.raises(ConfigError, match=f"{each * learners} GPU"):
        require_gpus(asked)


@pytest.mark.parametrize(
    ("settings", "on_gpu"),
    [
        ([], False),
        (["num_gpus_per_learner=1"], True),
        (["num_gpus_per_learner=1", "num_env_runners=2"], False),
        (["num_gpus_per_learner=1", "num_learners=1"], False),
    ],
)
def test_only_a_process_that_also_learns_there_plays_on_the_gpu(settings, on_gpu):
    assert PPOConfig.from_experiment(experiment(settings)).plays_on_gpu == on_gpu


def test_a_gpu_decides_itself_whether_bfloat16_is_used(monkeypatch):
    """Of two GPUs only the second is fast at it."""
    capabilities = {torch.device("cuda", 0): (7, 5), torch.device("cuda", 1): (8, 0)}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", capabilities.__getitem__)
    monkeypatch.setattr(
        batched_config, "get_device", lambda config, _: torch.device("cuda", config.local_gpu_idx)
    )
    for number, supported in ((0, False), (1, True)):
        config = PPOConfig.from_experiment(experiment(["num_gpus_per_learner=1"]))
        config.learners(local_gpu_idx=number)
        assert config.rl_module_spec.model_config["bf16"] is supported
