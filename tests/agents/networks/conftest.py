from __future__ import annotations

import pytest
import torch


@pytest.fixture(params=[1, 2])
def threads(request):
    """Torch's own number of threads is set, and set back."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)
