"""A real registry of images, of Debian's docker-registry, and what pushes to it over HTTP."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from shadowtime.stack.servers.server import Server
from tests.support.patience import PATIENCE

BINARY = "docker-registry"

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"


class Registry(Server):
    """A registry with its images below `images`."""

    name = "registry"

    def __init__(self, folder: Path, images: Path) -> None:
        super().__init__(folder)
        self._images = images

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @classmethod
    def available(cls) -> str | None:
        missing = [command for command in (BINARY, "skopeo") if shutil.which(command) is None]
        return f"{missing[0]} is not on PATH (run shadowtime stack install registry)" if missing else None

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
        written.write_text(json.dumps(settings))
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
