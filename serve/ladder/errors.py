"""Arena's refusals, one class per kind."""

from __future__ import annotations

from collections.abc import Mapping

from envs.common.errors import ProcsnakeError


class ArenaError(ProcsnakeError):
    """A request to Arena failed. The message says which one, and what Arena answered."""


class ArenaUnreachableError(ArenaError):
    """Arena can't be reached, doesn't answer in time, or breaks off its answer."""


class ArenaDownError(ArenaError):
    """Arena answered with a status of 500 or more, several times in a row or for longer than the
    caller wants to wait.
    """


class WrongTokenError(ArenaError):
    """Arena doesn't know the token, or there is none."""


class NotAllowedError(ArenaError):
    """Arena knows the account, but doesn't let it do this."""


class NotFoundError(ArenaError):
    """Arena has nothing under this id, or it belongs to somebody else."""


class NameTakenError(ArenaError):
    """Another snake of the account has this name already."""


class RefusedError(ArenaError):
    """Arena doesn't accept a value of the request."""


class TooManyRequestsError(ArenaError):
    """Arena asks to wait longer than the caller allows: `retry_after_s` seconds."""

    retry_after_s: float = 0.0


class StrangeAnswerError(ArenaError):
    """Arena's answer isn't what its API promises."""


BY_STATUS: Mapping[int, tuple[type[ArenaError], str]] = {
    400: (RefusedError, "check the values of the command"),
    401: (
        WrongTokenError,
        "the token is wrong or was deleted; procsnake arena login opens the page that makes one",
    ),
    403: (
        NotAllowedError,
        "it may need a public snake of your own; procsnake arena enter makes one with --public",
    ),
    404: (
        NotFoundError,
        "it may have been deleted, or be somebody else's; procsnake arena status lists your snakes",
    ),
    409: (NameTakenError, "names are unique per account; choose another --name"),
    422: (RefusedError, "check the values of the command"),
    429: (TooManyRequestsError, "wait, and repeat the command"),
}
"""The class of an error by HTTP status, and what to do about it."""
