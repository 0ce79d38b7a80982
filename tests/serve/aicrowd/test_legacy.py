"""Exports on the real stack of 2020: they train, roll out, go on from weights, and answer and play
exactly as we do.

What the ten lines of acceptance ask for. Without a Python 3.7 none of it is run, and that is said
aloud."""

from __future__ import annotations

import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import envs
from agents import bundle
from agents.policy import onnx_forward
from envs.procgen.games import GAMES
from serve.aicrowd import export
from serve.aicrowd.export import CHECKPOINT
from tests.serve.aicrowd.entries import experiment, settings
from tests.serve.aicrowd.legacy_environment import build, find_python
from tests.serve.aicrowd.starter_kit import KIT, put_back
from train.config import Experiment
from train.ppo import ppo_loss
from train.rollouts.columns import ADVANTAGES, VALUE_TARGETS
from train.rollouts.reward_scaling import RewardScaler
from train.worlds.build import without_training

pytestmark = pytest.mark.long

PROBE = Path(__file__).with_name("legacy_probe.py")
PLAYED = ("bigfish", "starpilot", "chaser")
"""Games that both versions of Procgen draw alike."""
EPISODES = 2
SEED = 5
BOTH = ("tf", "torch")
RECIPES = ("ppo", "lars", "apex")
ALL = [(recipe, framework) for recipe in (*RECIPES, "cpu", "dqn", "max") for framework in BOTH] + [
    ("apex-atoms", "tf")
]


@pytest.fixture(scope="module")
def legacy() -> Path:
    """The programs of the old stack."""
    python = find_python()
    if python is None:
        pytest.skip(
            "NOT RUN: no Python 3.7 was found, so no export was tried on its own stack. Set"
            " PROCSNAKE_PYTHON37"
        )
    return build(python)


@pytest.fixture(scope="module")
def package(bundle_of, tmp_path_factory) -> Callable[..., Path]:
    """An export, made once."""

    def make(recipe: str, framework: str, *, local: bool) -> Path:
        target = (
            tmp_path_factory.getbasetemp()
            / f"{recipe}-{framework}-{'local' if local else 'competition'}"
        )
        if not target.exists():
            export(
                bundle_of(recipe),
                target,
                track="sample-efficiency",
                framework=framework,
                with_weights=local,
            )
        return target

    return make


def run(legacy: Path, folder: Path, *command: object, **variables: str) -> str:
    """Return what a command prints, run in a package as its team would: with nothing of these tests
    in its environment.
    """
    path = f"{legacy}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder / "home"), "LANG": "C.UTF-8", **variables}
    (folder / "home").mkdir(exist_ok=True)
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def frames(options: dict[str, Any]) -> np.ndarray:
    """256 real ones: 16 of each of the 16 games, at four times of four games."""
    found = []
    for seed, game in enumerate(GAMES):
        world = envs.make(f"procgen/{game}", **{**options, "num_games": 4, "levels": "all"})
        world.restart(seed)
        generator = np.random.default_rng(seed)
        for step in range(80):
            world.advance(generator.integers(15, size=4))
            if step % 20 == 19:
                found.append(world.observations.copy())
        world.close()
    return np.concatenate(found)


def own_episodes(forward, options: dict[str, Any], game: str) -> tuple[list[int], np.ndarray]:
    """Actions of greedy episodes one after the other, and (return, length) of each."""
    world = envs.make(f"procgen/{game}", **{**options, "num_games": 1, "levels": "all"})
    world.restart(SEED)
    actions: list[int] = []
    results: list[tuple[float, int]] = []
    while len(results) < EPISODES:
        chosen = forward(world.observations)[0].argmax(1)
        actions.append(int(chosen[0]))
        world.advance(chosen)
        ended = world.drain_episodes()
        results += zip(ended["return"], ended["length"])
    world.close()
    return actions, np.array(results)


def ask(
    legacy: Path,
    folder: Path,
    observations: np.ndarray,
    *,
    games: tuple[str, ...] = (),
    checkpoint: str = "",
    columns: dict[str, np.ndarray] | None = None,
) -> Any:
    """What the package's policy answers and plays there."""
    batch = {f"batch_{name}": column for name, column in (columns or {}).items()}
    texts = {"games": ",".join(games), "seed": SEED, "episodes": EPISODES, "checkpoint": checkpoint}
    np.savez(folder / "job.npz", frames=observations, **texts, **batch)
    (file,) = (path for path in (folder / "experiments").glob("*.yaml") if path.stem != "short")
    run(legacy, folder, "python", PROBE, "answer", file, folder / "job.npz", folder / "answer.npz")
    with np.load(folder / "answer.npz") as answers:
        return dict(answers)


def test_the_stack_installs_without_conflicts(legacy):
    assert (
        "No broken requirements found."
        in subprocess.run(
            [legacy / "pip", "check"], capture_output=True, text=True, timeout=120, check=True
        ).stdout
    )


@pytest.fixture(scope="module")
def answered(legacy, package, bundle_of) -> Callable[..., tuple[dict[str, Any], dict[str, Any]]]:
    """(What a package's policy answers and plays there, what we expect), asked once."""
    known: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {}

    def both(recipe: str, framework: str) -> tuple[dict[str, Any], dict[str, Any]]:
        if (recipe, framework) not in known:
            ours = bundle.load(bundle_of(recipe))
            forward = onnx_forward(ours, 1)
            options = without_training(ours.card.environment["options"])
            observations = frames(options)
            logits, values = forward(observations)
            columns = batch_of(logits) if recipe in ("ppo", "lars") else {}
            games = PLAYED if recipe in RECIPES else ()
            folder = package(recipe, framework, local=True)
            answers = ask(
                legacy, folder, observations, games=games, checkpoint=CHECKPOINT, columns=columns
            )
            episodes = {game: own_episodes(forward, options, game) for game in games}
            known[recipe, framework] = (
                answers,
                {
                    "logits": logits,
                    "values": values,
                    "columns": columns,
                    "episodes": episodes,
                },
            )
        return known[recipe, framework]

    return both


@pytest.mark.parametrize(("recipe", "framework"), ALL)
def test_answers_and_whole_episodes_are_ours(answered, recipe, framework):
    answers, ours = answered(recipe, framework)
    assert len(answers["logits"]) == 256
    assert np.abs(answers["logits"] - ours["logits"]).max() <= 1e-4
    assert (answers["logits"].argmax(1) == ours["logits"].argmax(1)).all()
    for game, (actions, results) in ours["episodes"].items():
        assert answers[f"{game}_actions"].tolist() == actions
        np.testing.assert_allclose(answers[f"{game}_results"], results, rtol=1e-6)


def batch_of(logits: np.ndarray) -> dict[str, np.ndarray]:
    """A batch that another policy played: ratios and values lie on both sides of where clipping
    begins.
    """
    generator = np.random.default_rng(3)
    count = len(logits)
    old = (
        logits
        - np.log(np.exp(logits).sum(1, keepdims=True))
        + generator.normal(0, 0.3, logits.shape)
    )
    old -= np.log(np.exp(old).sum(1, keepdims=True))
    actions = generator.integers(15, size=count)
    columns = {
        "action_dist_inputs": old,
        "action_logp": old[np.arange(count), actions],
        "advantages": generator.normal(1, 2, count),
        "value_targets": generator.normal(0, 1, count),
        "vf_preds": generator.normal(0, 1, count),
    }
    return {
        "actions": actions,
        **{name: column.astype(np.float32) for name, column in columns.items()},
    }


def own_losses(
    recipe: str, logits: np.ndarray, values: np.ndarray, columns: dict[str, np.ndarray]
) -> dict[str, float]:
    settings = experiment(recipe).settings
    renamed = {"advantages": ADVANTAGES, "value_targets": VALUE_TARGETS}
    batch = {renamed.get(name, name): torch.from_numpy(column) for name, column in columns.items()}
    coefs = {"ent_coef": 0.01, "kl_coef": settings.kl_coef}
    loss, parts = ppo_loss(
        torch.from_numpy(logits), torch.from_numpy(values), batch, settings, **coefs
    )
    return {
        "total_loss": float(loss),
        **{name: float(parts[name]) for name in ("policy_loss", "vf_loss", "entropy")},
    }


def own_pay(actions: np.ndarray) -> list[float]:
    world = envs.make("procgen/fruitbot", num_games=1, distribution_mode="easy", shape_rewards=True)
    world.restart(SEED)
    scaler = RewardScaler(1, 0.99)
    rewards = []
    for action in actions:
        world.advance(np.array([action]))
        rewards.append(float(scaler.scale(world.rewards, np.array([0]), world.terminated)[0]))
    world.close()
    return rewards


@pytest.mark.parametrize("framework", BOTH)
@pytest.mark.parametrize("recipe", ["ppo", "lars"])
def test_the_loss_and_the_pay_are_ours(answered, recipe, framework):
    answers, ours = answered(recipe, framework)
    for name, value in own_losses(recipe, ours["logits"], ours["values"], ours["columns"]).items():
        # Ray's value loss is twice ours, and has half the weight.
        factor = 0.5 if name == "vf_loss" else 1.0
        assert answers[name] * factor == pytest.approx(value, rel=1e-4, abs=1e-5), name
    np.testing.assert_allclose(
        answers["paid"], own_pay(ours["columns"]["actions"]), rtol=1e-4, atol=1e-6
    )


MUTANTS = {
    "stem-padding-tf": (
        "tf",
        '"valid")(\n            tf.pad(planes, EDGES)\n        )',
        '"same")(planes)',
    ),
    "stem-place-torch": ("torch", "1 if stages else stride", "stride if len(stages) == 2 else 1"),
    "pooling-padding-tf": (
        "tf",
        "planes, EDGES, constant",
        "planes, [[0, 0], [0, 2], [0, 2], [0, 0]], constant",
    ),
    "pooling-padding-torch": ("torch", "3, stride=2, padding=1)", "3, stride=2, ceil_mode=True)"),
    "flatten-order-tf": (
        "tf",
        "Flatten()(planes)",
        "Flatten()(tf.transpose(planes, [0, 3, 1, 2]))",
    ),
    "flatten-order-torch": ("torch", "planes.permute(0, 2, 3, 1).flatten(1)", "planes.flatten(1)"),
    "kernel-transpose-tf": ("tf", "kernel.transpose(2, 3, 1, 0)", "kernel.transpose(3, 2, 1, 0)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_parity_notices_when_the_twin_is_broken(legacy, package, bundle_of, tmp_path, mutant):
    framework, old, new = MUTANTS[mutant]
    folder = Path(shutil.copytree(package("cpu", framework, local=True), tmp_path / "mutant"))
    model = folder / "models" / f"procsnake_{framework}.py"
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))
    ours = bundle.load(bundle_of("cpu"))
    observations = frames(without_training(ours.card.environment["options"]))[::16]
    # The weights that the model starts from: a checkpoint would put kernels right again.
    logits = ask(legacy, folder, observations)["logits"]
    assert np.abs(logits - onnx_forward(ours, 1)(observations)[0]).max() > 1e-2


def shorten(folder: Path, *, steps: int = 256, **changes: Any) -> None:
    """experiments/short.yaml: the same on fewer games, with small batches, for a few steps."""
    (path,) = (path for path in (folder / "experiments").glob("*.yaml") if path.stem != "short")
    (body,) = yaml.safe_load(path.read_text()).values()
    config = body["config"]
    is_ppo = body["run"] == "ProcsnakePPO"
    body["stop"] = {"timesteps_total": steps}
    config.update(
        num_workers=0 if is_ppo else 2, num_envs_per_worker=4, rollout_fragment_length=32, **changes
    )
    if is_ppo:
        config.update(train_batch_size=128, sgd_minibatch_size=64, num_sgd_iter=1)
    else:
        config.update(
            train_batch_size=32,
            learning_starts=64,
            buffer_size=1000,
            timesteps_per_iteration=64,
            min_iter_time_s=0,
        )
    (folder / "experiments" / "short.yaml").write_text(
        yaml.safe_dump({"short": body}, sort_keys=False)
    )


SHORT = {"EXPERIMENT": "experiments/short.yaml", "EPISODES": "1"}


@pytest.mark.parametrize("framework", BOTH)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_competition_package_trains_from_scratch_and_rolls_out(
    legacy, package, recipe, framework
):
    folder = package(recipe, framework, local=False)
    shorten(folder)
    printed = run(legacy, folder, "./run.sh", "--train", "--rollout", **SHORT)
    assert re.search(r"Episode #1: reward: -?[\d.]+ length: \d+", printed)
    (trial,) = (
        path for path in (folder / "home" / "ray_results" / "short").iterdir() if path.is_dir()
    )
    names = {str(path.relative_to(trial)) for path in trial.rglob("*")}
    assert {"params.pkl", "params.json", "result.json", "progress.csv"} <= names
    assert any(
        re.fullmatch(r"checkpoint_(\d+)/checkpoint-\1\.tune_metadata", name) for name in names
    )
    assert len((trial / "progress.csv").read_text().splitlines()) >= 2


@pytest.mark.parametrize("framework", BOTH)
@pytest.mark.parametrize(
    ("recipe", "how"), [("ppo", "put-back"), ("apex", "put-back"), ("lars", "in-the-kit")]
)
def test_it_trains_and_rolls_out_with_the_graders_files(legacy, tmp_path, recipe, framework, how):
    folder = tmp_path / "entry"
    clone = KIT if how == "in-the-kit" else None
    export(
        settings(recipe), folder, track="sample-efficiency", framework=framework, starter_kit=clone
    )
    if clone:
        (folder / "experiments" / "procgen-starter-example.yaml").unlink()
    # Long enough for some episodes to end.
    shorten(put_back(folder), steps=1024)
    printed = run(legacy, folder, "./run.sh", "--train", "--rollout", **SHORT, RAY_CPUS="8")
    # The stand-in of the kit's rollout.py counts from 0, as the kit's does.
    assert re.search(r"Episode #0: reward: -?[\d.]+ steps: \d+", printed)
    (results,) = (folder / "home").glob("ray_results/short/*/result.json")
    logged = set().union(
        *(json.loads(line)["custom_metrics"] for line in results.read_text().splitlines())
    )
    assert "raw_return_mean" in logged
    assert ("of_the_kit_mean" in logged) == (clone is not None)


@pytest.mark.parametrize("framework", BOTH)
def test_a_shipped_checkpoint_rolls_out_with_the_graders_files(
    legacy, bundle_of, tmp_path, framework
):
    folder = tmp_path / "entry"
    export(bundle_of("ppo"), folder, track="generalization", framework=framework, with_weights=True)
    printed = run(
        legacy, put_back(folder), "./run.sh", "--rollout", EPISODES="1", CHECKPOINT=CHECKPOINT
    )
    assert re.search(r"Episode #0: reward: -?[\d.]+ steps: \d+", printed)


def test_shipped_experiments_with_schedules_train(legacy, tmp_path):
    folder = tmp_path / "entry"
    changes = ["env.options.num_games=8", "env.name=procgen/starpilot"]
    export(Experiment.load("procgen-dqn", changes).to_dict(), folder, track="generalization")
    shorten(folder)
    run(legacy, folder, "./run.sh", "--train", **SHORT)
    # The shipped schedule: 1 at 0, 0.05 at 250 000 decisions, 0.01 from 2 000 000 on.
    for steps, height in ((125_000, 0.525), (1_125_000, 0.03), (9_000_000, 0.01)):
        printed = run(
            legacy, folder, "python", PROBE, "epsilon", "experiments/procgen-dqn.yaml", steps
        )
        assert float(printed.split()[-1]) == pytest.approx(height)


def test_the_options_of_the_kits_scripts_do_what_they_say(legacy, package, tmp_path):
    folder = package("ppo", "torch", local=True)
    shorten(folder)
    play = [
        "python",
        "utils/rollout_on_ray_086.py",
        CHECKPOINT,
        *shlex.split("--run ProcsnakePPO --env procsnake_env --no-render"),
    ]
    run(
        legacy,
        folder,
        *play,
        "--episodes",
        "1",
        "--save-info",
        "--out",
        tmp_path / "all.pkl",
        "--video-dir",
        tmp_path / "films",
    )
    (episode,) = pickle.loads((tmp_path / "all.pkl").read_bytes())
    assert all(len(step) == 6 for step in episode)
    assert [step[4] for step in episode] == [False] * (len(episode) - 1) + [True]
    assert (tmp_path / "films" / "episode-0.mp4").stat().st_size > 1000
    printed = run(
        legacy,
        folder,
        *play,
        *shlex.split("--steps 12 --use-shelve --track-progress --out"),
        tmp_path / "shelf",
    )
    assert "length: 12 (cut off by --steps)" in printed
    reader = (
        "import shelve, sys; shelf = shelve.open(sys.argv[1]); print(shelf['num_episodes'],"
        " len(shelf['0']))"
    )
    assert run(legacy, folder, "python", "-c", reader, tmp_path / "shelf").split() == ["1", "12"]
    assert not (tmp_path / "__progress_shelf").exists()


def test_training_is_resumed_and_started_from_the_command_line(legacy, tmp_path):
    folder = tmp_path / "entry"
    export(settings("ppo"), folder, track="generalization")
    shorten(folder)
    train = ["python", "train.py", "-f", "experiments/short.yaml", "--ray-num-cpus", "2"]
    run(legacy, folder, *train, "-v")
    assert "TERMINATED" in run(legacy, folder, *train, "--resume")
    (trial,) = (
        path for path in (folder / "home" / "ray_results" / "short").iterdir() if path.is_dir()
    )
    assert len((trial / "result.json").read_text().splitlines()) == 2
    model = {"custom_model": "procsnake_impala_tf", "custom_options": {"depths": [8, 8, 8]}}
    config = json.dumps(
        {
            "num_workers": 0,
            "train_batch_size": 64,
            "sgd_minibatch_size": 64,
            "rollout_fragment_length": 64,
            "env_config": {"env_name": "coinrun"},
            "model": model,
        }
    )
    stop = json.dumps({"training_iteration": 1})
    run(
        legacy,
        folder,
        *shlex.split("python train.py --run PPO --env procsnake_env --config"),
        config,
        "--stop",
        stop,
    )
    assert list((folder / "home" / "ray_results" / "default").glob("PPO_*/result.json"))


@pytest.mark.parametrize("framework", BOTH)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_local_package_goes_on_from_its_weights_and_plays_its_checkpoint(
    legacy, package, recipe, framework
):
    folder = package(recipe, framework, local=True)
    changes = {"lr": 0.0, "lr_schedule": None}
    shorten(folder, **changes)
    grading = {
        "AICROWD_IS_GRADING": "true",
        "OUTPUTS_DIR": str(folder / "outputs"),
        "RAY_CPUS": "8",
    }
    printed = run(
        legacy,
        folder,
        "./run.sh",
        "--train",
        "--rollout",
        **SHORT,
        **grading,
        CHECKPOINT=CHECKPOINT,
    )
    assert f"rolling out {CHECKPOINT}" in printed
    assert "Episode #1" in printed
    (checkpoint,) = (folder / "home").glob("ray_results/short/*/checkpoint_*/checkpoint-*[0-9]")
    shipped = pickle.loads(pickle.loads((folder / CHECKPOINT).read_bytes())["worker"])["state"][
        "default_policy"
    ]
    after = saved_weights(legacy, folder, checkpoint)
    assert len(shipped) >= 30
    for name, weights in shipped.items():
        np.testing.assert_array_equal(after[name.replace("/", "|")], weights, err_msg=name)


def saved_weights(legacy: Path, folder: Path, checkpoint: Path) -> dict[str, np.ndarray]:
    run(legacy, folder, "python", PROBE, "weights", checkpoint, folder / "saved.npz")
    with np.load(folder / "saved.npz") as arrays:
        return dict(arrays)
