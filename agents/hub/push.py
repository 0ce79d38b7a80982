"""Puts a bundle on the Hugging Face Hub, in one commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agents import bundle as bundles
from agents.bundle import CARD, ONNX, README, WEIGHTS, Bundle
from agents.hub.address import Address, HubError
from agents.hub.client import READ_S, asking, library, require_token
from agents.hub.model_card import model_card


@dataclass(frozen=True)
class Pushed:
    """A bundle on the Hub."""

    url: str
    """The commit's page."""
    address: Address
    """The address with its commit, which stands for this bundle for ever."""


def push(
    source: str,
    target: str,
    *,
    private: bool = False,
    branch: str = "main",
    message: str | None = None,
    license: str | None = None,
) -> Pushed:
    """Push the bundle `source`, in any form that `agents.bundle.load` takes, to the repository
    `target`, hf://user/name.

    A missing repository or branch is created; `private` applies to a new repository. The README
    becomes a model card. Raises `BundleError` for a bad bundle; `HubError` for an address that
    can't be written to, or if a `private` bundle would be public; and `MissingDependencyError`."""
    address = _repository(target, branch)
    bundle = bundles.load(source)
    run = bundle.path.parent if bundle.path.name == "bundle" else None
    contents = _contents(bundle, model_card(bundle.card, address, run=run, license=license))
    require_token(address)
    with asking(address):
        api = library().HfApi()
        _make_repository(api, address, private=private)
        commit = api.create_commit(
            address.repository,
            [library().CommitOperationAdd(name, content) for name, content in contents.items()],
            commit_message=message or f"{(run or bundle.path).name}, by procsnake",
            revision=address.revision,
        )
    return Pushed(str(commit.commit_url), address.at(commit.oid))


def _repository(target: str, branch: str) -> Address:
    address = Address.parse(target)
    if address.folder or "@" in target:
        raise HubError(
            f"{target!r} is more than a repository: push to hf://{address.repository}; --revision"
            " names a branch"
        )
    if address.at(branch).is_pinned:
        raise HubError(f"--revision {branch} is a commit, which can't be pushed to; name a branch")
    # What is written in full is checked in full.
    return Address.parse(str(address.at(branch)))


def _contents(bundle: Bundle, readme: Any) -> dict[str, bytes]:
    """The files by name. The card no longer vouches for the README, which its owner may edit on the
    Hub's site.
    """
    files = {name: digest for name, digest in bundle.card.files.items() if name != README}
    card = replace(bundle.card, files=files).to_json()
    return {
        CARD: card.encode(),
        ONNX: bundle.onnx,
        WEIGHTS: bundle.weights,
        README: str(readme).encode(),
    }


def _make_repository(api: Any, address: Address, *, private: bool) -> None:
    """Make the repository and the branch, where they aren't there. Raises `HubError` if a private
    one is there and public.
    """
    api.create_repo(address.repository, private=private or None, exist_ok=True)
    if private and not api.model_info(address.repository, timeout=READ_S).private:
        raise HubError(
            f"{address.repository} already exists and is public. Leave out --private, or push to"
            " another name"
        )
    if address.revision != "main":
        api.create_branch(address.repository, branch=address.revision, exist_ok=True)
