"""The options of worlds and networks, which are keyword arguments: each with its default and what
its docstring says of it.

The sources are read, not imported, because networks need torch but keys must be listed without it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.networks import class_path
from agents.networks.options import OPTIONS as NETWORK_OPTIONS
from agents.networks.starter_pack_shape import KINDS
from envs.battlesnake.observing.starter_pack import KINDS as TYPES
from envs.common.parts import is_path

REQUIRED = "required"


@dataclass(frozen=True)
class Option:
    """An option: its name, its default and its meaning. The name of an option within another option
    has a dot.
    """

    name: str
    default: Any
    meaning: str


_PROCGEN = "procgen/"
_WORLDS = {
    "battlesnake": (
        "envs.battlesnake.vector_env:BattlesnakeVectorEnv",
        "envs.battlesnake.settings:Settings",
    ),
    _PROCGEN: ("envs.procgen.make:make_procgen", "envs.procgen.vector_env:ProcgenVectorEnv"),
    "mixture": ("train.worlds.mixture:Mixture",),
    "curriculum": ("train.worlds.curriculum:Curriculum",),
}
_AROUND = {"self_play": "train.worlds.self_play:SelfPlay", "rnd": "train.worlds.rnd:CuriousWorld"}
"""The layers that `train.worlds.build` puts around a world. Each is switched on by an option that
holds options of its own.
"""
_STARTER_PACK = "starter-pack"
_SHAPE = "agents.networks.starter_pack_shape:StarterPackShape"
_PLANES = "envs.battlesnake.observations:EgocentricPlanes"
_STARTER_PACK_TYPES = "envs.battlesnake.observing.starter_pack:StarterPackObservation"
_OBSERVATIONS = {
    "With type egocentric-planes: ": _PLANES,
    "With the starter pack's types: ": _STARTER_PACK_TYPES,
}
_OBSERVATION_TYPE = Option(
    "observation.type",
    "egocentric-planes",
    f"What a snake sees: egocentric-planes, or the starter pack's {', '.join(TYPES)}.",
)
_AUGMENT = (
    "Names of `agents.augment`, by which the pictures that the policy learns from are changed at"
    " random."
)
_NOT_OPTIONS = {"settings", "solo", "game", "pool", "render_mode"}


def world_options(name: str) -> list[Option]:
    """Return the options of a world as `env.options` takes them. There are none for a world that
    isn't procsnake's own.
    """
    paths = _WORLDS.get(_PROCGEN if name.startswith(_PROCGEN) else name, ())
    given = (
        inner
        for path in paths
        for option in _options(path)
        for inner in (option, *_within(option.name))
    )
    own = {option.name: option for option in given if option.name not in _NOT_OPTIONS}
    if not own:
        return []
    around = [Option("augment", None, _AUGMENT)]
    for prefix, path in _AROUND.items():
        if not (prefix == "self_play" and name.startswith(_PROCGEN)):
            around += [
                Option(f"{prefix}.{one.name}", one.default, one.meaning) for one in _options(path)
            ]
    return [
        *own.values(),
        *(option for option in around if option.name.rpartition(".")[2] not in _NOT_OPTIONS),
    ]


def _within(name: str) -> Iterator[Option]:
    """The options that an option of a Battlesnake world holds if it is given as a mapping."""
    if name == "rewards":
        yield from (
            replace(one, name=f"{name}.{one.name}")
            for one in _options("envs.battlesnake.rewards:Rewards")
        )
    if name == "observation":
        yield _OBSERVATION_TYPE
        for when, path in _OBSERVATIONS.items():
            fields = (one for one in _options(path) if one.name != "kind")  # which is the type
            yield from (
                replace(one, name=f"{name}.{one.name}", meaning=f"{when}{one.meaning}")
                for one in fields
            )


def network_options(name: str) -> list[Option]:
    """Return the options of a network, MXNet's kinds included, as `network.options` takes them.
    Raises `UnknownNameError`.

    There are none for a network that isn't procsnake's own.
    """
    if is_path(name):
        return []
    if name not in KINDS:
        class_path(name)
        if name not in NETWORK_OPTIONS:
            return []
    is_starter_pack = name in (_STARTER_PACK, *KINDS)
    declared = NETWORK_OPTIONS[_STARTER_PACK if is_starter_pack else name]
    options = list(_options(f"{declared.__module__}:{declared.__name__}"))
    if is_starter_pack:
        options += [option for option in _options(_SHAPE) if option.default != REQUIRED]
    if name in KINDS:
        return [option for option in options if option.name != "kind"]
    return options


def value_of(options: Mapping[str, Any], option: Option) -> Any:
    """Return the option's value in an experiment's options, or else its default; None within an
    option without options.
    """
    section, _, name = option.name.rpartition(".")
    value: Any = options.get(section) if section else options
    if isinstance(value, Mapping):
        return value.get(name, option.default)
    return None


def _options(path: str) -> Iterator[Option]:
    """Of `module:name`, a class or a function: the keyword-only arguments, as its docstring lists
    them ("* `name`: meaning"), or the fields if it is a dataclass.
    """
    module, _, name = path.partition(":")
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    node = next(
        one
        for one in tree.body
        if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == name
    )
    constants = {
        target.id: one.value
        for one in tree.body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    function = node if isinstance(node, ast.FunctionDef) else _init(node)
    if function is None:
        assert isinstance(node, ast.ClassDef)
        yield from _fields(node)
        return
    meanings = _listed(ast.get_docstring(node) or "")
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        yield Option(
            argument.arg,
            REQUIRED if default is None else _value(default),
            meanings.get(argument.arg, ""),
        )
    switches = constants.get("_SWITCHES")
    for switch, value in (ast.literal_eval(switches) if switches is not None else {}).items():
        yield Option(switch, value, meanings.get(switch, ""))


def _init(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next(
        (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"),
        None,
    )


def _fields(node: ast.ClassDef) -> Iterator[Option]:
    """The fields, each with the docstring that follows it."""
    meanings = docstrings_of(node)
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name = field.target.id
            yield Option(
                name,
                REQUIRED if field.value is None else _value(field.value),
                meanings.get(name, ""),
            )


def docstrings_of(node: ast.ClassDef | ast.FunctionDef) -> dict[str, str]:
    """Return the docstring that follows each field of a dataclass, by the field's name, in one
    line.
    """
    return {
        field.target.id: " ".join(str(after.value.value).split())
        for field, after in itertools.pairwise(node.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):  # of `dataclasses.field`
        node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), node)
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
    return list(value) if isinstance(value, tuple) else value


def _listed(docstring: str) -> dict[str, str]:
    """Return what a docstring's list says of each option: "* `name`: meaning"."""
    meanings = {}
    for item in docstring.split("\n* `")[1:]:
        text, _, _ = item.partition("\n\n")
        name, colon, meaning = " ".join(text.split()).partition("`: ")
        if colon:
            meanings[name] = meaning
    return meanings
