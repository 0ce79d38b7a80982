"""Packs the source that a job carries: procsnake as it is here, the experiment, and users'
files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from envs.common.errors import ConfigError

ARCHIVE = "source.tar.gz"
EXPERIMENT_FILE = "experiment.yaml"
_ROOT = Path(__file__).parents[2]
_FLOORS = ("envs", "agents", "train")
LEFT_OUT = ("__pycache__", "node_modules")
SECRETS = (".pem", ".key", ".p12", ".env", "credentials", "id_rsa", "id_ed25519")
_MOST_BYTES = 50 * 2**20


def pack(experiment: str, include: Iterable[str | Path] = ()) -> bytes:
    """Return a tar.gz with procsnake's packages, `experiment` (YAML), and the files and folders of
    `include` at its top.

    With the packages comes `procsnake_packages.py`, which they import. The same input gives the
    same bytes. Hidden files are left out. Raises `ConfigError` for files that don't exist or look
    like secrets, for paths that end in "..", and if all are larger than 50 MiB together."""
    own = [_ROOT / "procsnake_packages.py"]
    for floor in _FLOORS:
        own += _files(_ROOT / floor)
    files = {f"{path.relative_to(_ROOT)}": path for path in own}
    for added in map(Path, include):
        if not added.exists():
            raise ConfigError(f"{added} is to be included, but there is no such file or folder")
        if added.name == "..":
            raise ConfigError(
                f"{added} is to be included, but its name says nothing of what it is; give it as"
                f" {added.resolve()}"
            )
        if not (added.is_dir() or added.is_file()):
            raise ConfigError(f"{added} is to be included, but it is neither a file nor a folder")
        if added.is_dir():
            files |= {f"{path.relative_to(added.parent)}": path for path in _files(added)}
        else:
            files[added.name] = added
    for name in files:
        if name.endswith(SECRETS):
            raise ConfigError(
                f"{name} looks like a secret, which must not lie beside a job's source"
            )
    size = sum(path.stat().st_size for path in files.values()) + len(experiment.encode())
    if size > _MOST_BYTES:
        raise ConfigError(
            f"the source has {size / 2**20:.0f} MiB; 50 is the most. Large data belongs into the"
            " image"
        )
    contents = {name: path.read_bytes() for name, path in files.items()}
    return archive({**contents, EXPERIMENT_FILE: experiment.encode()})


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        is_left_out = any(part.startswith(".") or part in LEFT_OUT for part in inside)
        if path.is_file() and not is_left_out:
            yield path


def archive(contents: dict[str, bytes]) -> bytes:
    """Return a tar.gz of files by their names. The same files give the same bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name in sorted(contents):
            entry = tarfile.TarInfo(name)
            entry.size = len(contents[name])
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(contents[name]))
    return packed.getvalue()
