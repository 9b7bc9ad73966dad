"""The expected start of a waiting notebook on JupyterHub's page: docs/jupyterhub.md.

Copy this file to where the Python of the hub finds it. It runs in the hub and needs only packages that JupyterHub
installs. It asks `/expected` of the live page (docs/portals.md) while somebody looks at the page of a pending server.
The start of the server does not depend on it: a late, invalid or missing answer leaves the events of batchspawner
unchanged.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import url_concat
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from traitlets import Float, Unicode
from traitlets.config import Configurable

PATIENCE = 5.0
"""Timeout of a request in seconds. The start of the server does not wait for the answer."""

OLD = 600.0
"""Age in seconds beyond which the log is too old for an answer, because the follower does not run."""

AGED = 60.0
"""Age of the log in seconds from which on the line has this age."""

NOT_THERE = 404
"""Status if the follower has not seen the job yet."""

LONGEST = 200
"""Maximum length of the line, in characters."""

LARGEST = 65_536
"""Maximum size of an answer, in bytes."""


class ShadowtimeProgress(Configurable):
    """A mixin for spawners of batchspawner: `class Spawner(ShadowtimeProgress, SlurmSpawner)`."""

    shadowtime_url = Unicode(help="URL of the live page, such as http://127.0.0.1:6080; empty: off.").tag(config=True)
    shadowtime_cluster = Unicode(help="Name of the cluster (follow --cluster); empty: the newest one.").tag(config=True)
    shadowtime_token_file = Unicode(help="File with the token of the portal; empty: no token.").tag(config=True)
    shadowtime_seconds = Float(10.0, help="Seconds between two requests, at least 1.").tag(config=True)

    user: Any
    job_id: str
    log: Any
    _reported = ""

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of the spawner, without repetitions; a waiting job has its expected start as the message."""
        line, shown, next_time = "", None, 0.0
        question: asyncio.Task[str] | None = None
        async with aclosing(super().progress()) as events:  # type: ignore[misc]
            async for event in events:
                waits = bool(self.state_ispending())  # type: ignore[attr-defined]
                if question is not None and question.done():
                    line, question = question.result(), None
                if waits and question is None and self.shadowtime_url and time.monotonic() >= next_time:
                    next_time = time.monotonic() + max(1.0, self.shadowtime_seconds)
                    question = asyncio.create_task(self._ask())
                if waits and line:
                    event = {"message": line}
                if event != shown:
                    yield event
                shown = event

    async def _ask(self) -> str:
        """Return the line about the job; empty if there is none."""
        try:
            line, problem = line_of(await self._answer(), time.time()), ""
        except HTTPClientError as error:
            line, problem = "", "" if error.code == NOT_THERE else str(error)
        except Exception as error:  # no error may prevent the start of the user's server
            line, problem = "", f"{type(error).__name__}: {error}"
        if problem and problem != self._reported:
            self.log.warning("Shadowtime has no expected start of job %s: %s", self.job_id, problem)
        self._reported = problem
        return line

    async def _answer(self) -> Any:
        asked = {"job": self.job_id, "user": getattr(self, "req_username", "") or self.user.name}
        if self.shadowtime_cluster:
            asked["cluster"] = self.shadowtime_cluster
        headers = {}
        if self.shadowtime_token_file:
            headers["Authorization"] = f"Bearer {Path(self.shadowtime_token_file).read_text().strip()}"
        request = HTTPRequest(
            url_concat(f"{self.shadowtime_url.rstrip('/')}/expected", asked),
            headers=headers,
            connect_timeout=PATIENCE,
            request_timeout=PATIENCE,
            follow_redirects=False,
        )
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=LARGEST)
        try:
            return json.loads((await client.fetch(request)).body)
        finally:
            client.close()


def line_of(answer: Any, now: float) -> str:
    """Return the line about a job that waits; empty if it does not wait, or if the log is older than `OLD` seconds.

    `answer` is that of `/expected`. `now` is the Unix time.

    >>> job = {"state": "waiting", "starts": None}
    >>> job |= {"text": "likely to start in 12.0 min", "reason": "It needs 4 procs, and 1 is free."}
    >>> line_of({"time": 1000, "job": job}, 1010)
    'waiting: likely to start in 12.0 min; it needs 4 procs, and 1 is free'
    >>> line_of({"time": 1000, "job": job | {"state": "running"}}, 1010), line_of({"time": 1000, "job": job}, 2000)
    ('', '')
    """
    job, age = answer["job"], now - answer["time"]
    text = job["text"]
    if text and (job["starts"] or {}).get("source") == "site":
        start, bracket, interval = text.partition(" (")
        text = f"{start}, as the site's scheduler expects{bracket}{interval}"
    if text and age >= AGED:
        text += f", as of {age / 60:.0f} min ago"
    reason = job["reason"].rstrip(".")
    parts = [part for part in (text, reason[:1].lower() + reason[1:]) if part]
    if job["state"] != "waiting" or not parts or age > OLD:
        return ""
    line = "".join(letter for letter in f"waiting: {'; '.join(parts)}" if letter.isprintable())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
