"""The names that a web server answers to.

The owner of a name can give it the address of this machine (DNS rebinding). A browser then lets the pages of that name
read the answers of our server. So a server answers only to names that no stranger controls: localhost, addresses of
the loopback, the address that a connection was made to, and names that its user allows.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote

NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
HEADER = re.compile(rf"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>{NAME.pattern}))(?::[0-9]{{0,5}})?")
"""A host and perhaps a port, as RFC 9112 has them in a Host header, without user names and escapes."""


class AllowedNames:
    """The host names and addresses to which a server answers.

    Parameters
    ----------
    names
        The name or address at which the server listens.
    more
        Further names, such as that of a reverse proxy or of a service in a network of containers.

    Raise `SettingsError` if one of `more` is no name of a host.

    Examples
    --------
    >>> allowed = AllowedNames("0.0.0.0", ["shadowtime.example.org"])
    >>> [allowed.include(host, "10.0.0.5") for host in ("LOCALHOST", "::1", "Shadowtime.example.org", "10.0.0.5")]
    [True, True, True, True]
    >>> [allowed.include(host, "10.0.0.5") for host in ("evil.example", "10.0.0.6", "0.0.0.0", "127.0.0.1.nip.io")]
    [False, False, False, False]
    """

    def __init__(self, names: str = "", more: Iterable[str] = ()) -> None:
        self._names = {"localhost"}
        if names and not _stands_for_all(names):
            self._names.add(names.lower())
        for name in more:
            if _stands_for_all(name) or not (_address(name) or NAME.fullmatch(name)):
                raise SettingsError(f"{quote(name)} is not a host name to allow; expected one such as live.example.org")
            self._names.add(name.lower())

    def include(self, host: str, arrived_at: str) -> bool:
        """Return whether a host, as `named` returns it, is allowed on a connection to the address `arrived_at`."""
        address = _address(host)
        if address is not None and (address.is_loopback or address == _address(arrived_at)):
            return True
        return host.lower() in self._names


def split_names(names: str) -> list[str]:
    """Return the names in a setting of the form NAME,NAME.

    >>> split_names("scheduler, live.example.org"), split_names("")
    (['scheduler', 'live.example.org'], [])
    """
    return [name.strip() for name in names.split(",") if name.strip()]


def named(header: str) -> str | None:
    """Return the host in a Host header, without port and brackets; None if the header is malformed.

    >>> named("localhost:6080"), named("[::1]:6080"), named("10.0.0.5")
    ('localhost', '::1', '10.0.0.5')
    >>> [named(header) for header in ("", "[::1", "user@localhost", "localhost:x", "localhost, evil", "%6cocalhost")]
    [None, None, None, None, None, None]
    """
    match = HEADER.fullmatch(header)
    if match is None or (match["address"] and _address(match["address"]) is None):
        return None
    return match["address"] or match["name"]


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])  # without the interface of a link-local address
    except ValueError:
        return None


def _stands_for_all(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_unspecified
