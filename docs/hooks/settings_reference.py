"""Makes the page `settings.md` of the settings' dataclasses and docstrings: every key of an
experiment. MkDocs calls this.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from page_text import add_page, code, literal, table

from agents import networks
from agents.networks.starter_pack_shape import KINDS
from agents.search.options import ranges_of
from agents.search.tuning.parameters import SEARCH_CLASSES
from train.config import Experiment, list_experiments
from train.keys.experiment_keys import Key, about, field_docstrings, keys
from train.keys.option_keys import Option, network_options, world_options
from train.settings import ALGORITHMS

PAGE = "settings.md"
INTRODUCTION = """\
# Settings

This page is made of the docstrings of the settings, as the site is built. `procsnake train
EXPERIMENT --help-keys` shows the same in the terminal, with the values of that experiment.

An experiment is a YAML file of keys, or one of the [built-in ones](#built-in-experiments).
`--set KEY=VALUE` overrides a key, and may be repeated. The value is YAML:
`--set ppo.learning_rate=3e-4`, `--set 'network={name: impala}'`, `--set stop=null`. A key that
doesn't exist is refused, with the nearest one that does. Options of commands have
[a page of their own](commands.md).
"""
WORLDS = {
    "Battlesnake": "battlesnake",
    "Procgen": "procgen/coinrun",
    "Mixture of worlds": "mixture",
    "Curriculum": "curriculum",
}
"""By heading, the name of the world whose options stand below it."""
ABOUT_SEARCHES = """\
Options of a player stand behind its name: `procsnake match 'alphabeta?nodes=20000&near=9' flood`.
They are the arguments of its class, [`AlphaBeta`][agents.search.alphabeta.agent.AlphaBeta] or
[`MCTS`][agents.search.mcts.agent.MCTS]. `procsnake tune-search` looks for better values within the
range or a part of it.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    add_page(files, config, PAGE, page())
    return files


def page() -> str:
    """Return the page's Markdown."""
    return "\n\n".join(
        [
            INTRODUCTION,
            *_experiments(),
            *_sections(),
            *_worlds(),
            *_networks(),
            *_algorithms(),
            *_searches(),
        ]
    )


def _experiments() -> list[str]:
    rows = [
        (code(name), Experiment.load(name).algorithm, literal(about(name)))
        for name in list_experiments()
    ]
    return ["## Built-in experiments", table(("Experiment", "Algorithm", "What it is"), rows)]


def _sections() -> list[str]:
    """The keys that every experiment has."""
    elsewhere = ("env.options", "network.options", *(f"{name}." for name in ALGORITHMS))
    shared = [
        key for key in keys(Experiment.load("battlesnake-ppo")) if not key.key.startswith(elsewhere)
    ]
    note = (
        "`env.options` and `network.options` are told below, under [worlds](#worlds) and"
        " [networks](#networks)."
    )
    return ["## An experiment", note, _keys(shared)]


def _worlds() -> list[str]:
    parts = ["## Worlds", "The options of `env.name`'s world are keys under `env.options`."]
    for heading, name in WORLDS.items():
        parts += [f"### {heading}", _options("env.options", world_options(name))]
    return parts


def _networks() -> list[str]:
    parts = [
        "## Networks",
        "The options of the network `network.name` are keys under `network.options`.",
    ]
    for name in networks.names():
        options = network_options(name)
        if options:
            parts += [f"### Network {name}", _options("network.options", options)]
    kinds = ", ".join(f"`{kind}`" for kind in KINDS)
    return [
        *parts,
        (
            f"The algorithm `mxnet_dqn` has networks of its own, {kinds}. Their options are those"
            " of `starter-pack`."
        ),
    ]


def _algorithms() -> list[str]:
    parts = [
        "## Algorithms",
        "`algorithm` names one, and the section with its name has its settings.",
    ]
    for name in ALGORITHMS:
        own_keys = [key for key in keys(_experiment_of(name)) if key.key.startswith(f"{name}.")]
        parts += [f"### Algorithm {name}", _keys(own_keys)]
    return parts


def _experiment_of(algorithm: str) -> Experiment:
    """A built-in experiment that trains by this algorithm. Cloning has none, so imitation's is
    turned into one, as `--from-games` does.
    """
    for name in list_experiments():
        experiment = Experiment.load(name)
        if experiment.algorithm == algorithm:
            return experiment
    return Experiment.load("battlesnake-imitation", [f"algorithm={algorithm}"])


def _searches() -> list[str]:
    parts = ["## Searches", ABOUT_SEARCHES]
    for name, search in SEARCH_CLASSES.items():
        parts += [f"### Player {name}", _arguments(search)]
    return parts


def _arguments(search: type) -> str:
    ranges = ranges_of(search)
    meanings = field_docstrings(search)
    rows = []
    for name, argument in inspect.signature(search).parameters.items():
        spread = ""
        if name in ranges:
            spread = f"{ranges[name].low:g} to {ranges[name].high:g}"
        rows.append((code(name), _value(argument.default), spread, literal(meanings[name])))
    return table(("Option", "Default", "Range", "Meaning"), rows)


def _keys(all_keys: Iterable[Key]) -> str:
    rows = [(code(key.key), _value(key.default), literal(key.meaning)) for key in all_keys]
    return table(("Key", "Default", "Meaning"), rows)


def _options(section: str, options: Iterable[Option]) -> str:
    rows = [
        (code(f"{section}.{option.name}"), _value(option.default), literal(option.meaning))
        for option in options
    ]
    return table(("Key", "Default", "Meaning"), rows)


def _value(value: Any) -> str:
    """A value as YAML takes it."""
    if value == "required":
        return "required"
    return code(json.dumps(value, ensure_ascii=False, default=str))
