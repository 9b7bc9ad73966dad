"""The rule of which jobs a visitor sees on pages and endpoints, and the identification of visitors.

The rule is one of three: `all`, `account` (jobs of the accounts in which the visitor has had jobs) and `own`. A portal
identifies itself by its token, and names the user. Other visitors are identified by a header in which a reverse proxy
passes on the login. The header counts only from the stated addresses of proxies, because anybody else could forge it.
"""

import hashlib
import hmac
import re
import tomllib
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator

from shadowtime.shared.errors import SettingsError, Unanswerable, in_plain_words
from shadowtime.shared.messages import FrozenModel
from shadowtime.shared.private_files import UntrustedFile, read_private

if TYPE_CHECKING:
    from multidict import MultiMapping

Rule = Literal["all", "account", "own"]
SMALLEST_TOKEN = 16
"""Least number of characters of a portal's token."""


USUAL_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")


class Portal(FrozenModel):
    """A page of another site: the file with its token, and the origins whose pages may read answers in a browser."""

    token_file: Path
    origins: tuple[str, ...] = ()
    sees: Rule | None = Field(default=None, description="rule for this portal; by default that of users")

    @field_validator("origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", origin) is None:
                raise ValueError(f"expected an origin such as https://portal.example.org, found {origin!r:.100}")
        return tuple(USUAL_PORT.sub(r"\1\2", origin.lower()) for origin in origins)  # as browsers send them


class VisitorAccess(FrozenModel):
    """The rule of which jobs visitors see, and the settings that identify visitors."""

    sees: Rule = "all"
    login_header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    proxies: tuple[str, ...] = ()
    managers: tuple[str, ...] = Field(default=(), description="users who see all jobs")
    portals: Mapping[str, Portal] = Field(default={}, max_length=100)

    @field_validator("proxies")
    @classmethod
    def _networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for address in proxies:
            ip_network(address)
        return proxies


class Viewer(NamedTuple):
    """A visitor: the rule of which jobs they see, and their user name. `user` is None if the name is unknown."""

    sees: Rule
    user: str | None = None


EVERYBODY = Viewer("all")


class Gate:
    """Identification of visitors by the settings in `access`. Without settings, everybody sees all jobs."""

    def __init__(self, access: VisitorAccess | None = None, tokens: Mapping[str, str] | None = None) -> None:
        self.access = access or VisitorAccess()
        self._networks = [ip_network(address) for address in self.access.proxies]
        self._tokens = {name: _digest(token) for name, token in (tokens or {}).items()}

    @classmethod
    def read(cls, path: Path) -> "Gate":
        """Return the gate of a settings file in TOML, with the tokens that it names.

        Raise `SettingsError` if a file cannot be read, may be changed by others, or has an invalid entry.
        """
        try:
            access = VisitorAccess.model_validate(tomllib.loads(read_private(path).decode()))
            tokens = {name: read_private(portal.token_file).decode().strip() for name, portal in access.portals.items()}
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(f"{path}, {'.'.join(map(str, first['loc']))}: {in_plain_words(first)}") from None
        except UntrustedFile as error:
            raise SettingsError(f"{path} is not read: {error}") from None
        except OSError as error:
            raise SettingsError(f"{error.filename or path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise SettingsError(f"{path}: {error}") from None
        if short := next((name for name, token in tokens.items() if len(token) < SMALLEST_TOKEN), None):
            raise SettingsError(
                f"{path}: expected at least {SMALLEST_TOKEN} characters in the token of portal {short!r}, found fewer"
            )
        if len(set(tokens.values())) < len(tokens):
            raise SettingsError(f"{path}: two portals have the same token; give each portal a different one")
        if access.login_header is not None and not access.proxies:
            raise SettingsError(f"{path}: login_header needs proxies, the addresses from which it is trusted")
        if access.sees != "all" and access.login_header is None and not access.portals:
            raise SettingsError(f"{path}: sees = {access.sees!r} needs login_header or portals to identify visitors")
        return cls(access, tokens)

    def portal(self, authorization: str) -> Portal | None:
        """Return the portal with the token of an `Authorization` header; None without a token.

        Raise `Unanswerable` if there is a token and no portal has it.
        """
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer":
            return None
        wanted, known = _digest(token), None
        for name, digest in self._tokens.items():  # compare all, so that the time reveals no token
            if hmac.compare_digest(digest, wanted):
                known = self.access.portals[name]
        if known is None:
            raise Unanswerable(401, "this token is not known; send the token of a portal in the header Authorization")
        return known

    def viewer(self, headers: "MultiMapping[str]", peer: str, user: str | None = None) -> Viewer:
        """Return the visitor who sent a request.

        Parameters
        ----------
        headers
            Headers of the request. Their names must be case-insensitive.
        peer
            Address from which the connection comes.
        user
            The user for whom a portal asks.

        Raise `Unanswerable` if the visitor must be identified and cannot be.
        """
        portal = self.portal(headers.get("Authorization", ""))
        if portal is not None:
            rule = portal.sees or self.access.sees
            if rule != "all" and user is None:
                raise Unanswerable(422, "is missing; this portal must name the user whose jobs it may see", "user")
            return Viewer(rule, user)
        if self.access.login_header is None:
            if self.access.sees != "all":
                raise Unanswerable(401, "the token of a portal is missing; send it as Authorization: Bearer TOKEN")
            return EVERYBODY
        if not self._trusted(peer):
            raise Unanswerable(403, "this page is behind the login of the site; ask through its proxy")
        logins = headers.getall(self.access.login_header, [])
        if len(logins) > 1:  # one may be the visitor's own
            raise Unanswerable(
                401, f"the proxy passed on {self.access.login_header} {len(logins)} times; let it replace this header"
            )
        login = "".join(logins).strip()
        if not login:
            raise Unanswerable(401, f"the proxy passed on no login in {self.access.login_header}")
        return Viewer("all" if login in self.access.managers else self.access.sees, login)

    def _trusted(self, peer: str) -> bool:
        try:
            address = ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)


def require_own(viewer: Viewer, user: str | None) -> None:
    """Raise `Unanswerable` if a visitor who does not see all jobs asks about another user."""
    if viewer.sees != "all" and user is not None and user != viewer.user:
        raise Unanswerable(403, "only questions about your own jobs are answered", "user")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
