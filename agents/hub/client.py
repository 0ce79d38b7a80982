"""Imports the library huggingface_hub, and turns its failures into messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agents.hub.address import Address, HubError
from envs.common.errors import MissingDependencyError, pip_install
from envs.common.strangers.printable import in_one_line

READ_S = 20.0
"""Seconds in which the Hub has to answer, and to go on with an answer."""
LOG_IN = "Set HF_TOKEN, or run: hf auth login"


def library() -> Any:
    """Return the module `huggingface_hub`. Raises `MissingDependencyError` if it isn't
    installed.
    """
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        install = pip_install("procsnake[hub]")
        raise MissingDependencyError(
            error.name or "huggingface_hub", feature="an hf:// address", install=install
        ) from error
    return huggingface_hub


def require_token(address: Address) -> None:
    """Raise `HubError` if no token is known, because only its owner may write to a repository."""
    if library().get_token() is None:
        raise HubError(
            f"{address} can't be written without a token with write permission. {LOG_IN}"
        )


@contextmanager
def asking(address: Address) -> Iterator[None]:
    """Turn the library's exceptions about this address into `HubError`."""
    library()
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        page = f"{_endpoint()}/{address.repository}"
        raise HubError(
            f"{address} is gated: accept its terms at {page}, and log in. {LOG_IN}"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(_no_repository(address)) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(_no_revision(address)) from error
    except errors.HfHubHTTPError as error:
        raise HubError(_refused(address, error)) from error
    except httpx2.TimeoutException as error:
        raise HubError(
            f"{address}: {_endpoint()} sent nothing for {READ_S:g} s. Try again later"
        ) from error
    except (httpx2.HTTPError, ConnectionError) as error:
        raise HubError(_no_network(address, error)) from error
    except RuntimeError as error:
        raise HubError(f"{address}: {_quoted(error)} {_quoted(error.__cause__ or '')}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise HubError(
            f"{address}: {_endpoint()} sent an unreadable answer: {_quoted(error)}"
        ) from error


def _quoted(text: object) -> str:
    """Return what the Hub or the library says, on one line and without the token: an answer may
    echo the request's headers.
    """
    message = str(text)
    token = library().get_token()
    if token:
        message = message.replace(token, "[token]")
    return in_one_line(message)


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT


def _no_repository(address: Address) -> str:
    # The Hub gives strangers the same answer for what is private and for what isn't there.
    problem = f"{_endpoint()} has no model {address.repository}, or it is private and"
    if library().get_token():
        return (
            f"{problem} your token isn't allowed to see it. Look at the spelling, and at what the"
            " token may do"
        )
    return f"{problem} you are a stranger there. Look at the spelling. {LOG_IN}"


def _no_revision(address: Address) -> str:
    near = difflib.get_close_matches(address.revision, _revisions(address), n=1, cutoff=0.5)
    if near:
        offer = f"Did you mean {address.at(near[0])}?"
    else:
        offer = "Leave it out to take the newest"
    return f"{address.repository} has no branch, tag or commit {address.revision!r}. {offer}"


def _revisions(address: Address) -> list[str]:
    """Return the names of branches and tags, for an offer only; none if they can't be had."""
    import httpx2
    from huggingface_hub.utils import build_hf_headers, get_session

    url = f"{_endpoint()}/api/models/{address.repository}/refs"
    try:
        refs = get_session().get(url, headers=build_hf_headers(), timeout=READ_S).json()
        return [str(ref["name"]) for ref in [*refs.get("branches", []), *refs.get("tags", [])]]
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _refused(address: Address, error: Any) -> str:
    status = error.response.status_code
    answer = _quoted(error.server_message or error)
    problem = f"{address}: {_endpoint()} answers {status}: {answer}"
    if status in (401, 403):
        return (
            f"{problem}. Tokens are made at {_endpoint()}/settings/tokens; a push needs one with"
            " write permission there"
        )
    if status == 429 or status >= 500:
        return f"{problem}. Try again later"
    return problem


def _no_network(address: Address, error: Exception) -> str:
    reason = _quoted(error) or type(error).__name__
    message = f"{address}: {_endpoint()} can't be reached ({reason}). Look at the network"
    if address.is_pinned:
        return message
    return (
        f"{message}; an address with the commit of a bundle that you had before, hf://…@COMMIT,"
        " needs none"
    )
