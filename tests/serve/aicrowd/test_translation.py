"""From our experiments to Ray 0.8.6's: values by hand, and a refusal for whatever has no
counterpart.
"""

from __future__ import annotations

import shlex

import pytest

from envs.common.errors import UnknownNameError
from serve.aicrowd.section import NoCounterpartError, Refusal
from serve.aicrowd.translation import Translation, translate
from tests.serve.aicrowd.entries import experiment
from train.config import Experiment


def translated(
    chosen: Experiment, *, track: str = "generalization", framework: str = "tf"
) -> Translation:
    return translate(chosen.to_dict(), track=track, framework=framework)


def refusal(recipe: str, *overrides: str, framework: str = "tf") -> str:
    with pytest.raises(NoCounterpartError) as caught:
        translated(experiment(recipe, *overrides), framework=framework)
    return str(caught.value)


def test_the_baseline_becomes_the_benchmarks_ppo():
    translation = translated(Experiment.load("procgen-ppo"))
    config = translation.body["config"]
    # OpenAI's train-procgen: 64 games × 256 steps, 8 minibatches, 3 epochs; both sides of its loss
    # weigh values with .5 · ½.
    expected = {
        "gamma": 0.999,
        "lambda": 0.95,
        "lr": 5e-4,
        "num_sgd_iter": 3,
        "sgd_minibatch_size": 2048,
        "train_batch_size": 16384,
        "rollout_fragment_length": 256,
        "clip_param": 0.2,
        "vf_clip_param": 0.2,
        "vf_loss_coeff": 0.25,
        "entropy_coeff": 0.01,
        "grad_clip": 0.5,
        "kl_coeff": 0.0,
    }
    assert {key: config[key] for key in expected} == expected
    assert config["num_workers"] * config["num_envs_per_worker"] == 64
    assert config["env_config"]["num_levels"] == 200
    assert config["env_config"]["norm_reward"] == 0.999
    assert translation.body["stop"] == {"timesteps_total": 8_000_000}


def test_lars_tricks_are_all_there():
    config = translated(Experiment.load("procgen-ppo-lars"), track="sample-efficiency").body[
        "config"
    ]
    env = config["env_config"]
    model = config["model"]["custom_options"]
    assert (env["gap_stack"], env["shape_rewards"], env["num_levels"]) == (4, True, 0)
    assert (model["depths"], model["pooling"], model["offset"]) == ([32, 64, 64], "average", 128)
    assert config["lr_schedule"][1] == [500_000, 8e-4]
    assert config["lr"] == 1e-4
    assert (config["kl_coeff"], config["kl_target"]) == (0.2, 0.01)
    assert config["vf_clip_param"] > 1e5


def test_rollouts_show_and_pay_what_the_game_does():
    config = translated(experiment("lars", "env.options.augment=[translate]")).body["config"]
    assert config["env_config"]["augment"] == ["translate"]
    assert config["evaluation_config"] == {
        "explore": True,
        "env_config": {"augment": None, "shape_rewards": False},
    }


@pytest.mark.parametrize(("algorithm", "played_a_pull"), [("dqn", 8), ("apex", 4)])
def test_each_decision_is_replayed_as_often(algorithm, played_a_pull):
    # 2 env runners × 4 games. Ray pulls once from its players, then weight[1] times from its memory
    # (calculate_rr_weights).
    config = translated(experiment(algorithm, f"{algorithm}.replay_ratio=6")).body["config"]
    weights = config["training_intensity"] / (
        config["train_batch_size"] / config["rollout_fragment_length"]
    )
    workers = config["num_workers"]
    played = (
        config["rollout_fragment_length"]
        * config["num_envs_per_worker"]
        * (workers if algorithm == "dqn" else 1)
    )
    assert weights * config["train_batch_size"] / played == pytest.approx(6)
    assert workers * config["num_envs_per_worker"] == 8


def test_target_networks_are_updated_as_often():
    # APEX counts decisions learned from, DQN decisions taken.
    settings = ("target_update_freq=100", "train_batch_size=64", "replay_ratio=4")
    apex = translated(experiment("apex", *(f"apex.{setting}" for setting in settings))).body[
        "config"
    ]
    dqn = translated(experiment("dqn", *(f"dqn.{setting}" for setting in settings))).body["config"]
    assert apex["target_network_update_freq"] == 100 * 64
    assert dqn["target_network_update_freq"] == 100 * 64 / 4


@pytest.mark.parametrize(("updates", "ratio", "decisions"), [(100, 4, 400), (1, 64, 1)])
def test_players_get_weights_as_often(updates, ratio, decisions):
    # There counted in decisions of each of the 4 workers, at least one; here in updates.
    settings = (f"weight_push_freq={updates}", "train_batch_size=64", f"replay_ratio={ratio}")
    apex = translated(experiment("apex", *(f"apex.{setting}" for setting in settings))).body
    assert apex["config"]["optimizer"]["max_weight_sync_delay"] == decisions


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_gradient_without_a_limit_has_none_there_either(algorithm):
    """With TensorFlow, Ray limits it to 0 if it is told 0."""
    assert (
        translated(experiment(algorithm, f"{algorithm}.max_grad_norm=0")).body["config"][
            "grad_clip"
        ]
        is None
    )


def test_repeated_actions_share_the_budget():
    translation = translated(experiment("ppo", "env.options.action_repeat=4"))
    assert translation.body["stop"] == {"timesteps_total": 2_000_000}
    assert any("2,000,000" in note for note in translation.notes)


def test_a_learning_rate_that_is_annealed_ends_at_the_budget():
    config = translated(
        experiment("ppo", "ppo.anneal_lr=true", "budget.total_agent_steps=1000000")
    ).body["config"]
    assert config["lr_schedule"] == [[0, 5e-4], [1_000_000, 0.0]]


@pytest.mark.parametrize(
    ("recipe", "override", "words"),
    [
        ("ppo", "ppo.target_kl=0.02", "ppo.target_kl=null"),
        ("ppo", "ppo.norm_adv=false", "ppo.norm_adv=true"),
        ("ppo", "ppo.num_minibatches=7", "ppo.num_minibatches=8"),
        ("ppo", "ppo.symmetries=true", "ppo.symmetries=false"),
        ("lars", "ppo.anneal_lr=true", "ppo.anneal_lr=false"),
        ("ppo", "env.options.distribution_mode=hard", "env.options.distribution_mode=easy"),
        ("ppo", "env.options.rnd={coef: 0.1}", "env.options.rnd=null"),
        ("ppo", "network.name=snake-cnn", "network.name=impala"),
        (
            "ppo",
            "network.options.dropout=0.1",
            "network.options.dropout is 0.1: it has no counterpart",
        ),
        ("ppo", "name='two words'", "name is 'two words'"),
        ("dqn", "dqn.noisy=true", "dqn.noisy=false"),
        ("dqn", "dqn.tau=0.01", "dqn.tau=1.0"),
        ("dqn", "dqn.priority_alpha=0", "dqn.priority_alpha=0.01"),
        ("apex", "apex.epsilon_base=0.3", "apex.epsilon_base=0.4"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_what_to_change(recipe, override, words):
    assert words in refusal(recipe, override)


@pytest.mark.parametrize("track", ["sample-efficiency", "generalization"])
@pytest.mark.parametrize(
    "name", ["procgen-ppo", "procgen-ppo-cpu", "procgen-ppo-lars", "procgen-dqn", "procgen-apex"]
)
def test_every_shipped_experiment_is_translated(name, track):
    assert translated(Experiment.load(name), track=track).name == name


def test_epsilon_follows_its_knots():
    config = translated(experiment("dqn", "dqn.epsilon=[[0, 1], [10, 0.5], [20, 0]]")).body[
        "config"
    ]
    schedule = config["exploration_config"]["epsilon_schedule"]
    assert schedule["endpoints"] == [[0, 1.0], [10, 0.5], [20, 0.0]]
    assert schedule["outside_value"] == 0.0
    assert "initial_epsilon" not in config["exploration_config"]


def test_a_constant_epsilon_is_one_from_the_start():
    schedule = translated(experiment("dqn", "dqn.epsilon=0.1")).body["config"][
        "exploration_config"
    ]["epsilon_schedule"]
    assert (schedule["endpoints"], schedule["outside_value"]) == ([[0, 0.1], [1, 0.1]], 0.1)


def test_a_schedule_of_beta_is_told():
    translation = translated(experiment("dqn", "dqn.priority_beta=[[0, 0.4], [100, 1.0]]"))
    assert translation.body["config"]["prioritized_replay_beta"] == 0.4
    assert any("priority_beta stays at 0.4" in note for note in translation.notes)


def test_another_optimizer_than_adam_is_told():
    plain, muon = (translated(experiment("ppo", *more)) for more in ([], ["ppo.optimizer=muon"]))
    assert muon.body == plain.body
    assert [note for note in muon.notes if note not in plain.notes] == [
        "It trains with Adam, because Ray 0.8.6 has no Muon."
    ]


@pytest.mark.parametrize(
    ("name", "framework"), [("procgen-dqn", "torch"), ("procgen-apex", "torch")]
)
def test_what_is_suggested_works_when_pasted(name, framework):
    with pytest.raises(NoCounterpartError) as caught:
        translated(Experiment.load(name), framework=framework)
    pasted = shlex.split(shlex.join(f"--set={setting}" for setting in caught.value.settings))
    changes = [word.removeprefix("--set=") for word in pasted]
    assert translated(Experiment.load(name, changes), framework=framework).name == name


def test_settings_are_quoted_for_the_shell():
    message = refusal("ppo", "network.name=snake-cnn", "name='two words'")
    assert "--set network.name=impala" in message
    refused = Refusal("dqn.epsilon", 1, "why", [[0, 1.0], [10, 0.5]])
    assert str(refused).endswith("use --set 'dqn.epsilon=[[0, 1.0], [10, 0.5]]'")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("apex.num_atoms=51", "TensorFlow only"),
        ("apex.learning_rate=[[0, 0.001], [100, 0.0001]]", "TensorFlow only"),
    ],
)
def test_what_only_tensorflow_has_there(override, words):
    assert words in refusal("apex", override, framework="torch")
    translated(experiment("apex", override), framework="tf")


def test_games_that_two_workers_cant_share():
    assert "env.options.num_games=64" in refusal(
        "apex", "num_env_runners=1", "env.options.num_games=11"
    )


def test_a_memory_has_no_twin():
    assert "ppo.lstm_units=0" in refusal("ppo", "ppo.lstm_units=8", "evaluation=null")


def test_values_with_a_network_of_their_own_have_no_twin():
    assert "ppo.value_epochs=0" in refusal("ppo", "ppo.value_epochs=9", "ppo.adv_coef=0.5")


@pytest.mark.parametrize("name", ["battlesnake-ppo", "battlesnake-imitation"])
def test_a_run_of_another_world_is_refused_in_one_sentence(name):
    with pytest.raises(NoCounterpartError) as caught:
        translated(Experiment.load(name))
    assert str(caught.value).startswith(
        f"{name} is trained in battlesnake, and the competition plays Procgen"
    )
    assert not caught.value.settings


def test_all_refusals_come_at_once():
    message = refusal("ppo", "ppo.target_kl=0.02", "env.options.distribution_mode=hard")
    assert "target_kl" in message
    assert "distribution_mode" in message


@pytest.mark.parametrize("section", ["ppo", "env"])
def test_a_setting_that_nobody_knows_yet_is_refused_too(section):
    chosen = experiment("ppo").to_dict()
    place = chosen["env"]["options"] if section == "env" else chosen["ppo"]
    place["brand_new"] = 3
    with pytest.raises(NoCounterpartError, match="brand_new is 3: it has no counterpart"):
        translate(chosen, track="generalization", framework="tf")


@pytest.mark.parametrize("off", [None, 0, False])
def test_a_setting_that_is_off_needs_no_counterpart(off):
    settings = {**experiment("ppo").to_dict()["ppo"], "brand_new": off}
    translate(
        {**experiment("ppo").to_dict(), "ppo": settings}, track="generalization", framework="tf"
    )


def test_a_new_section_is_noted():
    translation = translate(
        {**experiment("ppo").to_dict(), "brand_new": {}}, track="generalization", framework="tf"
    )
    assert "brand_new is left away: there is no such thing there." in translation.notes


def test_weights_that_a_run_began_with_are_noted_as_left_away_and_only_then():
    plain = experiment("ppo").to_dict()
    begun = translate(
        {**plain, "init_from": "runs/mine"}, track="generalization", framework="tf"
    ).notes
    assert [
        note
        for note in begun
        if note not in translate(plain, track="generalization", framework="tf").notes
    ] == [
        "The weights of runs/mine, with which the run began, are left out:"
        " training starts from scratch."
    ]


@pytest.mark.parametrize(
    ("track", "framework"), [("generalisation", "tf"), ("generalization", "jax")]
)
def test_unknown_names(track, framework):
    with pytest.raises(UnknownNameError):
        translated(experiment("ppo"), track=track, framework=framework)


@pytest.mark.parametrize("key", ["checkpoints", "budget", "network"])
def test_a_bundle_of_another_version(key):
    old = {name: value for name, value in experiment("ppo").to_dict().items() if name != key}
    with pytest.raises(NoCounterpartError, match=f"another version .*{key}"):
        translate(old, track="generalization", framework="tf")


def test_a_bundle_that_doesnt_tell_how_it_was_trained():
    with pytest.raises(NoCounterpartError, match="doesn't say how it was trained"):
        translate({}, track="generalization", framework="tf")
