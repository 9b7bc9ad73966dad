"""Why a job waits, asked of what the stage keeps in Redis: once, over HTTP; and who is at fault without an answer."""

import asyncio

import pytest
from aiohttp.test_utils import TestClient, TestServer
from typer.testing import CliRunner

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.once import STAGE
from shadowtime.services.processes.ask.openapi import document
from shadowtime.services.processes.ask.questions import read_as
from shadowtime.services.processes.ask.routes import application
from shadowtime.services.processes.ask.why import COLUMNS, Explanations, JobQuestion, Why, why_text
from shadowtime.services.processes.command_line import app
from shadowtime.shared.errors import SettingsError, Unanswerable
from tests.support.memory_reader import MemoryReader
from tests.support.waiting_runs import EVENTS, submitted, write


@pytest.fixture
def reader() -> MemoryReader:
    made = MemoryReader()
    asyncio.run(write(made, "kth/old", "kth", *EVENTS, submitted(9, 8, 130)))
    asyncio.run(write(made, "kth/new", "kth", *EVENTS, submitted(4, 1, 200), snapshot=True))
    asyncio.run(write(made, "ctc/1", "ctc"))
    return made


def ask(reader: MemoryReader, **parameters: object) -> Why:
    question = read_as(JobQuestion, {"cluster": "kth", **parameters})
    return asyncio.run(Explanations(EXPLAINED, reader).explain(question))


def refused(reader: MemoryReader, **parameters: object) -> tuple[int, str]:
    with pytest.raises(Unanswerable) as caught:
        ask(reader, **parameters)
    return caught.value.status, str(caught.value)


def test_the_latest_run_that_knows_the_job_answers(reader: MemoryReader) -> None:
    why = ask(reader, job=3)
    assert (why.run, why.sequence, why.time, why.waits_for) == ("kth/new", 7, 200, "head")
    assert why.ahead is not None
    assert why.ahead.job_numbers == (2,)
    assert [each.requested_time for each in why.sooner] == [56 * 60]
    assert ask(reader, job=9).run == "kth/old"
    assert ask(reader, job=3, run="kth/old").time == 130


def test_in_words_within_eighty_columns(reader: MemoryReader) -> None:
    said = why_text(ask(reader, job="3"))
    assert max(map(len, said.splitlines())) <= COLUMNS
    assert said.splitlines()[:4] == [
        "cluster kth, run kth/new, at 0 d 00:03:20, after event 7",
        "Job 3 asks for 2 procs for 1.0 h, and has waited for 1.3 min.",
        "Before it in the order of the queue (fcfs): 1 job, which requests 8 procs in",
        "  all: 2.",
    ]


def test_what_is_wrong_is_named(reader: MemoryReader) -> None:
    known = "2 wait (2, 3), 1 run (1); of ended jobs the last 0 are known"
    assert refused(reader, job=7, run="kth/old")[1].startswith(
        "job: job 7 is unknown; run 'kth/old': 3 wait (2, 3, 9), 1 run (1); of ended"
    )
    assert refused(reader, job=7)[0] == 404
    assert known not in refused(reader, job=7)[1]
    assert refused(reader, job=1, run="none") == (
        404,
        "run: there is no run 'none'; other runs of cluster 'kth': kth/new, kth/old",
    )
    assert refused(reader, job=1, run="ctc/1") == (404, "run: 'ctc/1' is a run of cluster 'ctc', not of 'kth'")
    assert refused(reader, job=1, cluster="kht") == (
        404,
        "cluster: there is no cluster 'kht'; did you mean 'kth'? known: ctc, kth",
    )
    assert refused(reader) == (422, "job: is missing")
    assert refused(reader, job="x")[0] == 422
    assert refused(reader, job=1, processors=4)[1] == ("processors: unknown parameter; known: cluster, job, run")


def test_over_http(reader: MemoryReader) -> None:
    async def store() -> None:
        return

    async def work() -> None:
        made = application(Answers(STAGE, reader), store, explanations=Explanations(EXPLAINED, reader))
        async with TestClient(TestServer(made)) as client:
            response = await client.get("/why?cluster=kth&job=3")
            assert response.status == 200
            assert Why.model_validate_json(await response.read()) == await asyncio.to_thread(ask, reader, job=3)
            assert (await client.get("/why?cluster=kth&job=77")).status == 404
            twice = await client.get("/why?cluster=kth&job=1&job=2")
            assert (await twice.json())["error"] == "job: is given twice; give one value"

    asyncio.run(work())


def test_the_document_tells_of_it() -> None:
    described = document()["paths"]["/why"]["get"]
    assert [each["name"] for each in described["parameters"]] == ["cluster", "job", "run"]
    assert {"Why", "Ahead", "Endings", "Sooner"} <= document()["components"]["schemas"].keys()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--job", "5", "--processors", "4"], "--processors is about a new job, and --job about an existing job"),
        (["--job", "5", "--advice"], "--advice is about a new job, and --job about an existing job"),
        (["--job", "5", "--partition", "gpu"], "--queue is about a new job, and --job about an existing job"),
        (["--cluster", "other", "--pool", "fat"], "--advice, --job, --run and --pool need one cluster"),
    ],
)
def test_options_of_another_question_are_refused(words: list[str], complaint: str) -> None:
    done = CliRunner().invoke(app, ["ask", "--cluster", "mine", *words])
    assert isinstance(done.exception, SettingsError)
    assert str(done.exception).startswith(complaint)
