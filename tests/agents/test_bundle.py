from __future__ import annotations

import hashlib
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
    assert shapes == {
        "observations": ["batch", 21, 21, 12],
        "logits": ["batch", 3],
        "values": ["batch"],
    }


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
    monkeypatch.setitem(bundle.MAX_FILE_BYTES, "policy.onnx", 1 << 12)
    for there in (path, bundle_path):
        with pytest.raises(BundleError, match="more than 4096"):
            bundle.load(there)


def with_new_hashes(folder):
    """The card of a stranger is right about the stranger's files."""
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in NAMES
        if name != "card.json"
    }
    edit_card(folder, files=files)
    return folder


def test_a_card_that_is_large_is_not_read(copied, tmp_path):
    with open(copied / "card.json", "ab") as file:
        file.truncate(240 << 20)
    with pytest.raises(BundleError, match=f"card.json can't be read: it has {240 << 20} bytes"):
        bundle.load(copied)


def test_a_small_zip_that_unpacks_to_much_is_refused_before_it_does(copied, tmp_path):
    """A card of 240 MB in 240 KB, once told as it is and once as 100 bytes."""
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", bytes(240 << 20))
    with pytest.raises(BundleError, match="more than 1048576"):
        bundle.load(path)
    path.write_bytes(
        path.read_bytes().replace((240 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    )
    with pytest.raises(BundleError):
        bundle.load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_python_unpacks_without_a_bound_is_refused(bundle_path, tmp_path, method):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(bundle_path.iterdir()):
            archive.write(
                file, file.name, method if file.name == "card.json" else zipfile.ZIP_DEFLATED
            )
    with pytest.raises(BundleError, match=rf"card\.json is compressed by method {method}"):
        bundle.load(path)
    # Its first bytes no longer say how it was compressed, which `lzma` tells by an error of its
    # own.
    content = bytearray(path.read_bytes())
    content[content.index(b"card.json") + 9 : content.index(b"card.json") + 20] = bytes(11)
    path.write_bytes(content)
    with pytest.raises(BundleError):
        bundle.load(path)


def test_a_zip_with_a_long_table_of_contents_is_refused(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1001):
            archive.writestr(str(number), b"")
    with pytest.raises(BundleError, match="1001 files"):
        bundle.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(400):
            archive.writestr(f"{number:03}{'x' * 5000}", b"")
    with pytest.raises(BundleError, match="table of contents"):
        bundle.load(path)


def test_weights_with_a_header_of_a_million_names_are_refused_before_it_is_read(copied):
    header = json.dumps(
        {f"k{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(20_000)}
    ).encode()
    content = len(header).to_bytes(8, "little") + header
    assert len(load_weights(content)) == 20_000
    (copied / "weights.safetensors").write_bytes(content)
    card = json.loads((copied / "card.json").read_text())
    edit_card(
        copied, files=card["files"] | {"weights.safetensors": hashlib.sha256(content).hexdigest()}
    )
    with pytest.raises(BundleError, match=r"has a header of \d+ bytes"):
        bundle.load(copied)


def test_a_network_whose_data_lie_in_another_file_is_refused(copied, tmp_path, monkeypatch):
    """onnxruntime alone would take them from the working directory."""
    model = onnx.load(copied / "policy.onnx")
    onnx.save_model(
        model,
        tmp_path / "policy.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    assert (tmp_path / "weights.bin").is_file()
    shutil.copy(tmp_path / "policy.onnx", copied)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BundleError, match="data in other files"):
        bundle.load(with_new_hashes(copied))
    (copied / "policy.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(BundleError, match="is not an ONNX model"):
        bundle.load(with_new_hashes(copied))


@pytest.mark.parametrize("head", ["actor", "critic"])
@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_a_network_that_answers_no_numbers_does_not_play(tmp_path, backend, head):
    import torch

    from agents.policy import Policy

    observation = EgocentricPlanes(rotate=True)
    card = make_card(observation)
    network = make_network("snake-cnn", tuple(card["observation_shape"]), 3)
    with torch.no_grad():
        getattr(network.heads, head).weight[0, 0] = float("nan")
    path = bundle.export(tmp_path / "nan", network=network, card=card)
    with pytest.raises(BundleError, match="NaN"):
        Policy.load(path, backend).logits(np.zeros((1, *card["observation_shape"]), np.uint8))


@pytest.mark.parametrize(
    "changes",
    [
        {"observation_shape": [100_000, 100_000, 12]},
        {"observation_shape": [11, -11, 12]},
        {"observation_shape": ["11"]},
        {"observation_dtype": "object"},
        {"action": {"num_actions": 1 << 40}},
        {"network": {"name": "mlp", "options": [1]}},
    ],
)
def test_a_card_of_sizes_that_nothing_has_is_refused(copied, changes):
    edit_card(copied, **changes)
    with pytest.raises(BundleError, match=next(iter(changes))):
        bundle.load(copied)


def test_a_network_that_is_larger_than_its_weights_is_not_built(copied):
    from agents.policy import Policy

    edit_card(copied, network={"name": "mlp", "options": {"hidden_sizes": [1 << 20, 1 << 20]}})
    with pytest.raises(BundleError, match=r"has \d{13} bytes of weights"):
        Policy.load(copied, "torch")


def test_a_network_that_answers_otherwise_than_its_card_says_is_refused(copied):
    from agents.policy import Policy

    edit_card(copied, observation_shape=[5, 5, 12])
    with pytest.raises(BundleError, match=r"can't be run as its card says"):
        Policy.load(copied)


def test_a_network_without_values_or_with_others_than_one_each_is_refused(copied):
    from agents.policy import Policy

    model = onnx.load(copied / "policy.onnx")
    values = next(output for output in model.graph.output if output.name == "values")
    model.graph.output.remove(values)
    onnx.save(model, copied / "policy.onnx")
    with pytest.raises(BundleError, match=r"can't be run as its card says.*values"):
        Policy.load(with_new_hashes(copied))
    model.graph.node.append(onnx.helper.make_node("Identity", ["logits"], ["other"]))
    for node in model.graph.node:
        node.output[:] = [
            "old" if name == "values" else "values" if name == "other" else name
            for name in node.output
        ]
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("values", onnx.TensorProto.FLOAT, ["batch", 3])
    )
    onnx.save(model, copied / "policy.onnx")
    with pytest.raises(BundleError, match=r"values float32 \(2, 3\)"):
        Policy.load(with_new_hashes(copied))


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, '{"format": NaN}', "\x00"])
def test_a_card_that_is_no_json_for_any_reason_is_one_line(copied, text):
    (copied / "card.json").write_text(text)
    with pytest.raises(BundleError):
        bundle.load(copied)


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
