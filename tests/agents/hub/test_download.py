"""Bundles that come from the Hub, and everything there that is refused."""

from __future__ import annotations

import gzip
import pickle
import time
from pathlib import Path

import pytest

from agents import bundle
from agents.bundle import MAX_FILE_BYTES
from agents.hub import HubError
from agents.hub.download import pinned
from tests.agents.hub.conftest import PATIENCE_S
from tests.agents.hub.stand_in import OTHERS_TOKEN, TOKEN, Handler, Refused

MISSING = "f" * 40


@pytest.fixture
def files(bundle_path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(bundle_path).iterdir()}


@pytest.fixture
def commit(hub, files) -> str:
    return hub.add("ada/snake", files)


def kept(tmp_path: Path) -> list[str]:
    """The names of all files that came from the Hub."""
    return sorted(path.name for path in (tmp_path / "cache" / "hub").rglob("*") if path.is_file())


def test_a_bundle_is_loaded_and_its_commit_told(hub, commit, files, capsys):
    loaded = bundle.load("hf://ada/snake")
    assert (loaded.onnx, loaded.weights) == (files["policy.onnx"], files["weights.safetensors"])
    assert f"hf://ada/snake is now hf://ada/snake@{commit}" in capsys.readouterr().err
    assert commit in str(loaded.path)


def test_a_branch_and_a_tag_stand_for_their_commits(hub, commit):
    newer = hub.models["ada/snake"].commit({"note.txt": b"newer"}, "main")
    hub.models["ada/snake"].tags["v1"] = commit
    assert pinned("hf://ada/snake@v1") == f"hf://ada/snake@{commit}"
    assert pinned("hf://ada/snake") == pinned("hf://ada/snake@main") == f"hf://ada/snake@{newer}"


def test_addresses_are_pinned_within_players(hub, commit):
    assert pinned("me=hf://ada/snake+mcts?near=9") == f"me=hf://ada/snake@{commit}+mcts?near=9"
    assert pinned("runs/first") == "runs/first"


def test_a_commit_that_was_had_before_needs_no_hub(hub, commit, capsys):
    address = f"hf://ada/snake@{commit}"
    first = bundle.load(address)
    asked = len(hub.asked)
    assert bundle.load(address) == first
    assert pinned(address) == address
    assert len(hub.asked) == asked
    assert capsys.readouterr().err == ""


def test_a_branch_is_looked_up_again_but_not_fetched_again(hub, commit):
    bundle.load("hf://ada/snake")
    hub.asked.clear()
    bundle.load("hf://ada/snake")
    assert hub.asked == ["GET /api/models/ada/snake/revision/main?blobs=true"]


@pytest.mark.parametrize("folder", ["runs/second", "bundle", "snakes"])
def test_a_folder_of_a_repository_can_be_a_bundle_beside_others(hub, files, folder):
    other = {**files, "card.json": files["card.json"].replace(b'"ppo"', b'"dqn"', 1)}
    sha = hub.add(
        "ada/snakes", {**files, **{f"{folder}/{name}": content for name, content in other.items()}}
    )
    assert bundle.load(f"hf://ada/snakes@{sha}/{folder}").card.algorithm == "dqn"
    assert bundle.load(f"hf://ada/snakes@{sha}").card.algorithm == "ppo"


def test_only_a_bundles_files_are_fetched_and_no_pickle(hub, files, tmp_path):
    strangers = {
        name: pickle.dumps(print)
        for name in ("model.pkl", "model.pt", "pytorch_model.bin", "weights.safetensors.pkl")
    }
    hub.add("ada/snake", {**files, **strangers, "setup.py": b"print()"})
    bundle.load("hf://ada/snake")
    assert kept(tmp_path) == sorted(files)
    assert not any(
        name in asked
        for name in (*strangers, "setup.py")
        for asked in hub.asked
        if asked.endswith(name)
    )


@pytest.mark.parametrize(
    "path",
    ["../card.json", "../../policy.onnx", "/etc/card.json", "..\\card.json", "a/../../card.json"],
)
def test_paths_that_lead_out_of_the_repository_are_not_followed(hub, files, tmp_path, path):
    hub.add("ada/snake", {**files, path: b"hostile"})
    bundle.load("hf://ada/snake")
    assert kept(tmp_path) == sorted(files)
    hub.add("ada/other", {path: b"hostile"})
    with pytest.raises(HubError, match="is not a policy bundle"):
        bundle.load("hf://ada/other")


@pytest.mark.parametrize(
    "found", [{"model.pkl": b"x"}, {"pytorch_model.bin": b"x", "config.json": b"{}"}, {}]
)
def test_what_is_no_bundle_is_refused_before_anything_is_fetched(hub, tmp_path, found):
    hub.add("ada/model", found)
    with pytest.raises(
        HubError, match=r"is not a policy bundle: it has no card\.json.*procsnake push"
    ):
        bundle.load("hf://ada/model")
    assert len(hub.asked) == 1


def test_a_bundle_in_a_folder_is_offered(hub, files):
    sha = hub.add("ada/snakes", {f"runs/best/{name}": content for name, content in files.items()})
    with pytest.raises(
        HubError, match=rf"There is one in a folder: hf://ada/snakes@{sha}/runs/best"
    ):
        bundle.load("hf://ada/snakes")


@pytest.mark.parametrize("size", [MAX_FILE_BYTES["policy.onnx"] + 1, 1 << 60, -1, None])
def test_a_file_that_is_too_large_or_of_no_size_is_not_even_begun(hub, commit, tmp_path, size):
    hub.told_sizes["policy.onnx"] = size
    with pytest.raises(HubError, match=rf"policy\.onnx has {size} bytes, more than {256 << 20}"):
        bundle.load("hf://ada/snake")
    assert len(hub.asked) == 1
    assert kept(tmp_path) == []


def endless(handler, content):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16))
    finally:
        handler.close_connection = True


def stalling(handler, content):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[:10])
    handler.wfile.flush()
    time.sleep(2 * PATIENCE_S)
    handler.close_connection = True


def cut_off(handler, content):
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True


def compressed(handler, content):
    handler._send(200, gzip.compress(bytes(8 << 20)), {"Content-Encoding": "gzip"})


def failing(handler, content):
    handler._send(503, b"", {})


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        (endless, "is longer than the .* bytes that the Hub announced"),
        (stalling, f"sent nothing for {PATIENCE_S:g} s"),
        (cut_off, "was cut off after .* of .* bytes"),
        (compressed, "is longer than|was cut off"),
        (failing, "the Hub answers 503"),
    ],
)
def test_a_server_that_misbehaves_ends_in_an_error_and_leaves_nothing(
    hub, commit, tmp_path, hostile, message
):
    hub.hostile = hostile
    with pytest.raises(HubError, match=message):
        bundle.load("hf://ada/snake")
    assert kept(tmp_path) == []


def test_a_file_that_drips_is_given_up(hub, commit, monkeypatch):
    def dripping(handler, content):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for byte in content[:200]:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.01)
        handler.close_connection = True

    monkeypatch.setattr("agents.hub.download._PATIENCE_S", 0.3)
    hub.hostile = dripping
    with pytest.raises(HubError, match=r"downloads too slowly: .* bytes so far"):
        bundle.load("hf://ada/snake")


def test_a_long_download_tells_how_far_it_is(hub, commit, monkeypatch, capsys, files):
    monkeypatch.setattr("agents.hub.download._TELL_AFTER_S", 0.0)
    bundle.load(f"hf://ada/snake@{commit}")
    assert f"of {sum(map(len, files.values())) / 1e6:.1f} MB" in capsys.readouterr().err


def test_another_commit_than_was_asked_for_is_refused(hub, commit):
    hub.models["ada/snake"].tags[MISSING] = commit
    with pytest.raises(HubError, match="not the one requested"):
        bundle.load(f"hf://ada/snake@{MISSING}")


def test_a_revision_that_is_missing_gets_an_offer(hub, commit):
    hub.models["ada/snake"].tags["v1.0"] = commit
    with pytest.raises(
        HubError, match=r"no branch, tag or commit 'v1\.1'\. Did you mean hf://ada/snake@v1\.0\?"
    ):
        bundle.load("hf://ada/snake@v1.1")
    with pytest.raises(HubError, match=f"no branch, tag or commit '{MISSING}'. Leave it out"):
        bundle.load(f"hf://ada/snake@{MISSING}")


def test_a_repository_that_is_missing_is_told_with_what_to_try(hub, monkeypatch):
    with pytest.raises(
        HubError, match=r"has no model ada/snake, or it is private.*HF_TOKEN, or run: hf auth login"
    ):
        bundle.load("hf://ada/snake")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(HubError, match=r"has no model ada/snake.*spelling"):
        bundle.load("hf://ada/snake")


def test_what_is_private_needs_its_owners_token(hub, files, monkeypatch):
    hub.add("ada/secret", files, private=True)
    with pytest.raises(HubError, match="or it is private and you are a stranger there"):
        bundle.load("hf://ada/secret")
    monkeypatch.setenv("HF_TOKEN", OTHERS_TOKEN)
    with pytest.raises(HubError, match="or it is private and your token isn't allowed") as told:
        bundle.load("hf://ada/secret")
    assert OTHERS_TOKEN not in str(told.value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert bundle.load("hf://ada/secret").onnx == files["policy.onnx"]


def test_a_token_that_nobody_has_is_told(hub, commit, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_nobodys")
    with pytest.raises(
        HubError, match=r"answers 401.*Invalid credentials.*settings/tokens"
    ) as told:
        bundle.load("hf://ada/snake")
    assert "hf_nobodys" not in str(told.value)


def test_a_token_that_is_echoed_is_not_shown(hub, commit, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    def echo(*_):
        raise Refused(400, message=f"broken by: Bearer {TOKEN}")

    monkeypatch.setattr(Handler, "_info", echo)
    with pytest.raises(HubError, match=r"broken by: Bearer \[token\]") as told:
        bundle.load("hf://ada/snake")
    assert TOKEN not in str(told.value)


def test_without_a_network_only_what_was_had_before_is_loaded(hub, commit, monkeypatch):
    address = f"hf://ada/snake@{commit}"
    before = bundle.load(address)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert bundle.load(address) == before
    with pytest.raises(
        HubError, match=r"127\.0\.0\.1:9 can't be reached .*Look at the network; .*hf://…@COMMIT"
    ):
        bundle.load("hf://ada/snake")


def test_a_page_that_is_no_json_is_told(hub, commit, monkeypatch):
    monkeypatch.setattr(
        "tests.agents.hub.stand_in.Handler._info", lambda self, *_: self._send(200, b"<html>", {})
    )
    with pytest.raises(HubError, match="sent an unreadable answer"):
        bundle.load("hf://ada/snake")


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_gated_model_says_where_its_terms_are(hub, files, monkeypatch, token):
    """The Hub answers 401 to nobody in particular, and 403 to somebody who hasn't accepted."""
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.add("bob/gated", files, gated=True)
    with pytest.raises(HubError, match=r"gated: accept the terms on the model's page.*HF_TOKEN"):
        bundle.load("hf://bob/gated")
