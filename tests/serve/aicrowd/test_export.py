"""What is written: everything that the competition wants, in a language and in pickles that its
machines read.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from envs.common.errors import ConfigError
from envs.procgen.scores import EASY, PRIVATE
from serve.aicrowd import NoCounterpartError, check, export
from serve.aicrowd.competition import LOCAL
from serve.aicrowd.export import CHECKPOINT, TEMPLATE, WEIGHTS
from serve.aicrowd.folder import write
from serve.aicrowd.legacy_weights import dumps, policy_weights, tf_order
from tests.serve.aicrowd.entries import make_bundle, settings
from tests.serve.aicrowd.starter_kit import KIT


@pytest.fixture(scope="module")
def local(bundle_of, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("local") / "entry"
    export(bundle_of("lars"), target, track="generalization", with_weights=True)
    return target


@pytest.mark.parametrize("recipe", ["ppo", "lars", "max", "dqn", "apex"])
@pytest.mark.parametrize("framework", ["tf", "torch"])
@pytest.mark.parametrize("with_weights", [False, True])
def test_every_export_keeps_every_rule(bundle_of, tmp_path, recipe, framework, with_weights):
    target = tmp_path / "entry"
    export(
        bundle_of(recipe),
        target,
        track="generalization",
        framework=framework,
        with_weights=with_weights,
        authors=["Ada"],
    )
    assert check(target) == []
    assert (target / WEIGHTS).exists() == with_weights


def test_a_run_folder_will_do(bundle_of, tmp_path):
    shutil.copytree(bundle_of("ppo"), tmp_path / "run" / "bundle")
    export(tmp_path / "run", tmp_path / "entry", track="generalization")
    assert (tmp_path / "entry" / "experiments" / "procgen-ppo.yaml").is_file()


@pytest.mark.parametrize(
    "path", sorted(TEMPLATE.rglob("*.py")), ids=lambda path: str(path.relative_to(TEMPLATE))
)
def test_the_templates_are_python_3_7(path):
    ast.parse(path.read_text(), feature_version=(3, 7))


def test_the_score_options_are_ours():
    scope: dict = {}
    exec((TEMPLATE / "aicrowd_helpers" / "config.py").read_text(), scope)
    assert {game: (low, high) for game, (_, low, high) in scope["EASY_GAME_RANGES"].items()} == {
        **EASY,
        **PRIVATE,
    }
    assert scope["EASY_GAME_RANGES"]["fruitbot"] == [-12, -1.5, 32.4]


def test_the_two_lists_of_requirements_differ_in_tensorflow_alone():
    gpu, cpu = (
        (TEMPLATE / name).read_text() for name in ("requirements.txt", "requirements-cpu.txt")
    )
    differing = set(gpu.splitlines()) ^ set(cpu.splitlines())
    assert {line for line in differing if not line.startswith("#")} == {
        "tensorflow-gpu==2.2.0",
        "tensorflow-cpu==2.2.0",
    }


def test_the_dockerfile_is_right_by_hadolint(local):
    program = Path(sysconfig.get_path("scripts")) / "hadolint"
    if not program.is_file():
        pytest.skip("hadolint is not installed")
    done = subprocess.run(
        [program, local / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_kits_validator_reads_the_experiment_by_sourcing_run_sh(local):
    # As AIcrowd's procgen-cli does it.
    command = "source ./run.sh > /dev/null; echo $EXPERIMENT"
    done = subprocess.run(
        ["bash", "-c", command], cwd=local, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "experiments/procgen-ppo-lars.yaml"


def test_run_sh_reads_name_trainer_and_environment(local):
    text = (local / "experiments" / "procgen-ppo-lars.yaml").read_text()
    names = [line for line in text.splitlines() if not line.startswith((" ", "#"))]
    assert names[0] == "procgen-ppo-lars:"
    assert [line.split() for line in text.splitlines() if "  run:" in line] == [
        ["run:", "ProcsnakePPO"]
    ]
    assert [line.split() for line in text.splitlines() if "  env:" in line] == [
        ["env:", "procsnake_env"]
    ]


def test_without_a_checkpoint_rollouts_say_what_to_do(local, tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "AICROWD_IS_GRADING": "1"}
    done = subprocess.run(
        ["bash", "run.sh", "--rollout"],
        cwd=local,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "train first" in done.stderr


def test_a_local_package_says_so_and_a_competition_package_carries_nothing(
    local, bundle_of, tmp_path
):
    assert "local package" in json.loads((local / "aicrowd.json").read_text())["description"]
    assert "A local package" in (local / "README.md").read_text()
    export(bundle_of("lars"), tmp_path / "entry", track="generalization")
    text = (tmp_path / "entry" / "README.md").read_text()
    assert "carries no weights" in text
    assert "local package" not in (tmp_path / "entry" / "aicrowd.json").read_text()


def test_the_readme_tells_what_differs(bundle_of, tmp_path):
    translation = export(bundle_of("lars"), tmp_path / "entry", track="generalization").translation
    assert translation.notes
    for note in translation.notes:
        assert note in (tmp_path / "entry" / "README.md").read_text()


# Weights.


def test_the_checkpoint_is_read_with_nothing_but_the_standard_library_and_numpy(local):
    state = pickle.loads((local / CHECKPOINT).read_bytes())
    worker = pickle.loads(state["worker"])
    weights = worker["state"]["default_policy"]
    with np.load(local / WEIGHTS) as arrays:
        names = set(arrays.files)
        first = arrays["stages.0.entry.weight"]
    assert len(weights) == len(names)
    kernel = weights["default_policy/default_model.stages.0.entry/kernel"]
    assert kernel.shape == (3, 3, 6, 32)
    np.testing.assert_array_equal(kernel[1, 2, 4, 7], first[7, 4, 1, 2])
    assert state["train_exec_impl"]["counters"] == {"num_steps_sampled": 0, "num_steps_trained": 0}
    params = pickle.loads((local / "checkpoint" / "params.pkl").read_bytes())
    # What train.py injects, and the grader's environment takes out again.
    assert [params["env_config"][f"return_{name}"] for name in ("min", "blind", "max")] == [
        0,
        2.5,
        64,
    ]
    assert params["evaluation_config"] == {
        "explore": False,
        "env_config": {"augment": None, "shape_rewards": False},
    }


def test_pickles_name_nothing_that_numpy_1_18_lacks():
    content = dumps({"a": np.arange(6, dtype=np.float32).reshape(2, 3)})
    assert b"numpy._core" not in content
    assert content[1] <= 4
    np.testing.assert_array_equal(pickle.load(io.BytesIO(content))["a"], [[0, 1, 2], [3, 4, 5]])


def test_tensorflows_order_computes_the_same():
    generator = np.random.default_rng(0)
    kernel = generator.normal(size=(5, 4, 3, 3))
    inputs = generator.normal(size=(4, 3, 3))
    by_torch = np.einsum("oikl,ikl->o", kernel, inputs)
    by_tf = np.einsum("klio,kli->o", tf_order(kernel), inputs.transpose(1, 2, 0))
    np.testing.assert_allclose(by_tf, by_torch)


def test_a_q_networks_target_gets_the_weights_too():
    weights = {
        "advantage.weight": np.zeros((15, 8), np.float32),
        "advantage.bias": np.zeros(15, np.float32),
    }
    named = policy_weights(weights, algorithm="apex", framework="tf")
    assert {name.split("/")[1] for name in named} == {"q_func.advantage", "target_q_func.advantage"}
    assert named["default_policy/target_q_func.advantage/kernel"].shape == (8, 15)


# The folder.


def again(target: Path, recipe: str = "ppo", **others: object):
    return export(settings(recipe), target, track="generalization", **others)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_older_export_is_renewed_and_keeps_its_git(bundle_of, tmp_path):
    target = tmp_path / "entry"
    again(target)
    (target / ".git").mkdir()
    (target / ".git" / "HEAD").write_text("ref: refs/heads/master\n")
    assert again(target, "lars").notes == [
        "experiments/procgen-ppo.yaml is of the older export, and was removed."
    ]
    assert (target / ".git" / "HEAD").is_file()
    assert [path.name for path in (target / "experiments").iterdir()] == ["procgen-ppo-lars.yaml"]
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_what_the_user_put_into_an_export_stays_and_is_told(tmp_path):
    target = tmp_path / "entry"
    again(target)
    mine = {
        "models/mine.py": "one",
        "notes.md": "two",
        "utils/deeper/tool.py": "three",
        "callbacks.py": "four = 4\n",
    }
    for name, text in mine.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(text)
    (target / "aicrowd.json").write_text(
        json.dumps({**json.loads((target / "aicrowd.json").read_text()), "authors": ["Ada"]})
    )
    # Twice: what was kept once is the user's the next time, too.
    for recipe in ("lars", "ppo"):
        told = again(target, recipe).notes
        assert all((target / name).read_text() == text for name, text in mine.items())
        assert {f"{name} is as you left it." for name in mine} <= set(told)
        entry = json.loads((target / "aicrowd.json").read_text())
        assert entry["authors"] == ["Ada"]
        assert entry["description"].startswith(
            "procgen-ppo-lars" if recipe == "lars" else "procgen-ppo:"
        )
        assert any("aicrowd.json keeps what you put there" in sentence for sentence in told)


def test_an_environment_in_the_entry_is_neither_copied_nor_listed(tmp_path):
    target = tmp_path / "entry"
    again(target)
    large = target / "legacy" / "lib" / "large.so"
    large.parent.mkdir(parents=True)
    large.write_bytes(bytes(1000))
    inode = large.stat().st_ino
    (target / "many").mkdir()
    for number in range(30):
        (target / "many" / f"{number}.txt").write_text("mine")
    assert again(target).notes == ["many/, with 30 files, is as you left it."]
    assert large.stat().st_ino == inode


def test_what_is_written_anew_leaves_other_names_of_the_file_alone(tmp_path):
    target = tmp_path / "entry"
    again(target)
    (tmp_path / "page").hardlink_to(target / "README.md")
    before = (tmp_path / "page").read_text()
    again(target, "lars")
    assert (target / "README.md").read_text() != before == (tmp_path / "page").read_text()


def test_a_merged_entry_keeps_the_kits_files(tmp_path):
    target = tmp_path / "entry"
    again(target, starter_kit=KIT)
    before = tree(target)
    with pytest.raises(ConfigError, match=r"merged with the starter kit.*--starter-kit CLONE"):
        again(target)
    assert tree(target) == before
    again(target, starter_kit=KIT)
    assert tree(target) == before


def test_weights_go_when_an_export_without_follows(bundle_of, tmp_path):
    target = tmp_path / "entry"
    export(bundle_of("ppo"), target, track="generalization", with_weights=True)
    assert LOCAL in (target / "aicrowd.json").read_text()
    again(target)
    assert not (target / "weights").exists()
    assert not (target / "checkpoint").exists()
    assert LOCAL not in (target / "aicrowd.json").read_text()


def test_changes_that_would_be_lost_are_refused_all_at_once(tmp_path):
    target = tmp_path / "entry"
    again(target)
    (target / "experiments" / "procgen-ppo.yaml").write_text("mine: 1\n")
    (target / "README.md").write_text("mine\n")
    before = tree(target)
    with pytest.raises(
        ConfigError, match=r"would overwrite them: README\.md, experiments/procgen-ppo\.yaml"
    ):
        export(
            settings("ppo", "seed=1", "name=procgen-ppo"),
            target,
            track="sample-efficiency",
            framework="torch",
        )
    assert tree(target) == before


def test_an_export_of_before_there_was_a_manifest_is_not_overwritten(tmp_path):
    target = tmp_path / "entry"
    again(target)
    (target / ".procsnake-export.json").unlink()
    (target / "train.py").write_text("older = 1\n")
    with pytest.raises(ConfigError, match=r"aren't as the exporter wrote them.*train\.py.*mv "):
        again(target)


@pytest.mark.parametrize(
    "name", ["../elsewhere/{0}", "{1}/elsewhere/{0}", "link/{0}", "models/../../elsewhere/{0}"]
)
def test_a_manifest_of_a_stranger_removes_nothing_outside_the_folder(tmp_path, name):
    target = tmp_path / "entry"
    precious = tmp_path / "elsewhere" / "precious.txt"
    again(target)
    precious.parent.mkdir()
    precious.write_text("mine")
    (target / "link").symlink_to(precious.parent)
    claim(target, {name.format(precious.name, tmp_path): hashlib.sha256(b"mine").hexdigest()})
    again(target)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize(
    "files",
    [
        {"gone.py": None},
        {"models": ""},
        {"": ""},
        {".": ""},
        {"a\0b/c": "1"},
        {"\ud800/c": "1"},
        {"/dev/zero": "1"},
    ],
)
def test_what_no_exporter_can_have_written_is_not_taken_from_a_manifest(tmp_path, files):
    target = tmp_path / "entry"
    again(target)
    before = tree(target)
    claim(target, files)
    assert again(target).notes == []
    assert tree(target) == before


def test_nothing_is_written_through_a_linked_folder(tmp_path):
    target = tmp_path / "entry"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again(target)
    (target / "models" / "link").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=r"aren't as the exporter wrote them.*models/link/a\.py"):
        write(target, {"models/link/a.py": b"ours"}, description="")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("link", ["{target}/kept", "../../entry/kept"])
def test_nothing_is_written_through_a_link_into_the_folder_that_is_replaced(tmp_path, link):
    """The copy's link leads to the old folder, which is deleted in the end."""
    target = tmp_path / "entry"
    again(target)
    (target / "kept").mkdir()
    (target / "models" / "link").symlink_to(link.format(target=target))
    before = tree(target)
    with pytest.raises(ConfigError, match=r"models/link/a\.py would be written through a link"):
        write(target, {"models/link/a.py": b"ours"}, description="")
    assert tree(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


@pytest.mark.parametrize(
    ("inside", "out"), [(".", "."), ("models", ".."), ("models", "../../entry")]
)
def test_the_folder_in_which_one_works_is_not_replaced(tmp_path, monkeypatch, inside, out):
    target = tmp_path / "entry"
    again(target)
    before = tree(target)
    monkeypatch.chdir(target / inside)
    with pytest.raises(ConfigError, match="is the folder in which you work, or holds it"):
        again(out, "lars")
    assert tree(target) == before
    assert os.getcwd() == str(target / inside).removesuffix("/.")


def test_a_device_in_the_folder_is_the_users_and_is_not_read(tmp_path):
    target = tmp_path / "entry"
    again(target)
    (target / "zero").symlink_to("/dev/zero")
    claim(target, {"zero": "1"})
    assert again(target).notes == ["zero is as you left it."]


def claim(target, files):
    """Have the manifest say that the exporter wrote these files, too."""
    path = target / ".procsnake-export.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "files": {**manifest["files"], **files}}))


@pytest.mark.parametrize("content", ["[]", "{", "null", ""])
def test_an_aicrowd_json_that_is_no_object_is_not_lost(tmp_path, content):
    again(tmp_path / "entry")
    (tmp_path / "entry" / "aicrowd.json").write_text(content)
    again(tmp_path / "entry")
    assert (tmp_path / "entry" / "aicrowd.json").read_text() == content


def test_an_aicrowd_json_that_is_a_link_out_of_the_folder_is_not_read(tmp_path):
    again(tmp_path / "entry")
    (tmp_path / "config.json").write_text('{"auths": "a token"}')
    (tmp_path / "entry" / "aicrowd.json").unlink()
    (tmp_path / "entry" / "aicrowd.json").symlink_to(tmp_path / "config.json")
    with pytest.raises(ConfigError, match=r"aren't as the exporter wrote them.*aicrowd\.json"):
        again(tmp_path / "entry", "lars")


@pytest.mark.parametrize("out", ["/proc/entry", "file/entry", "file"])
def test_a_place_that_cant_be_written_is_told_in_a_line(tmp_path, out):
    (tmp_path / "file").write_text("1")
    with pytest.raises(ConfigError, match=r"can't be written|is not an export"):
        again(tmp_path / out)


def test_a_failure_in_the_middle_leaves_the_older_export(tmp_path, monkeypatch):
    target = tmp_path / "entry"
    again(target)
    (target / ".git").mkdir()
    before = tree(target)
    renamed = os.rename
    monkeypatch.setattr(
        os, "rename", lambda old, new: fail() if str(old).endswith(".part") else renamed(old, new)
    )
    with pytest.raises(ConfigError, match="No space left"):
        again(target, "lars")
    monkeypatch.undo()
    assert tree(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def fail():
    raise OSError(28, "No space left on device")


def test_other_folders_are_not_replaced(bundle_of, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("1")
    with pytest.raises(ConfigError, match="is not an export of procsnake"):
        export(bundle_of("ppo"), tmp_path / "thesis", track="generalization")
    assert (tmp_path / "thesis" / "chapter").read_text() == "1"


def test_nothing_is_written_for_what_is_refused(tmp_path):
    bundle = make_bundle(tmp_path / "bundle", "ppo", "ppo.target_kl=0.1")
    with pytest.raises(NoCounterpartError):
        export(bundle, tmp_path / "entry", track="generalization")
    assert not (tmp_path / "entry").exists()


# Experiments that nobody trained.


def test_an_experiment_is_exported_untrained(tmp_path):
    exported = export(
        settings("lars"),
        tmp_path / "entry",
        track="generalization",
        authors=["Ada <ada@example.org>"],
    )
    assert check(tmp_path / "entry") == []
    assert exported.translation.algorithm == "ppo"
    assert json.loads((tmp_path / "entry" / "aicrowd.json").read_text())["authors"] == [
        "Ada <ada@example.org>"
    ]
    text = (tmp_path / "entry" / "README.md").read_text()
    assert text.index("The competition closed in 2020") < text.index("Written by procsnake")


def test_an_experiment_has_no_weights(tmp_path):
    with pytest.raises(ConfigError, match="wasn't trained has no weights"):
        export(settings("ppo"), tmp_path / "entry", track="generalization", with_weights=True)


# The starter kit; what is merged is tested in test_kit.


def test_a_folder_that_is_no_starter_kit(tmp_path):
    with pytest.raises(ConfigError, match=r"has no run\.sh"):
        export(
            settings("ppo"),
            tmp_path / "entry",
            track="generalization",
            starter_kit=tmp_path / "nowhere",
        )


@pytest.mark.parametrize("out", [".", "entry"])
def test_the_clone_itself_stays_as_it_is(tmp_path, out):
    clone = shutil.copytree(KIT, tmp_path / "kit")
    before = tree(clone)
    with pytest.raises(ConfigError, match="choose another --out"):
        export(settings("ppo"), clone / out, track="generalization", starter_kit=clone)
    assert tree(clone) == before
