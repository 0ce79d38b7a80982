"""Rules put together, alone or on top of any agent: bans cut moves off, preferences are added to log-probabilities."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from agents.agent import Agent, Decision
from agents.heuristics.rules import CLASSICS, RULES, STARTER_PACK, Rule
from agents.heuristics.sight import Sight
from envs.battlesnake.state import MOVE_NAMES, State
from envs.errors import ProcsnakeError, UnknownNameError

SURE = 10.0
"""By how many units of log-probability the move of an agent that tells no probabilities is ahead of the others."""
_LEAST = 1e-30


class RuleError(ProcsnakeError):
    """A rule that can't be loaded, that fails, or that returns something else than four booleans or four numbers."""


class Heuristics(Agent):
    """Plays by `rules`, in their order of importance, on top of `base` (an agent, or None: every move is equally good).

    The base's log-probabilities are the start; preferences are added to them. A ban takes moves out, unless nothing that
    the bans before it left would remain: then this one is passed over, so there is always a choice, and the first rules weigh
    most. Of what is left the best move is played; among equals the order is up, down, left, right. Nothing is multiplied, so
    the sign of logits or preferences plays no part. An agent that tells no probabilities is taken to be `SURE` of its move.

    Raises `RuleError` when a rule fails or returns what is neither.
    """

    def __init__(self, rules: Sequence[Rule | str], base: Agent | None = None, *, name: str | None = None) -> None:
        self.rules = [_named(rule) for rule in rules]
        self.base = base
        self.name = name or "+".join([*map(_name, self.rules), *([base.name] if base else [])])

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        rows = list(zip(boards, slots, strict=True))
        starts = self._starts(state, boards, slots)
        return np.array(
            [self._weigh(Sight(state, b, i), start)[0] for (b, i), start in zip(rows, starts, strict=True)], np.int8
        )

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        given = self.base.act(state, you, deadline) if self.base else None
        move, logits, notes = self._weigh(Sight(state, 0, you), _log_probabilities(given))
        shares = np.exp(logits - logits.max())
        note = {**(given.note if given else {}), "rules": notes}
        return Decision(move, (shares / shares.sum()).astype(np.float32), given.value if given else None, note)

    def _starts(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Log-probabilities float64 (n, 4) of the base."""
        if self.base is None:
            return np.zeros((len(boards), 4))
        if hasattr(self.base, "move_probabilities") and len(boards):
            return np.log(np.maximum(self.base.move_probabilities(state, boards, slots)[0], _LEAST))
        return np.where(np.arange(4) == self.base.act_batch(state, boards, slots)[:, None], 0.0, -SURE)

    def _weigh(self, me: Sight, start: np.ndarray) -> tuple[int, np.ndarray, dict[str, Any]]:
        """(move, logits (4,) with -inf for what is banned, what each rule said)."""
        logits, allowed, notes = np.array(start, float), np.ones(4, bool), {}
        for rule in self.rules:
            said = _ask(rule, me)
            notes[_name(rule)] = dict(zip(MOVE_NAMES, said.tolist(), strict=True))
            if said.dtype != np.bool_:
                logits = logits + said
            elif (allowed & said).any():
                allowed &= said
        logits = np.where(allowed, logits, -np.inf)
        return int(logits.argmax()), logits, notes


def starter_pack() -> Heuristics:
    """The starter pack's snake without its network."""
    return Heuristics(STARTER_PACK, name="starter-pack")


def classics() -> Heuristics:
    """The rules that people write first, all of them."""
    return Heuristics(CLASSICS, name="classics")


def with_rules(path: str | os.PathLike[str], base: Agent | None = None) -> Heuristics:
    """The rules of a file of one's own on top of `base`; without one they begin with `certain_death`."""
    rules = load_rules(path)
    name = Path(path).stem
    return Heuristics([*([] if base else [RULES["certain_death"]]), *rules], base, name=f"{name}+{base.name}" if base else name)


def load_rules(path: str | os.PathLike[str]) -> list[Rule]:
    """The rules of a Python file: its list `RULES` if it has one, else its own functions, but for names with a leading _.

    The file is run, so it must be one that you trust. It is read anew with each call. Raises `RuleError` if it can't be run
    or has none.
    """
    module = _run(Path(path))
    rules = getattr(module, "RULES", None)
    if rules is None:
        own = inspect.getmembers(module, lambda item: inspect.isfunction(item) and item.__module__ == module.__name__)
        lines = [(function.__code__.co_firstlineno, function) for name, function in own if not name.startswith("_")]
        rules = [function for _, function in sorted(lines, key=lambda line: line[0])]
    if not rules or not isinstance(rules, (list, tuple)) or not all(callable(rule) or isinstance(rule, str) for rule in rules):
        raise RuleError(f"{path} holds no rules: write a function of one argument, or a list RULES. See docs/heuristics.md")
    return [_named(rule) for rule in rules]


def _run(path: Path) -> ModuleType:
    """Run it from its source: a file that is edited twice within a second must not come from a cache of the first version."""
    module = ModuleType(f"procsnake_rules_{path.stem}")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except Exception as error:
        raise RuleError(f"the rules in {path} can't be loaded: {type(error).__name__}: {error}") from error
    return module


def _named(rule: Rule | str) -> Rule:
    if not isinstance(rule, str):
        return rule
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES)
    return RULES[rule]


def _name(rule: Callable[..., Any]) -> str:
    function = getattr(rule, "func", rule)  # of a functools.partial
    return getattr(function, "__name__", type(function).__name__)


def _ask(rule: Rule, me: Sight) -> np.ndarray:
    try:
        said = np.asarray(rule(me))
    except Exception as error:
        where = f"on turn {me.turn}, for the snake in slot {me.slot}"
        raise RuleError(f"the rule {_name(rule)!r} failed {where}: {type(error).__name__}: {error}") from error
    if said.shape != (4,) or said.dtype.kind not in "biuf" or np.isnan(said).any():
        raise RuleError(
            f"the rule {_name(rule)!r} returned {str(said)[:80]!r}; a rule returns four booleans (False bans a move) or four"
            " numbers (more is better), for up, down, left, right"
        )
    return said


def _log_probabilities(decision: Decision | None) -> np.ndarray:
    if decision is None:
        return np.zeros(4)
    if decision.probabilities is None:
        return np.where(np.arange(4) == decision.move, 0.0, -SURE)
    return np.log(np.maximum(decision.probabilities, _LEAST))
