from __future__ import annotations

import pytest
import torch

from envs.common.cores import usable_cores
from train.compute.threads import ThreadTuner


@pytest.fixture(autouse=True)
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("asked", "threads"),
    [
        ("3", 3),
        ("2,1", 2),
        (" 2 , 4", 2),
        *((text, None) for text in ("0", "", "-1", "many", ",2", "1.5")),
    ],
)
def test_all_threads_are_as_many_as_openmp_is_asked_for(monkeypatch, asked, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert ThreadTuner(None)._most == (threads or usable_cores())
    assert ThreadTuner(1)._most == 1


def test_without_the_variable_they_are_as_many_as_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert ThreadTuner(None)._most == usable_cores()
