"""Says where bfloat16 is worth it."""

from __future__ import annotations

import torch


def has_fast_bfloat16(gpu: torch.device | None = None) -> bool:
    """Whether this CPU, or this GPU, multiplies bfloat16 in hardware."""
    if gpu is not None:
        # torch.cuda.is_bf16_supported takes no device.
        return torch.cuda.get_device_capability(gpu) >= (8, 0)
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
