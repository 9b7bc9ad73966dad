"""Stands where Grafana would, on an engine that reaches no registry: health, service accounts, tokens, pushes to Live.

Nothing can be learned here about Grafana itself; only that what is around it finds its credentials, and others do not.
"""

import json
import os
import secrets
import signal
import sys
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ACCOUNTS: list[str] = []
TOKENS: dict[str, int] = {}


def administrator() -> str:
    password = Path(os.environ["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text()
    return "Basic " + b64encode(f"admin:{password}".encode()).decode()


class Pages(BaseHTTPRequestHandler):
    """Answers by path, to whom it may."""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        code, body = self.answer(self.path.partition("?")[0], self.rfile.read(length))
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        who = self.headers.get("Authorization", "")
        if path == "/api/health":
            return 200, {"database": "ok"}
        if who != administrator() and who.removeprefix("Bearer ") not in TOKENS:
            return 401, {"message": "Unauthorized"}
        if path in ("/api/org", "/api/live/push/shadowtime"):
            return 200, {}
        if who != administrator():
            return 403, {"message": "Permission denied"}
        return self.administer(path, body)

    def administer(self, path: str, body: bytes) -> tuple[int, Any]:
        if path == "/api/serviceaccounts/search":
            return 200, {"serviceAccounts": [{"id": at, "name": name} for at, name in enumerate(ACCOUNTS)]}
        if path == "/api/serviceaccounts":
            ACCOUNTS.append(json.loads(body)["name"])
            return 201, {"id": len(ACCOUNTS) - 1}
        if path.endswith("/tokens") and self.command == "GET":
            return 200, [{"id": number} for number in TOKENS.values()]
        if path.endswith("/tokens"):
            token = f"glsa_{secrets.token_hex(16)}"
            TOKENS[token] = len(TOKENS) + 1
            return 200, {"id": TOKENS[token], "key": token}
        for token in [token for token, number in TOKENS.items() if path.endswith(f"/tokens/{number}")]:
            del TOKENS[token]
        return 200, {}

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # the first process of a container ends by no signal otherwise
    ThreadingHTTPServer(("", 3000), Pages).serve_forever()
