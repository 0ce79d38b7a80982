"""Makes agents by name: `agents.make("greedy")`, `agents.make("runs/first/bundle")`."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from agents import champions
from agents.agent import Agent
from agents.player import Player, merged
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.strangers.bounded import read_bytes

_FACTORIES: dict[str, str | Callable[..., Agent]] = {
    "random": "agents.heuristics.random_legal:RandomLegal",
    "greedy": "agents.heuristics.greedy_food:GreedyFood",
    "flood": "agents.heuristics.flood_fill:FloodFill",
    "alphabeta": "agents.search.alphabeta.agent:AlphaBeta",
    "mcts": "agents.search.mcts.agent:MCTS",
    "starter-pack": "agents.heuristics.composition:starter_pack",
    "classics": "agents.heuristics.composition:classics",
}

_MAX_RULES_BYTES = 1 << 24


def register(name: str, factory: str | Callable[..., Agent]) -> None:
    """Add an agent under `name`.

    `factory` is a callable, or "module:attribute", which is imported when the agent is first made.
    """
    _FACTORIES[name] = factory


def names() -> list[str]:
    """Return the names of the built-in agents and of the champions that play Battlesnake,
    sorted.
    """
    return sorted([*_FACTORIES, *champions.snakes()])


def make(name: str | os.PathLike[str], **options: Any) -> Agent:
    """Make the agent or champion called `name`, or the policy whose bundle or run folder lies at
    that path or `hf://` address.

    The folder of a run that learned an evaluation (`procsnake train battlesnake-evaluation`) stands
    for `alphabeta` with it. A path followed by "+alphabeta" or "+mcts" is that search with that
    policy: `make("runs/first+alphabeta")`. A Python file stands for the rules in it, alone
    (`make("my_rule.py")`) or on top of any agent (`make("my_rule.py+flood")`,
    `make("my_rule.py+runs/first")`).

    `options` are the keyword arguments of the agent, or of the agent below the rules. Options in
    the name take precedence: `make("alphabeta?nodes=500&weights.cell=7")`. The option called
    `options` is a file of further options, which `procsnake tune-search` writes; options given
    beside it take precedence.

    Raises `UnknownNameError` for a name that is none of these, `ConfigError` for options that the
    agent doesn't have or that have another type than its default, `OptionsFileError` for a bad file
    of options, `BundleError` for a bad bundle, and `RuleError` for a file without rules."""
    player = Player.of(name)
    if player.is_remote:
        raise ConfigError(
            f"{player.made} is the URL of a server, but this command needs a local agent; match,"
            " play, tournament and sprt take URLs"
        )
    own_options = dict(player.own_options)
    if player.has_evaluation:
        own_options = {"evaluation": player.evaluation_path, **own_options}
    options = player.with_options_file(merged(options, own_options))
    if not player.rules:
        return _make_base(player, options)

    from agents.heuristics.composition import with_rules

    outer_rules = player.rules
    if player.base:
        agent = _make_base(player, options)
    else:
        innermost = outer_rules[-1]
        outer_rules = outer_rules[:-1]
        agent = _construct(lambda: with_rules(innermost), player.made, options)
    for rules in reversed(outer_rules):
        agent = with_rules(rules, agent)
    return agent


def _make_base(player: Player, options: dict[str, Any]) -> Agent:
    """Make what the player's rules stand on."""
    if player.has_evaluation:
        return _construct(_factory("alphabeta"), "alphabeta", options)
    if player.search is not None:
        if player.policy_of_search is not None:
            options = {"policy": _load_policy(player.policy_of_search, {}), **options}
        return _construct(_factory(player.search), player.search, options)
    if player.base in _FACTORIES:
        return _construct(_factory(player.base), player.base, options)
    return _load_policy(player.base, options)


def options_of(spec: str) -> frozenset[str]:
    """Return the names of the options that `make` takes for this player, as far as they are known
    without creating it.
    """
    player = Player.of(spec)
    if player.agent not in _FACTORIES:
        return frozenset()
    names_of_options = frozenset(inspect.signature(_factory(player.agent)).parameters)
    if player.policy_of_search is not None:
        return names_of_options - {"policy"}
    return names_of_options


def content_of(spec: str) -> str:
    """Return a digest of a player's current options, rules, policy and learned evaluation.

    Mere descriptions, such as the verdict in a file of options, don't count. Raises
    `ProcsnakeError`, `OSError` and `ValueError` for unreadable files."""
    player = Player.of(spec)
    options = player.options
    rules = [
        hashlib.sha256(read_bytes(path, _MAX_RULES_BYTES)).hexdigest() for path in player.rules
    ]
    parts: list[Any] = [options, rules]
    evaluation = options.get("evaluation")
    if not evaluation and player.has_evaluation:
        evaluation = player.evaluation_path
    if evaluation:
        from agents.search.evaluation.learned import find_evaluation

        learned = find_evaluation(evaluation)
        parts.append(learned and learned.weights)
    if policy := _policy_in(player, options):
        from agents import bundle

        parts.append(bundle.load(policy).card.files[bundle.ONNX])
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _policy_in(player: Player, options: dict[str, Any]) -> str | None:
    """Return where the policy of a player lies; None if it plays without one."""
    if player.policy_of_search is not None:
        return player.policy_of_search
    if not player.base or player.base in _FACTORIES or player.has_evaluation:
        return options.get("policy")
    return player.base


def _factory(name: str) -> Callable[..., Agent]:
    factory = _FACTORIES[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        return cast("Callable[..., Agent]", getattr(import_module(module), attribute))
    return factory


def _load_policy(path: str, options: dict[str, Any]) -> Agent:
    """Load the policy of this name or at this path. Raises `UnknownNameError` for a word that is
    neither.
    """
    is_champion = path in champions.names()
    looks_like_a_path = (
        os.path.exists(path) or path.endswith(".zip") or os.path.basename(path) != path
    )
    if not is_champion and not looks_like_a_path:
        known_names = {*names(), *champions.names()}
        raise UnknownNameError(
            "agent", path, known_names, hint="A path to a policy bundle works as well."
        )
    from agents.policy import Policy

    return _construct(Policy.load, path, {"path": path, **options})


def _construct(factory: Callable[..., Agent], name: str, options: dict[str, Any]) -> Agent:
    """Call the factory, if it takes options of these names and types. Raises `ConfigError`."""
    signature = inspect.signature(factory)
    takes_any = any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()
    )
    unknown = options.keys() - signature.parameters.keys()
    if unknown and not takes_any:
        reason = UnknownNameError("option", min(unknown), signature.parameters)
        raise ConfigError(f"agent {name!r} can't be made: {reason}")
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ConfigError(
            f"agent {name!r} can't be made with options {sorted(options)}: {error}"
        ) from error
    for option, parameter in signature.parameters.items():
        kind = _kind_of(parameter)
        if option in options and not _fits(options[option], kind):
            raise ConfigError(
                f"agent {name!r} can't be made: {option} is {options[option]!r}; it must be"
                f" {_KINDS[kind]}"
            )
    return factory(**options)


_KINDS = {bool: "true or false, in small letters", int: "a whole number", float: "a number"}
_KINDS_BY_NAME = {kind.__name__: kind for kind in _KINDS}


def _kind_of(parameter: inspect.Parameter) -> type:
    """Return the type with which an option is declared, or else that of its default."""
    declared = parameter.annotation
    if isinstance(declared, str):
        declared = _KINDS_BY_NAME.get(declared)
    return declared if declared in _KINDS else type(parameter.default)


def _fits(value: Any, kind: type) -> bool:
    """Return whether an option's value is of its kind. Objects that no name can hold are the
    agent's own affair.
    """
    if kind not in _KINDS or not isinstance(value, bool | int | float | str):
        return True
    if kind is bool:
        return isinstance(value, bool)
    return isinstance(value, int | kind) and not isinstance(value, bool)
