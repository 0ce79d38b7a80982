"""A game in a notebook is one output that changes, as a client of Jupyter's messages sees it."""

from __future__ import annotations

import base64
import io

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image, ImageChops

from envs.battlesnake.recording import Recording
from envs.battlesnake.render.notebook import LivePicture
from envs.battlesnake.render.rgb import paint
from tests.envs.battlesnake.traces import DATA


@pytest.fixture(scope="module")
def recording():
    whole = Recording.read(DATA / "cli-output-example.jsonl")
    return Recording(whole.game, whole.requests[:5], whole.result)


@pytest.fixture
def outputs(monkeypatch):
    """What a kernel would send: `data`, `transient` and `update` of each message."""
    shell = InteractiveShell.instance()
    publisher = CapturingDisplayPublisher(shell=shell)
    monkeypatch.setattr(shell, "display_pub", publisher)
    yield publisher.outputs
    InteractiveShell.clear_instance()


def picture(output, kind):
    data = output["data"][kind]
    return Image.open(io.BytesIO(base64.b64decode(data) if isinstance(data, str) else data))


def test_turns_replace_each_other_in_one_place(outputs, recording):
    boards = recording.boards()
    live = LivePicture()
    for board in boards[:3]:
        live.show(board)
    assert [output["update"] for output in outputs] == [False, True, True]
    assert len({output["transient"]["display_id"] for output in outputs}) == 1
    for output, board in zip(outputs, boards):
        shown = picture(output, "image/png")
        assert (
            ImageChops.difference(shown.convert("RGB"), paint(board, cell=24, panel=True)).getbbox()
            is None
        )


def test_a_replay_takes_the_place_with_a_frame_a_turn(outputs, recording):
    live = LivePicture()
    live.show(recording.boards()[0])
    live.replay(recording)
    assert outputs[1]["update"]
    assert outputs[1]["transient"] == outputs[0]["transient"]
    assert picture(outputs[1], "image/gif").n_frames == len(recording.boards())


def test_two_pictures_are_two_places(outputs, recording):
    board = recording.boards()[0]
    LivePicture().show(board)
    LivePicture().show(board)
    assert [output["update"] for output in outputs] == [False, False]
    assert len({output["transient"]["display_id"] for output in outputs}) == 2


def test_no_output_needs_a_trusted_notebook(outputs, recording):
    """JupyterLab takes scripts, films and frames out of the HTML of a notebook that came from
    elsewhere.
    """
    live = LivePicture()
    live.show(recording.boards()[0])
    live.replay(recording)
    assert {kind for output in outputs for kind in output["data"]} <= {
        "image/png",
        "image/gif",
        "text/plain",
    }
