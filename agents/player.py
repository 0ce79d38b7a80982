"""A player's text, as users type it and stores keep it; `Player` parses it in one place."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from agents.hub.address import SCHEME
from agents.options_file import read_options
from envs.common.errors import ConfigError

SEARCHES = ("alphabeta", "mcts")
"""The agents that look ahead; each can do so with a policy."""
EVALUATION = "learned-evaluation.json"
"""The file that a run leaves which learned an evaluation. As a player such a run is `alphabeta`
with that evaluation.
"""
OPTIONS_FILE = "options"
"""The option that names a file of further options."""
_RULES_ENDING = ".py"


@dataclass(frozen=True)
class Player:
    """A player: what people call it, and its spec, which `agents.make` takes.

    The text of a player, from the outside to the inside:

        player  = [name "="] spec
        spec    = url | made ["?" options]
        made    = {rules "+"} (rules | base)
        base    = agent | champion | run | bundle | [bundle "+"] search
        options = option "=" value {"&" option "=" value}
        option  = name | name "." entry

    `rules` is the path of a Python file, `run` and `bundle` are paths or `hf://` addresses,
    `search` is one of `SEARCHES`. So `Duel=my_rule.py+runs/first+mcts?near=9&weights.cell=7` is
    called Duel: the rules in my_rule.py on top of MCTS with the policy in runs/first, and with two
    options of its own. Values are read as JSON, or else as text. A spec that is the path of an
    existing file has no options, whatever it looks like.

    A player is parsed only when needed, so an untrusted one can be stored unread."""

    name: str
    spec: str

    @classmethod
    def parse(cls, text: str) -> Player:
        """Read `SPEC` or `NAME=SPEC`. Without a name, it is ""."""
        name, equals_sign, spec = text.partition("=")
        # Paths and URLs may hold a "=" themselves.
        if equals_sign and not any(sign in name for sign in ":/?"):
            return cls(name, spec)
        return cls("", text)

    @classmethod
    def of(cls, spec: str | os.PathLike[str]) -> Player:
        """Return the player of a spec, without a name of its own."""
        return cls("", os.fspath(spec))

    def named(self) -> Player:
        """Return the player with a name: its own, or else its spec; of a URL, secrets are
        left out.
        """
        if self.name:
            return self
        if self.is_remote:
            return Player(without_secrets(self.spec), self.spec)
        return Player(self.spec.removesuffix("/"), self.spec)

    @property
    def is_remote(self) -> bool:
        """Return whether this is a server's URL rather than something that `agents.make` makes."""
        return "://" in self.spec and SCHEME not in self.spec

    @property
    def runs_code(self) -> bool:
        """Whether it is a file of rules, alone or on top of another player."""
        return bool(self.rules) and not self.is_remote

    @cached_property
    def made(self) -> str:
        """The spec without its options."""
        return self._parts[0]

    @cached_property
    def own_options(self) -> Mapping[str, Any]:
        """The options in the spec itself. An option with entries, such as `weights`, is a mapping.

        Raises `ConfigError` for options that aren't in this form."""
        stem, query = self._parts
        options: dict[str, Any] = {}
        if query is None:
            return options
        try:
            for key, text in parse_qsl(query, strict_parsing=True):
                option, dot, entry = key.partition(".")
                value = _value(text)
                options = merged(options, {option: {entry: value} if dot else value})
            if not options:
                raise ValueError("there are none")
        except ValueError as error:
            raise ConfigError(
                f"the options of {self.spec!r} can't be read; write them as"
                f" {stem}?option=value&option=value"
            ) from error
        return options

    @property
    def options(self) -> dict[str, Any]:
        """The options in the spec, and below them those of the file that it may name.

        Raises `ConfigError` and `OptionsFileError`."""
        return self.with_options_file(self.own_options)

    def with_options_file(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return these options, merged over those of the file that one of them may name. Raises
        `OptionsFileError`.
        """
        others = dict(options)
        path = others.pop(OPTIONS_FILE, None)
        if path is None:
            return others
        return merged(dict(read_options(str(path), self.agent)), others)

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The paths of its files of rules, the outermost first."""
        *stems, innermost = self.made.split(f"{_RULES_ENDING}+")
        rules = [stem + _RULES_ENDING for stem in stems]
        if innermost.endswith(_RULES_ENDING):
            rules.append(innermost)
        return tuple(rules)

    @cached_property
    def base(self) -> str:
        """The player below the rules: a search with its policy, an agent's name, or a path; "" for
        rules alone.
        """
        innermost = self.made.split(f"{_RULES_ENDING}+")[-1]
        if innermost.endswith(_RULES_ENDING):
            return ""
        return innermost

    @property
    def search(self) -> str | None:
        """The name of the search, alone or with a policy, ignoring rules; None if it isn't a
        search.
        """
        name = self.base.rpartition("+")[2]
        return name if name in SEARCHES else None

    @property
    def policy_of_search(self) -> str | None:
        """The path of the bundle in `BUNDLE+SEARCH`; None without one."""
        path, plus, _ = self.base.rpartition("+")
        return path if plus and self.search else None

    @property
    def has_evaluation(self) -> bool:
        """Return whether the base is the folder of a run that learned an evaluation."""
        return bool(self.base) and os.path.isfile(self.evaluation_path)

    @property
    def evaluation_path(self) -> str:
        """The file in which a run that is the base leaves its evaluation."""
        return os.path.join(self.base, EVALUATION)

    @property
    def agent(self) -> str:
        """The agent whose options it takes: a search, or the base below the rules."""
        if self.has_evaluation:
            return "alphabeta"
        return self.search or self.base or self.made

    @cached_property
    def _parts(self) -> tuple[str, str | None]:
        """The spec without its options, and the text of these."""
        stem, question_mark, query = self.spec.partition("?")
        if not question_mark or os.path.exists(self.spec):
            return self.spec, None
        return stem, query


def without_secrets(url: str) -> str:
    """Return a snake's URL without secrets: no user name, password, query or trailing slash."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl().removesuffix("/")


def merged(options: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the options of both mappings. `others` win, but mappings of the same option are merged
    entry by entry.
    """
    both = {**options, **others}
    for name, value in others.items():
        below = options.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            both[name] = {**below, **value}
    return both


def _value(text: str) -> bool | int | float | str:
    """Return the truth value or number that the text is in JSON, or else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, bool | int | float):
        return value
    return text
