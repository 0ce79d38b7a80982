"""Puts rules together, alone or on top of any agent. A ban removes a move; a preference is added to
its log-probability.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from agents.agent import Agent, Decision
from agents.heuristics.common_rules import CLASSICS, RULES, STARTER_PACK, Rule, certain_death
from agents.heuristics.sight import Sight
from envs.battlesnake.state import MOVE_NAMES, State
from envs.common.errors import ProcsnakeError, UnknownNameError

SURE = 10.0
"""How far, in units of log-probability, the move of an agent without probabilities is ahead of the
other moves.
"""
_LEAST = 1e-30
_MOST = 1e9
_EVERY_MOVE = np.ones(4, np.bool_)


class RuleError(ProcsnakeError):
    """A rule can't be loaded, fails, or returns something other than four booleans or four
    numbers.
    """


class Heuristics(Agent):
    """Plays by `rules`, in their order of importance, on top of `base` (an agent, or None: all
    moves are equally good).

    1. The rules' bans remove moves. A ban that would leave no move is passed over, so there always
       is a choice, and earlier rules count more. On top of a base the first rule is always
       `certain_death`.
    2. The base is asked for the best of the moves that are left (`Agent.act_among`). So rules that
       only ban play the base's best allowed move.
    3. The rules' preferences are added to the base's log-probabilities. An agent without
       probabilities counts as `SURE` of its move. Nothing is multiplied, so the sign of logits or
       preferences doesn't matter.
    4. The best move is played. Among equals the order is up, down, left, right.

    Raises `RuleError` when a rule fails, or returns neither four booleans nor four numbers.
    """

    def __init__(
        self, rules: Sequence[Rule | str], base: Agent | None = None, *, name: str | None = None
    ) -> None:
        functions = [_find_rule(rule) for rule in rules]
        names = [_name(rule) for rule in functions]
        if base is None:
            self.rules = functions
        else:
            names.append(base.name)
            others = [rule for rule in functions if rule is not certain_death]
            self.rules = [certain_death, *others]
        self.name = name or "+".join(names)
        self.base = base

    def evaluation_in_words(self, state: State | None = None) -> str | None:
        if self.base:
            return self.base.evaluation_in_words(state)
        return None

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        advice = [
            self._consult(Sight(state, board, slot), _EVERY_MOVE)
            for board, slot in zip(boards, slots, strict=True)
        ]
        starts = self._starts(state, boards, slots, [one.allowed for one in advice])
        moves = [one.best(start) for one, start in zip(advice, starts, strict=True)]
        return np.array(moves, np.int8)

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        return self.act_among(state, you, _EVERY_MOVE, deadline)

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        advice = self._consult(Sight(state, 0, you), allowed)
        start = np.zeros(4)
        value = None
        note: dict[str, Any] = {}
        if self.base:
            decision = self.base.act_among(state, you, advice.allowed, deadline)
            start = _log_probabilities(decision)
            value = decision.value
            note |= decision.note
        logits = advice.logits(start)
        shares = np.exp(logits - logits.max())
        probabilities = (shares / shares.sum()).astype(np.float32)
        note["rules"] = advice.notes
        return Decision(int(logits.argmax()), probabilities, value, note)

    def _starts(
        self, state: State, boards: np.ndarray, slots: np.ndarray, allowed: list[np.ndarray]
    ) -> np.ndarray:
        """Return the base's log-probabilities, float64 (n, 4). It may choose what is `allowed` to
        each snake.
        """
        if self.base is None:
            return np.zeros((len(boards), 4))
        if hasattr(self.base, "move_probabilities") and len(boards):
            probabilities, _ = self.base.move_probabilities(state, boards, slots)
            return np.log(np.maximum(probabilities, _LEAST))
        # `act_batch` would tell neither the base's probabilities nor its best among fewer moves.
        starts = np.zeros((len(boards), 4))
        for n, (board, slot) in enumerate(zip(boards, slots, strict=True)):
            one_board = state.select(np.array([board]))
            decision = self.base.act_among(one_board, int(slot), allowed[n])
            starts[n] = _log_probabilities(decision)
        return starts

    def _consult(self, me: Sight, allowed: np.ndarray) -> _Advice:
        """Ask all rules, in their order, of which moves they may still ban `allowed`."""
        allowed = allowed.copy()
        preference = np.zeros(4)
        notes = {}
        for rule in self.rules:
            opinion = _ask(rule, me)
            notes[_name(rule)] = dict(zip(MOVE_NAMES, opinion.tolist(), strict=True))
            if opinion.dtype != np.bool_:
                preference += np.clip(opinion, -_MOST, _MOST)
            elif (allowed & opinion).any():
                allowed &= opinion
        return _Advice(allowed, preference, notes)


class _Advice(NamedTuple):
    """What the rules say of one position."""

    allowed: np.ndarray
    """bool (4,), with one True at least."""
    preference: np.ndarray
    """float64 (4,): the sum of all preferences."""
    notes: dict[str, Any]
    """What each rule says of the moves, by its name."""

    def logits(self, start: np.ndarray) -> np.ndarray:
        """Return the moves' log-probabilities, float64 (4,), -inf for what is banned. `start` (4,)
        are the base's.
        """
        return np.where(self.allowed, start + self.preference, -np.inf)

    def best(self, start: np.ndarray) -> int:
        return int(self.logits(start).argmax())


def starter_pack() -> Heuristics:
    """Make the starter pack's snake without its network."""
    return Heuristics(STARTER_PACK, name="starter-pack")


def classics() -> Heuristics:
    """Make a snake of the rules that people write first (`common_rules.CLASSICS`)."""
    return Heuristics(CLASSICS, name="classics")


def with_rules(path: str | os.PathLike[str], base: Agent | None = None) -> Heuristics:
    """Make a snake of the rules in a user's file, alone or on top of `base`. In both cases
    `certain_death` comes first.
    """
    rules = [certain_death, *load_rules(path)]
    name = Path(path).stem
    if base:
        name = f"{name}+{base.name}"
    return Heuristics(rules, base, name=name)


def load_rules(path: str | os.PathLike[str]) -> list[Rule]:
    """Return the rules of a Python file: its list `RULES` if it has one, or its functions whose
    names don't begin with _.

    The file is executed, so you must trust it. Each call reads it again. Raises `RuleError` if it
    fails or has no rules."""
    module = _run(Path(path))
    rules = getattr(module, "RULES", None)
    if rules is None:
        rules = _own_functions(module)
    is_list = isinstance(rules, list | tuple) and len(rules) > 0
    if not is_list or not all(callable(rule) or isinstance(rule, str) for rule in rules):
        raise RuleError(
            f"{path} holds no rules: write a function of one argument, or a list RULES. See"
            " docs/heuristics.md"
        )
    return [_find_rule(rule) for rule in rules]


def _own_functions(module: ModuleType) -> list[Rule]:
    """Return the functions that are written in the module, in the order of its lines, without those
    whose names begin with _.
    """
    functions = [
        item
        for name, item in inspect.getmembers(module, inspect.isfunction)
        if item.__module__ == module.__name__ and not name.startswith("_")
    ]
    return sorted(functions, key=lambda function: function.__code__.co_firstlineno)


def _run(path: Path) -> ModuleType:
    """Run a file from its source: one that is edited twice within a second must not come from a
    cache of its first version.
    """
    module = ModuleType(f"procsnake_rules_{path.stem}")
    module.__file__ = str(path)
    # What is written in the file, such as a dataclass, looks for its module there.
    sys.modules[module.__name__] = module
    try:
        # From bytes Python reads the encoding itself, and this module's imports from __future__
        # aren't the file's.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise RuleError(f"the rules in {path} can't be loaded: {_error_in_words(error)}") from error
    return module


def _error_in_words(error: BaseException) -> str:
    """Return what went wrong in the code that the catcher of the error had called, and at which
    line of that code's file.
    """
    frames = traceback.extract_tb(error.__traceback__)[1:]
    # What the user's line has called, such as NumPy, isn't where to look.
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    reason = f"{type(error).__name__}: {error}"
    if own:
        return f"{reason} ({own[-1].filename}:{own[-1].lineno})"
    return reason


def _find_rule(rule: Rule | str) -> Rule:
    """Return a rule, or the built-in one of this name."""
    if not isinstance(rule, str):
        return rule
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES)
    return RULES[rule]


def _name(rule: Callable[..., Any]) -> str:
    function = getattr(rule, "func", rule)  # of a functools.partial
    return getattr(function, "__name__", type(function).__name__)


def _ask(rule: Rule, me: Sight) -> np.ndarray:
    """Return what a rule says, bool or numbers (4,). Raises `RuleError` for anything else."""
    try:
        opinion = np.asarray(rule(me))
    except (Exception, SystemExit) as error:
        where = f"on turn {me.turn}, for the snake in slot {me.slot}"
        raise RuleError(
            f"the rule {_name(rule)!r} failed {where}: {_error_in_words(error)}"
        ) from error
    if opinion.shape != (4,) or opinion.dtype.kind not in "biuf" or np.isnan(opinion).any():
        raise RuleError(
            f"the rule {_name(rule)!r} returned {str(opinion)[:80]!r}; a rule returns four booleans"
            " (False bans a move) or four numbers (more is better), for up, down, left, right"
        )
    return opinion


def _log_probabilities(decision: Decision) -> np.ndarray:
    """Return the log-probabilities of a base's decision, float64 (4,)."""
    if decision.probabilities is None:
        return np.where(np.arange(4) == decision.move, 0.0, -SURE)
    return np.log(np.maximum(decision.probabilities, _LEAST))
