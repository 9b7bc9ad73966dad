"""The live page: a run in a browser, over server-sent events. It is a reader of the stream like any other.

At most twice a second, a visitor gets the difference between the last state that they received and the newest state.
There is no queue of updates. So a slow visitor misses states, but costs neither time nor memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from shadowtime.services.processes.ask import NO_WORDS, ClusterWords, Gate, Problem, Viewer, WordReader, require_own
from shadowtime.services.processes.live.asked import SEES_ALL
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import matches, names_in, queue, running, story_of
from shadowtime.services.processes.live.portals import allowed_origin, expected_answer, queue_answer
from shadowtime.services.processes.live.queue_rows import Sees, everything, restricted, seen_by
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.errors import ShadowtimeError, Unanswerable
from shadowtime.shared.quoting import listed, quote
from shadowtime.shared.streaming import silence_reason

# The difference between two states of the page. A visitor applies it to the first state to get the second.

ROWS = frozenset({"queue", "running", "decisions", "blocks", "history", "ids", "users"})
"""Parts of a state that are tables, as rows by key. New rows follow the rows that stay, in the order of the part."""


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the update from one state to the next, or None if nothing has changed. O(size of the states).

    The update has the changed parts. For a table, it has only the changed rows and the keys of removed rows. A removed
    part is None. If `before` is None, as for a new visitor, the update is the whole state.

    >>> before = {"time": 1, "busy": 4, "queue": {7: ["a"], 8: ["b"]}}
    >>> changes(before, {"time": 2, "busy": 4, "queue": {8: ["b"], 9: ["c"]}})
    {'time': 2, 'queue': {'set': [[9, ['c']]], 'drop': [7]}}
    >>> changes(before, before) is None
    True
    """
    if before is None:
        before = {}
    difference: dict[str, Any] = {name: None for name in before if name not in after}
    for name, part in after.items():
        if name in ROWS:
            seen = before.get(name, {})
            rows = [[key, row] for key, row in part.items() if seen.get(key) != row]
            gone = [key for key in seen if key not in part]
            if rows or gone or name not in before:
                difference[name] = {"set": rows, "drop": gone}
        elif name not in before or before[name] != part:
            difference[name] = part

    return difference or None


PAGE = Path(__file__).with_name("assets")
KINDS = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {
    f"/{file.name}".replace("/page.html", "/"): file.name for file in sorted(PAGE.iterdir()) if file.suffix in KINDS
}

MAX_VISITORS = 32
STAY_SECONDS = 60.0
"""Seconds after which a full page may disconnect a reading visitor for a new one. A browser reconnects by itself."""

MAX_WANTED = 200
"""The maximum length of a searched text, or of the id of a job."""

REST_SECONDS = 0.5
ALIVE_SECONDS = 10.0
"""Seconds between two keep-alive events while nothing happens."""

ALIVE = b"event: alive\ndata:\n\n"
EVENTS = "text/event-stream; charset=utf-8"
GREETING = (b":" + b" " * 1_022 + b"\n") * 256
"""A comment, which browsers ignore. It exceeds the kernel's buffers, and so reveals a visitor who does not read."""

SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class LivePage:
    """The page and its visitors.

    Parameters
    ----------
    runs
        The runs that are shown. Call `tell` whenever they change.
    asked
        The application for `/ask/`.
    gate
        Identification of visitors. By default, everybody sees all jobs.
    words
        Reader of the names of clusters. Numbers are shown where no names were read.
    """

    def __init__(
        self,
        runs: LiveRuns,
        asked: web.Application | None = None,
        gate: Gate | None = None,
        words: WordReader | None = None,
    ) -> None:
        self.runs = runs
        self._gate = gate or Gate()
        self._words = words or WordReader()
        self._asked_of_redis = asked
        self._visitors: dict[asyncio.Transport, float] = {}
        self._news = asyncio.Event()
        self._ended = False
        self.silence = 0.0
        """Seconds since Kafka last answered."""
        self._states: dict[str | None, tuple[int, ClusterWords, dict[str, Any]]] = {}

    @property
    def visitors(self) -> int:
        """The number of visitors."""
        return len(self._visitors)

    def tell(self) -> None:
        """Notify the visitors of a new state."""
        self._news.set()
        self._news = asyncio.Event()

    def end(self) -> None:
        """End the connections of all visitors."""
        self._ended = True
        self.tell()

    def application(self) -> web.Application:
        """Return the HTTP application of the page."""
        made = web.Application(middlewares=[self._guarded])
        made.add_routes([web.get(path, _file(file)) for path, file in FILES.items()])
        made.add_routes([web.get("/events", self._events), web.get("/health", self._health)])
        made.add_routes([web.get("/queue", self._queue), web.get("/job", self._job), web.get("/find", self._find)])
        made.add_routes([web.get("/expected", self._expected)])
        made.add_routes([web.options(path, self._preflight) for path in ("/queue", "/expected")])
        if self._asked_of_redis is not None:
            made.add_subapp("/ask", self._asked_of_redis)
        return made

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            if request.path.startswith("/ask/"):
                viewer = self._viewer(request)
                require_own(viewer, request.query.get("user"))
                SEES_ALL.set(viewer.sees == "all")
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
        except ShadowtimeError as error:
            status = error.status if isinstance(error, Unanswerable) else 503
            parameter = error.parameter if isinstance(error, Unanswerable) else None
            problem = Problem(error=str(error), parameter=parameter)
            response = web.Response(status=status, body=problem.as_json(), content_type="application/json")
        if not response.prepared:
            response.headers.update(SAFE | allowed_origin(self._gate, request))
        return response

    def _viewer(self, request: web.Request) -> Viewer:
        return self._gate.viewer(request.headers, request.remote or "", request.query.get("user"))

    async def _seen(self, viewer: Viewer, run: str) -> tuple[LiveView, ClusterWords, Sees]:
        view = self.runs.view(run)
        words = await self._words.latest(view.opened.cluster, run)
        return view, words, seen_by(viewer, view, words)

    async def _health(self, request: web.Request) -> web.Response:
        reason = silence_reason(self.silence)
        known = {"healthy": reason is None, "reason": reason, "visitors": self.visitors}
        return web.json_response(known, status=200 if reason is None else 503)

    async def _queue(self, request: web.Request) -> web.Response:
        viewer = self._viewer(request)
        if "from" not in request.query:
            return await self._rows(request, viewer)
        run, start = self._asked(request), _number(request, "from")
        if run is None:
            return _json_response(None)
        view, words, sees = await self._seen(viewer, run)
        rows = queue(view, start, sees, words)
        names = {kind: list(of.items()) for kind, of in names_in({"queue": rows}, words).items()}
        return _json_response({"from": start, "rows": list(rows.items()), **names})

    async def _rows(self, request: web.Request, viewer: Viewer) -> web.Response:
        run = self._required(request)
        skip = _number(request, "skip") if "skip" in request.query else 0
        answer = queue_answer(*await self._portal(viewer, run), request.query.get("user"), skip)
        return web.Response(body=answer.as_json(), content_type="application/json")

    async def _expected(self, request: web.Request) -> web.Response:
        viewer, run = self._viewer(request), self._required(request)
        if "job" not in request.query:
            raise Unanswerable(422, "is missing", "job")
        answer = expected_answer(*await self._portal(viewer, run), request.query["job"])
        return web.Response(body=answer.as_json(), content_type="application/json")

    async def _portal(self, viewer: Viewer, run: str) -> tuple[LiveView, str, ClusterWords, Sees]:
        view, words, sees = await self._seen(viewer, run)
        user = None if viewer.sees == "all" else viewer.user
        if words.hashed and user is not None and words.login(user, followed=view.followed) is None:
            words.refuse_hashed(user, "user")  # or else nobody would learn why there are no jobs
        return view, run, words, sees

    async def _preflight(self, request: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _job(self, request: web.Request) -> web.Response:
        viewer, run, job = self._viewer(request), self._asked(request), _text(request, "job")
        if run is None:
            return _json_response(None)
        view, words, sees = await self._seen(viewer, run)
        story = story_of(view, job, sees, words)
        return _json_response(None if story is None else job_page(view, story.job.job_number, sees, words))

    async def _find(self, request: web.Request) -> web.Response:
        viewer, run, wanted = self._viewer(request), self._asked(request), _text(request, "wanted")
        if run is None:
            return _json_response(None)
        view, words, sees = await self._seen(viewer, run)
        return _json_response(matches(view, wanted, sees, words))

    def _asked(self, request: web.Request) -> str | None:
        return self.runs.chosen(request.query.get("run"))

    def _required(self, request: web.Request) -> str:
        """Return the run that an endpoint is about: `run`, else the followed run of `cluster`, else the newest.

        The newest followed run precedes all others: a shadow or a replay has jobs that do not wait in reality.
        """
        cluster, named = request.query.get("cluster"), request.query.get("run")
        run = self.runs.followed(cluster) if named is None else self.runs.chosen(named)
        if run is None and named is None and cluster is None:
            run = self.runs.chosen(None)
        if run is not None:
            return run
        if named is not None:
            raise Unanswerable(404, f"no run {quote(named)} is known", "run")
        lost = self.runs.headless(cluster)
        why = f": Kafka no longer has the beginning of {listed(lost)}; follow the cluster as a new run" if lost else ""
        if cluster is not None:
            raise Unanswerable(404, f"no run that follows cluster {quote(cluster)} is known{why}", "cluster")
        raise Unanswerable(404, f"no run is known{why or ' yet'}")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if request.method == "HEAD" or request.transport is None:
            return web.Response(headers={"Content-Type": EVENTS})
        viewer, now = self._viewer(request), asyncio.get_running_loop().time()
        if not self._has_room(now):
            text = f"{MAX_VISITORS} visitors are connected already, the maximum\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "5"})
        response = web.StreamResponse(headers=SAFE | {"Content-Type": EVENTS})
        visitor = request.transport
        self._visitors[visitor] = now
        with suppress(ConnectionError):  # the visitor has left, or does not read
            try:
                await response.prepare(request)
                await self._send_states(response, request.query.get("run"), viewer)
            finally:
                self._visitors.pop(visitor, None)

        return response

    def _has_room(self, now: float) -> bool:
        """Return whether another visitor may connect.

        If the page is full, disconnect a visitor who does not read, or else one who has stayed longer than
        `STAY_SECONDS`.
        """
        if len(self._visitors) < MAX_VISITORS:
            return True
        reading_nothing = [other for other in self._visitors if other.get_write_buffer_size()]
        here_for_long = [visitor for visitor, since in self._visitors.items() if now - since > STAY_SECONDS]
        for visitor in (*reading_nothing, *here_for_long):  # both in order of arrival
            del self._visitors[visitor]
            visitor.abort()
            return True

        return False

    async def _send_states(self, response: web.StreamResponse, run: str | None, viewer: Viewer) -> None:
        seen: dict[str, Any] | None = None
        while not self._ended:
            news = self._news
            state = await self._state_for(viewer, run) | {"silent": silence_reason(self.silence)}
            same_run = seen is not None and seen["run"] == state["run"]
            changed = changes(seen if same_run else None, state)
            if changed is None:
                await response.write(ALIVE)
            else:
                anew = {} if same_run else {"anew": True}
                await response.write(b"data: " + orjson.dumps(changed | anew) + b"\n\n")

            if seen is None:
                await response.write(GREETING)
            seen = state
            await asyncio.sleep(REST_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), ALIVE_SECONDS)

    async def _state_for(self, viewer: Viewer, run: str | None) -> dict[str, Any]:
        """Return the newest state of a run with its cluster's names, without the jobs that a visitor does not see."""
        name = self.runs.chosen(run)
        if name is None:
            return self.state(run)
        view, words, sees = await self._seen(viewer, name)
        state = self.state(run, words)
        if sees is everything or state["run"] != name:
            return state
        tables = {"queue": queue(view, 0, sees, words), "running": running(view, sees)}
        state = restricted(state, view, sees, tables)
        return state | names_in(state, words)

    def state(self, run: str | None, words: ClusterWords = NO_WORDS) -> dict[str, Any]:
        """Return the newest state of a run. All visitors share one copy."""
        version = self.runs.version
        if run is not None and run not in self.runs:  # not cached: visitors can make up any number of names
            return self.runs.state(run)
        if self._states.get(run, (-1, None))[:2] != (version, words):
            self._states = {name: made for name, made in self._states.items() if made[0] == version}
            self._states[run] = version, words, self.runs.state(run, words)
        return self._states[run][2]


def _text(request: web.Request, name: str) -> str:
    """Return a query parameter. Raise `HTTPBadRequest` if it is missing or too long."""
    text = request.query.get(name, "").strip()
    if not 0 < len(text) <= MAX_WANTED:
        raise web.HTTPBadRequest(reason=f"{name}: expected 1 to {MAX_WANTED} characters, found {len(text):,}")
    return text


def _number(request: web.Request, name: str) -> int:
    """Return a query parameter as a whole number. Raise `HTTPBadRequest` if it is not a whole number."""
    text = request.query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise web.HTTPBadRequest(reason=f"{name}: expected a whole number of at most 16 digits")
    return int(text)


def _json_response(answer: object) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


def _file(name: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    body, kind = (PAGE / name).read_bytes(), KINDS[Path(name).suffix]

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return answer
