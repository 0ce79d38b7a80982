"""Makes the journal by which a SQLite file that is opened deletes another file."""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_PAGE = 4096
_SECTOR = 512
_LOCKED_BYTES = 0x40000000


def write_journal(database: Path, *, names: Path) -> None:
    """Write a rollback journal beside a database with pages of 4096 bytes.

    By SQLite's file format, it holds no pages, and says that it belongs to a transaction over
    several databases whose super- journal is the file `names`. SQLite deletes such a file once no
    journal that it lists is left."""
    name = bytes(names)
    checksum = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
    header = _MAGIC + struct.pack(">5I", 0, 0, database.stat().st_size // _PAGE, _SECTOR, _PAGE)
    locked_page = struct.pack(">I", _LOCKED_BYTES // _PAGE + 1)
    super_journal = locked_page + name + struct.pack(">2I", len(name), checksum) + _MAGIC
    Path(f"{database}-journal").write_bytes(header.ljust(_SECTOR, b"\0") + super_journal)
