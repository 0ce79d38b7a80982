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


class OptionsFileError(ProcsnakeError):
    """A file of options can't be read, or is for another agent."""


@dataclass(frozen=True, kw_only=True)
class OptionsFile:
    """Options of an agent, with where they come from, and whether they are better than the options
    before.
    """

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
            found = cls(**data)
            if not isinstance(found.options, dict) or not all(
                isinstance(name, str) for name in found.options
            ):
                raise ValueError("its options are no names with values")
            if not isinstance(found.tuning, dict):
                raise ValueError(f"its tuning is {found.tuning!r:.50}, not names with values")
            for name, kind in (
                ("agent", str),
                ("against", str),
                ("accepted", bool),
                ("test", dict | None),
            ):
                if not isinstance(getattr(found, name), kind):
                    raise ValueError(f"its {name} is {getattr(found, name)!r:.50}")
        except OSError as error:
            raise OptionsFileError(f"{path} can't be read: {error.strerror or error}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise OptionsFileError(
                f"{path} is no file of options ({error}). procsnake tune writes such files"
            ) from error
        return found

    def is_of_the_same_test(self, other: OptionsFile) -> bool:
        """Return whether a verdict on the options of `other` is one on these."""
        return (self.agent, self.options, self.against) == (
            other.agent,
            other.options,
            other.against,
        )

    def write(self, path: Path) -> None:
        """Write the file as YAML. Raises `ConfigError` if it can't be written."""
        head = (
            "# It has passed a sequential test."
            if self.accepted
            else "# NOT ACCEPTED: it has passed no sequential test."
        )
        data = {"procsnake_options": _VERSION, **asdict(self)}
        write_whole(path, f"{head}\n{yaml.safe_dump(data, sort_keys=False)}")


def read_options(path: str, agent: str) -> Mapping[str, Any]:
    """Return the options in the file at `path` for the agent of this name. Raises
    `OptionsFileError` if it is another's.
    """
    found = OptionsFile.read(path)
    if found.agent != agent.rpartition("+")[2]:
        raise OptionsFileError(f"{path} has options of {found.agent!r}, not of {agent!r}")
    return found.options
