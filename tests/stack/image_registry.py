"""A real registry of images, of Debian's docker-registry, and what pushes to it over HTTP."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import parse_qs, urljoin, urlsplit
from urllib.request import Request, urlopen

from shadowtime.stack.server import Server
from tests.patience import PATIENCE

BINARY = "docker-registry"
ISSUER = "those who may"
SERVICE = "images"

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"


class Registry(Server):
    """A registry with its images below `images`; with `auth` it asks for it, as its configuration says it."""

    name = "registry"

    def __init__(self, folder: Path, images: Path, auth: dict[str, Any] | None = None) -> None:
        super().__init__(folder)
        self._images = images
        self._auth = auth

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @classmethod
    def available(cls) -> str | None:
        if shutil.which(BINARY) is None:
            return f"{BINARY} is not on PATH (run shadowtime stack install registry)"
        return None

    def answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    def _command(self) -> list[str]:
        written = self.folder / "config.json"
        settings: dict[str, Any] = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(self._images)}},
            "http": {"addr": self.address},
        }
        written.write_text(json.dumps(settings if self._auth is None else settings | {"auth": self._auth}))
        return [BINARY, "serve", str(written)]

    def push(self, name: str, tag: str, text: str) -> str:
        """Push an image for one machine, whose configuration is `text`, under an index; return the digest of that."""
        config = self._push_blob(name, json.dumps({"config": {"Labels": {"text": text}}}).encode())
        manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": []}
        one = self._put(name, "", OCI_MANIFEST, manifest)
        index = {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": [one | {"platform": {"architecture": "amd64", "os": "linux"}}],
        }
        return str(self._put(name, tag, OCI_INDEX, index)["digest"])

    def _push_blob(self, name: str, body: bytes) -> dict[str, Any]:
        begun = f"{self.url}/v2/{name}/blobs/uploads/"
        with urlopen(Request(begun, data=b"", method="POST"), timeout=PATIENCE) as answer:
            place = urljoin(begun, answer.headers["Location"])
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        headers = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(f"{place}&digest={digest}", body, headers, method="PUT"), timeout=PATIENCE):
            return {"mediaType": "application/vnd.oci.image.config.v1+json", "size": len(body), "digest": digest}

    def _put(self, name: str, tag: str, kind: str, manifest: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(manifest).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        place = f"{self.url}/v2/{name}/manifests/{tag or digest}"
        with urlopen(Request(place, body, {"Content-Type": kind}, method="PUT"), timeout=PATIENCE):
            return {"mediaType": kind, "size": len(body), "digest": digest}


@contextmanager
def token_service(folder: Path) -> Iterator[dict[str, Any]]:
    """Give out tokens that let anybody pull, as Docker Hub does; yield the `auth` of a registry that wants them."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=token", "-keyout", key, "-out", certificate)

    class Give(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (scope,) = parse_qs(urlsplit(self.path).query)["scope"]
            kind, name, _ = scope.split(":")
            body = json.dumps({"token": token([{"type": kind, "name": name, "actions": ["pull"]}], key, certificate)})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Give) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        realm = f"http://127.0.0.1:{server.server_port}/token"
        yield {
            "token": {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": str(certificate)},
        }
        server.shutdown()


def token(access: list[dict[str, Any]], key: Path, certificate: Path) -> str:
    """Return a JSON web token, signed."""
    chain = [openssl("x509", "-in", certificate, "-outform", "DER")]
    header = {"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(each).decode() for each in chain]}
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": "", "aud": SERVICE, "iat": now, "nbf": now - 60, "exp": now + 300, "jti": "1"}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims | {"access": access}))
    return f"{signed}.{encoded(openssl('dgst', '-sha256', '-sign', key, given=signed.encode()))}"


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def openssl(*arguments: str | os.PathLike[str], given: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *arguments], input=given, capture_output=True, timeout=PATIENCE, check=True)
    return done.stdout
