"""Downloads a bundle from the Hugging Face Hub: only its four files, at one commit, within size
limits.

The files are cached by commit. A commit never changes, so an address that names one needs the
Hub only once. Nothing that is downloaded is executed or unpickled: `agents.bundle` checks it
like any untrusted folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import quote

from agents.hub.address import IN_TEXT, Address, HubError
from agents.hub.client import LOG_IN, READ_S, asking, library
from envs.common.cache import cache_root
from envs.common.strangers.printable import printable
from envs.common.whole_files import write_folder

CARD = "card.json"
_PATIENCE_S = 60.0
_SLOWEST_BYTES_PER_S = 100_000
_TELL_AFTER_S = 2.0
_TELL_EVERY_S = 5.0
_MAX_SHOWN = 5


def fetch(text: str, limits: Mapping[str, int]) -> Path:
    """Return the folder with the bundle at an address. `limits` are the names of a bundle's files
    and the most bytes of each.

    For an address without a commit, stderr shows the commit used. Raises `HubError` if the bundle
    can't be downloaded and `MissingDependencyError` without huggingface_hub."""
    address, sizes = _look_up(Address.parse(text))
    place = _place(address)
    if place.is_dir():
        return place
    contents = _download(address, _sizes_of_bundle(address, sizes, limits))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_folder(place, contents)
    except OSError as error:
        raise HubError(
            f"{address} can't be stored in {place}: {error.strerror or error}. Choose another"
            " folder with the environment variable PROCSNAKE_CACHE"
        ) from error
    return place


def pinned(text: str) -> str:
    """Return the text with the current commit added to each address of the Hub. Raises what `fetch`
    raises.
    """
    return IN_TEXT.sub(lambda match: _pinned_address(match[0]), text)


def _pinned_address(text: str) -> str:
    address, _ = _look_up(Address.parse(text))
    return str(address)


def _place(address: Address) -> Path:
    """Return where a commit's bundle is kept. Its last part is how the player is called."""
    # One level for the repository and the folder in it: no bundle's folder lies within another's.
    folder = quote(f"{address.repository}/{address.folder}", safe="")
    return cache_root() / "hub" / address.revision / folder / address.player


def _look_up(address: Address) -> tuple[Address, dict[str, int | None]]:
    """Return the address with its commit, and the sizes of the repository's files by path. A commit
    whose bundle is kept isn't looked up, so there are no sizes.
    """
    if address.is_pinned and _place(address).is_dir():
        return address, {}
    with asking(address):
        api = library().HfApi()
        info = api.model_info(
            address.repository, revision=address.revision, files_metadata=True, timeout=READ_S
        )
    pinned_address = address.at(str(info.sha))
    is_other = address.is_pinned and pinned_address != address
    if is_other or not pinned_address.is_pinned:
        raise HubError(
            f"{address}: the Hub answers with commit {str(info.sha)[:40]!r}, not the one requested"
        )
    if pinned_address != address:
        print(f"{address} is now {pinned_address}", file=sys.stderr, flush=True)
    return pinned_address, {file.rfilename: file.size for file in info.siblings or ()}


def _sizes_of_bundle(
    address: Address, sizes: Mapping[str, int | None], limits: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of the bundle's files by name, out of those of the repository's files by
    path.

    Raises `HubError` if there is no bundle, or one that is too large."""
    if address.inside(CARD) not in sizes:
        raise HubError(_not_a_bundle(address, sizes))
    sizes_by_name = {}
    for name, limit in limits.items():
        if address.inside(name) not in sizes:
            continue
        size = sizes[address.inside(name)]
        if not isinstance(size, int) or not 0 <= size <= limit:
            raise HubError(
                f"{address}: {name} has {size} bytes, more than {limit}, so it is not downloaded"
            )
        sizes_by_name[name] = size
    return sizes_by_name


def _not_a_bundle(address: Address, paths: Collection[str]) -> str:
    """Return a message that says what the repository has instead of a bundle."""
    problem = f"{address} is not a policy bundle: it has no {CARD}"
    folders = [path.removesuffix(f"/{CARD}") for path in paths if path.endswith(f"/{CARD}")]
    if folders and not address.folder:
        return printable(f"{problem}. There is one in a folder: {address}/{min(folders)[:100]}")
    content = ", ".join(sorted(paths)[:_MAX_SHOWN])[:300] or "nothing"
    return printable(
        f"{problem}, but {content}. procsnake push writes bundles; nothing else is read, and no"
        " pickle"
    )


def _download(address: Address, sizes: Mapping[str, int]) -> dict[str, bytes]:
    from huggingface_hub import hf_hub_url

    progress = _Progress(str(address), sum(sizes.values()))
    contents = {}
    for name, size in sizes.items():
        url = hf_hub_url(address.repository, address.inside(name), revision=address.revision)
        with asking(address):
            contents[name] = _read(url, f"{address}: {name}", size, progress)
    return contents


def _read(url: str, what: str, size: int, progress: _Progress) -> bytes:
    """Return the content at a URL, which has to have `size` bytes. Raises `HubError`, and what
    huggingface_hub's session raises.
    """
    from huggingface_hub.utils import build_hf_headers, get_session

    content = bytearray()
    start = time.monotonic()
    # Whatever is compressed could be a small file that becomes a large one.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    with get_session().stream("GET", url, headers=headers, timeout=READ_S) as response:
        if response.status_code in (401, 403):
            raise HubError(
                f"{what} is gated: accept the terms on the model's page, and log in. {LOG_IN}"
            )
        if response.status_code != 200:
            raise HubError(
                f"{what} can't be fetched: the Hub answers {response.status_code}. Try again later"
            )
        for piece in response.iter_raw():
            content += piece
            if len(content) > size:
                raise HubError(
                    f"{what} is longer than the {size} bytes that the Hub announced; it is"
                    " discarded"
                )
            if time.monotonic() - start > _PATIENCE_S + size / _SLOWEST_BYTES_PER_S:
                raise HubError(
                    f"{what} downloads too slowly: {len(content)} of {size} bytes so far. Try"
                    " again later"
                )
            progress.add(len(piece))
    if len(content) < size:
        raise HubError(f"{what} was cut off after {len(content)} of {size} bytes. Try again")
    return bytes(content)


class _Progress:
    """Tells on stderr how much of a download has come, if it takes longer than two seconds."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._received = 0
        self._next = time.monotonic() + _TELL_AFTER_S

    def add(self, count: int) -> None:
        self._received += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL_EVERY_S
            print(
                f"{self._what}: {self._received / 1e6:.1f} of {self._total / 1e6:.1f} MB",
                file=sys.stderr,
                flush=True,
            )
