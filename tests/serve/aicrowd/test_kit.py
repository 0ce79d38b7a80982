"""Every export in the kit's own environment, whose games take no seed, and with the grader's files
in the place of ours.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml

from envs.procgen.games import load_library
from serve.aicrowd import export
from serve.aicrowd.competition import PLACEHOLDER
from serve.aicrowd.export import TEMPLATE
from tests.serve.aicrowd.entries import RECIPES, settings
from tests.serve.aicrowd.starter_kit import KIT, NOT_TO_BE_EDITED, put_back

PROBE = Path(__file__).with_name("kit_probe.py")


def probed(entry: Path) -> dict:
    """What the entry's environment does."""
    load_library()
    (experiment,) = (
        path
        for path in (entry / "experiments").glob("*.yaml")
        if path.stem != "procgen-starter-example"
    )
    done = subprocess.run(
        [sys.executable, PROBE, experiment],
        cwd=entry,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("recipe", "how"),
    [
        *((recipe, "put-back") for recipe in ("cpu", "lars", "apex")),
        ("lars", "as-exported"),
        ("lars", "in-the-kit"),
    ],
)
def test_every_export_runs_in_the_kits_environment(tmp_path, recipe, how):
    entry = tmp_path / "entry"
    export(
        settings(recipe),
        entry,
        track="sample-efficiency",
        starter_kit=KIT if how == "in-the-kit" else None,
    )
    told = probed(put_back(entry) if how == "put-back" else entry)
    assert told["early_reset_is_ignored"]
    assert told["length_after"] > told["length_before"]
    # The stand-in keeps the contract that every export crashed on.
    assert "takes 1 positional argument but 2 were given" in told["seed_of_the_kit"]


def test_a_seed_that_is_handed_on_is_noticed(tmp_path):
    export(settings("ppo"), tmp_path / "entry", track="generalization")
    path = put_back(tmp_path / "entry") / "envs" / "procsnake_env.py"
    path.write_text(path.read_text().replace("return []", "return self.env.seed(seed)"))
    with pytest.raises(AssertionError, match="takes 1 positional argument but 2 were given"):
        probed(tmp_path / "entry")


@pytest.fixture
def started(monkeypatch):
    """What the kit's train.py hands to Ray for the experiments of a file. All that it imports for
    it is stood in for.
    """
    runs = MagicMock()
    for name in (
        "ray",
        "ray.tune",
        "aicrowd_helpers",
        "aicrowd_helpers.config",
        "algorithms",
        "callbacks",
        "preprocessors",
    ):
        monkeypatch.setitem(sys.modules, name, MagicMock(run_experiments=runs))
    for name in ("utils", "utils.loader"):
        monkeypatch.setitem(sys.modules, name, MagicMock())

    def start(path: Path) -> dict:
        monkeypatch.setattr(sys, "argv", ["train.py", "-f", str(path)])
        runs.reset_mock()
        try:
            runpy.run_path(str(KIT / "train.py"), run_name="__main__")
        except SystemExit:
            runs.assert_not_called()
            raise
        return runs.call_args.args[0]

    return start


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_the_kit_accepts_every_export(tmp_path, started, recipe):
    export(settings(recipe), tmp_path / "entry", track="generalization")
    (path,) = (tmp_path / "entry" / "experiments").glob("*.yaml")
    (experiment,) = started(path).values()
    assert "disable_evaluation_worker" not in experiment


LARGEST = {"num_workers": 6, "num_gpus": 0.25, "num_gpus_per_worker": 0.125}


@pytest.mark.parametrize(
    ("config", "evaluates", "said"),
    [
        (LARGEST, False, ""),
        (LARGEST | {"num_workers": 7, "num_gpus_per_worker": 0}, False, ""),
        (LARGEST, True, "1.125 GPUs"),
        (LARGEST | {"num_gpus": 0.5}, False, "1.25 GPUs"),
        (LARGEST | {"num_workers": 7, "num_gpus_per_worker": 0}, True, "8 workers"),
        *(
            ({name: LARGEST[name] for name in LARGEST if name != key}, False, f"lacks ['{key}']")
            for key in LARGEST
        ),
    ],
)
def test_the_kit_refuses_more_than_the_graders_machine_has(
    tmp_path, started, config, evaluates, said
):
    """Of the stand-in alone: it holds exports to the real kit's limits only as long as it refuses
    what that refuses.
    """
    body = {
        "disable_evaluation_worker": not evaluates,
        "config": {**config, "env_config": {"env_name": "coinrun"}},
    }
    (tmp_path / "one.yaml").write_text(yaml.safe_dump({"one": body}))
    if said:
        with pytest.raises(SystemExit) as refusal:
            started(tmp_path / "one.yaml")
        assert said in str(refusal.value)
    else:
        assert (
            started(tmp_path / "one.yaml")["one"]["config"]["num_workers"] == config["num_workers"]
        )


def names_imported(path: Path) -> set[tuple[str, str]]:
    """(module, name) of each `from module import name`."""
    nodes = (
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    )
    return {(node.module, alias.name) for node in nodes for alias in node.names}


@pytest.mark.parametrize("script", ["train.py", "rollout.py"])
def test_the_entry_has_every_name_that_the_graders_scripts_import(script):
    for module, name in names_imported(KIT / script):
        place = TEMPLATE / module.replace(".", "/")
        source = (
            place.with_suffix(".py")
            if place.with_suffix(".py").is_file()
            else place / "__init__.py"
        )
        if module.split(".")[0] in (
            "aicrowd_helpers",
            "algorithms",
            "callbacks",
            "preprocessors",
            "utils",
        ):
            assert name in source.read_text(), f"{script} imports {name} from {module}"


def options_of(path: Path) -> set[str]:
    """What a script's parser takes."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    added = (
        call
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
    )
    words = {arg.value for call in added for arg in call.args if isinstance(arg, ast.Constant)}
    return {word for word in words if word.startswith("-")}


def test_the_scripts_have_the_options_of_the_kits():
    assert options_of(TEMPLATE / "rollout.py") >= {
        "--run",
        "--env",
        "--episodes",
        "--steps",
        "--no-render",
        "--monitor",
        "--video-dir",
        "--out",
        "--config",
        "--save-info",
        "--use-shelve",
        "--track-progress",
    }
    assert options_of(TEMPLATE / "train.py") >= {
        "-f",
        "--config-file",
        "--env",
        "--experiment-name",
        "--local-dir",
        "--upload-dir",
        "--resume",
        "--queue-trials",
        "--torch",
        "--eager",
        "--trace",
        "-v",
        "-vv",
        "--ray-address",
        "--ray-num-nodes",
    }
    # --run, --stop, --config, --restore, … are Ray Tune's own.
    assert ("ray.tune.config_parser", "make_parser") in names_imported(TEMPLATE / "train.py")


# Merging.


@pytest.fixture
def kit(tmp_path) -> Path:
    return Path(shutil.copytree(KIT, tmp_path / "kit"))


def test_nothing_of_the_clone_is_overwritten_silently(kit, tmp_path):
    entry = tmp_path / "entry"
    told = " ".join(export(settings("ppo"), entry, track="generalization", starter_kit=kit).notes)
    for path in (path for path in kit.rglob("*") if path.is_file()):
        name = str(path.relative_to(kit))
        if name == "aicrowd.json":
            continue
        theirs = path.read_text().splitlines()
        merged = (entry / name).read_text().splitlines()
        changed = [line for line in theirs if line not in merged]
        # run.sh must name the experiment and start rollouts through the stand-in module; all else
        # is only added to.
        assert len(changed) == (2 if name == "run.sh" else 0), (name, changed)
        if merged != theirs and name != ".gitignore":
            assert name in told
    for name in ("Dockerfile", "preprocessors/__init__.py", *NOT_TO_BE_EDITED[1:]):
        assert f"{name} is the kit's; procsnake's was left out." in told
    run_sh = (entry / "run.sh").read_text()
    assert 'EXPERIMENT_DEFAULT="experiments/procgen-ppo.yaml"' in run_sh
    assert "python utils/rollout_on_ray_086.py $CHECKPOINT" in run_sh
    assert (entry / "utils" / "submit.sh").stat().st_mode & 0o111
    # Pins that the kit lacks, and no second TensorFlow.
    lines = (entry / "requirements.txt").read_text().splitlines()
    assert {
        "procgen==0.10.1",
        "mlflow",
        "protobuf==3.20.3",
        "gym[atari]==0.17.2",
        "numpy==1.18.5",
    } <= set(lines)
    assert [line for line in lines if line.startswith("tensorflow")] == ["tensorflow-gpu==2.2.0"]
    # What stands in the kit for example isn't the team's.
    merged_entry = json.loads((entry / "aicrowd.json").read_text())
    assert merged_entry["docker_build"] is True
    assert merged_entry["authors"] == [PLACEHOLDER]
    assert "aicrowd.json has docker_build: true" in told
    assert (entry / "README.md").read_text() == "the kit\n"
    assert "The competition closed in 2020" in (entry / "PROCSNAKE.md").read_text()
    assert list(yaml.safe_load((entry / "experiments" / "procgen-ppo.yaml").read_text())) == [
        "procgen-ppo"
    ]


def test_a_link_out_of_the_clone_is_left_out_and_named(kit, tmp_path):
    (tmp_path / "id_rsa").write_text("a private key")
    (tmp_path / "config.json").write_text('{"auths": "a token"}')
    (kit / ".git").mkdir()
    (kit / ".git" / "config").write_text("a password")
    (kit / "aicrowd.json").unlink()
    led = {
        "a": tmp_path / "id_rsa",
        "b": ".git/config",
        "c": "nowhere",
        "d": tmp_path,
        "aicrowd.json": "../config.json",
    }
    for name, end in {**led, "own": "run.sh", "utils/own": "../rollout.py"}.items():
        (kit / name).symlink_to(end)
    exported = export(settings("ppo"), tmp_path / "entry", track="generalization", starter_kit=kit)
    told = [f"{name} links to something outside the kit, and was left out." for name in led]
    assert sorted(exported.notes[: len(led)]) == sorted(told)
    assert {path.name for path in (tmp_path / "entry").iterdir()} & set(led) == {"aicrowd.json"}
    assert "auths" not in json.loads((tmp_path / "entry" / "aicrowd.json").read_text())
    assert (tmp_path / "entry" / "own").read_bytes() == (kit / "run.sh").read_bytes()
    assert (tmp_path / "entry" / "utils" / "own").read_bytes() == (kit / "rollout.py").read_bytes()


def test_a_merged_entry_says_how_it_is_trained_on_a_laptop(kit, tmp_path):
    entry = tmp_path / "entry"
    export(settings("ppo"), entry, track="generalization", starter_kit=kit)
    (command,) = re.findall(
        r"python (utils/\S+ experiments/\S+)", (entry / "PROCSNAKE.md").read_text()
    )
    # Stands in for training, and says what was asked for.
    (entry / "train.py").write_text(
        "import sys, yaml\nprint(sys.argv[3:], yaml.safe_load(open(sys.argv[2])))\n"
    )
    printed = subprocess.run(
        [sys.executable, *command.split()],
        cwd=entry,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "'--ray-num-cpus', '8'" in printed
    assert "'num_gpus': 0," in printed
    assert "'num_gpus_per_worker': 0," in printed


def test_merging_into_what_was_merged_adds_nothing_twice(kit, tmp_path):
    export(settings("ppo"), tmp_path / "one", track="generalization", starter_kit=kit)
    export(settings("ppo"), tmp_path / "two", track="generalization", starter_kit=tmp_path / "one")
    for name in (
        "algorithms/registry.py",
        "callbacks.py",
        "requirements.txt",
        "run.sh",
        ".gitignore",
    ):
        assert (tmp_path / "two" / name).read_text() == (tmp_path / "one" / name).read_text(), name
