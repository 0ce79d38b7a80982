from __future__ import annotations

import math

import pytest
import torch

from agents import networks
from agents.networks.q_network import q_values
from envs.common.errors import ConfigError
from tests.agents.networks.test_networks import BODIES


def test_a_network_with_dueling_heads_has_q_values_of_mean_v():
    network = networks.build("q-network", (1, 1, 5), 3, body_options={"hidden_sizes": [8]})
    seen = torch.randint(0, 256, (7, 1, 1, 5), dtype=torch.uint8)
    q, best = network(seen)
    value = network.value(network.body(seen))
    torch.testing.assert_close(q.mean(1, keepdim=True), value)
    torch.testing.assert_close(best, q.max(1).values)


def test_noise_is_off_until_it_is_drawn_and_has_the_papers_covariance():
    network = networks.build(
        "q-network", (1, 1, 5), 3, noisy=True, dueling=False, body_options={"hidden_sizes": [8]}
    )
    layer = network.advantage
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(4, 8)
    torch.testing.assert_close(
        layer(features), torch.nn.functional.linear(features, layer.weight, layer.bias)
    )
    drawn = []
    for _ in range(4000):
        network.draw_noise(generator)
        drawn.append(torch.outer(layer.noise_out, layer.noise_in).flatten())
    drawn = torch.stack(drawn)
    assert drawn.mean(0).abs().max() < 0.06
    # E |x| = sqrt(2/pi) for a standard normal x, so the product of two independent roots has that
    # variance squared.
    torch.testing.assert_close((drawn**2).mean(), torch.tensor(2 / math.pi), atol=0.02, rtol=0)
    assert "noise_in" not in " ".join(network.state_dict())


def test_q_values_are_means_of_the_distributions():
    logits = torch.log(torch.tensor([[[0.25, 0.25, 0.5]]]))
    assert float(q_values(logits, torch.tensor([0.0, 1.0, 2.0]))) == pytest.approx(1.25)


@pytest.mark.parametrize("dueling", [True, False])
def test_the_first_values_are_nearer_to_0_than_an_atom(dueling):
    """Uniform distributions would have 24 there, which targets then forget slowly."""
    network = networks.build(
        "q-network", (1, 1, 5), 3, num_atoms=51, v_min=-16.0, v_max=64.0, dueling=dueling
    )
    seen = torch.randint(0, 256, (7, 1, 1, 5), dtype=torch.uint8)
    assert network(seen)[0].abs().max() < 1.6


def test_heads_go_on_any_body():
    for body in BODIES:
        network = networks.build("q-network", (11, 11, 3), 4, body=body, num_atoms=5)
        seen = torch.randint(0, 256, (2, 11, 11, 3), dtype=torch.uint8)
        assert network(seen)[0].shape == (2, 4)
        assert network.atoms(seen).shape == (2, 4, 5)


def test_impossible_distributions_are_refused():
    with pytest.raises(ConfigError, match="no distribution"):
        networks.build("q-network", (1, 1, 5), 3, num_atoms=5, v_min=1.0, v_max=1.0)


def test_means_of_distributions_stay_float32_in_bfloat16():
    """They are compared between actions, and written into float32 columns where they are made."""
    torch.manual_seed(0)
    network = networks.build("q-network", (8,), 3, body="mlp", num_atoms=51, v_min=-5.0, v_max=20.0)
    seen = torch.randint(256, (32, 8), dtype=torch.uint8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        values = network(seen)[0]
        probabilities = network.atoms(seen).softmax(-1)
    assert values.dtype == torch.float32
    torch.testing.assert_close(
        values, (probabilities.double() @ network.support.double()).float(), atol=1e-4, rtol=1e-5
    )
