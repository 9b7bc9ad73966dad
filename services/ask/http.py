"""Question and answer, once or over HTTP in a process of its own; no worker is asked, and none need be there."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel
from rich.table import Table

from shadowtime.services.ask.answers import Answers
from shadowtime.services.ask.questions import Answer, Problem, Question, Unanswerable, read_question
from shadowtime.services.ask.why import Explanations, JobQuestion, Why, read_job_question
from shadowtime.services.pipeline import EXPLAINED, STAGES
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
TEMPLATE = "#/components/schemas/{model}"


async def ask_once(settings: Settings, question: Question) -> Answer:
    """Return the answer to one question."""
    async with reading(settings, STAGE.name) as reader:
        return await Answers(STAGE, reader).answer(question)


async def explain_once(settings: Settings, question: JobQuestion) -> Why:
    """Return why a job stands as it does."""
    async with reading(settings, EXPLAINED.name) as reader:
        return await Explanations(EXPLAINED, reader).explain(question)


async def serve(settings: Settings, host: str, port: int, names: Sequence[str] = ()) -> None:
    """Answer over HTTP until SIGTERM or Ctrl-C."""
    async with reading(settings, STAGE.name) as reader, reading(settings, EXPLAINED.name) as schedules:
        ended = shutdown_event()
        explanations = Explanations(EXPLAINED, schedules)
        made = application(Answers(STAGE, reader), partial(reader.wait_for, 0), explanations)
        async with listening(made, host, port, names) as server:
            log.info("answering at %sbound", address_of(server))
            await ended.wait()


def application(
    answers: Answers, require_store: Callable[[], Awaitable[None]], explanations: Explanations | None = None
) -> web.Application:
    """Return the HTTP endpoint; `require_store` raises `StoreError` unless Redis can be used now."""

    async def bound(request: web.Request) -> web.Response:
        return _said(await answers.answer(read_question(_parameters(request))))

    async def why(request: web.Request) -> web.Response:
        if explanations is None:
            raise web.HTTPNotFound
        return _said(await explanations.explain(read_job_question(_parameters(request))))

    async def health(request: web.Request) -> web.Response:
        await require_store()
        return web.json_response({"healthy": True})

    async def openapi(request: web.Request) -> web.Response:
        return web.Response(body=described, content_type="application/json")

    described = orjson.dumps(document())
    made = web.Application(middlewares=[_without_traceback])
    made.add_routes([web.get("/bound", bound), web.get("/health", health), web.get("/openapi.json", openapi)])
    made.add_routes([web.get("/why", why)])
    return made


def _parameters(request: web.Request) -> dict[str, object]:
    """Return what was asked; raises `Unanswerable` if something was asked twice."""
    twice = [name for name, count in Counter(name for name, _ in request.query.items()).items() if count > 1]
    if twice:
        raise Unanswerable(422, "is given twice", twice[0])
    return dict(request.query)


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
    for model in (Answer, Why, Problem):
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
        "parameters": _parameters_of(Question),
        "responses": {"200": _response(str(Answer.__doc__), "Answer")}
        | {status: _response(description, "Problem") for status, description in problems.items()},
    }
    problems_of_jobs = problems | {"404": "There is no such cluster or run, or it knows no such job."}
    del problems_of_jobs["409"]
    problems_of_jobs["422"] = "A parameter is missing, unknown, malformed or out of range."
    why = {
        "operationId": "why",
        "summary": "Why a job of a run waits, and what would start it sooner.",
        "parameters": _parameters_of(JobQuestion),
        "responses": {"200": _response(str(Why.__doc__), "Why")}
        | {status: _response(description, "Problem") for status, description in problems_of_jobs.items()},
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
        "info": {"title": "Shadowtime", "version": "1", "description": "Bounds on the waits of jobs, and why, live."},
        "paths": {"/bound": {"get": bound}, "/why": {"get": why}, "/health": {"get": health}},
        "components": {"schemas": schemas},
    }


def _parameters_of(question: type[BaseModel]) -> list[dict[str, Any]]:
    schema = question.model_json_schema(ref_template=TEMPLATE)
    return [_parameter(name, each, required=name in schema["required"]) for name, each in schema["properties"].items()]


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
