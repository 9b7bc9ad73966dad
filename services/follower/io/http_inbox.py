"""Inbox of lines that are sent over HTTP. Valid lines are stored in a file before the request is answered."""

import asyncio
import hmac
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
from aiohttp import web

from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.quoting import quote, truncate

PATH = "/lines"

DAILY = re.compile(r"[0-9]{8}\.jsonl")
"""Names of the files; no other file in the folder is read."""

MEDIA_TYPE = "application/x-ndjson"
"""Required content type. A browser does not let a page of another site send it."""

MAX_BODY = 2**15
"""Maximum number of bytes in a request's body: half of `MAX_UNANSWERED` in `shared/streaming/web/connections.py`."""

SECONDS = 30.0
"""Timeout in seconds for the whole body of a request."""


class Inbox:
    """Inbox that stores lines in a folder, one file for each day in UTC, and answers each line.

    Parameters
    ----------
    folder
        Folder of the files. The source that follows it publishes the lines.
    token
        Token that authorizes a sender.
    read
        Parser that raises `ValueError` for an invalid line.
    """

    def __init__(self, folder: Path, token: str, read: Callable[[str], object]) -> None:
        self._folder = folder
        self._token = token.encode()
        self._read = read
        self._writing = asyncio.Lock()

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the route that receives lines."""
        return (web.post(PATH, self._take),)

    async def _take(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            raise web.HTTPUnauthorized(reason="expected the header Authorization: Bearer TOKEN")
        if request.content_type != MEDIA_TYPE:
            found_type = quote(request.content_type)
            raise web.HTTPUnsupportedMediaType(reason=f"expected Content-Type {MEDIA_TYPE}, found {found_type}")
        body = bytearray()
        try:
            async with asyncio.timeout(SECONDS):
                async for piece in request.content.iter_any():
                    body += piece
                    if len(body) > MAX_BODY:
                        raise web.HTTPRequestEntityTooLarge(
                            MAX_BODY, len(body), reason=f"expected at most {MAX_BODY:,} bytes; send fewer lines"
                        )
        except ConnectionError:
            raise web.HTTPBadRequest(reason="the sender disconnected") from None
        except TimeoutError:
            raise web.HTTPRequestTimeout(
                reason=f"the body did not arrive within {SECONDS:g} s; send fewer lines"
            ) from None

        accepted, answers = await asyncio.to_thread(self._checked, bytes(body))
        try:
            async with self._writing:
                await asyncio.to_thread(self._keep, accepted)
        except OSError as error:
            raise web.HTTPServiceUnavailable(
                reason=f"not all lines were stored: {error.strerror}; send them again"
            ) from None

        refused = any("error" in answer for answer in answers)
        return web.Response(
            status=422 if refused else 200,
            body=b"".join(orjson.dumps(answer) + b"\n" for answer in answers),
            content_type=MEDIA_TYPE,
        )

    def _checked(self, body: bytes) -> tuple[bytes, list[dict[str, object]]]:
        """Return the valid lines, and the answer to each line."""
        accepted: list[bytes] = []
        answers: list[dict[str, object]] = []
        for number, line in enumerate(body.splitlines(), 1):
            if not line.strip():
                continue
            try:
                if len(line) > MAX_LINE_LENGTH:
                    raise ValueError(f"expected at most {MAX_LINE_LENGTH:,} bytes in a line, found {len(line):,}")
                self._read(line.decode())
            except ValueError as error:
                answers.append({"line": number, "error": truncate(str(error))})
            else:
                accepted.append(line + b"\n")
                answers.append({"line": number})

        return b"".join(accepted), answers

    def _keep(self, lines: bytes) -> None:
        """Append lines to the file of the day, and wait until they are on disk."""
        if not lines:
            return
        names = [path.name for path in self._folder.iterdir() if DAILY.fullmatch(path.name)]
        today = time.strftime("%Y%m%d.jsonl", time.gmtime())  # after the clock was set back, use the latest file
        path = self._folder / max([*names, today])
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # end a cut-off line, so that only this line is invalid
                    lines = b"\n" + lines

            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
