"""Files of an agent's options, which a tuning writes. To use one:
`agents.make("alphabeta?options=FILE.yaml")`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from envs.common.errors import ProcsnakeError
from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_yaml, read_text
from envs.common.whole_files import write_whole

_VERSION = 1
_FIELD_TYPES: dict[str, Any] = {
    "agent": str,
    "options": dict,
    "against": str,
    "accepted": bool,
    "tuning": dict,
    "test": dict | None,
}


class OptionsFileError(ProcsnakeError):
    """A file of options can't be read, or is for another agent."""


@dataclass(frozen=True, kw_only=True)
class OptionsFile:
    """An agent's options, with their origin and whether they are better than the previous ones."""

    agent: str
    """The agent whose options they are, such as "alphabeta"."""
    options: dict[str, Any]
    """The options as `agents.make` takes them. The weights of an evaluation are a mapping of their
    own.
    """
    against: str
    """The player whose options these are to replace, as `agents.make` takes it."""
    accepted: bool = False
    """Whether a sequential test has found them better than those of `against`."""
    tuning: dict[str, Any] = field(default_factory=dict)
    """How the options were found."""
    test: dict[str, Any] | None = None
    """The result of the sequential test, or None before there was one."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> OptionsFile:
        """Read what `write` has written. Raises `OptionsFileError` for anything else."""
        try:
            data = parse_yaml(read_text(path, MAX_YAML_BYTES))
            if data.pop("procsnake_options") != _VERSION:
                raise ValueError(f"this procsnake reads version {_VERSION}")
            file = cls(**data)
            file._check_types()
        except OSError as error:
            raise OptionsFileError(f"{path} can't be read: {error.strerror or error}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise OptionsFileError(
                f"{path} is not a file of options ({error}). procsnake tune-search writes one"
            ) from error
        return file

    def _check_types(self) -> None:
        """Raise `ValueError` for a field of another type than its own."""
        for field_name, kind in _FIELD_TYPES.items():
            value = getattr(self, field_name)
            if not isinstance(value, kind):
                raise ValueError(f"its {field_name} is {value!r:.50}")
        if not all(isinstance(name, str) for name in self.options):
            raise ValueError("its options are not names with values")

    def is_of_the_same_test(self, other: OptionsFile) -> bool:
        """Return whether a verdict on `other` also holds for these options."""
        return (self.agent, self.options, self.against) == (
            other.agent,
            other.options,
            other.against,
        )

    def write(self, path: Path) -> None:
        """Write the file as YAML. Raises `ConfigError` if it can't be written."""
        if self.accepted:
            head = "# It has passed a sequential test."
        else:
            head = "# NOT ACCEPTED: it has passed no sequential test."
        data = {"procsnake_options": _VERSION, **asdict(self)}
        write_whole(path, f"{head}\n{yaml.safe_dump(data, sort_keys=False)}")


def read_options(path: str, agent: str) -> Mapping[str, Any]:
    """Return the options in the file at `path` for the agent of this name. Raises
    `OptionsFileError` if it is another's.
    """
    file = OptionsFile.read(path)
    if file.agent != agent:
        raise OptionsFileError(f"{path} has options of {file.agent!r}, not of {agent!r}")
    return file.options
