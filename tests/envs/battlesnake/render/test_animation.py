"""Animations of a recorded game, read back by other programs' code."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from envs.battlesnake.recording import Recording
from envs.battlesnake.render.animation import frames, save_animation
from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError, pip_install
from tests.envs.battlesnake.traces import DATA


@pytest.fixture(scope="module")
def recording():
    whole = Recording.read(DATA / "cli-output-example.jsonl")
    return Recording(whole.game, whole.requests[:12], whole.result)


def test_gif_holds_a_frame_a_turn_that_looks_like_the_board(recording, tmp_path):
    path = save_animation(recording, tmp_path / "game.gif", fps=5)
    expected = list(frames(recording.boards()))
    with Image.open(path) as image:
        assert image.n_frames == 12
        assert image.size == expected[0].size
        assert image.info["duration"] == 200
        for index in (0, 6, 11):
            image.seek(index)
            shown = np.asarray(image.convert("RGB")).astype(int)
            assert np.abs(shown - np.asarray(expected[index])).mean() < 2


def test_svg_holds_a_group_a_turn(recording, tmp_path):
    root = ElementTree.parse(save_animation(recording, tmp_path / "game.svg")).getroot()
    assert sum(g.get("class") == "turn" for g in root.iter("{http://www.w3.org/2000/svg}g")) == 12


def test_reads_a_recording_from_its_path(tmp_path):
    source = DATA / "cli-output-example.jsonl"
    assert save_animation(source, tmp_path / "game.svg", panel=False).stat().st_size > 10_000


@pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning"
)  # imageio-ffmpeg 0.3, which Procgen wants, leaves its pipes open
def test_mp4_plays_every_turn(recording, tmp_path):
    import imageio_ffmpeg

    path = save_animation(recording, tmp_path / "game.mp4", fps=4)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "null", "-"]
    log = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    assert "frame=   19" in log
    assert path.stat().st_size > 1000


def test_mp4_without_its_package_says_what_to_install(recording, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingDependencyError, match=re.escape(pip_install("imageio-ffmpeg"))):
        save_animation(recording, tmp_path / "game.mp4")
    assert list(tmp_path.iterdir()) == []


def test_bad_wishes_are_refused(recording, tmp_path):
    with pytest.raises(UnknownNameError, match=r"Did you mean '\.gif'"):
        save_animation(recording, tmp_path / "game.gf")
    for fps in (0, 0.001, math.nan, 61):
        with pytest.raises(ConfigError, match=rf"fps is {fps} .* between 0\.1 and 60"):
            save_animation(recording, tmp_path / "game.gif", fps=fps)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="can't be written"):
        save_animation(recording, tmp_path / "file" / "game.gif")
