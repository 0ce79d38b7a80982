"""Makes agents by name: `agents.make("greedy")`, `agents.make("runs/first/bundle")`."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, cast
from urllib.parse import parse_qsl

from agents import champions
from agents.agent import Agent
from agents.hub.address import SCHEME
from agents.options_file import read_options
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

SEARCHES = ("alphabeta", "mcts")
"""The agents that look ahead; each can do so with a policy."""
EVALUATION = "learned-evaluation.json"
"""The file that a run leaves which learned an evaluation. As a player such a run is `alphabeta`
with that evaluation.
"""
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


def split_name(player: str) -> tuple[str, str]:
    """Split `NAME=PLAYER` into ("NAME", "PLAYER"), and `PLAYER` into ("", "PLAYER"). Commands take
    players in these forms.
    """
    name, is_named, spec = player.partition("=")
    # Paths and URLs may hold a "=" themselves.
    if is_named and not any(sign in name for sign in ":/?"):
        return (name, spec)
    return ("", player)


def make(name: str | os.PathLike[str], **options: Any) -> Agent:
    """Make the agent or champion called `name`, or the policy whose bundle or run folder lies at
    that path or `hf://` address.

    The folder of a run that learned an evaluation (`procsnake train battlesnake-evaluation`) stands
    for `alphabeta` with it. A path followed by "+alphabeta" or "+mcts" is that search with that
    policy: `make("runs/first+alphabeta")`. A Python file stands for the rules in it, alone
    (`make("my_rule.py")`) or on top of any agent (`make("my_rule.py+flood")`,
    `make("my_rule.py+runs/first")`).

    `options` are the keyword arguments of the agent, or of the agent below the rules. The name may
    bring options itself, which win: `make("alphabeta?nodes=500&weights.cell=7")`. The option called
    `options` is a file of further options, which `procsnake tune` writes; options that are given
    beside it win.

    Raises `UnknownNameError` for a name that is none of these, `ConfigError` for options that the
    agent doesn't have or that have another type than its default, `OptionsFileError` for a bad file
    of options, `BundleError` for a bad bundle, and `RuleError` for a file without rules."""
    name, own = split_options(os.fspath(name))
    if is_server(name):
        raise ConfigError(
            f"{name} is the URL of a server, but this needs an agent of this machine; match, play,"
            " tournament and sprt take one"
        )
    if has_evaluation(name):
        name, own = "alphabeta", {"evaluation": os.path.join(name, EVALUATION), **own}
    options = _with_file(name, _merged(options, own))
    stem, suffix, base = name.partition(".py+")
    if suffix or name.endswith(".py"):
        from agents.heuristics.composition import with_rules

        if suffix:
            return with_rules(f"{stem}.py", make(base, **options))
        return _construct(lambda: with_rules(name), name, options)
    path, plus, search = name.rpartition("+")
    if plus and search in SEARCHES:
        name = search
        options = {"policy": _load_policy(path, {}), **options}
    if name not in _FACTORIES:
        return _load_policy(name, options)
    return _construct(_factory(name), name, options)


def is_server(player: str) -> bool:
    """Whether a player is the URL of a server, and not something that `make` makes."""
    return "://" in player and SCHEME not in player


def is_search(player: str) -> bool:
    """Whether a player such as `runs/first+mcts?near=9` is a search, alone or with a policy."""
    return player.partition("?")[0].rpartition("+")[2] in SEARCHES


def has_evaluation(player: str) -> bool:
    """Whether a player is the folder of a run that learned an evaluation."""
    return os.path.isfile(os.path.join(player, EVALUATION))


def split_options(name: str) -> tuple[str, dict[str, Any]]:
    """Split `NAME?option=value&option=value` into ("NAME", options). Values are read as JSON, or
    else as text.

    `weights.cell=7` is an entry of the option `weights`, which is then a mapping. A name that is
    the path of an existing file has no options. Raises `ConfigError` for options that aren't in
    this form."""
    stem, mark, query = name.partition("?")
    if not mark or os.path.exists(name):
        return name, {}
    try:
        if not query:
            raise ValueError("there are none")
        options: dict[str, Any] = {}
        for key, text in parse_qsl(query, strict_parsing=True):
            option, dot, entry = key.partition(".")
            options = _merged(options, {option: {entry: _value(text)} if dot else _value(text)})
        return stem, options
    except ValueError as error:
        raise ConfigError(
            f"the options of {name!r} can't be read; they look like"
            f" {stem}?option=value&option=value"
        ) from error


def options_given(name: str) -> tuple[str, dict[str, Any]]:
    """Split a name as `split_options` does, and add the options of the file that the option
    `options` may name.
    """
    name, own = split_options(name)
    return name, _with_file(name, own)


def _with_file(name: str, options: dict[str, Any]) -> dict[str, Any]:
    if "options" not in options:
        return options
    base = name.rpartition(".py+")[2]
    found = read_options(str(options["options"]), "alphabeta" if has_evaluation(base) else name)
    return _merged(dict(found), {k: v for k, v in options.items() if k != "options"})


def _merged(options: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """The options of both mappings. `others` win, but mappings of the same option are merged entry
    by entry.
    """
    both = {
        k: {**options[k], **v}
        for k, v in others.items()
        if isinstance(v, dict) and isinstance(options.get(k), dict)
    }
    return {**options, **others, **both}


def _value(text: str) -> bool | int | float | str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, bool | int | float):
        return value
    return text


def options_of(name: str) -> frozenset[str]:
    """Return the names of the options that `make` takes for this name, as far as they are known
    without making the agent.
    """
    name, _ = split_options(name)
    _, suffix, base = name.partition(".py+")
    if suffix:
        return options_of(base)
    _, plus, search = name.rpartition("+")
    if plus and search in SEARCHES:
        return options_of(search) - {"policy"}
    if has_evaluation(name):
        return options_of("alphabeta")
    if name in _FACTORIES:
        return frozenset(inspect.signature(_factory(name)).parameters)
    return frozenset()


def content_of(player: str) -> str:
    """Return a digest of what a player's name stands for now: its options, its rules, its policy
    and its learned evaluation.

    What only tells of them plays no part, such as the verdict in a file of options. Raises
    `ProcsnakeError`, `OSError` and `ValueError` for what can't be read."""
    name, options = options_given(player)
    *stems, base = name.split(".py+")
    rules = [*(f"{stem}.py" for stem in stems), *([base] if base.endswith(".py") else [])]
    parts: list[Any] = [
        options,
        [hashlib.sha256(read_bytes(rule, _MAX_RULES_BYTES)).hexdigest() for rule in rules],
    ]
    if evaluation := options.get("evaluation") or (
        os.path.join(base, EVALUATION) if has_evaluation(base) else None
    ):
        from agents.search.evaluation.learned import chosen_evaluation

        learned = chosen_evaluation(evaluation)
        parts.append(learned and [asdict(phase) for phase in learned.phases])
    if policy := _policy_in(base, options):
        from agents import bundle

        parts.append(bundle.load(policy).card.files[bundle.ONNX])
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _policy_in(base: str, options: dict[str, Any]) -> str | None:
    """Where the policy of a player without rules lies; None if it plays without one."""
    path, plus, search = base.rpartition("+")
    if plus and search in SEARCHES:
        return path
    if base in _FACTORIES or base.endswith(".py") or has_evaluation(base):
        return options.get("policy")
    return base


def _factory(name: str) -> Callable[..., Agent]:
    factory = _FACTORIES[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        return cast("Callable[..., Agent]", getattr(import_module(module), attribute))
    return factory


def _load_policy(path: str, options: dict[str, Any]) -> Agent:
    is_champion = path in champions.names()
    looks_like_a_path = (
        os.path.exists(path) or path.endswith(".zip") or os.path.basename(path) != path
    )
    if not is_champion and not looks_like_a_path:
        known = [*names(), *champions.names()]
        raise UnknownNameError(
            "agent", path, set(known), hint="The path of a policy bundle does as well."
        )
    from agents.policy import Policy

    return _construct(Policy.load, path, {"path": path, **options})


def _construct(factory: Callable[..., Agent], name: str, options: dict[str, Any]) -> Agent:
    signature = inspect.signature(factory)
    takes_any = any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()
    )
    for option in () if takes_any else options.keys() - signature.parameters.keys():
        raise ConfigError(
            f"agent {name!r} can't be made:"
            f" {UnknownNameError('option', option, signature.parameters)}"
        )
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ConfigError(
            f"agent {name!r} can't be made with options {sorted(options)}: {error}"
        ) from error
    for option, parameter in signature.parameters.items():
        kind = _DECLARED.get(parameter.annotation, type(parameter.default))
        if option in options and not _fits(options[option], kind):
            raise ConfigError(
                f"agent {name!r} can't be made: {option} is {options[option]!r}; it must be"
                f" {_KINDS[kind]}"
            )
    return factory(**options)


_KINDS = {bool: "true or false, in small letters", int: "a whole number", float: "a number"}
_DECLARED = {annotation: kind for kind in _KINDS for annotation in (kind, kind.__name__)}


def _fits(value: Any, kind: type) -> bool:
    """Whether an option's value is of its kind. Objects that no name can hold are the agent's own
    affair.
    """
    if kind not in _KINDS or not isinstance(value, bool | int | float | str):
        return True
    if kind is bool:
        return isinstance(value, bool)
    return isinstance(value, int | kind) and not isinstance(value, bool)
