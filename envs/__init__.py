"""Worlds: the games, behind one batched interface. Neither torch nor ray is imported from here."""

from envs.errors import ProcsnakeError
from envs.gym_registration import register_all
from envs.registry import make, names, register

__all__ = ["ProcsnakeError", "make", "names", "register"]

register_all()
