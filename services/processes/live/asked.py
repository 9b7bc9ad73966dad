"""Queries of the live page to Redis, at `/ask/`: advice, and shadows. Without Redis the rest of the page works."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from aiohttp import web
from pydantic import Field

from shadowtime.services.processes.ask import Advice, AdviceQuestion, Advising, WordReader, answering, without_traceback
from shadowtime.services.shadows import LiveShadows, Twin
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages import FrozenModel
from shadowtime.shared.streaming import Handler

Result = TypeVar("Result")

MAX_ASKED = 8
"""The maximum number of pending questions for advice. They are answered one at a time; others are refused."""

AGAIN_SECONDS = 5


class TwinQuestion(FrozenModel):
    """A question for the comparison of a cluster with its shadows."""

    cluster: str = Field(min_length=1, max_length=200)


class InTurn:
    """Queue of questions, answered one at a time. Work that has begun is finished, even if the visitor has left."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._asking = 0
        self._working: Awaitable[object] | None = None

    async def answer(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `work`. Raise `Unanswerable` if `MAX_ASKED` questions are pending."""
        if self._asking >= MAX_ASKED:
            raise Unanswerable(503, f"{MAX_ASKED} questions are pending; retry in {AGAIN_SECONDS} s")
        self._asking += 1
        try:
            await self._turn.acquire()
        except BaseException:
            self._asking -= 1
            raise

        self._working = task = asyncio.ensure_future(work())
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    def _over(self, _: object) -> None:
        self._asking -= 1
        self._turn.release()


SEES_ALL = ContextVar("sees_all", default=True)
"""Whether the visitor whose question is answered sees all jobs."""


def asked(advises: Advising, shadows: LiveShadows, names: WordReader | None = None) -> web.Application:
    """Return the web application below `/ask/`. Errors have the same form as those of `ask --serve`.

    `names` reads the names of users. Users are shown only to visitors who see all jobs.
    """
    reader = names or WordReader()
    in_turn = InTurn()

    async def advice(question: AdviceQuestion) -> Advice:
        return await in_turn.answer(lambda: advises.advise(question))

    async def named(question: TwinQuestion) -> Twin:
        answer = await shadows.twin(question.cluster)
        words = await reader.latest(answer.cluster, answer.shadows[0].real)
        known = {number: words.name("user", number) for number in sorted(answer.users())} if words.known else {}
        return answer.replaced(names=known)

    async def anonymous(question: TwinQuestion) -> Twin:
        return (await shadows.twin(question.cluster)).without_users()

    async def twin(request: web.Request) -> web.StreamResponse:
        return await answering(TwinQuestion, named if SEES_ALL.get() else anonymous)(request)

    made = web.Application(middlewares=[_asked_again, without_traceback])
    made.add_routes([web.get("/advice", answering(AdviceQuestion, advice)), web.get("/twin", twin)])
    return made


@web.middleware
async def _asked_again(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add `Retry-After` to an answer with status 503."""
    response = await handler(request)
    if response.status == web.HTTPServiceUnavailable.status_code:
        response.headers["Retry-After"] = str(AGAIN_SECONDS)
    return response
