"""A source without the champions' 26 MiB, for the tests that only send it somewhere."""

from __future__ import annotations

import pytest

from train.sagemaker import images, source


@pytest.fixture
def light_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressing the weights took a second and a half per job; tests of the source itself pack all
    of it.
    """
    for module in (source, images):
        monkeypatch.setattr(module, "LEFT_OUT", (*source.LEFT_OUT, "champions"))
