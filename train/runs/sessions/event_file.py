"""TensorBoard's event files, written in whole rows."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.common.whole_files import not_through_links


class EventFile:
    """A TensorBoard event file to which each row is appended in one write.

    tensorboardX's own writer uses a thread, which prints tracebacks when the disk is full. The new
    file replaces the events of earlier files from step `first` on, because a resumed run does those
    steps again."""

    def __init__(self, folder: Path, *, first: int) -> None:
        from tensorboardX.proto.event_pb2 import SessionLog

        folder.mkdir(exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time_ns() // 1000}.{socket.gethostname()}"
        self._append(file_version="brain.Event:2")
        self._append(step=first, session_log=SessionLog(status=SessionLog.START))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Append one event with a scalar for each of `values`."""
        from tensorboardX.proto.summary_pb2 import Summary

        self._append(
            step=step,
            summary=Summary(
                value=[Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
            ),
        )

    def _append(self, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.record_writer import masked_crc32c

        content = Event(wall_time=time.time(), **fields).SerializeToString()
        length = struct.pack("<Q", len(content))
        checks = [struct.pack("<I", masked_crc32c(part)) for part in (length, content)]
        with open(self._path, "ab", buffering=0, opener=not_through_links) as file:
            file.write(length + checks[0] + content + checks[1])
