"""The examples of docs/rllib.md under "If you know RLlib", run one after the other as a reader
would.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from train.rllib.rllib_fields import REFUSED, RELICS, SET_BY_RLLIB

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "rllib.md").read_text(encoding="utf-8")
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
    honoured = fields - len(REFUSED) - len(RELICS) - len(SET_BY_RLLIB)
    offline = sum("--from-games" in use for use in REFUSED.values())
    text = " ".join((DOCS / "lab" / "rllib.md").read_text(encoding="utf-8").split())
    assert f"Of the {fields} fields of `AlgorithmConfig`, {honoured} do what they say" in text
    assert f"{len(REFUSED)} are refused by name" in text
    assert f"{len(RELICS)} are refused because RLlib's own new API stack doesn't read them" in text
    assert f"{offline} of the {len(REFUSED)} are about offline data" in text
