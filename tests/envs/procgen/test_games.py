"""What is said where the games can't be had."""

from __future__ import annotations

import sys

import pytest

from envs.common.errors import MissingDependencyError
from envs.procgen import games

PYTHON = f"python3.{sys.version_info.minor}" if sys.version_info < (3, 13) else "python3.12"


@pytest.mark.parametrize(
    ("too_new", "said"),
    [((99, 0), "'procsnake[procgen]'"), ((3, 0), f"{PYTHON} -m venv .venv-procgen")],
)
def test_without_the_library_the_error_says_how_to_get_it_for_this_python(
    monkeypatch: pytest.MonkeyPatch, too_new: tuple[int, int], said: str
) -> None:
    monkeypatch.setattr(games, "_TOO_NEW", too_new)
    monkeypatch.delitem(sys.modules, "procgen", raising=False)
    monkeypatch.setattr(sys, "meta_path", [])
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingDependencyError) as refused:
        games.load_library()
    assert said in str(refused.value)
