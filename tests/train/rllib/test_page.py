"""The examples of docs/rllib.md under "If you know RLlib", run one after the other as a reader
would.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from tests.train.rllib.fields_shown import shown_fields
from train.rllib.rllib_fields import REFUSED, RELICS, SET_BY_RLLIB

PAGE = (Path(__file__).parents[3] / "docs" / "rllib.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## If you know RLlib\n")[2].partition("\n## The hooks\n")[0]


@pytest.mark.long
def test_the_examples_run(one_ray, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    assert len(examples) == 9
    names = {"__name__": "examples"}
    for number, example in enumerate(examples, 1):
        exec(compile(example, f"example {number} of docs/rllib.md", "exec"), names)


def test_the_numbers_of_fields_are_right():
    fields = len(vars(AlgorithmConfig()))
    shown = len(shown_fields())
    assert f"`AlgorithmConfig` has {fields} fields" in SECTION
    assert f"| honoured | {shown} |" in SECTION
    for kind, names in {"refused": REFUSED, "unread": RELICS, "RLlib's own": SET_BY_RLLIB}.items():
        assert f"| {kind} | {len(names)} |" in SECTION
