"""Users' own parts: networks, observation types and rewards from outside procsnake.

A part has a name under which it was registered, the name of an entry point of an installed package,
or is "module:name"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module, metadata
from typing import Any

from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError
from envs.common.users_code import users_place_of

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_imported: set[str] = set()


class Parts:
    """One kind of parts, by name: the built-in ones and users' own.

    `kind` names them in errors, and `group` is the entry point group in which packages list theirs.
    `built_in` maps each name to a part, or to "module:name"."""

    def __init__(self, kind: str, group: str, built_in: Mapping[str, Any]) -> None:
        self.kind = kind
        self.group = group
        self._parts = dict(built_in)

    def register(self, name: str, part: Any) -> None:
        """Add a part under `name`, or its place as "module:name", which is imported when the part
        is first needed.
        """
        self._parts[name] = part

    def names(self) -> list[str]:
        """Return all names, sorted, without those of the form "module:name"."""
        return sorted({*self._parts, *self._installed()})

    def find(self, name: str) -> Any:
        """Return the part of that name.

        Raises `UnknownNameError` for a name that isn't there, and `ConfigError` for a "module:name"
        whose module can't be imported, or wasn't named to this process with `import_modules`,
        because untrusted files hold such names, too."""
        part = self._of(name)
        if isinstance(part, str):
            return self._load(part, name)
        return part

    def path(self, name: str) -> str:
        """Return the part's "module:name" without importing it. Raises what `find` raises."""
        part = self._of(name)
        if isinstance(part, str):
            return part
        return f"{part.__module__}:{part.__qualname__}"

    def name_of(self, part: Any) -> str:
        """Return the name under which a class or function was registered, or else its
        "module:name".
        """
        place = f"{part.__module__}:{part.__qualname__}"
        for name, registered in self._parts.items():
            if registered is part or registered == place:
                return name
        return place

    def has(self, name: str) -> bool:
        """Whether `find` knows the name, or would look for it in a module."""
        return name in self._parts or is_path(name) or name in self._installed()

    def _of(self, name: str) -> Any:
        if name in self._parts:
            return self._parts[name]
        if (place := self._installed().get(name)) is not None:
            return place
        if not is_path(name):
            raise UnknownNameError(
                self.kind, name, self.names(), hint='One of your own is named "module:name".'
            )
        module = name.partition(":")[0]
        if module not in _imported and name not in self._installed().values():
            raise ConfigError(
                f"{self.kind} {name!r} is code in the module {module!r}, which this process was not"
                f" told to import. If you trust it, name the module: --imports {module}, or in an"
                f" experiment env.imports: [{module}]; or install it as a package with an entry"
                " point (docs/your-own-parts.md)"
            )
        return name

    def _installed(self) -> dict[str, str]:
        """Return where the parts of installed packages are, as "module:name", by their entry
        points' names.
        """
        return {point.name: point.value for point in metadata.entry_points(group=self.group)}

    def _load(self, place: str, name: str) -> Any:
        module, _, attribute = place.partition(":")
        loaded = imported(module, f"{self.kind} {name!r}")
        if not hasattr(loaded, attribute):
            raise UnknownNameError(
                f"{self.kind} in {module}",
                attribute,
                [one for one in vars(loaded) if one[0] != "_"],
            )
        return getattr(loaded, attribute)


def is_path(text: str) -> bool:
    """Whether a text has the form "module:name"."""
    return _PATH.fullmatch(text) is not None


def modules_named_in(value: Any) -> Iterator[str]:
    """Yield the modules of all texts "module:name" within plain values, such as the options of an
    experiment's world.
    """
    if isinstance(value, str) and is_path(value):
        yield value.partition(":")[0]
    elif isinstance(value, Mapping):
        yield from modules_named_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from modules_named_in(item)


def import_modules(names: Iterable[str]) -> None:
    """Import modules that hold or register parts of a user's own, and let `Parts.find` use them.

    Call it only for modules that the user named. Raises `ConfigError` for a module that can't be
    imported."""
    for name in names:
        imported(name, "env.imports, or a name like my_module:Net")
        _imported.add(name)


def imported(module: str, what: str) -> Any:
    """Return the module, which `what` needs.

    Raises `ConfigError` if it is missing or fails, and `ModuleNotFoundError` if a package of one of
    our extras is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if MissingDependencyError.of_extra(error, feature=what):
            raise  # The command line names the extra.
        if not (error.name and f"{module}.".startswith(f"{error.name}.")):
            raise ConfigError(
                f"{what}: the module {module!r} can't be imported: {error}"
            ) from error
        where = f"{module.partition('.')[0]}.py"
        raise ConfigError(
            f"{what}: the module {module!r} can't be imported: there is none where Python looks. If"
            f" {where} is in this folder: export PYTHONPATH=."
        ) from error
    except Exception as error:
        # A SyntaxError says its line itself.
        place = "" if isinstance(error, SyntaxError) else users_place_of(error)
        raise ConfigError(
            f"{what}: the module {module!r} can't be imported: {type(error).__name__}:"
            f" {error}{place}"
        ) from error
