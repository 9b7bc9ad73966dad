"""A service account of Grafana that may push to Grafana Live, and its token.

`python -m shadowtime.stack.compose.grafana_token URL PASSWORD_FILE TOKEN_FILE` has the administrator's password, which
the process that pushes never has. The account is a Viewer, the least that Grafana lets in. A token that Grafana still
takes is kept. Where none can be had, that process gets one that is none, and goes on without Grafana Live.
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
from shadowtime.stack.servers import write_private

ACCOUNT = "shadowtime-live"
SECONDS, START_SECONDS = 10.0, 90.0
NONE = "none-yet"

FOR_GROUP = 0o440
"""File mode of a token that one user of a group makes and another one uses."""


def make_token(url: str, password: str, file: Path) -> str:
    """Write a token into `file`, for its owner and group; return what was done.

    Raises
    ------
    PushError
        If Grafana is away or refuses the administrator.
    """
    if file.exists() and _ask(url, "GET", "/api/org", f"Bearer {file.read_text()}") is not None:
        return "the token is good"
    admin = "Basic " + b64encode(f"admin:{password}".encode()).decode()
    reply = _ask(url, "GET", f"/api/serviceaccounts/search?query={ACCOUNT}", admin)
    if reply is None:
        raise PushError(f"Grafana at {url} refuses the administrator's password; docs/compose.md tells how to set it")
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
    """Return what Grafana answers; None if it does not let us in."""
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
    """Return when Grafana is healthy, or raise `PushError` if it is not within `seconds`."""
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
    """Make the token, if there is none that is good; what comes of it stops nobody."""
    parser = argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.grafana_token", description=__doc__)
    parser.add_argument("url", help="of Grafana")
    parser.add_argument("password", type=Path, help="a file with its administrator's password")
    parser.add_argument("token", type=Path, help="the file that the token is written into")
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
