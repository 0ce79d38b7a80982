from __future__ import annotations

import json
import shutil
import zipfile

import numpy as np
import onnx
import pytest
from safetensors.numpy import load as load_weights

from agents import bundle
from agents.bundle import BundleError
from envs.battlesnake.observations import EgocentricPlanes
from tests.agents.bundles import make_bundle, make_card, make_network

NAMES = ["README.md", "card.json", "policy.onnx", "weights.safetensors"]


@pytest.fixture
def copied(bundle_path, tmp_path):
    return shutil.copytree(bundle_path, tmp_path / "copy")


def zipped(folder, path, prefix=""):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, prefix + file.name)
    return path


def edit_card(folder, **changes):
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(card | changes))


def test_holds_four_files_and_nothing_else_is_left(bundle_path):
    assert sorted(p.name for p in bundle_path.iterdir()) == NAMES
    assert [p.name for p in bundle_path.parent.iterdir()] == ["snake"]


def test_card_survives_the_round_trip(bundle_path):
    card = bundle.load(bundle_path).card
    given = make_card(EgocentricPlanes(rotate=True))
    assert {name: getattr(card, name) for name in given} == given
    assert card.versions["torch"]


def test_weights_are_the_networks(bundle_path):
    card = make_card(EgocentricPlanes(rotate=True))
    expected = make_network("snake-cnn", tuple(card["observation_shape"]), 3).state_dict()
    found = load_weights(bundle.load(bundle_path).weights)
    assert found.keys() == expected.keys()
    assert all((found[name] == tensor.numpy()).all() for name, tensor in expected.items())


def test_onnx_file_is_valid_opset_17_with_the_agreed_names(bundle_path):
    model = onnx.load_from_string(bundle.load(bundle_path).onnx)
    onnx.checker.check_model(model, full_check=True)
    assert [o.version for o in model.opset_import] == [17]
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in [*model.graph.input, *model.graph.output]
    }
    assert shapes == {"observations": ["batch", 21, 21, 12], "logits": ["batch", 3], "values": ["batch"]}


def test_export_leaves_the_network_in_its_mode(tmp_path):
    card = make_card(EgocentricPlanes(rotate=True))
    network = make_network("snake-cnn", tuple(card["observation_shape"]), 3)
    network.train()
    bundle.export(tmp_path / "b", network=network, card=card)
    assert network.training


@pytest.mark.parametrize("prefix", ["", "champion/"])
def test_loads_from_a_zip(bundle_path, tmp_path, prefix):
    path = zipped(bundle_path, tmp_path / "snake.zip", prefix)
    assert bundle.load(path).onnx == bundle.load(bundle_path).onnx


def test_a_zip_writes_nowhere_and_its_other_members_are_ignored(bundle_path, tmp_path):
    path = zipped(bundle_path, tmp_path / "snake.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../evil.sh", "rm -rf /")
    before = sorted(tmp_path.rglob("*"))
    bundle.load(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_with_two_policies_is_refused(bundle_path, tmp_path):
    path = zipped(bundle_path, tmp_path / "snake.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/policy.onnx", "x")
    with pytest.raises(BundleError, match=r"holds policy.onnx twice"):
        bundle.load(path)


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(bundle_path, tmp_path, monkeypatch):
    path = zipped(bundle_path, tmp_path / "snake.zip")
    monkeypatch.setattr(bundle, "MAX_FILE_BYTES", 1 << 12)
    with pytest.raises(BundleError, match="larger than"):
        bundle.load(path)


def test_missing_path_says_how_to_get_one(tmp_path):
    with pytest.raises(BundleError, match=r"no policy bundle at .*nowhere.*procsnake train"):
        bundle.load(tmp_path / "nowhere")


def test_a_folder_without_a_card_is_no_bundle(tmp_path):
    with pytest.raises(BundleError, match=r"no card.json"):
        bundle.load(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named(copied, name):
    (copied / name).unlink()
    with pytest.raises(BundleError, match=f"(lacks|has no) {name}"):
        bundle.load(copied)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keep", [0, 0.5, 0.999])
def test_a_file_that_was_cut_off_is_named(copied, name, keep):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(BundleError, match=f"{name}.*cut off"):
        bundle.load(copied)


@pytest.mark.parametrize("name", ["README.md", "policy.onnx", "weights.safetensors"])
def test_one_changed_bit_is_noticed(copied, name):
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    with pytest.raises(BundleError, match=f"{name}.*changed"):
        bundle.load(copied)


@pytest.mark.parametrize("keep", [0, 10, 0.5, -1])
def test_a_zip_that_was_cut_off_is_refused(bundle_path, tmp_path, keep):
    path = zipped(bundle_path, tmp_path / "snake.zip")
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep == 0.5 else keep])
    with pytest.raises(BundleError, match="neither a bundle folder nor a whole zip"):
        bundle.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2, "a_new_field": 1}, "format version 2.*Update procsnake"),
        ({"format": "other"}, "not the card"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"seeds": "three"}, "seeds is 'three'"),
        ({"action": {"num_actions": "x"}}, "action.num_actions is 'x'"),
        ({"files": {}}, r"policy.onnx .*cut off or changed"),
    ],
    ids=str,
)
def test_a_card_that_cannot_be_is_explained(copied, changes, message):
    edit_card(copied, **changes)
    with pytest.raises(BundleError, match=message):
        bundle.load(copied)


def test_a_card_without_a_needed_field_is_refused_at_export(tmp_path):
    card = make_card(EgocentricPlanes())
    del card["observation"]
    with pytest.raises(BundleError, match="lacks the field 'observation'"):
        bundle.export(tmp_path / "b", network=make_network("mlp", (11, 11, 12), 4), card=card)
    assert list(tmp_path.iterdir()) == []


def test_a_card_with_what_json_cannot_hold_is_refused(tmp_path):
    card = make_card(EgocentricPlanes(view="board"), "mlp") | {"metrics": {"curve": {1, 2}}}
    with pytest.raises(BundleError, match="JSON"):
        bundle.export(tmp_path / "b", network=make_network("mlp", (11, 11, 12), 4), card=card)
    assert list(tmp_path.iterdir()) == []


def test_numbers_from_numpy_and_numbers_that_are_none_can_be_noted(tmp_path):
    metrics = {"win_rate": np.float32(0.5), "return": float("nan"), "games": np.int64(3)}
    card = make_card(EgocentricPlanes(view="board"), "mlp") | {"metrics": metrics}
    path = bundle.export(tmp_path / "b", network=make_network("mlp", (11, 11, 12), 4), card=card)
    assert bundle.load(path).card.metrics == {"win_rate": 0.5, "return": None, "games": 3}


def test_export_replaces_an_older_bundle(copied):
    make_bundle(copied, EgocentricPlanes(view="board"), "mlp")
    assert bundle.load(copied).card.network["name"] == "mlp"
    assert [p.name for p in copied.parent.iterdir()] == ["copy"]


def test_export_does_not_replace_anything_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(BundleError, match="not a policy bundle"):
        make_bundle(tmp_path, EgocentricPlanes(view="board"), "mlp")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_old_bundle_comes_back_if_the_swap_fails(copied, monkeypatch):
    before = bundle.load(copied)
    replace = bundle.os.replace

    def fail_on_the_second(source, target):
        if str(source).endswith(".part"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(bundle.os, "replace", fail_on_the_second)
    with pytest.raises(BundleError, match="No space left"):
        make_bundle(copied, EgocentricPlanes(view="board"), "mlp")
    assert bundle.load(copied).card == before.card
    assert [p.name for p in copied.parent.iterdir()] == ["copy"]
