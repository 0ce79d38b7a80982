from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from agents import networks
from train.compute.data_parallel import DataParallel


def call(network, rows):
    return network(rows)


@pytest.fixture
def snake_network():
    torch.manual_seed(0)
    return networks.build("mlp", (5, 5, 4), 3, hidden_sizes=[16, 8])


def sum_of_squares(answers):
    return sum(answer.square().sum() for answer in answers)


@pytest.mark.parametrize("rows", [1, 5, 600])
def test_answers_and_gradients_are_those_of_the_whole_batch(snake_network, rows):
    seen = torch.randint(0, 2, (rows, 5, 5, 4), dtype=torch.uint8) * torch.eye(5)[..., None].byte()
    weights = list(snake_network.parameters())
    whole = snake_network(seen)
    divided = DataParallel(snake_network, 3, call)(seen)
    torch.testing.assert_close(divided, whole)
    torch.testing.assert_close(
        torch.autograd.grad(sum_of_squares(divided), weights),
        torch.autograd.grad(sum_of_squares(whole), weights),
    )


def test_each_part_has_a_thread_of_its_own():
    meeting = threading.Barrier(3, timeout=60)

    def meet(network, rows):
        meeting.wait()
        return (network(rows),)

    (answer,) = DataParallel(nn.Linear(2, 1), 3, meet)(torch.ones(6, 2))
    assert answer.shape == (6, 1)


def test_steps_of_an_optimiser_reach_every_replica(snake_network):
    seen = torch.ones(4, 5, 5, 4, dtype=torch.uint8)
    parallel = DataParallel(snake_network, 2, call)
    optimizer = torch.optim.Adam(snake_network.parameters(), fused=True)
    for _ in range(2):
        optimizer.zero_grad()
        sum_of_squares(parallel(seen)).backward()
        optimizer.step()
    torch.testing.assert_close(parallel(seen), snake_network(seen))


def test_what_is_not_used_or_not_learned_is_left_alone():
    body, unused, frozen = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)
    network = nn.ModuleList([body, unused, frozen])
    parallel = DataParallel(network, 2, lambda part, rows: (part[2](part[0](rows)),))
    sum_of_squares(parallel(torch.ones(4, 2))).backward()
    assert body.weight.grad.abs().sum() > 0
    assert not unused.weight.grad.any()
    assert frozen.weight.grad is None


def test_an_error_on_a_thread_is_raised():
    def refuse_the_second(network, rows):
        if rows[0, 0]:
            raise ValueError("the second")
        return (network(rows),)

    parallel = DataParallel(nn.Linear(1, 1), 2, refuse_the_second)
    with pytest.raises(ValueError, match="the second"):
        parallel(torch.tensor([[0.0], [1.0]]))
