"""Checks that a network file is complete in itself. Servers don't have the package `onnx`, so the
file is read without it.

ONNX lets a tensor name another file, or even an address in memory, where its data lie (onnx.proto:
TensorProto's `data_location` and `external_data`). The card's SHA-256 doesn't cover such data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""By message, the fields that hold messages in which there may be a tensor."""
_EXTERNAL_DATA = 13
_DATA_LOCATION = 14
_EXTERNAL = 1
_MAX_DEPTH = 32
_MAX_FIELDS = 1 << 18
_VARINT = 0
_EIGHT_BYTES = 1
_BYTES = 2
_FOUR_BYTES = 5
"""How the value of a field is written; groups, which Protocol Buffers also know, are in no ONNX
model.
"""


def has_external_data(content: bytes) -> bool:
    """Whether the data of any tensor of the ONNX model lie outside the file. Raises `ValueError` if
    it is no ONNX model.

    One of more than 262 144 fields, of which the largest champion has 1184, is none either.
    """
    return _Walk().finds_external_data(content, "model", _MAX_DEPTH)


class _Walk:
    """A walk through all messages of a model, which comes to an end after so many fields."""

    def __init__(self) -> None:
        self._left = _MAX_FIELDS

    def finds_external_data(self, message: bytes, kind: str, depth: int) -> bool:
        if depth == 0:
            raise ValueError(f"its graphs are nested more than {_MAX_DEPTH} deep")
        inside = _INSIDE[kind]
        for number, value in self._fields(message):
            if kind == "tensor" and (
                number == _EXTERNAL_DATA or (number, value) == (_DATA_LOCATION, _EXTERNAL)
            ):
                return True
            if (
                number in inside
                and isinstance(value, bytes)
                and self.finds_external_data(value, inside[number], depth - 1)
            ):
                return True
        return False

    def _fields(self, message: bytes) -> Iterator[tuple[int, Any]]:
        from google.protobuf.empty_pb2 import Empty
        from google.protobuf.message import DecodeError
        from google.protobuf.unknown_fields import UnknownFieldSet

        try:
            # To a message without fields of its own, all fields are unknown, and listed as they
            # come.
            read = Empty.FromString(message)
        except DecodeError as error:
            raise ValueError("it is no ONNX model") from error
        # A field of two bytes takes some eighty in the list.
        self._left -= _count_fields(message, self._left)
        if self._left < 0:
            raise ValueError(f"it has more than {_MAX_FIELDS} fields")
        fields = UnknownFieldSet(read)
        return ((fields[k].field_number, fields[k].data) for k in range(len(fields)))


def _count_fields(message: bytes, most: int) -> int:
    """The number of fields of a well-formed message, or `most` + 1 if there are more than
    `most`.
    """
    place = count = 0
    while place < len(message) and count <= most:
        tag, place = _varint(message, place)
        if tag & 7 == _BYTES:
            length, place = _varint(message, place)
            place += length
        elif tag & 7 == _VARINT:
            _, place = _varint(message, place)
        elif tag & 7 in (_EIGHT_BYTES, _FOUR_BYTES):
            place += 8 if tag & 7 == _EIGHT_BYTES else 4
        else:
            raise ValueError("it is no ONNX model")
        count += 1
    return count


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number that is written at `place`, seven bits a byte, and the place after it."""
    value = shift = 0
    while message[place] & 0x80:
        value |= (message[place] & 0x7F) << shift
        place = place + 1
        shift = shift + 7
    return value | message[place] << shift, place + 1
