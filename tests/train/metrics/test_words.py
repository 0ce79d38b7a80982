from __future__ import annotations

import re
from pathlib import Path

import pytest

from train.metrics.words import title_of, unit_of

DOCS = Path(__file__).parents[3] / "docs"
SAID_ELSEWHERE = re.compile(r"seconds_|restored_|mean_cause_|(env|agent)_steps$|episodes$|updates$")
"""Columns that a report shows in charts of their own, or not at all."""


def test_a_title_has_words_and_the_column():
    assert title_of("episode_return_mean") == "episode return (episode_return_mean)"
    assert unit_of("episode_return_mean") == "sum of rewards"


def test_columns_of_games_name_the_opponents():
    assert title_of("win_rate_vs_3xflood") == ("games won against 3 × flood (win_rate_vs_3xflood)")
    assert unit_of("mean_turns_vs_flood") == "turns"


def test_an_unknown_column_keeps_its_name():
    assert title_of("mean_of_my_world") == unit_of("mean_of_my_world") == "mean_of_my_world"


@pytest.mark.parametrize("page", ["ppo", "appo", "dqn", "apex", "imitation"])
def test_every_metric_that_a_page_explains_has_words(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    _, _, after = text.partition("| metric | meaning |")
    assert after
    rows = after.partition("\n\n")[0].splitlines()[2:]
    columns = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row.split(" | ")[0])}
    named = {name for name in columns if not SAID_ELSEWHERE.match(name) and name[0] != "_"}
    assert named
    assert {name for name in named if title_of(name) == name} == set()
