"""What a registry of images says a tag stands for now: one question of its HTTP API, version 2, asked anonymously."""

import json
import re
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from shadowtime.shared.errors import ShadowtimeError

DOCKER_HUB = "https://registry-1.docker.io"
SECONDS = 20.0
MAX_BYTES = 1 << 20

# An image for several machines first: its digest is the one that all of them share.
MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class PinError(ShadowtimeError):
    """No registry says what an image's tag stands for."""


def place_of(name: str, docker_hub: str = DOCKER_HUB) -> tuple[str, str]:
    """Return the registry of an image and its name there, as Docker reads `name`.

    >>> place_of("redis")
    ('https://registry-1.docker.io', 'library/redis')
    >>> place_of("apache/kafka", docker_hub="http://127.0.0.1:5000")
    ('http://127.0.0.1:5000', 'apache/kafka')
    >>> place_of("quay.io/prometheus/node-exporter")
    ('https://quay.io', 'prometheus/node-exporter')
    """
    host, slash, rest = name.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return f"https://{host}", rest
    return docker_hub, name if slash else f"library/{name}"


def digest_of(name: str, tag: str, docker_hub: str = DOCKER_HUB) -> str:
    """Return the digest that a tag of an image stands for now.

    Parameters
    ----------
    name, tag
        Such as `apache/kafka` and `4.3.1`.
    docker_hub
        Whom to ask for images of Docker Hub: it, or a mirror of it.

    Raises
    ------
    PinError
        If the registry cannot be reached, refuses, or knows no such tag.
    """
    registry, repository = place_of(name, docker_hub)
    asked = f"{registry} for {repository}:{tag}"
    manifest = f"{registry}/v2/{repository}/manifests/{tag}"
    status, headers, _ = _ask(manifest, asked, "HEAD", {"Accept": MANIFESTS})
    if status == 401:
        token = _token(headers, registry, asked)
        status, headers, _ = _ask(manifest, asked, "HEAD", {"Accept": MANIFESTS, "Authorization": f"Bearer {token}"})
    if status == 404:
        raise PinError(f"{registry} has no {repository}:{tag}")
    digest = headers.get("Docker-Content-Digest", "")
    if status != 200 or not DIGEST.fullmatch(digest):
        raise PinError(f"asked {asked}: it answers with status {status} and the digest {digest[:100]!r}")
    return digest


def _token(headers: Message, registry: str, asked: str) -> str:
    """Return the token that lets anybody pull, from where the registry's refusal sends us."""
    challenge = headers.get("WWW-Authenticate", "")
    terms: dict[str, str] = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    realm = terms.pop("realm", "")
    if not challenge.lower().startswith("bearer ") or _scheme(realm) not in ("https", _scheme(registry)):
        raise PinError(f"asked {asked}: it wants what an anonymous client does not have: {challenge[:200]!r}")
    terms = {key: terms[key] for key in ("service", "scope") if key in terms}
    status, _, body = _ask(f"{realm}?{urlencode(terms)}", f"{realm} for a token", "GET", {})
    try:
        answer = json.loads(body) if status == 200 else {}
        token = answer.get("token") or answer["access_token"]
        if re.fullmatch(r"[\w.~+/=-]+", token):
            return str(token)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise PinError(f"asked {realm} for a token: it answers with status {status} and gives none")


def _ask(url: str, asked: str, method: str, headers: Mapping[str, str]) -> tuple[int, Message, bytes]:
    if _scheme(url) not in ("http", "https"):
        raise PinError(f"cannot ask {asked}: an address begins with http:// or https://")
    try:
        with urlopen(Request(url, method=method, headers=dict(headers)), timeout=SECONDS) as answer:  # noqa: S310
            return answer.status, answer.headers, answer.read(MAX_BYTES)
    except HTTPError as refused:
        with refused:
            return refused.code, refused.headers, b""
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        raise PinError(f"cannot ask {asked}: {why or type(error).__name__}") from error


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""
