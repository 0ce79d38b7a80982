"""Worlds: the games, with one interface for batches. Nothing here imports torch or ray."""

from envs.common.errors import ProcsnakeError
from envs.gym_registration import register_all
from envs.registry import make, names, register

__all__ = ["ProcsnakeError", "make", "names", "register"]

register_all()
