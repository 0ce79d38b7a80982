"""The proxies whose statements about a request's origin are believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from envs.common.errors import ConfigError

TRUSTED_PROXIES = "procsnake.trusted_proxies"
"""Key of an application's `extensions` at which it keeps its `TrustedProxies`."""


class TrustedProxies:
    """The proxies in front of a server, by address or network ("10.0.0.7", "10.0.0.0/8").

    Raises `ConfigError` for any other text.
    """

    def __init__(self, networks: Iterable[str] = ()) -> None:
        try:
            self._networks = [ipaddress.ip_network(network) for network in networks]
        except ValueError as error:
            raise ConfigError(
                "--trusted-proxy takes an address or a network, such as 127.0.0.1 or 10.0.0.0/8:"
                f" {error}"
            ) from error

    def __contains__(self, address: str) -> bool:
        parsed = _parsed(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def caller(self, peer: str, forwarded_for: str) -> str:
        """Return the origin of a request from `peer`: the last address in X-Forwarded-For that
        isn't a trusted proxy's.

        Anybody can write the beginning of that header, but trusted proxies append to its end.
        Only they are believed."""
        caller = peer
        for text in reversed(forwarded_for.split(",")):
            if caller not in self or _parsed(text.strip()) is None:
                break
            caller = text.strip()
        return caller


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
