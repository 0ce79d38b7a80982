"""Files in S3 or in Google's Cloud Storage, and files there that are only written conditionally.

Files are copied by pyarrow's file systems. Credentials are those of the machine (environment,
profile, role). They are never part of an address, and so never written to a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from envs.common.addresses import scheme_of
from envs.common.errors import ConfigError, MissingDependencyError, pip_install
from train.runs.folder import RunError

SCHEMES = ("s3", "gs")
"""The schemes of addresses at which runs can be kept."""
_FORM = re.compile(
    r"(?P<scheme>s3|gs)://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(?P<key>[^?#@]*))?"
)


def is_address(place: str | os.PathLike[str]) -> bool:
    """Return whether `place` is an address in an object store, and not a folder."""
    return scheme_of(place) in SCHEMES


@dataclass(frozen=True)
class StoredFolder:
    """A folder in an object store."""

    scheme: str
    bucket: str
    key: str
    """The folder's path in the bucket, without slashes at its ends."""

    @classmethod
    def at(cls, address: str) -> StoredFolder:
        """Read an address as s3://bucket/runs. Raises `ConfigError` for any other form, such as one
        with a key or options.
        """
        match = _FORM.fullmatch(address)
        if not match:
            raise ConfigError(
                f"{address.partition('?')[0].rpartition('@')[2]!r} is not an address of runs; give"
                " s3://bucket/folder or gs://bucket/folder. Keys and options don't belong there:"
                " credentials come from the environment"
            )
        return cls(match["scheme"], match["bucket"], (match["key"] or "").strip("/"))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"

    def __truediv__(self, name: str) -> StoredFolder:
        return StoredFolder(self.scheme, self.bucket, f"{self.key}/{name}".strip("/"))

    @property
    def path(self) -> str:
        """The bucket with the key, as pyarrow's file systems name a folder."""
        return f"{self.bucket}/{self.key}".strip("/")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.path.rpartition("/")[2]

    @cached_property
    def _files(self) -> Any:
        from pyarrow import fs

        if self.scheme == "gs":
            return fs.GcsFileSystem()
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        with self._errors():
            return fs.S3FileSystem(
                endpoint_override=endpoint, region=region or fs.resolve_s3_region(self.bucket)
            )

    def names(self) -> list[str]:
        """Return the names of all files below, relative to this folder.

        A folder that doesn't exist has none."""
        from pyarrow import fs

        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        with self._errors():
            entries = self._files.get_file_info(selector)
        files = [entry.path for entry in entries if entry.type == fs.FileType.File]
        return [path.removeprefix(f"{self.path}/") for path in files]

    def send(self, file: Path, name: str) -> None:
        """Copy `file` into this folder as `name`, in place of an existing one.

        Readers see the old or the new one, never a part."""
        from pyarrow import fs

        with self._errors():
            fs.copy_files(str(file), f"{self.path}/{name}", fs.LocalFileSystem(), self._files)

    def fetch(self, name: str, file: Path) -> None:
        """Copy the file `name` of this folder to `file`."""
        from pyarrow import fs

        file.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            fs.copy_files(f"{self.path}/{name}", str(file), self._files, fs.LocalFileSystem())

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._errors():
            self._files.delete_file(f"{self.path}/{name}")

    def remove_folder(self, name: str) -> None:
        """Remove a folder whose files were removed. pyarrow leaves an empty object in its place."""
        from pyarrow import fs

        with self._errors():
            if self._files.get_file_info(f"{self.path}/{name}").type == fs.FileType.Directory:
                self._files.delete_dir(f"{self.path}/{name}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = " ".join(str(error).split())[:300]
            raise RunError(
                f"{self} can't be used: {reason}. Is there such a bucket, and do this machine's"
                " credentials allow it?"
            ) from error


class ConditionalFile(Protocol):
    """One small file that is only written if nobody else has written it in the meantime.

    A version is the store's identifier of a file's content."""

    def read(self) -> tuple[bytes, str, float] | None:
        """Return content, version, and age in seconds by the store's own clock; None if there is no
        such file.
        """

    def write(self, content: bytes, expected: str | None) -> str | None:
        """Write in place of the `expected` version; None expects no file.

        Returns the new version, or None if the expected one isn't there."""

    def remove(self) -> None:
        """Remove the file, if it is there."""


def conditional_file(folder: StoredFolder, name: str) -> ConditionalFile:
    """Return the file of this name in the folder. Raises `MissingDependencyError` if the store's
    client isn't installed.
    """
    key = f"{folder.key}/{name}".strip("/")
    if folder.scheme == "s3":
        return S3File(folder.bucket, key)
    return GoogleFile(folder.bucket, key)


class S3File:
    """A `ConditionalFile` in S3, written with If-Match and If-None-Match.

    boto3 has these conditions; pyarrow's file systems don't."""

    def __init__(self, bucket: str, key: str) -> None:
        try:
            import boto3
        except ImportError as error:
            raise MissingDependencyError(
                "boto3", feature="s3://", install=pip_install("procsnake[aws]")
            ) from error
        self._client = boto3.session.Session().client("s3")
        self._place = {"Bucket": bucket, "Key": key}

    def read(self) -> tuple[bytes, str, float] | None:
        """Return content, version and age in seconds; None if there is no such file."""
        answer = self._call("get_object")
        if answer is None:
            return None
        now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        return answer["Body"].read(), answer["ETag"], (now - answer["LastModified"]).total_seconds()

    def write(self, content: bytes, expected: str | None) -> str | None:
        """Write in place of the `expected` version. Returns the new version; None if another is
        there.
        """
        condition = {"IfNoneMatch": "*"}
        if expected is not None:
            condition = {"IfMatch": expected}
        answer = self._call("put_object", Body=content, **condition)
        if answer is None:
            return None
        return str(answer["ETag"])

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self._call("delete_object")

    def _call(self, operation: str, **arguments: Any) -> Any:
        """The answer; None where the file isn't there, or isn't what was expected."""
        from botocore.exceptions import BotoCoreError, ClientError

        place = f"s3://{self._place['Bucket']}/{self._place['Key']}"
        try:
            return getattr(self._client, operation)(**self._place, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_AS_EXPECTED:
                return None
            raise RunError(f"{place} can't be used: {error}") from error
        except BotoCoreError as error:
            raise RunError(f"{place} can't be reached: {error}") from error


_NOT_AS_EXPECTED = ("NoSuchKey", "PreconditionFailed", "ConditionalRequestConflict")


class GoogleFile:
    """A `ConditionalFile` in Google's Cloud Storage. An object's generation is its version.

    It was written from the JSON API's documentation, and never tested against Google."""

    def __init__(self, bucket: str, key: str) -> None:
        from urllib.parse import quote

        emulator = os.environ.get("STORAGE_EMULATOR_HOST")
        if emulator:
            self._session = _without_credentials()
        else:
            self._session = _with_credentials()
        self._place = f"gs://{bucket}/{key}"
        self._key = key
        root = (emulator or "https://storage.googleapis.com").rstrip("/")
        self._object = f"{root}/storage/v1/b/{bucket}/o/{quote(key, safe='')}"
        self._upload = f"{root}/upload/storage/v1/b/{bucket}/o"

    def read(self) -> tuple[bytes, str, float] | None:
        """Return content, version and age in seconds; None if there is no such file."""
        answer = self._call("GET", self._object, params={"alt": "media"})
        if answer is None:
            return None
        now, then = (
            parsedate_to_datetime(answer.headers[name]) for name in ("Date", "Last-Modified")
        )
        return answer.content, answer.headers["x-goog-generation"], (now - then).total_seconds()

    def write(self, content: bytes, expected: str | None) -> str | None:
        """Write in place of the `expected` version. Returns the new version; None if another is
        there.
        """
        options = {"uploadType": "media", "name": self._key, "ifGenerationMatch": expected or "0"}
        answer = self._call("POST", self._upload, params=options, data=content)
        if answer is None:
            return None
        return str(json.loads(answer.content)["generation"])

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self._call("DELETE", self._object)

    def _call(self, method: str, url: str, **arguments: Any) -> Any:
        import requests

        try:
            answer = self._session.request(method, url, timeout=60, **arguments)
        except requests.RequestException as error:
            raise RunError(f"{self._place} can't be reached: {error}") from error
        if answer.status_code in (404, 412):
            return None
        if not answer.ok:
            raise RunError(f"{self._place} can't be used: {answer.status_code} {answer.reason}")
        return answer


def _without_credentials() -> Any:
    import requests

    return requests.Session()


def _with_credentials() -> Any:
    """A session with the credentials of this machine. Raises `RunError` if there are none."""
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import AuthorizedSession
    except ImportError as error:
        raise MissingDependencyError(
            "google-auth", feature="gs://", install=pip_install("google-auth")
        ) from error
    try:
        credentials, _ = google.auth.default(
            scopes=["https://www.googleapis.com/auth/devstorage.read_write"]
        )
    except GoogleAuthError as error:
        raise RunError(f"gs:// can't be used: {error}") from error
    return AuthorizedSession(credentials)
