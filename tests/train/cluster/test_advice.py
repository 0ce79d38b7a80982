"""What is said against a run's size before it is paid for."""

from __future__ import annotations

from train.cluster.advice import warnings
from train.config import Experiment
from train.settings.scale import scale_overrides


def advice(name: str, instances: str, *overrides: str) -> list[str]:
    return warnings(Experiment.load(name, [*scale_overrides(instances), *overrides]))


def test_env_runners_that_would_wait_are_counted_and_so_is_a_batch_that_nobody_tuned_for():
    waiting, batch = advice("battlesnake-ppo", "100*ml.c5.18xlarge")
    assert waiting.startswith("7199 env runners play 806,288,000 decisions per second")
    assert "goes through 79,500, for which 1 would do" in waiting
    # 7199 env runners × 16 steps × 16 games.
    assert batch.startswith("a batch of 1,842,944 game steps is 225 times the 8,192")


def test_how_fast_a_gpu_learns_limits_nothing_because_it_is_not_known():
    (waiting,) = advice("battlesnake-apex", "ml.g5.2xlarge+2*ml.c5.9xlarge")
    assert "a network link of 10 Gbit/s carries 464," in waiting
    assert waiting.endswith("How fast a GPU learns was not measured")


def test_one_machine_is_not_limited_by_a_network_that_it_does_not_use():
    alone = advice("battlesnake-ppo", "ml.g5.48xlarge", "ppo.num_threads=20")
    assert not [text for text in alone if "network" in text]
    both = advice("battlesnake-ppo", "2*ml.g5.48xlarge", "ppo.num_threads=20")
    assert "a network link of 10 Gbit/s carries 1,2" in both[0]


def test_gpus_that_nothing_uses_are_told_before_they_are_paid_for():
    idle, *_ = advice("battlesnake-ppo", "ml.c5.4xlarge+2*ml.g5.2xlarge")
    assert idle.startswith("2 GPUs of 2 × ml.g5.2xlarge are paid for and never used")
    assert not [
        text for text in advice("battlesnake-ppo", "5*ml.g5.2xlarge") if "never used" in text
    ]


def test_of_a_world_that_was_not_measured_only_the_batch_is_known():
    assert advice("procgen-ppo", "ml.c5.4xlarge") == []
    (batch,) = advice("procgen-ppo", "ml.g5.2xlarge+4*ml.c5.9xlarge")
    assert "36,864 game steps is 2 times the 16,384" in batch


def test_where_playing_is_the_limit_there_is_nothing_to_say():
    assert (
        advice(
            "battlesnake-ppo",
            "ml.c5.xlarge",
            "scale.workers=1",
            "ppo.num_epochs=1",
            "ppo.num_threads=2",
        )
        == []
    )
