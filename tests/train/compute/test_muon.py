import pytest
import torch
from torch import nn

from agents import networks
from envs.common.errors import UnknownNameError
from tests.train.experiments import best_return, toy
from train.algorithms import build_algorithm
from train.compute import muon
from train.compute.muon import Muon, split
from train.settings import PPOSettings


def convolution(memory_format: torch.memory_format) -> nn.Conv2d:
    return nn.Conv2d(3, 8, 3, bias=False).to(memory_format=memory_format)


@pytest.fixture(params=[True, False], ids=["bfloat16", "float32"])
def is_bfloat16(request, monkeypatch):
    monkeypatch.setattr(muon, "has_fast_bfloat16", lambda gpu: request.param)
    return request.param


@pytest.mark.parametrize("gradients", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("weights", [torch.contiguous_format, torch.channels_last])
def test_a_convolution_steps_as_torchs_muon_does_with_its_matrix(weights, gradients, is_bfloat16):
    torch.manual_seed(0)
    layer = convolution(weights)
    matrix = nn.Parameter(layer.weight.detach().clone().contiguous().flatten(1))
    ours = Muon([layer.weight], lr=1e-2)
    peer = torch.optim.Muon([matrix], lr=1e-2, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    before = layer.weight.detach().clone()
    for _ in range(3):
        gradient = torch.randn(8, 3, 3, 3)
        layer.weight.grad = gradient.clone(memory_format=gradients)
        matrix.grad = gradient.flatten(1)
        ours.step()
        peer.step()
    assert not torch.equal(layer.weight, before)
    # torch's is in bfloat16, whose rounding depends on the order of a row's numbers.
    rounds_alike = is_bfloat16 and weights is torch.contiguous_format
    torch.testing.assert_close(
        layer.weight.detach().contiguous().flatten(1),
        matrix.detach(),
        atol=1e-7 if rounds_alike else 5e-4,
        rtol=0,
    )


@pytest.mark.usefixtures("is_bfloat16")
def test_every_direction_of_a_step_has_nearly_the_same_length():
    """Newton-Schulz brings singular values, here .01 to 1, to .7 to 1.2 (Jordan et al. 2024)."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(16, 32))
    left = torch.linalg.qr(torch.randn(16, 16)).Q
    right = torch.linalg.qr(torch.randn(32, 32)).Q[:16]
    weight.grad = left @ torch.logspace(0, -2, 16).diag() @ right
    Muon([weight], lr=1.0).step()
    lengths = torch.linalg.svdvals(weight.detach()) / (0.2 * 32**0.5)
    assert lengths.min() > 0.6
    assert lengths.max() < 1.3


def test_gradients_do_not_pile_up():
    layer = convolution(torch.channels_last)
    optimizer = Muon([layer.weight], lr=1e-2)
    layer(torch.ones(1, 3, 5, 5)).sum().backward()
    optimizer.zero_grad()
    assert layer.weight.grad is None
    optimizer.step()


def test_heads_and_biases_are_not_for_muon():
    network = networks.build("impala", (64, 64, 3), 15)
    hidden, others = split(network)
    assert {p.ndim for p in hidden} == {2, 4}
    assert [p for p in hidden if p.shape[0] in (1, 15)] == []
    assert {id(p) for p in network.heads.parameters()} <= {id(p) for p in others}
    assert len(hidden) + len(others) == len(list(network.parameters()))


def test_the_heads_of_q_values_are_not_for_muon():
    network = networks.build("q-network", (11, 11, 3), 3, body="mlp", dueling=True)
    hidden, others = split(network)
    heads = [*network.advantage.parameters(), *network.value.parameters()]
    assert hidden
    assert {id(p) for p in heads} <= {id(p) for p in others}


def test_solves_the_identity_world(one_ray):
    best, _ = best_return(toy("identity", optimizer="muon"), 60)
    assert best >= 0.95


def test_goes_on_from_a_checkpoint_as_if_there_had_been_no_break(one_ray, tmp_path):
    """With new games after it, so what is compared is the step that the next gradients make."""
    first, second = (
        build_algorithm(toy("identity", optimizer="muon", anneal_lr=True)) for _ in range(2)
    )
    try:
        first.train()
        first.save_to_path(str(tmp_path / "checkpoint"))
        second.restore_from_path(str(tmp_path / "checkpoint"))
        learners = [algorithm.learner_group._learner for algorithm in (first, second)]
        torch.manual_seed(0)
        gradients = [torch.randn_like(p) for p in learners[0]._params.values()]
        for learner in learners:
            learner.apply_gradients(dict(zip(learner._params, gradients, strict=True)))
        weights = [[p.detach() for p in learner._params.values()] for learner in learners]
        for ours, theirs in zip(*weights, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        first.fraction_done = 0.5
        rates = {
            k: v
            for k, v in first.train()["learners"]["default_policy"].items()
            if k.endswith("learning_rate")
        }
        assert rates == {
            name: pytest.approx(5e-3)
            for name in ("default_optimizer_learning_rate", "adam_learning_rate")
        }
    finally:
        first.stop()
        second.stop()


def test_an_unknown_optimizer_is_refused_with_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"ppo\.optimizer.*mion.*muon"):
        PPOSettings(optimizer="mion")
