"""What crashes on Ray 0.8.6 is refused before it is handed in, and what runs there is not."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from serve.aicrowd import check, export
from serve.aicrowd.rules.ray_settings import Ray
from tests.serve.aicrowd.entries import settings
from tests.serve.aicrowd.legacy_environment import build, find_python

HERE = Path(__file__).parent
EDITS: list[dict[str, Any]] = yaml.safe_load((HERE / "wrong_edits.yaml").read_text())
"""Each edit of one line, with what the real stack failed with after it."""
SMALL = {
    "ppo": {
        "train_batch_size": 64,
        "sgd_minibatch_size": 32,
        "num_sgd_iter": 1,
        "rollout_fragment_length": 16,
    },
    "dqn": {
        "train_batch_size": 32,
        "learning_starts": 32,
        "buffer_size": 1000,
        "timesteps_per_iteration": 64,
        "min_iter_time_s": 0,
        "rollout_fragment_length": 16,
    },
}
ALONE = {"num_workers": 0, "num_gpus": 0, "num_gpus_per_worker": 0, "num_envs_per_worker": 2}


@pytest.fixture(scope="module")
def entries(tmp_path_factory) -> dict[str, Path]:
    """An entry with PPO and one with DQN, which train for a moment in one process."""
    folders = {}
    for recipe, small in SMALL.items():
        folder = tmp_path_factory.mktemp(recipe) / "entry"
        export(settings(recipe), folder, track="sample-efficiency", authors=["Ada"])
        path = experiment(folder)
        ((name, body),) = yaml.safe_load(path.read_text()).items()
        body["stop"] = {"timesteps_total": 64}
        body["config"].update(ALONE, **small)
        body["config"]["model"]["custom_options"].update(depths=[2], blocks=1, hidden=8)
        if recipe == "dqn":
            body["config"]["model"]["fcnet_hiddens"] = [8]
        path.write_text(yaml.safe_dump({name: body}, sort_keys=False))
        folders[recipe] = folder
    return folders


def experiment(entry: Path) -> Path:
    (path,) = (entry / "experiments").glob("*.yaml")
    return path


def name(edit: dict[str, Any]) -> str:
    return f"{edit['entry']}: {edit.get('after', edit.get('line'))} > {edit['edit']}"


def edited(text: str, edit: dict[str, Any]) -> str:
    """The experiment with a line in another one's place, or after it."""
    anchor = edit.get("after", edit.get("line"))
    lines = text.splitlines()
    place = [line.strip() for line in lines].index(anchor)
    indent = lines[place][: len(lines[place]) - len(anchor)]
    replacement = [f"{indent}{edit['edit']}"] if edit["edit"] else []
    if "after" in edit:
        replacement.insert(0, lines[place])
    # A list that stood below its key goes with it.
    end = place + 1
    while "line" in edit and lines[end].strip().startswith("- "):
        end += 1
    return "\n".join([*lines[:place], *replacement, *lines[end:]]) + "\n"


def test_there_are_enough_edits():
    assert len(EDITS) >= 40
    assert len({name(edit) for edit in EDITS}) == len(EDITS)
    assert all(edit["crash"] for edit in EDITS)


@pytest.mark.parametrize("edit", EDITS, ids=name)
def test_what_crashed_on_the_real_stack_is_refused(entries, edit):
    entry = entries[edit["entry"]]
    path = experiment(entry)
    before = path.read_text()
    try:
        path.write_text(edited(before, edit))
        assert check(entry)
    finally:
        path.write_text(before)


@pytest.mark.parametrize("recipe", SMALL)
def test_what_runs_there_is_accepted(entries, recipe):
    assert check(entries[recipe]) == []


@pytest.mark.parametrize(
    "line",
    [
        # The starter kit's own example has this one.
        "explore: True,",
        "lr_schedule: [[0, 0.001], [1000, 0.0]]",
        "lr_schedule:",
        "gamma: {grid_search: [0.99, 0.999]}",
        "exploration_config: {type: SoftQ, temperature: 0.5}",
        "clip_rewards: true",
        "clip_rewards: 1.0",
        "horizon: 1000",
        "num_cpus_per_worker: 0.5",
        "model: {custom_model: procsnake_impala_tf, dim: 64, grayscale: true}",
        "evaluation_config: {explore: false, num_envs_per_worker: 1}",
        "evaluation_interval: 10",
        "log_sys_usage: true",
        "multiagent: {}",
        "tf_session_args: {inter_op_parallelism_threads: 4}",
    ],
)
def test_what_ray_takes_is_not_refused(entries, line):
    entry = entries["ppo"]
    path = experiment(entry)
    before = path.read_text()
    try:
        ((title, body),) = yaml.safe_load(before).items()
        body["config"].update(yaml.safe_load(line))
        path.write_text(yaml.safe_dump({title: body}, sort_keys=False))
        assert check(entry) == []
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lr: 5e-4", "YAML reads as a text.*Write 0.0005"),
        ("learning_rate: 0.0005", "Ray calls it lr"),
        ("gama: 0.5", "Did you mean gamma"),
        ("gamma: {grid_search: [0.99, 1e-1]}", "'1e-1', which YAML reads as a text"),
        ("evaluation_config: {explor: false}", r"evaluation_config\.explor is not a setting"),
    ],
)
def test_it_says_what_to_write(entries, line, words):
    entry = entries["ppo"]
    path = experiment(entry)
    before = path.read_text()
    try:
        ((title, body),) = yaml.safe_load(before).items()
        body["config"].update(yaml.safe_load(line))
        path.write_text(yaml.safe_dump({title: body}, sort_keys=False))
        (finding,) = check(entry)
    finally:
        path.write_text(before)
    assert re.search(words, str(finding))


def test_what_was_added_by_hand_fits_rays_own_defaults():
    ray = Ray.read()
    known = {**ray.model, **ray.config_of(None)}
    for key in (*ray.choices, *ray.without_default, *ray.fractions, *ray.also_called.values()):
        assert key in known, key
    for key, values in ray.choices.items():
        assert known[key] in values, key
    # Each default has the form that is wanted of its key.
    for trainer in ray.trainers:
        for key, default in ray.config_of(trainer).items():
            forms = ray.forms_of(key, default)
            assert default is None or key in ray.deprecated or forms, key


@pytest.fixture(scope="module")
def legacy() -> Path:
    python = find_python()
    if python is None:
        pytest.skip("NOT RUN: no Python 3.7 was found. Set PROCSNAKE_PYTHON37")
    return build(python)


def run(legacy: Path, script: str, *words: object) -> str:
    process = subprocess.run(
        [legacy / "python", HERE / script, *map(str, words)],
        env={"PATH": f"{legacy}:/usr/bin:/bin", "HOME": "/tmp"},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


@pytest.mark.long
def test_the_defaults_are_those_of_the_real_stack(legacy):
    kept = Path(check.__code__.co_filename).with_name("rules") / "ray_086.json"
    assert json.loads(run(legacy, "legacy_defaults.py")) == json.loads(kept.read_text())


@pytest.mark.long
@pytest.mark.parametrize("recipe", SMALL)
def test_each_edit_crashes_on_the_real_stack(legacy, entries, recipe, tmp_path):
    before = experiment(entries[recipe]).read_text()
    texts = {name(edit): edited(before, edit) for edit in EDITS if edit["entry"] == recipe}
    (tmp_path / "edits.json").write_text(json.dumps({"unmodified": before, **texts}))
    run(
        legacy,
        "legacy_crashes.py",
        entries[recipe],
        tmp_path / "edits.json",
        tmp_path / "results.json",
    )
    results = json.loads((tmp_path / "results.json").read_text())
    assert results.pop("unmodified") == ""
    assert [edit for edit, failure in results.items() if not failure] == []
