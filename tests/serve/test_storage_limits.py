"""What strangers can make a server keep is bounded, on disk and in memory: the benchmark's attacks,
with its bounds.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.arena_storage import searches, starts

pytestmark = pytest.mark.long


def test_ten_thousand_hostile_starts_leave_what_was_allowed():
    found = starts(10_000, keep_mib=1)
    assert found["statuses"] == {200: 10_000}
    assert found["disk_mib"] < 3
    assert found["highest_disk_mib"] < 8
    assert found["rss_mib"] < found["rss_mib_before"] + 64


def test_searches_on_two_thousand_shapes_leave_no_workspaces_behind():
    """Kept for ever, 2 000 workspaces of 2 MiB would be 4 GiB."""
    found = searches(2000, agent="alphabeta")
    assert sum(found["statuses"].values()) == 2000
    assert found["rss_mib"] < found["rss_mib_before"] + 256
