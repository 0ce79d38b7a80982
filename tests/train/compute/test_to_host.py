"""Answers that come from the GPU in one copy are those that come one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import train.ppo
from tests.train.experiments import toy
from train.compute.to_host import in_one_copy, to_host
from train.ppo import PPOConfig, PPORunner


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_one_copy_brings_each_column_bit_for_bit(monkeypatch, rows):
    random = torch.Generator().manual_seed(0)
    columns = {
        "actions": torch.tensor([2**24, 0, 3, 1, 2**24 - 1])[:rows],
        "logp": torch.randn(rows, generator=random),
        "all": torch.randn(rows, 4, generator=random),
    }
    copies = []
    copy = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: copies.append(self.shape) or copy(self))
    found = in_one_copy(columns)
    assert len(copies) == 1
    assert found.keys() == columns.keys()
    for name, expected in to_host(columns).items():
        assert found[name].shape == expected.shape
        np.testing.assert_array_equal(found[name], expected)


def test_on_a_cpu_nothing_is_copied():
    column = torch.arange(3)
    assert to_host({"a": column})["a"].ctypes.data == column.data_ptr()


def played(kl_coef):
    config = PPOConfig.from_experiment(toy("masked-bandit", bf16=False, kl_coef=kl_coef))
    (fragment,) = PPORunner(config=config, worker_index=0).sample()
    return {name: column.copy() for name, column in fragment.columns.items()}


@pytest.mark.parametrize("kl_coef", [0.0, 0.2])
def test_a_rollout_by_one_copy_a_step_is_the_same(monkeypatch, kl_coef):
    plain = played(kl_coef)
    calls = []
    monkeypatch.setattr(
        train.ppo, "to_host", lambda columns: calls.append(len(columns)) or in_one_copy(columns)
    )
    packed = played(kl_coef)
    assert set(calls) == {4 if kl_coef else 3}
    assert packed.keys() == plain.keys()
    for name, column in plain.items():
        assert packed[name].dtype == column.dtype
        np.testing.assert_array_equal(packed[name], column)
