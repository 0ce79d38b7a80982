"""Bundles with smaller weights; tests/agents/test_champions.py plays what is made of them."""

from __future__ import annotations

import pytest

from agents.export.shrink import shrink
from envs.common.errors import ConfigError


def test_a_file_in_the_folders_place_is_refused(bundle_path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="can't be written"):
        shrink(bundle_path, tmp_path / "file")
