"""A trained policy on disk: training exports it, and everything else plays from it. It contains no
pickle.

A bundle is a folder, or a zip of one, with `policy.onnx` (opset 17), `weights.safetensors`,
`card.json` (see `agents.card`) and `README.md`. Files are read once, checked against the card's
SHA-256, and then used from memory. So what was checked is what runs."""

from __future__ import annotations

import copy
import hashlib
import os
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agents import champions
from agents.card import BundleError, Card
from agents.hub.address import IN_TEXT, SCHEME
from agents.hub.download import fetch
from agents.onnx_file import has_external_data
from envs.common.errors import reason
from envs.common.strangers.bounded import (
    PIECE_BYTES,
    InPieces,
    parse_json,
    read_bytes,
    refuse_unbounded,
)
from envs.common.whole_files import write_folder

if TYPE_CHECKING:
    import torch

__all__ = ["Bundle", "BundleError", "Card", "export", "load"]

CARD = "card.json"
ONNX = "policy.onnx"
WEIGHTS = "weights.safetensors"
README = "README.md"
OPSET = 17
_MAX_HEADER_BYTES = 1 << 20
"""Room for the names and shapes of 10 000 tensors. safetensors takes 13 s for a million."""
MAX_FILE_BYTES = {CARD: 1 << 20, README: 1 << 20, ONNX: 256 << 20, WEIGHTS: 256 << 20}
_MAX_ENTRIES = 1000
STATE = "state"
NEXT_STATE = "next_state"
"""Names in policy.onnx of the input and output that hold a policy's memory. It is zero where an
episode begins.
"""


@dataclass(frozen=True)
class Bundle:
    """A bundle that was checked, in memory."""

    path: Path
    card: Card
    onnx: bytes
    weights: bytes


def export(
    directory: str | os.PathLike[str], *, network: torch.nn.Module, card: Card | Mapping[str, Any]
) -> Path:
    """Write `network` (observations [B, …] → logits [B, A], values [B]) and its card as a bundle.
    Returns the bundle's path.

    If the network has a memory (a method `one_step`), policy.onnx also reads `state` [B, S] and
    returns `next_state`.

    A copy of the network is exported, in float32, on the CPU and in evaluation mode; the network
    itself isn't changed. The folder appears whole or not at all, and replaces an older bundle in
    its place. `card.files` is filled in here. Raises `BundleError` for an incomplete card, and if
    `directory` holds something other than a bundle."""
    target = Path(directory).absolute()
    if not isinstance(card, Card):
        card = Card.from_dict(card)
    if target.exists() and not _is_replaceable(target):
        raise BundleError(
            f"{target} exists and is not a policy bundle, so it is not replaced. Choose another"
            " folder"
        )
    network = copy.deepcopy(network).cpu().float().eval()
    contents = {
        ONNX: _onnx_bytes(network, card),
        WEIGHTS: _weight_bytes(network),
        README: card.readme().encode(),
    }
    files = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents[CARD] = replace(card, files=files).to_json().encode()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_folder(target, contents)
    except OSError as error:
        raise BundleError(
            f"the bundle can't be written to {target}: {error.strerror or error}"
        ) from error
    return target


def load(path: str | os.PathLike[str]) -> Bundle:
    """Read and check a bundle: a folder, a zip, the bundle in a run folder, a champion by its name,
    or `hf://user/name`.

    Raises `BundleError` if it is missing, cut off, changed, too large or of a newer format, or if a
    part of its network is in another file; its subclass `HubError`, and `MissingDependencyError`,
    if the Hugging Face Hub can't be used."""
    source = _place(os.fspath(path))
    bundle_of_run = source / "bundle"
    if os.path.isdir(bundle_of_run):
        source = bundle_of_run
    if os.path.isdir(source):
        contents = _read_folder(source)
    elif os.path.isfile(source):
        contents = _read_zip(source)
    else:
        raise BundleError(
            f"there is no policy bundle at {source}.",
            next_commands={
                "the built-in ones": ("champions",),
                "the experiments to train one": ("train", "--list"),
            },
        )
    if CARD not in contents:
        raise _without_card(source)
    try:
        card = Card.from_dict(parse_json(contents[CARD]))
    except ValueError as error:
        raise BundleError(
            f"{source}: {CARD} is cut off or not JSON ({error}). Export the bundle again"
        ) from error
    except BundleError as error:
        raise BundleError(f"{source}: {error}") from error
    _verify(source, card, contents)
    return Bundle(source, card, contents[ONNX], contents[WEIGHTS])


def is_bundle(spec: str) -> bool:
    """Return whether `spec` has the form of a bundle's path, a champion's name or an address on the
    Hugging Face Hub. Nothing is read or downloaded.
    """
    if spec in champions.names() or IN_TEXT.fullmatch(spec):
        return True
    # For a text that is too long for a file's name, such as a player with many options, these
    # functions return False, where a `Path` would raise.
    is_zip = spec.endswith(".zip") and os.path.isfile(spec)
    return is_zip or os.path.isdir(spec)


def _without_card(source: Path) -> BundleError:
    problem = f"{source} has no {CARD}, so it is not a policy bundle."
    if (source / "checkpoints").is_dir():
        return BundleError(
            f"{problem} It is a run that hasn't ended.",
            next_commands={"end it where it is": ("train", "--resume", source, "--finish")},
        )
    return BundleError(f"{problem} A run's bundle is in RUN/bundle")


def _place(path: str) -> Path:
    """Return where the bundle or run of this path, name or address lies; it is fetched if
    need be.
    """
    if path.startswith(SCHEME):
        return fetch(path, MAX_FILE_BYTES)
    if path in champions.names():
        return champions.path(path)
    return Path(path)


def _verify(source: Path, card: Card, contents: dict[str, bytes]) -> None:
    """Raise `BundleError` unless the files are those that the card describes, and safe to play."""
    names = [ONNX, WEIGHTS]
    # Only people read the README, and on the Hub they edit it: there the card doesn't vouch for it.
    if README in card.files:
        names.append(README)
    for name in names:
        if name not in contents:
            raise BundleError(f"{source} lacks {name}. Export or copy the bundle again")
        digest = hashlib.sha256(contents[name]).hexdigest()
        if digest != card.files.get(name):
            raise BundleError(
                f"{source}: {name} ({len(contents[name])} bytes, SHA-256 {digest[:12]}…) is not"
                f" the file that {CARD} describes: cut off or changed. Export or copy the bundle"
                " again"
            )
    header_bytes = int.from_bytes(contents[WEIGHTS][:8], "little")
    if header_bytes > _MAX_HEADER_BYTES:
        raise BundleError(
            f"{source}: {WEIGHTS} has a header of {header_bytes} bytes, more than"
            f" {_MAX_HEADER_BYTES}. Export the bundle again"
        )
    try:
        if has_external_data(contents[ONNX]):
            raise ValueError("it refers to data in other files, which are not verified")
    except ValueError as error:
        raise BundleError(
            f"{source}: {ONNX} is refused, because {error}. Export the bundle again"
        ) from error


def _read_folder(folder: Path) -> dict[str, bytes]:
    """Return the bundle's files that are in a folder, by name."""
    contents = {}
    for name, limit in MAX_FILE_BYTES.items():
        try:
            contents[name] = read_bytes(folder / name, limit)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise BundleError(f"{folder / name} can't be read: {reason(error)}") from error
    return contents


def _read_zip(archive: Path) -> dict[str, bytes]:
    """Return the bundle's files from the archive's root or from its one folder, by name. Nothing is
    written to disk.
    """
    contents: dict[str, bytes] = {}
    try:
        with InPieces(archive) as file, zipfile.ZipFile(file) as opened:
            if len(opened.infolist()) > _MAX_ENTRIES:
                raise ValueError(f"it holds {len(opened.infolist())} files")
            for info in opened.infolist():
                name = PurePosixPath(info.filename).name
                if name not in MAX_FILE_BYTES or info.is_dir():
                    continue
                if name in contents:
                    raise BundleError(
                        f"{archive} holds {name} twice; a zip of one bundle holds it once"
                    )
                contents[name] = _read_member(opened, info, MAX_FILE_BYTES[name])
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        raise BundleError(
            f"{archive} is neither a bundle folder nor a whole zip of one ({reason(error)})"
        ) from error
    return contents


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    refuse_unbounded(info)
    # No more than this comes out of the archive, whatever has been packed.
    if info.file_size > limit:
        raise ValueError(f"{info.filename} has {info.file_size} bytes, more than {limit}")
    with archive.open(info) as file:
        return b"".join(iter(lambda: file.read(PIECE_BYTES), b""))


def _is_replaceable(target: Path) -> bool:
    return target.is_dir() and ((target / CARD).exists() or not any(target.iterdir()))


def _onnx_bytes(network: torch.nn.Module, card: Card) -> bytes:
    """Trace a network in evaluation mode with a free batch axis."""
    import torch

    from agents.networks.recurrent import Recurrent

    dtype = getattr(torch, card.observation_dtype)
    example = [torch.zeros((2, *card.observation_shape), dtype=dtype)]
    inputs = ["observations"]
    outputs = ["logits", "values"]
    if isinstance(network, Recurrent):
        player = network.one_step()
        network = player.eval()
        example.append(torch.zeros((2, player.state_size)))
        inputs.append(STATE)
        outputs.append(NEXT_STATE)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            tuple(example),
            Path(folder, ONNX),
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: {0: "batch"} for name in (*inputs, *outputs)},
            opset_version=OPSET,
            # torch's newer exporter writes opset 18, converts it down where it can, and prints as
            # it goes.
            dynamo=False,
        )
        return Path(folder, ONNX).read_bytes()


def _weight_bytes(network: torch.nn.Module) -> bytes:
    from safetensors.torch import save

    return save({name: tensor.contiguous() for name, tensor in network.state_dict().items()})
