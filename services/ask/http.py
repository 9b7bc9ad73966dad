"""Question and answer, once or over HTTP in a process of its own; no worker is asked, and none need be there."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel
from rich.table import Table

from shadowtime.services.ask.advice import Advice, AdviceQuestion, Advising
from shadowtime.services.ask.answers import Answers
from shadowtime.services.ask.questions import Answer, Problem, Question, Unanswerable, read_as, read_question
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.command_line import one_line
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.formatting import clock, duration
from shadowtime.shared.logs import FewAMinute
from shadowtime.shared.predictions import WaitBound
from shadowtime.shared.streaming.run_follower import reading
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import address_of, listening, shutdown_event
from shadowtime.shared.wording import quoted

log = logging.getLogger("shadowtime.ask")
log.addFilter(FewAMinute())

(STAGE,) = (stage for stage in STAGES if stage.name == "wait_bound")
ADVISE = ("runtime_distribution", "wait_bound", "scheduler")
"""Stages whose states advice is made from, as `Advising` takes them."""
TEMPLATE = "#/components/schemas/{model}"


async def ask_once(settings: Settings, question: Question) -> Answer:
    """Return the answer to one question."""
    async with reading(settings, STAGE.name) as reader:
        return await Answers(STAGE, reader).answer(question)


@asynccontextmanager
async def advising(settings: Settings) -> AsyncIterator[Advising]:
    """Yield what advises from the states in Redis."""
    stages = {stage.name: stage for stage in STAGES}
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(reading(settings, name)) for name in ADVISE]
        yield Advising(*(Answers(stages[name], reader) for name, reader in zip(ADVISE, readers, strict=True)))


async def advise_once(settings: Settings, question: AdviceQuestion) -> Advice:
    """Return the advice about one job."""
    async with advising(settings) as advises:
        return await advises.advise(question)


async def serve(settings: Settings, host: str, port: int, names: Sequence[str] = ()) -> None:
    """Answer over HTTP until SIGTERM or Ctrl-C."""
    async with reading(settings, STAGE.name) as reader, advising(settings) as advises:
        ended = shutdown_event()
        made = application(Answers(STAGE, reader), partial(reader.wait_for, 0), advises)
        async with listening(made, host, port, names) as server:
            log.info("answering at %sbound and %sadvice", address_of(server), address_of(server))
            await ended.wait()


def application(
    answers: Answers, require_store: Callable[[], Awaitable[None]], advises: Advising | None = None
) -> web.Application:
    """Return the HTTP endpoint; `require_store` raises `StoreError` unless Redis can be used now."""

    def given(request: web.Request) -> dict[str, str]:
        twice = [name for name, count in Counter(name for name, _ in request.query.items()).items() if count > 1]
        if twice:
            raise Unanswerable(422, "is given twice", twice[0])
        return dict(request.query)

    async def bound(request: web.Request) -> web.Response:
        return _said(await answers.answer(read_question(given(request))))

    async def advice(request: web.Request) -> web.Response:
        question = read_as(AdviceQuestion, given(request))
        if advises is None:
            raise Unanswerable(404, "advice is not served here")
        return _said(await advises.advise(question))

    async def health(request: web.Request) -> web.Response:
        await require_store()
        return web.json_response({"healthy": True})

    async def openapi(request: web.Request) -> web.Response:
        return web.Response(body=described, content_type="application/json")

    described = orjson.dumps(document())
    made = web.Application(middlewares=[_without_traceback])
    made.add_routes([web.get("/bound", bound), web.get("/advice", advice)])
    made.add_routes([web.get("/health", health), web.get("/openapi.json", openapi)])
    return made


@web.middleware
async def _without_traceback(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Whatever goes wrong is one line of JSON, with the status that says whose fault it is."""
    try:
        return await handler(request)
    except Unanswerable as error:
        return _said(Problem(error=str(error), parameter=error.parameter), error.status)
    except ShadowtimeError as error:
        return _said(Problem(error=str(error)), 503)
    except web.HTTPException as error:
        response = _said(Problem(error=f"{request.method[:20]} {quoted(request.path)}: {error.reason}"), error.status)
        response.headers.update({name: error.headers[name] for name in ("Allow",) if name in error.headers})
        return response
    except Exception:
        log.exception("a question could not be answered: %s", quoted(request.path_qs))
        return _said(Problem(error="an error inside the server, which its log tells of"), 500)


def _said(model: BaseModel, status: int = 200) -> web.Response:
    body = model.model_dump_json().encode()
    return web.Response(
        body=body, status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def document() -> dict[str, Any]:
    """Return the endpoint as an OpenAPI 3.1 document, made from the models.

    >>> [each["name"] for each in document()["paths"]["/bound"]["get"]["parameters"] if each["required"]]
    ['cluster', 'processors']
    """
    schemas: dict[str, Any] = {}
    for model in (Answer, Advice, Problem):
        schema = model.model_json_schema(ref_template=TEMPLATE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    problems = {
        "404": "There is no such cluster or run, or none yet.",
        "409": "The run bounds no waits, or no run of the cluster does.",
        "422": "A parameter is missing, unknown, malformed or out of range, or the machine is smaller than the job.",
        "503": "Redis cannot be used, or what it holds cannot be read.",
    }
    bound = {
        "operationId": "bound",
        "summary": "How long a job would wait at most that one might submit now.",
        "parameters": _parameters(Question),
        "responses": {"200": _response(str(Answer.__doc__), "Answer")}
        | {status: _response(description, "Problem") for status, description in problems.items()},
    }
    advice = {
        "operationId": "advice",
        "summary": "How long such a job would run, when it would start, and what else one might ask for.",
        "parameters": _parameters(AdviceQuestion),
        "responses": {"200": _response(str(Advice.__doc__), "Advice")}
        | {status: _response(problems[status], "Problem") for status in ("404", "422", "503")},
    }
    health = {
        "operationId": "health",
        "summary": "Whether questions can be answered.",
        "responses": {
            "200": {"description": "Redis answers."},
            "503": _response("Redis cannot be used.", "Problem"),
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shadowtime", "version": "1", "description": "Waits of jobs, live: bounds, and advice."},
        "paths": {"/bound": {"get": bound}, "/advice": {"get": advice}, "/health": {"get": health}},
        "components": {"schemas": schemas},
    }


def _parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    question = model.model_json_schema(ref_template=TEMPLATE)
    return [
        _parameter(name, schema, required=name in question["required"])
        for name, schema in question["properties"].items()
    ]


def _parameter(name: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """Return a query parameter; one that may be left out is never null, but absent."""
    kind = {key: value for key, value in schema.items() if key not in ("anyOf", "title", "description")}
    kind |= next((each for each in schema.get("anyOf", ()) if each != {"type": "null"}), {})
    if kind.get("default", 0) is None:
        del kind["default"]
    return {"name": name, "in": "query", "required": required, "description": schema["description"], "schema": kind}


def _response(description: str, model: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": TEMPLATE.format(model=model)}}}
    return {"description": description.partition("\n")[0], "content": content}


def answer_table(question: Question, answer: Answer) -> Table:
    """Return the answer for people."""
    starts = [
        f"{_scope(each)}: starts with probability "
        + ", ".join(f"{share:g} within {duration(seconds)}" for share, seconds in each.starts_within)
        for each in answer.bounds
        if each.starts_within
    ]
    cluster, run = one_line(answer.cluster), one_line(answer.run)
    table = Table(
        title=f"cluster {cluster}, run {run}, at {clock(answer.time)}: with confidence {question.confidence:g}"
        f" at least {question.quantile:.6g} of such jobs wait no longer than",
        caption="\n".join(starts),
    )
    for heading in ("queue", "grouping", "wait", "waits behind it"):
        table.add_column(heading, justify="right" if heading.startswith("wait") else "left")
    explained = any(each.reason for each in answer.bounds)
    if explained:
        table.add_column("why none")
    for each in answer.bounds:
        wait = "none" if each.bound is None else duration(each.bound)
        row = _scope(each), each.grouping, wait, str(each.observations)
        table.add_row(*row, each.reason) if explained else table.add_row(*row)
    return table


def _scope(bound: WaitBound) -> str:
    return "all" if bound.queue is None else str(bound.queue)
