"""Checks that a network file is self-contained. Servers lack the package `onnx`, so the file is
read without it.

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
    """Return whether the data of any tensor of the ONNX model lie outside the file.

    Raises `ValueError` if it is not an ONNX model, or has more than 262 144 fields. (The largest
    champion has 1184.)"""
    return _Walk().finds_external_data(content, "model", _MAX_DEPTH)


class _Walk:
    """A walk through all messages of a model, which comes to an end after so many fields."""

    def __init__(self) -> None:
        self._left = _MAX_FIELDS

    def finds_external_data(self, message: bytes, kind: str, depth: int) -> bool:
        """Return whether the data of a tensor in the message, which is of this kind, lie
        outside.
        """
        if depth == 0:
            raise ValueError(f"its graphs are nested more than {_MAX_DEPTH} deep")
        inside = _INSIDE[kind]
        for number, value in self._fields(message):
            if kind == "tensor":
                if number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value == _EXTERNAL):
                    return True
            elif number in inside and isinstance(value, bytes):
                if self.finds_external_data(value, inside[number], depth - 1):
                    return True
        return False

    def _fields(self, message: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the number and the value of each field of a message. Raises `ValueError`."""
        from google.protobuf.empty_pb2 import Empty
        from google.protobuf.message import DecodeError
        from google.protobuf.unknown_fields import UnknownFieldSet

        try:
            # To a message without fields of its own, all fields are unknown, and listed as they
            # come.
            parsed = Empty.FromString(message)
        except DecodeError as error:
            raise ValueError("it is not an ONNX model") from error
        # A field of two bytes takes some eighty in the list.
        self._left -= _count_fields(message, self._left)
        if self._left < 0:
            raise ValueError(f"it has more than {_MAX_FIELDS} fields")
        fields = UnknownFieldSet(parsed)
        return ((fields[k].field_number, fields[k].data) for k in range(len(fields)))


def _count_fields(message: bytes, most: int) -> int:
    """Return the number of fields of a well-formed message, or `most` + 1 if there are more than
    `most`.
    """
    place = 0
    count = 0
    while place < len(message) and count <= most:
        tag, place = _varint(message, place)
        if tag & 7 == _BYTES:
            length, place = _varint(message, place)
            place += length
        elif tag & 7 == _VARINT:
            _, place = _varint(message, place)
        elif tag & 7 == _EIGHT_BYTES:
            place += 8
        elif tag & 7 == _FOUR_BYTES:
            place += 4
        else:
            raise ValueError("it is not an ONNX model")
        count += 1
    return count


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the number that is written at `place`, seven bits per byte, and the place after it."""
    value = 0
    shift = 0
    while message[place] & 0x80:
        value |= (message[place] & 0x7F) << shift
        place = place + 1
        shift = shift + 7
    return value | message[place] << shift, place + 1
