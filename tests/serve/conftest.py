"""Before servers listen, once for all tests here: no request waits for kernels to be compiled. And
where games are kept.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import agents
from serve.archive.store import GameStore
from serve.server import warm_up

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def warm():
    warm_up({name: agents.make(name) for name in ("flood", "greedy")})


@pytest.fixture
def store(tmp_path):
    """Of games, in a file of the test's own."""
    store = GameStore(f"sqlite:///{tmp_path}/games.db")
    yield store
    store.close()


def _postgres_programs() -> Path:
    """Debian keeps them off the PATH."""
    found = shutil.which("initdb") or next(
        map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None
    )
    if found is None:
        pytest.fail("PostgreSQL is not installed; as root: apt-get install -y postgresql")
    return Path(found).resolve().parent


@pytest.fixture(scope="session")
def postgres():
    """The folder with the socket of a PostgreSQL server of our own."""
    programs = _postgres_programs()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    who = {}
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
        who = {"user": "postgres"}
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **who}
    subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-U", "postgres", "--no-sync", "-A", "trust"],
        **quiet,
    )
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    subprocess.run(
        [
            programs / "pg_ctl",
            "-D",
            folder / "data",
            "-w",
            "-o",
            options,
            "-l",
            folder / "log",
            "start",
        ],
        **quiet,
    )
    yield folder
    subprocess.run([programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres):
    """The URL of an empty database there."""
    name = f"games{next(_numbers)}"
    subprocess.run(
        ["psql", "-q", "-h", postgres, "-U", "postgres", "-c", f"CREATE DATABASE {name}"],
        check=True,
    )
    return f"postgres://postgres@/{name}?host={postgres}"
