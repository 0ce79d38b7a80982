"""How the kernels of the engine and of the searches are compiled, announced and kept on disk."""

from envs.battlesnake.jit.decorators import allocating_kernel, compiled_for, kernel

__all__ = ["allocating_kernel", "compiled_for", "kernel"]
