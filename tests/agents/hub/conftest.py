"""The Hub's stand-in, where nothing of the real user's is touched: neither token nor caches."""

from __future__ import annotations

import pytest
from huggingface_hub import constants

from envs.battlesnake.jit.cache import root
from tests.agents.hub.stand_in import TOKEN, Hub, standing_in

PATIENCE_S = 1.0


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Hub:
    """The stand-in; no token is known. It has to answer within a second, not twenty."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(tmp_path / "harnesses.json"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "numba").symlink_to(root())
    monkeypatch.setenv("PROCSNAKE_CACHE", str(tmp_path / "cache"))
    for module in ("client", "download"):
        monkeypatch.setattr(f"agents.hub.{module}.READ_S", PATIENCE_S)
    with standing_in() as state:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, state.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", state.url)
        yield state


@pytest.fixture
def owner(monkeypatch) -> None:
    """A token that may write is known."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
