"""A stand-in for the Hugging Face Hub, written from what huggingface_hub 2.4 asks and expects of
it, refusals included.

Models only, and files over LFS, not Xet. It keeps what is committed, and accepts nothing that isn't
listed here."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.http_server import QuietHandler, serving

TOKEN = "hf_adas-token"
READ_TOKEN = "hf_adas-token-for-reading"
OTHERS_TOKEN = "hf_bobs-token"
ACCOUNTS = {TOKEN: ("ada", True), READ_TOKEN: ("ada", False), OTHERS_TOKEN: ("bob", True)}
"""The owner of each token, and whether it may write."""
LFS_SUFFIXES = (".onnx", ".safetensors", ".bin", ".pt", ".pkl")
"""As in the .gitattributes that the Hub writes into a new model."""
HARNESSES = "/api/agent-harnesses"
"""The library asks this by itself, once in a process. It doesn't count as asked."""
LFS_TYPE = "application/vnd.git-lfs+json"
MAX_REGULAR = 10 << 20
Files = dict[str, bytes]


class Refused(Exception):
    """An answer other than 200, with the headers by which the library tells failures apart."""

    def __init__(self, status: int, code: str = "", message: str = "", body: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body if body is not None else {"error": message or code}
        self.headers = {
            **({"X-Error-Code": code} if code else {}),
            **({"X-Error-Message": message} if message else {}),
        }


@dataclass
class Model:
    """A repository: its commits, and the commits that its branches and tags stand for."""

    private: bool = False
    gated: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: Files, branch: str = "main", message: str = "") -> str:
        """Add a commit with these files beside those that are there. Returns its hash."""
        content = {**self.commits.get(self.branches.get(branch, ""), {}), **files}
        told = repr(
            [
                sorted((path, hashlib.sha256(data).hexdigest()) for path, data in content.items()),
                len(self.commits),
            ]
        )
        sha = hashlib.sha1(told.encode()).hexdigest()
        self.commits[sha] = content
        self.branches[branch] = sha
        self.messages.append(message)
        return sha

    def find(self, revision: str) -> str:
        sha = self.branches.get(revision) or self.tags.get(revision) or revision
        if sha not in self.commits:
            raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha


@dataclass
class Hub:
    """What the stand-in knows, and what has been asked of it."""

    url: str = ""
    models: dict[str, Model] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    """What lies in LFS, by SHA-256."""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    told_sizes: dict[str, int | None] = field(default_factory=dict)
    """Sizes that are told of files, by path, in place of the true ones."""
    hostile: Callable[[BaseHTTPRequestHandler, bytes], None] | None = None
    """Sends a file's content in place of the stand-in."""

    def add(self, name: str, files: Files, **options: Any) -> str:
        """Have a model, and return its first commit."""
        self.models[name] = Model(**options)
        return self.models[name].commit(files)

    def visible(self, name: str, user: str | None, *, content: bool = True) -> Model:
        """The model, if this user may see it. The Hub tells strangers that what is private isn't
        there.
        """
        model = self.models.get(name)
        owner = name.partition("/")[0]
        if model is None or (model.private and user != owner):
            raise Refused(404 if user else 401, "RepoNotFound", "Repository not found")
        if content and model.gated and user != owner:
            raise Refused(
                403 if user else 401, "GatedRepo", f"Access to model {name} is restricted."
            )
        return model


class Handler(QuietHandler):
    hub: Hub

    def do_GET(self) -> None:
        self._answer({
            r"/api/models/([^/]+/[^/]+)": lambda name: self._info(name, "main"),
            r"/api/models/([^/]+/[^/]+)/revision/([^/]+)": self._info,
            r"/api/models/([^/]+/[^/]+)/refs": self._refs,
            r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)": self._resolve,
            HARNESSES: lambda: {"standardEnvVars": [], "harnesses": {}},
            r"/cdn/([0-9a-f]{64})": lambda oid: self._send_file(self.hub.stored[oid]),
        })  # fmt: skip

    def do_POST(self) -> None:
        self._answer({
            r"/api/repos/create": self._create,
            r"/api/validate-yaml": self._validate,
            r"/api/models/([^/]+/[^/]+)/branch/([^/]+)": self._branch,
            r"/api/models/([^/]+/[^/]+)/preupload/([^/]+)": self._preupload,
            r"/api/models/([^/]+/[^/]+)/commit/([^/]+)": self._commit,
            r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch": self._batch,
            r"/([^/]+/[^/]+)\.git/info/lfs/verify": self._verify,
        })  # fmt: skip

    def do_PUT(self) -> None:
        self._answer({r"/upload/([0-9a-f]{64})": self._store})

    def _answer(self, routes: dict[str, Callable[..., Any]]) -> None:
        if self.path != HARNESSES:
            self.hub.asked.append(f"{self.command} {self.path}")
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        try:
            for pattern, answer in routes.items():
                if found := re.fullmatch(pattern, path):
                    told = answer(*map(unquote, found.groups()))
                    return None if told is None else self._send_json(200, told)
            raise Refused(404, message="Sorry, we can't find the page you are looking for.")
        except Refused as refusal:
            self._send_json(refusal.status, refusal.body, refusal.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send_json(self, status: int, told: Any, headers: dict[str, str] | None = None) -> None:
        self._send(
            status,
            json.dumps(told).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _send_file(self, content: bytes, **headers: str) -> None:
        if self.hub.hostile:
            return self.hub.hostile(self, content)
        if "ETag" in headers and "gzip" in self.headers.get("Accept-Encoding", ""):
            # What isn't in LFS comes compressed to whoever can read that.
            content = gzip.compress(content)
            headers = {**headers, "Content-Encoding": "gzip"}
        return self._send(200, content, headers)

    def _user(self, *, writes: str = "") -> str | None:
        """Who asks; None for strangers. With `writes`, a model's name, only somebody who may write
        to it goes on.
        """
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given and given not in ACCOUNTS:
            raise Refused(401, message="Invalid credentials in Authorization header")
        user, may_write = ACCOUNTS.get(given, (None, False))
        if writes and user is None:
            raise Refused(401, message="Invalid username or password.")
        if writes and not (may_write and writes.partition("/")[0] == user):
            raise Refused(403, message="You don't have the rights to write to this repository")
        return user

    def _info(self, name: str, revision: str) -> Any:
        model = self.hub.visible(name, self._user(), content=False)
        sha = model.find(revision) if model.commits else None
        blobs = "blobs" in parse_qs(urlsplit(self.path).query)
        files = model.commits[sha] if sha else {}
        siblings = [
            {"rfilename": path, **(self._blob(path, data) if blobs else {})}
            for path, data in files.items()
        ]
        return {
            "id": name,
            "modelId": name,
            "sha": sha,
            "private": model.private,
            "tags": [],
            "siblings": siblings,
        }

    def _blob(self, path: str, content: bytes) -> dict[str, Any]:
        size = self.hub.told_sizes.get(path, len(content))
        blob = {
            "size": size,
            "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
        }
        lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 134}
        return {**blob, "lfs": lfs} if is_lfs(path, len(content)) else blob

    def _refs(self, name: str) -> Any:
        model = self.hub.visible(name, self._user())
        kinds = {"branches": ("heads", model.branches), "tags": ("tags", model.tags)}
        return {
            kind: [
                {"name": one, "ref": f"refs/{ref}/{one}", "targetCommit": sha}
                for one, sha in named.items()
            ]
            for kind, (ref, named) in kinds.items()
        } | {"converts": []}

    def _resolve(self, name: str, revision: str, path: str) -> None:
        model = self.hub.visible(name, self._user())
        sha = model.find(revision)
        if path not in model.commits[sha]:
            raise Refused(404, "EntryNotFound", "Entry not found")
        content = model.commits[sha][path]
        if not is_lfs(path, len(content)):
            blob = self._blob(path, content)["blobId"]
            return self._send_file(content, **{"ETag": f'"{blob}"', "X-Repo-Commit": sha})
        oid = hashlib.sha256(content).hexdigest()
        self.hub.stored[oid] = content
        linked = {
            "X-Linked-Size": str(len(content)),
            "X-Linked-Etag": f'"{oid}"',
            "X-Repo-Commit": sha,
        }
        return self._send(302, b"", {"Location": f"{self.hub.url}/cdn/{oid}", **linked})

    def _create(self) -> Any:
        asked = json.loads(self.body)
        user = self._user(writes=f"{asked.get('organization') or '?'}/")
        name = f"{user}/{asked['name']}"
        if asked.get("type", "model") != "model" or asked.keys() - {
            "name",
            "organization",
            "type",
            "visibility",
            "private",
        }:
            raise Refused(400, message=f"unknown fields: {sorted(asked)}")
        if name in self.hub.models:
            told = {"error": "You already created this model repo", "url": f"{self.hub.url}/{name}"}
            raise Refused(409, message=told["error"], body=told)
        private = asked.get("private") is True or asked.get("visibility") == "private"
        self.hub.add(
            name,
            {".gitattributes": b"*.onnx filter=lfs\n*.safetensors filter=lfs\n"},
            private=private,
        )
        return {"url": f"{self.hub.url}/{name}", "name": name}

    def _validate(self) -> Any:
        """The model-index has the fields that the Hub's documentation of model cards calls
        required.
        """
        _, front, _ = json.loads(self.body)["content"].split("---\n", 2)
        data = yaml.safe_load(front)
        errors = []
        for model in data.get("model-index", []):
            for place, result in enumerate(
                [{"task": {}}] if not model.get("results") else model["results"]
            ):
                parts = [("task", ["type"]), ("dataset", ["type", "name"])]
                missing = [
                    f"{part}.{key}"
                    for part, keys in parts
                    for key in keys
                    if not result.get(part, {}).get(key)
                ]
                missing += ["metrics"] if not result.get("metrics") else []
                missing += [
                    key
                    for one in result.get("metrics", ())
                    for key in ("type", "value")
                    if key not in one
                ]
                errors += [
                    {"message": f'"model-index[0].results[{place}].{one}" is required'}
                    for one in missing
                ]
        if errors:
            raise Refused(400, body={"errors": errors, "warnings": []})
        return {"errors": [], "warnings": []}

    def _writable(self, name: str) -> Model:
        return self.hub.visible(name, self._user(writes=name))

    def _branch(self, name: str, branch: str) -> Any:
        model = self._writable(name)
        if branch in model.branches:
            raise Refused(409, message=f"Reference already exists: {branch}")
        model.branches[branch] = model.find("main")
        return {}

    def _preupload(self, name: str, revision: str) -> Any:
        model = self._writable(name)
        there = model.commits[model.find(revision)]
        told = []
        for one in json.loads(self.body)["files"]:
            base64.b64decode(one["sample"], validate=True)
            mode = "lfs" if is_lfs(one["path"], one["size"]) else "regular"
            told.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": False})
            if (old := there.get(one["path"])) is not None:
                blob = self._blob(one["path"], old)
                told[-1]["oid"] = blob["lfs"]["sha256"] if "lfs" in blob else blob["blobId"]
        return {"files": told}

    def _batch(self, name: str) -> Any:
        self._writable(name)
        asked = json.loads(self.body)
        fits = (
            asked["operation"] == "upload"
            and asked["hash_algo"] == "sha256"
            and "basic" in asked["transfers"]
        )
        if (
            not fits
            or self.headers["Accept"] != LFS_TYPE
            or self.headers["Content-Type"] != LFS_TYPE
        ):
            raise Refused(422, message="not a request of LFS for an upload")
        objects = []
        for one in asked["objects"]:
            verify = {"href": f"{self.hub.url}/{name}.git/info/lfs/verify"}
            upload = {"href": f"{self.hub.url}/upload/{one['oid']}"}
            actions = (
                {}
                if one["oid"] in self.hub.stored
                else {"actions": {"upload": upload, "verify": verify}}
            )
            objects.append({"oid": one["oid"], "size": one["size"], **actions})
        return {"transfer": "basic", "objects": objects}

    def _store(self, oid: str) -> None:
        if "Content-Length" not in self.headers or hashlib.sha256(self.body).hexdigest() != oid:
            raise Refused(
                400, message="The Content-SHA256 you specified did not match what we received"
            )
        self.hub.stored[oid] = self.body
        self._send(200, b"", {})

    def _verify(self, name: str) -> Any:
        self._writable(name)
        asked = json.loads(self.body)
        if len(self.hub.stored.get(asked["oid"], b"")) != asked["size"]:
            raise Refused(404, message="the object was not uploaded")
        return {}

    def _commit(self, name: str, revision: str) -> Any:
        model = self._writable(name)
        if revision not in model.branches or self.headers["Content-Type"] != "application/x-ndjson":
            raise Refused(400, message="a commit goes to a branch, as application/x-ndjson")
        (head, header), *lines = [
            (one["key"], one["value"]) for one in map(json.loads, self.body.splitlines())
        ]
        if head != "header" or not header["summary"]:
            raise Refused(400, message="the header with a summary comes first")
        files = dict(self._committed(kind, value) for kind, value in lines)
        sha = model.commit(files, revision, header["summary"])
        return {
            "success": True,
            "commitOid": sha,
            "commitUrl": f"{self.hub.url}/{name}/commit/{sha}",
            "hookOutput": "",
        }

    def _committed(self, kind: str, value: dict[str, Any]) -> tuple[str, bytes]:
        path = value["path"]
        if ".." in path.split("/"):
            raise Refused(400, message=f"invalid path {path}")
        if kind == "lfsFile":
            content = self.hub.stored.get(value["oid"], b"")
            if value["algo"] != "sha256" or len(content) != value["size"]:
                raise Refused(400, message="LFS pointer pointed to a file that does not exist")
        else:
            content = base64.b64decode(value["content"], validate=True)
        if kind not in ("file", "lfsFile") or (kind == "lfsFile") != is_lfs(path, len(content)):
            raise Refused(
                400,
                message="Your push was rejected because it contains binary files. Please use LFS",
            )
        return path, content


def is_lfs(path: str, size: int) -> bool:
    return path.endswith(LFS_SUFFIXES) or size > MAX_REGULAR


@contextmanager
def standing_in() -> Iterator[Hub]:
    """A Hub without models, on a free port of this machine."""
    hub = Hub()
    with serving(type("HandlerOfHub", (Handler,), {"hub": hub})) as hub.url:
        yield hub
