"""RLlib's fields of learners."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchCompileWhatToCompile
from ray.rllib.utils import framework

from envs.common.errors import ConfigError
from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import learning, seen, small
from train.dqn import DQNConfig
from train.ppo import PPOConfig, PPORunner
from train.rllib.learner import FragmentLearner


def learner_of(config: Any) -> FragmentLearner:
    """The learner of a run, in this process and without Ray."""
    config.validate()
    world = config.make_world()
    spaces = {DEFAULT_MODULE_ID: (world.single_observation_space, world.single_action_space)}
    learner = config.build_learner(spaces=spaces)
    assert isinstance(learner, FragmentLearner)
    return learner


@shows("torch_skip_nan_gradients")
@pytest.mark.parametrize("kind", [PPOConfig, DQNConfig])
def test_an_update_is_skipped_for_gradients_that_are_no_numbers(kind):
    """As RLlib documents it. Else they count as zeros."""
    for skips in (True, False):
        one_thread = small(kind).training(num_threads=1)
        learner = learner_of(one_thread.framework(torch_skip_nan_gradients=skips))
        before = {key: weight.clone() for key, weight in learner._params.items()}
        gradients = {key: torch.ones_like(weight) for key, weight in before.items()}
        next(iter(gradients.values())).fill_(torch.nan)
        learner.apply_gradients(gradients)
        assert all(weight.isfinite().all() for weight in learner._params.values())
        unmoved = [torch.equal(weight, before[key]) for key, weight in learner._params.items()]
        assert all(unmoved) == skips


def test_a_gradient_scaler_learns_of_an_update_that_is_skipped():
    """It has to lower its scale, or every later update would be skipped, too."""
    config = learning(_torch_grad_scaler_class=functools.partial(torch.amp.GradScaler, "cpu"))
    learner = learner_of(config.framework(torch_skip_nan_gradients=True))
    assert learner._grad_scalers is not None
    scaler = learner._grad_scalers[DEFAULT_MODULE_ID]
    scaler.scale(torch.ones(()))
    scale = scaler.get_scale()
    before = {key: weight.clone() for key, weight in learner._params.items()}
    for number, moves in ((torch.inf, False), (scale, True)):
        gradients = {key: torch.full_like(weight, number) for key, weight in before.items()}
        learner.apply_gradients(gradients)
        moved = [not torch.equal(weight, before[key]) for key, weight in learner._params.items()]
        assert all(moved) == any(moved) == moves
        assert scaler.get_scale() == scale / 2


@shows(
    "torch_compile_learner",
    "torch_compile_learner_dynamo_backend",
    "torch_compile_learner_dynamo_mode",
)
def test_a_learner_compiles_the_forward_pass_as_it_is_asked_to(monkeypatch):
    compiled: dict[str, tuple[str, str]] = {}

    def note(function: Any, *, backend: str, mode: str) -> Any:
        compiled[function.__name__] = backend, mode
        return function

    monkeypatch.setattr(torch, "compile", note)
    learner_of(learning())
    assert not compiled
    config = learning().framework(
        torch_compile_learner=True,
        torch_compile_learner_dynamo_backend="eager",
        torch_compile_learner_dynamo_mode="max-autotune",
    )
    learner_of(config)
    assert compiled["_forward_train"] == ("eager", "max-autotune")


def test_a_whole_update_is_not_compiled():
    config = learning().framework(
        torch_compile_learner=True,
        torch_compile_learner_what_to_compile=TorchCompileWhatToCompile.COMPLETE_UPDATE,
    )
    with pytest.raises(ConfigError, match="torch_compile_learner_what_to_compile"):
        config.validate()


@pytest.mark.long
def test_a_compiled_learner_learns_the_same(one_ray):
    def weights(algorithm: Any) -> dict[str, torch.Tensor]:
        algorithm.train()
        return dict(algorithm.get_module().state_dict())

    compiled = learning().framework(
        torch_compile_learner=True, torch_compile_learner_dynamo_backend="eager"
    )
    expected = seen(learning(), weights)
    for name, weight in seen(compiled, weights).items():
        torch.testing.assert_close(weight, expected[name])


@shows("torch_ddp_kwargs")
def test_torchs_wrapper_for_several_learners_is_made_as_configured(tmp_path: Path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1
    )
    try:
        for asked in (True, False):
            config = learning().learners(num_learners=2)
            config.framework(torch_ddp_kwargs={"find_unused_parameters": asked})
            wrapper: Any = learner_of(config).module[DEFAULT_MODULE_ID]
            assert wrapper.find_unused_parameters == asked
    finally:
        torch.distributed.destroy_process_group()


@shows("local_gpu_idx")
@pytest.mark.parametrize("number", [0, 1])
def test_a_process_that_plays_and_learns_takes_the_gpu_of_this_number(one_ray, monkeypatch, number):
    """torch's device "meta", which holds no numbers, stands in for two GPUs. Its tensors don't know
    which of the two they are on, so what modules are told is noted.
    """
    gpus = SimpleNamespace(
        cuda=SimpleNamespace(device_count=lambda: 2),
        device=lambda which: torch.device(which) if which == "cpu" else torch.device("meta", which),
    )
    monkeypatch.setattr(framework, "try_import_torch", lambda: (gpus, None))
    told: list[Any] = []
    move = torch.nn.Module.to

    def note(module: torch.nn.Module, device: Any) -> torch.nn.Module:
        told.append(device)
        return move(module, device)

    monkeypatch.setattr(torch.nn.Module, "to", note)
    config = learning().learners(num_gpus_per_learner=1, local_gpu_idx=number)
    learned = learner_of(config).network_module
    # It draws its actions there, for which torch has no generator.
    monkeypatch.setattr(PPORunner, "_draw_seeds", lambda runner: None)
    played = PPORunner(config=config, worker_index=0)
    assert played.device.index == number
    for module in (learned, played.module):
        assert {parameter.device.type for parameter in module.parameters()} == {"meta"}
    assert len(told) >= 2
    assert set(told) == {torch.device("meta", number)}
