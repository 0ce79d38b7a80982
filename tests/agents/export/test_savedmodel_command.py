"""What `procsnake export savedmodel` prints, which needs no TensorFlow: the export itself is tested
where that is.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

import procsnake
from agents import bundle as bundles
from agents import champions
from agents.export import savedmodel
from agents.export.savedmodel import Parity, observations_of


@pytest.mark.parametrize(("same", "holds"), [(18, True), (17, False)])
def test_json_has_the_parity_and_where_the_model_is(tmp_path, capsys, monkeypatch, same, holds):
    parity = Parity(states=20, clear=18, same_action=same, largest_difference=1e-5)
    monkeypatch.setattr(savedmodel, "export_savedmodel", lambda bundle, out, states: parity)
    out = tmp_path / "served"
    assert (
        procsnake.main(
            ["export", "savedmodel", "champion-duel", "--out", str(out), "--states", "20", "--json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out) == {
        "model": str(out / "1"),
        "states": 20,
        "clear": 18,
        "same_action": same,
        "largest_difference": 1e-5,
        "holds": holds,
    }


def test_a_file_in_the_folders_place_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(savedmodel, "_tensorflow", lambda: None)
    (tmp_path / "file").touch()
    assert (
        procsnake.main(["export", "savedmodel", "champion-duel", "--out", str(tmp_path / "file")])
        == 2
    )
    assert "can't be written" in capsys.readouterr().err


def test_without_tensorflow_a_line_names_the_environment_that_has_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert (
        procsnake.main(["export", "savedmodel", "champion-duel", "--out", str(tmp_path / "out")])
        == 2
    )
    said = capsys.readouterr().err
    assert "make -C" in said
    assert ".venv-tensorflow/bin/python -m procsnake" in said


@pytest.mark.parametrize(
    ("dtype", "largest"), [("uint8", 255), ("int8", 127), ("int16", 1000), ("float32", 1000)]
)
def test_noise_stands_for_a_world_that_is_not_known_here(dtype, largest):
    champion = bundles.load(champions.path("champion-duel"))
    card = replace(
        champion.card,
        environment={"name": "elsewhere"},
        observation_shape=[4, 5],
        observation_dtype=dtype,
    )
    noise = observations_of(replace(champion, card=card), 50)
    assert (noise.shape, noise.dtype.name) == ((50, 4, 5), dtype)
    assert 0 <= noise.min() < noise.max() <= largest
