"""Client of slurmrestd over HTTP or a Unix socket. It sends one request at a time and only reads."""

import asyncio
import getpass
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from shadowtime.services.follower.io.commands import MAX_OUTPUT
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.errors import FollowError, SettingsError
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.streaming import bearer_token, http_url, read_secret

NOTHING_FOUND = 9003
"""Error number of slurmrestd for an empty result."""

SHOWN = 200
"""Number of characters of an answer in an error message."""


class NotThere(FollowError):
    """Error for a path that the server does not have."""


class Slurmrestd:
    """Client of one slurmrestd.

    The options give address, user and timeout. The token is read anew for each request, because tokens expire.

    Raise `SettingsError` if the address, the user or the token is invalid.
    """

    def __init__(self, options: FollowOptions) -> None:
        self._socket, self._url = _place(options.rest or "")
        self._token_file = options.rest_token_file
        self._seconds = options.timeout
        self._session: aiohttp.ClientSession | None = None
        try:
            self.user = bearer_token(options.rest_user or getpass.getuser())
            self._headers()
        except (KeyError, OSError):  # of getuser: an OSError since Python 3.13
            raise SettingsError("--rest-user: your user has no name on this machine; give --rest-user NAME") from None
        except ValueError as error:
            raise SettingsError(f"--rest-user: {error}") from None
        except FollowError as error:
            raise SettingsError(str(error)) from None

    async def get(
        self, path: str, part: str, query: Mapping[str, str] | None = None, seconds: float | None = None
    ) -> Any:
        """Return the member `part` of the JSON object at `path`; an empty list if slurmrestd finds nothing.

        `seconds` is the time limit, by default the timeout of the options.

        Raise `FollowError` if there is no answer in time, or the answer is too long, invalid or an error. The message
        names the path.
        """
        seconds = seconds or self._seconds
        try:
            async with asyncio.timeout(seconds):
                status, reason, body = await self._ask(path, query or {})
        except TimeoutError:
            raise FollowError(f"{path} was not answered in {seconds:g} s; increase --timeout") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FollowError(f"{path}: {_line(str(error) or type(error).__name__)}") from None

        return await asyncio.to_thread(_part, path, part, status, reason, body)

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    async def _ask(self, path: str, query: Mapping[str, str]) -> tuple[int, str, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1, force_close=True)
                if self._socket is None
                else aiohttp.UnixConnector(self._socket, limit=1, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),  # `get` limits the time; by default, aiohttp ends at 300 s
            )

        asked = self._session.get(
            self._url.joinpath(path.removeprefix("/")), params=query, headers=self._headers(), allow_redirects=False
        )
        async with asked as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(2**16):
                body += chunk
                if len(body) > MAX_OUTPUT:
                    raise FollowError(f"{path}: the answer has more than {MAX_OUTPUT:,} bytes")

            return response.status, response.reason or "", bytes(body)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers["Connection"] = "keep-alive"  # with "close", 22.05 writes a header after its answer; we close instead
        if self._token_file is None:
            return headers
        try:
            token = bearer_token(read_secret(self._token_file)).removeprefix("SLURM_JWT=")
        except ValueError as error:
            raise FollowError(f"--rest-token-file {self._token_file}: {error}") from None

        return headers | {"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": token}


def _place(text: str) -> tuple[str | None, URL]:
    """Return the path of the Unix socket in an address, or None, and the base URL of requests."""
    if text.startswith("unix:/"):
        return text.removeprefix("unix:"), URL("http://localhost/")
    try:
        url = URL(http_url(text, "http://127.0.0.1:6820 or unix:/run/slurmrestd/socket"))
        if url.user is not None or url.password is not None or url.query or url.fragment:
            raise ValueError("expected only scheme, host, port and path; a token goes into --rest-token-file")
    except ValueError as error:
        raise SettingsError(f"--rest: {error}") from None

    return None, url


def _part(path: str, part: str, status: int, reason: str, body: bytes) -> Any:
    """Return the member `part` of an answer; see `Slurmrestd.get`."""
    text = body.decode(errors="surrogateescape")  # names of jobs may have bytes that are no text
    try:
        answer = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        answer = None

    errors = answer.get("errors") if isinstance(answer, dict) else None
    entries = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    if entries and all(error.get("error_number") == NOTHING_FOUND for error in entries):
        return []
    refusal = NotThere if status == 404 else FollowError
    if entries:
        texts = dict.fromkeys(
            str(error[name]) for error in entries for name in ("error", "description") if error.get(name)
        )
        raise refusal(f"{path}: {_line('; '.join(texts) or 'an error without a description')}")

    if status != 200:
        said_so = "" if isinstance(answer, dict) or not text.strip() else f": {_line(text)}"
        raise refusal(f"{path}: {status} {_line(reason)}{said_so}")
    if not isinstance(answer, dict):
        raise FollowError(f"{path}: the answer is not JSON: {quote(text[:SHOWN], 60)}")
    if part not in answer:
        raise FollowError(f"{path}: the answer has no {part}")
    return answer[part]


def _line(text: str) -> str:
    """Return a message as one printable line of at most `SHOWN` characters."""
    line = " ".join(text.split())
    return truncate("".join(character if character.isprintable() else "?" for character in line[: 2 * SHOWN]), SHOWN)
