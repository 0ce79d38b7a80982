"""What `procsnake export savedmodel` prints, which needs no TensorFlow: the export itself is tested where that is."""

from __future__ import annotations

import json

import pytest

import procsnake
from agents.export import savedmodel
from agents.export.savedmodel import Parity


@pytest.mark.parametrize(("same", "holds"), [(18, True), (17, False)])
def test_json_has_the_parity_and_where_the_model_is(tmp_path, capsys, monkeypatch, same, holds):
    parity = Parity(states=20, clear=18, same_action=same, largest_difference=1e-5)
    monkeypatch.setattr(savedmodel, "export_savedmodel", lambda bundle, out, states: parity)
    out = tmp_path / "served"
    assert procsnake.main(["export", "savedmodel", "champion-duel", "--out", str(out), "--states", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "model": str(out / "1"),
        "states": 20,
        "clear": 18,
        "same_action": same,
        "largest_difference": 1e-5,
        "holds": holds,
    }
