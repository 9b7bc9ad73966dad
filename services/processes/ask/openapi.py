"""The endpoint of questions, as an OpenAPI document made from the models."""

from collections.abc import Mapping
from typing import Any

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion
from shadowtime.services.processes.ask.questions import Answer, Offers, OffersQuestion, Problem, Question
from shadowtime.services.processes.ask.why import JobQuestion, Why
from shadowtime.shared.messages import FrozenModel

TEMPLATE = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """Return the endpoint as an OpenAPI 3.1 document, made from the models.

    >>> [value["name"] for value in document()["paths"]["/bound"]["get"]["parameters"] if value["required"]]
    ['cluster', 'processors']
    """
    schemas: dict[str, Any] = {}
    for model in (Answer, Offers, Advice, Why, Problem):
        schema = model.model_json_schema(ref_template=TEMPLATE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {model.__name__: schema}
    problems = {
        "404": "There is no such cluster or run, or none yet.",
        "409": "The run bounds no waits, or not from this side, or no run of the cluster bounds waits.",
        "422": "A parameter is missing, unknown, malformed or out of range, or the machine is smaller than the job.",
        "503": "Redis cannot be used, or the state in it cannot be read.",
    }
    of_advice = {status: problems[status] for status in ("404", "422", "503")}
    of_jobs = of_advice | {
        "404": "There is no such cluster or run, or the run knows no such job.",
        "422": "A parameter is missing, unknown, malformed or out of range.",
    }
    bound = _operation("bound", "Bounds on the wait of a job that you could submit now.", Question, Answer, problems)
    offers = _operation(
        "bounds",
        "Bounds on the wait of the job in several clusters and queues, the shortest wait first.",
        *(OffersQuestion, Offers, {status: problems[status] for status in ("422", "503")}),
    )
    advice = _operation(
        "advice",
        "How long such a job would run, when it would start, and alternatives to its request.",
        *(AdviceQuestion, Advice, of_advice),
    )
    why = _operation("why", "Why a job of a run waits, and what would start it sooner.", JobQuestion, Why, of_jobs)
    health = {
        "operationId": "health",
        "summary": "Whether questions can be answered.",
        "responses": {
            "200": {"description": "Redis answers."},
            "503": _response("Redis cannot be used.", "Problem"),
        },
    }
    paths = {"/bound": bound, "/bounds": offers, "/advice": advice, "/why": why, "/health": health}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shadowtime", "version": "1", "description": "Waits of jobs, live: bounds, advice, and why."},
        "paths": {path: {"get": operation} for path, operation in paths.items()},
        "components": {"schemas": schemas},
    }


def _operation(
    name: str, summary: str, question: type[FrozenModel], answer: type[FrozenModel], problems: Mapping[str, str]
) -> dict[str, Any]:
    """Return the operation of one path: its parameters, its answer, and the statuses of its problems."""
    return {
        "operationId": name,
        "summary": summary,
        "parameters": _parameters(question),
        "responses": {"200": _response(str(answer.__doc__), answer.__name__)}
        | {status: _response(description, "Problem") for status, description in problems.items()},
    }


def _parameters(model: type[FrozenModel]) -> list[dict[str, Any]]:
    question = model.model_json_schema(ref_template=TEMPLATE)
    return [
        _parameter(name, schema, required=name in question["required"])
        for name, schema in question["properties"].items()
    ]


def _parameter(name: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """Return a query parameter. An optional parameter is left out, never null."""
    kind = {key: value for key, value in schema.items() if key not in ("anyOf", "title", "description")}
    kind |= next((variant for variant in schema.get("anyOf", ()) if variant != {"type": "null"}), {})
    if kind.get("default", 0) is None:
        del kind["default"]
    return {"name": name, "in": "query", "required": required, "description": schema["description"], "schema": kind}


def _response(description: str, model: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": TEMPLATE.format(model=model)}}}
    return {"description": description.partition("\n")[0], "content": content}
