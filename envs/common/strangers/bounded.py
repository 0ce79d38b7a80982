"""Reads untrusted files: at most up to a bound, and with a `ValueError` for whatever is wrong."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import yaml

MAX_YAML_BYTES = 256 << 10
MAX_YAML_VALUES = 50_000
PIECE_BYTES = 1 << 20
_EXACT = 1 << 53
"""Below it, a float holds each integer exactly."""
DAMAGED_ARRAYS = (
    OSError,
    ValueError,
    LookupError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    TokenError,
    TypeError,
    AttributeError,
)
"""All that NumPy and zipfile raise for an `.npz` in which some byte was changed, or for a file that
is one array.
"""


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the file's content. Raises `ValueError` if it has more than `limit` bytes or is no
    regular file, and `OSError`.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError("it is not a regular file")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"it has {size} bytes, more than {limit}")
        # It may grow meanwhile.
        return file.read(size)


def read_text(path: str | os.PathLike[str], limit: int) -> str:
    """Return the file's content as UTF-8 text. Raises what `read_bytes` raises."""
    return read_bytes(path, limit).decode("utf-8")


def parse_json(text: str | bytes, *, whole_floats_as_integers: bool = False) -> Any:
    """Return the value of a JSON text. Raises `ValueError` if it isn't one.

    With `whole_floats_as_integers`, 90.0 is read as 90, because JSON has only one kind of number
    and some programs write all of them as floats."""
    parse_float = _integer_if_whole if whole_floats_as_integers else None
    try:
        return json.loads(text, parse_float=parse_float)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _integer_if_whole(text: str) -> float:
    value = float(text)
    if value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text of at most 256 KiB, which with its aliases may have 50 000
    values in all.

    Raises `ValueError` for any other text.
    """
    if len(text) > MAX_YAML_BYTES:
        raise ValueError(f"it has {len(text)} characters, more than {MAX_YAML_BYTES}")
    try:
        value = yaml.load(text, _Loader)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (
        yaml.YAMLError,
        ValueError,
        AttributeError,
        LookupError,
        TypeError,
        OverflowError,
    ) as error:
        # PyYAML's readers of dates and numbers raise whatever comes first.
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
    _require_few_values(value)
    return value


_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader. It copies what merge keys (`<<`) name, so a mapping of mappings of …
    fills the memory while it is read; here a text has at most 50 000 copies. And it takes 1000:50,
    which are levels, for 60050, a number to the base of 60; here it is text. PyYAML's dumper quotes
    such texts, so what was written before is read as it was."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._copied = 0

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        tag: str = super().resolve(kind, value, implicit)
        is_of_base_60 = kind is yaml.ScalarNode and ":" in value and tag in _NUMBERS
        if is_of_base_60:
            return "tag:yaml.org,2002:str"
        return tag

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
        for value in merged:
            parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for part in parts:
                if isinstance(part, yaml.MappingNode):
                    self.flatten_mapping(part)
                    self._copied += len(part.value)
                if self._copied > MAX_YAML_VALUES:
                    raise ValueError(f"its merge keys copy more than {MAX_YAML_VALUES} values")
        super().flatten_mapping(node)


def _require_few_values(value: Any) -> None:
    """Raise `ValueError` for more than `MAX_YAML_VALUES` values, with aliases counted as copies.

    Nine aliases of nine aliases … are few in the file, and many as soon as they are copied."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if count > MAX_YAML_VALUES:
            raise ValueError(f"it holds more than {MAX_YAML_VALUES} values")
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def inflate(data: bytes, limit: int) -> bytes:
    """Undo `zlib.compress`. Raises `ValueError` if the result has more than `limit` bytes, or if
    `data` is damaged.
    """
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(content) > limit:
        raise ValueError(f"it inflates to more than {limit} bytes")
    if not inflater.eof:
        raise ValueError("it was cut off")
    return content


def refuse_unbounded(member: zipfile.ZipInfo) -> None:
    """Raise `ValueError` if a member of an archive is neither stored nor deflated.

    `zipfile` would unpack all others at once, whatever their size, and raise errors that aren't its
    own."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(
            f"{member.filename} is compressed by method {member.compress_type}; pack it with"
            " deflate, as zip does"
        )


class InPieces(io.FileIO):
    """A file for `zipfile`, which reads an archive's table of contents in one piece. Pieces of more
    than 1 MiB are refused.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= PIECE_BYTES:
            size = PIECE_BYTES + 1
        content = super().read(size)
        if len(content) > PIECE_BYTES:
            raise ValueError(
                f"its table of contents, or a piece of it, has more than {PIECE_BYTES} bytes"
            )
        return content
