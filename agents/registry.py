"""Agents by name: `agents.make("greedy")`, `agents.make("runs/first/bundle")`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agents import champions
from agents.agent import Agent
from envs.errors import ConfigError, UnknownNameError

_FACTORIES: dict[str, str | Callable[..., Agent]] = {
    "random": "agents.heuristics.random_legal:RandomLegal",
    "greedy": "agents.heuristics.greedy_food:GreedyFood",
    "flood": "agents.heuristics.flood_fill:FloodFill",
    "alphabeta": "agents.search.alphabeta:AlphaBeta",
    "mcts": "agents.search.mcts:MCTS",
    "starter-pack": "agents.heuristics.composition:starter_pack",
    "classics": "agents.heuristics.composition:classics",
}

_POLICY_SEARCHES = ("alphabeta", "mcts")


def register(name: str, factory: str | Callable[..., Agent]) -> None:
    """Add an agent under `name`. `factory` is a callable or "module:attribute", imported when first made."""
    _FACTORIES[name] = factory


def names() -> list[str]:
    """The names that `make` knows, sorted: built-in agents and champions."""
    return sorted([*_FACTORIES, *champions.names()])


def make(name: str | os.PathLike[str], **options: Any) -> Agent:
    """The agent registered under `name`, or the champion of that name, or else the policy whose bundle, or the run that
    exported it, lies at that path.

    A path followed by "+alphabeta" or "+mcts" is that search with that policy: `make("runs/first+alphabeta")`. A Python file is
    the rules in it, alone (`make("my_rule.py")`) or on top of any agent (`make("my_rule.py+flood")`,
    `make("my_rule.py+runs/first")`).

    `options` are the agent's own keyword arguments (the agent's below the rules). Raises `UnknownNameError` for what is
    neither, `ConfigError` for options it doesn't have, `BundleError` for a bad bundle, `RuleError` for a file without rules.
    """
    name = os.fspath(name)
    stem, suffix, base = name.partition(".py+")
    if suffix or name.endswith(".py"):
        from agents.heuristics.composition import with_rules

        return with_rules(f"{stem}.py", make(base, **options)) if suffix else with_rules(name)
    path, plus, search = name.rpartition("+")
    if plus and search in _POLICY_SEARCHES:
        name, options = search, {"policy": _load_policy(path, {}), **options}
    if name not in _FACTORIES:
        return _load_policy(name, options)
    factory = _FACTORIES[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(import_module(module), attribute)
    return _construct(factory, name, options)


def _load_policy(path: str, options: dict[str, Any]) -> Agent:
    is_champion = path in champions.names()
    looks_like_a_path = os.path.exists(path) or path.endswith(".zip") or os.path.basename(path) != path
    if not is_champion and not looks_like_a_path:
        raise UnknownNameError("agent", path, names(), hint="The path of a policy bundle does as well.")
    from agents.policy import Policy

    return _construct(Policy.load, path, {"path": champions.path(path) if is_champion else path, **options})


def _construct(factory: Callable[..., Agent], name: str, options: dict[str, Any]) -> Agent:
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        raise ConfigError(f"agent {name!r} can't be made with options {sorted(options)}: {error}") from error
    return factory(**options)
