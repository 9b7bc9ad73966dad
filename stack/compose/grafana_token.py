"""A service account of Grafana that may push to Grafana Live, and its token.

`python -m shadowtime.stack.compose.grafana_token URL PASSWORD_FILE TOKEN_FILE` reads the administrator's password; the
process that pushes never reads it. The account is a Viewer, the role with the fewest rights. A token that Grafana still
accepts is kept. If no token can be made, a placeholder is written, and the process continues without Grafana Live.
"""

import argparse
import secrets
import sys
import time
from base64 import b64encode
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import orjson

from shadowtime.shared.cli import run_app, say
from shadowtime.shared.errors import PushError
from shadowtime.shared.private_files import write_private

ACCOUNT = "shadowtime-live"
SECONDS, START_SECONDS = 10.0, 90.0
NONE = "none-yet"

FOR_GROUP = 0o440
"""File mode of the token: one user writes it, and another user reads it by its group."""


def make_token(url: str, password: str, file: Path) -> str:
    """Write a token into `file`, readable by its owner and group. Return the outcome in words.

    Raise `PushError` if Grafana is unreachable or rejects the administrator's password.
    """
    if file.exists() and _ask(url, "GET", "/api/org", f"Bearer {file.read_text()}") is not None:
        return "the token is good"
    admin = "Basic " + b64encode(f"admin:{password}".encode()).decode()
    reply = _ask(url, "GET", f"/api/serviceaccounts/search?query={ACCOUNT}", admin)
    if reply is None:
        raise PushError(f"Grafana at {url} rejects the administrator's password; docs/compose.md says how to set it")
    accounts = [account["id"] for account in reply["serviceAccounts"] if account["name"] == ACCOUNT]
    if not accounts:
        made = _ask(url, "POST", "/api/serviceaccounts", admin, {"name": ACCOUNT, "role": "Viewer"})
        accounts = [made["id"]]
    tokens = f"/api/serviceaccounts/{accounts[0]}/tokens"
    for old in _ask(url, "GET", tokens, admin):
        _ask(url, "DELETE", f"{tokens}/{old['id']}", admin)
    token = _ask(url, "POST", tokens, admin, {"name": f"live-{secrets.token_hex(4)}"})["key"]
    write_private(file, token, mode=FOR_GROUP)
    return "a new token"


def _ask(url: str, method: str, path: str, authorization: str, body: dict[str, Any] | None = None) -> Any:
    """Return Grafana's answer; None if it rejects the login. Raise `PushError` for any other failure."""
    headers = {"Authorization": authorization, "Content-Type": "application/json"}
    request = Request(url + path, orjson.dumps(body) if body else None, headers, method=method)  # noqa: S310
    try:
        with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return orjson.loads(answer.read())
    except HTTPError as error:
        if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return None
        raise PushError(f"Grafana at {url} answers {method} {path} with {error.code}: {error.read()[:200]!r}") from None
    except (URLError, OSError, ValueError) as error:
        raise PushError(f"Grafana at {url} cannot be used: {error}") from None


def wait_for(url: str, seconds: float) -> None:
    """Wait until Grafana answers its health page. Raise `PushError` if it does not within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        try:
            _ask(url, "GET", "/api/health", "")
            return
        except PushError:
            if time.monotonic() > until:
                raise

        time.sleep(1.0)


def main() -> None:
    """Make the token if there is no valid one. If this fails, print a remark; other containers still start."""
    parser = argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.grafana_token", description=__doc__)
    parser.add_argument("url", help="root URL of Grafana")
    parser.add_argument("password", type=Path, help="file with the password of Grafana's administrator")
    parser.add_argument("token", type=Path, help="file to which the token is written")
    arguments = parser.parse_args()
    url, file = arguments.url, arguments.token
    try:
        wait_for(url, START_SECONDS)
        sys.stdout.write(f"grafana: {make_token(url, arguments.password.read_text().strip(), file)}\n")
    except PushError as error:
        say(f"nothing can be pushed to Grafana Live: {error}")
        if not file.exists():
            write_private(file, NONE, mode=FOR_GROUP)


if __name__ == "__main__":
    run_app(main)
