"""Endpoints for pages of other sites: `/queue` and `/expected`, with a token for each portal and its origins.

A browser lets the page of another origin read an answer only if the portal of the token lists the origin (CORS).
"""

from itertools import islice

from aiohttp import web
from pydantic import Field

from shadowtime.services.processes.ask import ClusterWords, Gate
from shadowtime.services.processes.live.queue_rows import QueueRow, Sees, queue_row, queue_rows
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages import FrozenModel, Whole
from shadowtime.shared.quoting import quote

MAX_ROWS = 200
"""The maximum number of rows of one answer."""


class PortalQueue(FrozenModel):
    """Jobs that wait, in order of arrival, then jobs that run. Jobs that the visitor does not see are left out."""

    cluster: str
    run: str
    time: Whole = Field(description="time of the last event of the log, in Unix seconds")
    rows: tuple[QueueRow, ...]
    more: bool = Field(description="whether there are more rows; `skip` leaves out the first ones")


class ExpectedAnswer(FrozenModel):
    """The answer of `/expected`: one waiting job with its expected start, or one running job with its expected end."""

    cluster: str
    run: str
    time: Whole = Field(description="time of the last event of the log, in Unix seconds")
    job: QueueRow


def queue_answer(
    view: LiveView, run: str, words: ClusterWords, sees: Sees, user: str | None = None, skip: int = 0
) -> PortalQueue:
    """Return up to `MAX_ROWS` rows of the jobs of a run that are seen, without the first `skip`.

    With `user`, only the jobs of this user have rows. A user without known jobs has none.
    """
    if user is None:
        rows = queue_rows(view, words, sees)
    else:
        number = words.login(user, followed=view.followed)
        if number is None and words.hashed:
            words.refuse_hashed(user, "user")
        jobs = () if number is None else view.of_user.get(number, ())
        stories = [view.stories[job] for job in jobs if job in view.jobs.waiting or job in view.jobs.running]
        stories.sort(key=lambda story: story.started is not None)
        rows = (queue_row(view, story, words, sees) for story in stories if sees(story))
    page = list(islice(rows, skip, skip + MAX_ROWS + 1))
    return PortalQueue(
        cluster=view.opened.cluster,
        run=run,
        time=view.log.unix_start + view.time,
        rows=tuple(page[:MAX_ROWS]),
        more=len(page) > MAX_ROWS,
    )


def expected_answer(view: LiveView, run: str, words: ClusterWords, sees: Sees, job: str) -> ExpectedAnswer:
    """Return one job that waits or runs.

    Raise `Unanswerable` if there is no such job, or it is not seen. The message is the same in both cases.
    """
    for number in words.lives(job):
        story = view.stories.get(number)
        if story is not None and sees(story) and (number in view.jobs.waiting or number in view.jobs.running):
            row = queue_row(view, story, words, sees)
            time = view.log.unix_start + view.time
            return ExpectedAnswer(cluster=view.opened.cluster, run=run, time=time, job=row)
    raise Unanswerable(404, f"{quote(job)} neither waits nor runs, or you may not see it", "job")


def allowed_origin(gate: Gate, request: web.Request) -> dict[str, str]:
    """Return the headers with which a browser lets the page that asked read an answer, if its origin is allowed.

    For another origin, they have only `Vary`. They are empty if the request has no origin.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return {}
    try:
        portal = gate.portal(request.headers.get("Authorization", ""))
    except Unanswerable:
        portal = None
    portals = gate.access.portals.values() if request.method == "OPTIONS" else () if portal is None else (portal,)
    if not any(origin in portal.origins for portal in portals):
        return {"Vary": "Origin"}
    allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if request.method == "OPTIONS":
        allowed |= {"Access-Control-Allow-Headers": "Authorization", "Access-Control-Max-Age": "600"}
    return allowed
