"""Questions and answers over HTTP, in a separate process. It only reads Redis: it works without running workers."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, get_origin

import orjson
from aiohttp import web

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, Advising
from shadowtime.services.processes.ask.alternatives import hint
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.gate import Gate, require_own
from shadowtime.services.processes.ask.once import STAGE, advising, answering_from
from shadowtime.services.processes.ask.openapi import document
from shadowtime.services.processes.ask.questions import OTHER_NAMES, Asked, OffersQuestion, Problem, Question, read_as
from shadowtime.services.processes.ask.why import Explanations, JobQuestion
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.errors import ShadowtimeError, Unanswerable
from shadowtime.shared.kernels import get_ready
from shadowtime.shared.messages import FrozenModel
from shadowtime.shared.quoting import quote
from shadowtime.shared.streaming import Handler, Settings, address_of, listening, reading, shutdown_event

log = logging.getLogger("shadowtime.ask")
log.addFilter(FewAMinute())


async def serve(settings: Settings, host: str, port: int, names: Sequence[str] = (), gate: Gate | None = None) -> None:
    """Answer over HTTP until SIGTERM or Ctrl-C. `gate` identifies visitors; without it, everybody sees all jobs."""
    get_ready()
    async with (
        answering_from(settings, STAGE) as (reader, words),
        reading(settings, EXPLAINED.name) as schedules,
        advising(settings) as advises,
    ):
        ended = shutdown_event()
        explanations = Explanations(EXPLAINED, schedules, words=words)
        made = application(Answers(STAGE, reader, words=words), partial(reader.wait_for, 0), advises, explanations)
        if gate is not None:
            made.middlewares.append(by_rule(gate))
        async with listening(made, host, port, names) as server:
            log.info("answering at %sbound, advice and why", address_of(server))
            await ended.wait()


def application(
    answers: Answers,
    require_store: Callable[[], Awaitable[None]],
    advises: Advising | None = None,
    explanations: Explanations | None = None,
) -> web.Application:
    """Return the HTTP endpoint; `require_store` raises `StoreError` unless Redis can be used now."""

    async def health(request: web.Request) -> web.Response:
        await require_store()
        return web.json_response({"healthy": True})

    async def openapi(request: web.Request) -> web.Response:
        return web.Response(body=described, content_type="application/json")

    described = orjson.dumps(document())
    made = web.Application(middlewares=[without_traceback])
    made.add_routes([web.get("/health", health), web.get("/openapi.json", openapi)])
    made.add_routes([web.get("/bound", answering(Question, answers.answer))])
    made.add_routes([web.get("/bounds", answering(OffersQuestion, answers.offers))])
    if advises is not None:
        made.add_routes([web.get("/advice", answering(AdviceQuestion, advises.advise))])
        made.add_routes([web.get("/hint", hinting(advises))])
    if explanations is not None:
        made.add_routes([web.get("/why", answering(JobQuestion, explanations.explain))])
    return made


def answering(model: type[Asked], answer: Callable[[Asked], Awaitable[FrozenModel]]) -> Handler:
    """Return an HTTP handler that answers questions of type `model`. It must run within `without_traceback`."""

    async def handle(request: web.Request) -> web.Response:
        return _json_response(await answer(read_as(model, _parameters(request, model))))

    return handle


def hinting(advises: Advising) -> Handler:
    """Return the HTTP handler that answers questions for advice in at most two lines of text.

    A user, account or partition may have had no job yet: no person has typed these names.
    """

    async def advise(question: AdviceQuestion) -> Advice:
        try:
            return await advises.advise(question)
        except Unanswerable as error:
            if error.parameter not in ("user", "group", "queue"):
                raise
            return await advise(question.model_copy(update={error.parameter: None}))

    async def handle(request: web.Request) -> web.Response:
        advice = await advise(read_as(AdviceQuestion, _parameters(request, AdviceQuestion)))
        return web.Response(text=hint(advice.alternatives, advice.log_age), headers={"Cache-Control": "no-store"})

    return handle


def _parameters(request: web.Request, model: type[FrozenModel]) -> dict[str, object]:
    """Return the query parameters. Raise `Unanswerable` if one of them is given twice and the model takes only one."""
    fields = model.model_fields
    lists = {name for name, field in fields.items() if get_origin(field.annotation) is tuple}
    counts = Counter(name for name, _ in request.query.items())
    lists |= {other for other, name in OTHER_NAMES.items() if name in lists}
    if twice := [name for name, count in counts.items() if count > 1 and name not in lists]:
        raise Unanswerable(422, "is given twice; give one value", twice[0])
    return {name: request.query.getall(name) if name in lists else request.query[name] for name in counts}


def by_rule(gate: Gate) -> Any:
    """Return the middleware that answers visitors only what the rule lets them see. It runs within `without_traceback`.

    An explanation names other jobs. So it is for visitors who see all jobs; others ask the live page (`/expected`).
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != "/health":
            user = request.query.get("user")
            viewer = gate.viewer(request.headers, request.remote or "", user)
            require_own(viewer, user)
            if viewer.sees != "all" and request.path == "/why":
                raise Unanswerable(
                    403, "only visitors who see all jobs get explanations; ask /expected of the live page"
                )
        return await handler(request)

    return guard


@web.middleware
async def without_traceback(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a failure with one line of JSON, and a status that separates bad requests from failures of the server."""
    try:
        return await handler(request)
    except Unanswerable as error:
        return _json_response(Problem(error=str(error), parameter=error.parameter), error.status)
    except ShadowtimeError as error:
        return _json_response(Problem(error=str(error)), 503)
    except web.HTTPException as error:
        response = _json_response(
            Problem(error=f"{request.method[:20]} {quote(request.path)}: {error.reason}"), error.status
        )
        response.headers.update({name: error.headers[name] for name in ("Allow",) if name in error.headers})
        return response
    except Exception:
        log.exception("a question could not be answered: %s", quote(request.path_qs))
        return _json_response(Problem(error="internal error; see the log of the server"), 500)


def _json_response(message: FrozenModel, status: int = 200) -> web.Response:
    body = message.as_json()
    return web.Response(
        body=body, status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
