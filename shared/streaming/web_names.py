"""The names by which a web server may be asked for: a page from elsewhere brings another, and reads nothing (421).

Whoever owns a name can give it the address of this machine (DNS rebinding), and a browser then lets the pages of that
name read what is answered here. So a server answers to names that nobody can give away only: localhost, literal
addresses of the loopback, the very address that a connection was made to, and names that its user allows.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.wording import quoted

HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})(:[0-9]{0,5})?")
"""A host and perhaps a port, as RFC 9112 has them in a Host header, without user names and escapes."""


class AllowedNames:
    """What a server answers to.

    Parameters
    ----------
    told
        Where it was told to listen: a name or an address; one that stands for all addresses allows nothing.
    more
        Names besides; a reverse proxy's, or that of a service in a network of containers.

    Raises
    ------
    SettingsError
        If one of these is no name of a host.

    Examples
    --------
    >>> allowed = AllowedNames("0.0.0.0", ["shadowtime.example.org"])
    >>> [allowed.include(host, "10.0.0.5") for host in ("LOCALHOST", "[::1]", "Shadowtime.example.org.", "10.0.0.5")]
    [True, True, True, True]
    >>> [allowed.include(host, "10.0.0.5") for host in ("evil.example", "10.0.0.6", "0.0.0.0", "127.0.0.1.nip.io")]
    [False, False, False, False]
    """

    def __init__(self, told: str = "", more: Iterable[str] = ()) -> None:
        self._names = {"localhost"} | {_checked(name) for name in more}
        if (own := canonical(told)) is not None and not _stands_for_all(own):
            self._names.add(own)

    def include(self, host: str, arrived_at: str) -> bool:
        """Return whether a host is allowed on a connection to the address `arrived_at`; both as `named` gives them."""
        found = canonical(host)
        return found is not None and (
            found in self._names or is_loopback(found) or (_is_address(found) and found == canonical(arrived_at))
        )


def split_names(names: str) -> list[str]:
    """Return the names of a setting, as NAME,NAME.

    >>> split_names("scheduler, live.example.org"), split_names("")
    (['scheduler', 'live.example.org'], [])
    """
    return [name.strip() for name in names.split(",") if name.strip()]


def named(header: str) -> str | None:
    """Return what a Host header names, without its port; None if it is malformed.

    >>> named("localhost:6080"), named("[::1]:6080"), named("10.0.0.5")
    ('localhost', '[::1]', '10.0.0.5')
    >>> [named(header) for header in ("", "[::1", "user@localhost", "localhost:x", "localhost, evil", "%6cocalhost")]
    [None, None, None, None, None, None]
    """
    found = HOST.fullmatch(header)
    return None if found is None or canonical(found[1]) is None else found[1]


def canonical(host: str) -> str | None:
    """Return the one way to write a host: small letters, no last dot, addresses short; None if it is none.

    >>> canonical("LocalHost."), canonical("[0:0::1]"), canonical("::ffff:127.0.0.1"), canonical("fe80::1%eth0")
    ('localhost', '::1', '127.0.0.1', 'fe80::1')
    >>> canonical("[example.org]"), canonical("a b"), canonical("."), canonical("http://example.org")
    (None, None, None, None)
    """
    bare = host.lower().removesuffix(".")
    bracketed = bare.startswith("[")
    try:
        address = ip_address(bare.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return None if bracketed or not bare or HOST.fullmatch(bare) is None or ":" in bare else bare
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine's own.

    >>> [is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1", "::ffff:127.0.0.1")]
    [True, True, True, True, True]
    >>> [is_loopback(host) for host in ("0.0.0.0", "example.org", "127.0.0.1.example.org")]
    [False, False, False]
    """
    found = canonical(host)
    return found == "localhost" or (found is not None and _is_address(found) and ip_address(found).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _stands_for_all(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_unspecified


def _checked(name: str) -> str:
    found = canonical(name)
    if found is None or _stands_for_all(found):
        raise SettingsError(f"{quoted(name)} is no name of a host that can be allowed; one looks like live.example.org")
    return found
