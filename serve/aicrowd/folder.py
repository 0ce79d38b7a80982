"""Writes an export into a folder that may hold an older one, without losing the user's changes
there.

`.procsnake-export.json` lists what the exporter wrote. All other files, and files changed since,
are the user's and stay. If the new export would overwrite one of them, the whole export is refused
before anything is touched."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_json, read_text
from serve.aicrowd.git_files import listed_files

MANIFEST = ".procsnake-export.json"
MAX_JSON_BYTES = 4 << 20
_OLDER_EXPORT = "models/procsnake_tf.py"
"""A file by which an export is known that was written before there was a manifest."""

Files = dict[str, bytes]


def read_manifest(target: Path) -> dict[str, Any]:
    """Return the exporter's manifest: `files` (path → SHA-256) and `description`; empty without
    one.

    The folder may be untrusted, so `files` leaves out impossible entries, such as paths out of
    the folder."""
    manifest = read_json(target / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict):
        return {}
    own_files = {
        name: digest
        for name, digest in files.items()
        if digest and isinstance(digest, str) and _is_inside(target, name)
    }
    return {**manifest, "files": own_files}


def _is_inside(target: Path, name: str) -> bool:
    """Whether a path is that of something in the folder, also if folders within are links."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        return False
    try:
        parent = Path(os.path.realpath((target / path).parent))
    except ValueError:  # No file system has a name with a NUL or half of a surrogate pair.
        return False
    return parent.is_relative_to(os.path.realpath(target))


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file is missing, holds something else, or is a
    link out of its folder, which may be untrusted.
    """
    try:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(path.parent)):
            return {}
        content = parse_json(read_text(path, MAX_JSON_BYTES))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True)
class Written:
    """The fate of an older export's files."""

    kept: list[str]
    """The paths that were left as the user has them."""
    removed: list[str]
    """The paths of the older export that the new one doesn't have."""


def write(
    target: Path,
    files: Mapping[str, bytes],
    *,
    description: str,
    merged: Collection[str] = (),
    of_the_kit: Collection[str] = (),
) -> Written:
    """Write `files` to `target`.

    `merged`: paths whose new content includes the user's changes. `of_the_kit`: paths that are also
    in the starter kit. The folder appears whole or not at all. Raises `ConfigError` if it holds
    something other than an export, if files that the user changed would be overwritten, if files of
    a starter kit would be removed, if it is the working directory or around it, or if it can't be
    written."""
    target = Path(os.path.realpath(target))
    _require_apart_from_work(target)
    kept, gone = _reconcile(target, files, merged)
    if not of_the_kit:
        _require_no_kit(target)
    written = {name: content for name, content in files.items() if name not in kept}
    # A file that was kept stays the user's in the next export, too.
    old = read_manifest(target).get("files", {})
    hashes = {name: old[name] for name in kept if name in old} | {
        name: _hash(content) for name, content in written.items()
    }
    about = {"description": description, "files": hashes, "of_the_kit": sorted(of_the_kit)}
    manifest = json.dumps(about, indent=1, sort_keys=True) + "\n"
    try:
        _replace(target, {**written, MANIFEST: manifest.encode()}, gone)
    except OSError as error:
        raise ConfigError(
            f"{target} can't be written: {error.strerror or error}. Choose another place with --out"
        ) from error
    return Written(kept, gone)


def _require_no_kit(target: Path) -> None:
    """Refuse to take the starter kit's files out of an entry that was merged with it."""
    theirs = read_json(target / MANIFEST).get("of_the_kit")
    if isinstance(theirs, list) and theirs:
        raise ConfigError(
            f"{target} was merged with the starter kit, and without it {len(theirs)} files of the"
            f" kit would be removed or replaced: {', '.join(map(str, theirs[:5]))}, … Nothing was"
            " changed. Name the clone again: --starter-kit CLONE; or choose another folder with"
            " --out"
        )


def _require_apart_from_work(target: Path) -> None:
    """A shell in the folder would be left in the old one, which is deleted."""
    here = Path(os.path.realpath(os.curdir))
    if target in (here, *here.parents):
        raise ConfigError(
            f"{target} is the folder in which you work, or holds it, and an export replaces the"
            " whole folder. Choose another one with --out, or leave it first:"
            f" {shlex.join(['cd', str(target.parent)])}"
        )


def _reconcile(
    target: Path, files: Mapping[str, bytes], merged: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the paths that stay as the user has them, and the paths of the older export that are
    removed.
    """
    if not os.path.lexists(target):
        return [], []
    if not _is_replaceable(target):
        raise ConfigError(
            f"{target} exists and is not an export of procsnake, so it is not replaced. Choose"
            " another folder with --out"
        )
    base = read_manifest(target).get("files", {})
    kept: list[str] = []
    conflicts: list[str] = []
    for name, content in files.items():
        present = _hash_of(target / name)
        if not _is_inside(target, name):
            conflicts.append(name)
        if name in merged or present is None or present in (_hash(content), base.get(name)):
            continue
        if base.get(name) == _hash(content):
            kept.append(name)
        else:
            conflicts.append(name)
    if conflicts:
        aside = Path(f"{target}-before")
        raise ConfigError(
            f"{target} holds files that aren't as the exporter wrote them, and the new export would"
            f" overwrite them: {', '.join(conflicts)}. Nothing was changed. Export to another"
            " folder with --out, or put this one aside:"
            f" {shlex.join(['mv', str(target), str(aside)])}"
        )
    gone = [
        name
        for name, digest in base.items()
        if name not in files and _hash_of(target / name) == digest
    ]
    mine = [
        name
        for name in base
        if name not in files and _hash_of(target / name) not in (None, base[name])
    ]
    listed = {str(path) for path in listed_files(target)} - {MANIFEST}
    strangers = sorted(listed - base.keys() - set(files))
    return [*kept, *mine, *strangers], gone


def _replace(target: Path, files: Mapping[str, bytes], gone: list[str]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    old = fresh.with_suffix(".old")
    try:
        if target.exists():
            # Links to the same content: a virtual environment of gigabytes isn't copied.
            shutil.copytree(
                target, fresh, symlinks=True, dirs_exist_ok=True, copy_function=_link_or_copy
            )
            _require_no_way_out(fresh, target, [*gone, *files])
        for name in gone:
            (fresh / name).unlink()
            _remove_empty(fresh / name, fresh)
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # The old folder has the same file under its own name, and stays as it is.
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            if content.startswith(b"#!"):
                path.chmod(0o755)
        fresh.chmod(0o755)
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(fresh, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _link_or_copy(source: str, destination: str) -> str:
    try:
        os.link(source, destination)
    except OSError:  # Not every file system has hard links, nor lets us make them.
        return str(shutil.copy2(source, destination))
    return destination


def _require_no_way_out(fresh: Path, target: Path, names: Collection[str]) -> None:
    """A link to where the older export lies, or lay, is inside that one, but leads out of its
    copy.
    """
    for name in names:
        if not _is_inside(fresh, name):
            raise ConfigError(
                f"{target / name} would be written through a link into a folder that this export"
                " replaces. Nothing was changed. Put a folder in the link's place, or a link by a"
                f" relative path within {target}; or choose another --out"
            )


def _remove_empty(path: Path, root: Path) -> None:
    for parent in path.parents:
        if parent == root or any(parent.iterdir()):
            return
        parent.rmdir()


def _is_replaceable(target: Path) -> bool:
    """Whether the folder is empty, a fresh clone of the team's repository, or an older export."""
    if not target.is_dir():
        return False
    is_export = bool(read_manifest(target)) or (target / _OLDER_EXPORT).is_file()
    return is_export or {path.name for path in target.iterdir()} <= {".git"}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_of(path: Path) -> str | None:
    """None if nothing is there, or "" if it isn't a file, because then it can only be the
    user's.
    """
    if not os.path.lexists(path):
        return None
    try:
        # A device could be read for ever.
        return _hash(path.read_bytes()) if path.is_file() else ""
    except OSError:
        return ""
