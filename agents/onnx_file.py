"""Checks that a network file is complete in itself. Servers don't have the package `onnx`, so the file is read without it.

ONNX lets a tensor name another file, or even an address in memory, where its data lie (onnx.proto: TensorProto's
`data_location` and `external_data`). The card's SHA-256 doesn't cover such data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""By message, the fields that hold messages in which there may be a tensor."""
_EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 13, 14, 1
_MAX_DEPTH = 32


def has_external_data(content: bytes) -> bool:
    """Whether the data of any tensor of the ONNX model lie outside the file. Raises `ValueError` if it is no ONNX model."""
    return _is_external(content, "model", _MAX_DEPTH)


def _is_external(message: bytes, kind: str, depth: int) -> bool:
    if depth == 0:
        raise ValueError(f"its graphs are nested more than {_MAX_DEPTH} deep")
    inside = _INSIDE[kind]
    for number, value in _fields(message):
        if kind == "tensor" and (number == _EXTERNAL_DATA or (number, value) == (_DATA_LOCATION, _EXTERNAL)):
            return True
        if number in inside and isinstance(value, bytes) and _is_external(value, inside[number], depth - 1):
            return True
    return False


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    try:
        # To a message without fields of its own, all fields are unknown, and listed as they come.
        read = Empty.FromString(message)
    except DecodeError as error:
        raise ValueError("it is no ONNX model") from error
    fields = UnknownFieldSet(read)
    return ((fields[k].field_number, fields[k].data) for k in range(len(fields)))
