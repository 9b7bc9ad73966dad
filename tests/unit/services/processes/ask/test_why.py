"""Why a job waits, asked of what the stage keeps in Redis: once, over HTTP; and who is at fault without an answer."""

import asyncio
import os
import subprocess
import sys

import pytest
from aiohttp.test_utils import TestClient, TestServer

from shadowtime.services.pipeline import EXPLAINED, STAGES
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.http import application
from shadowtime.services.processes.ask.once import STAGE
from shadowtime.services.processes.ask.openapi import document
from shadowtime.services.processes.ask.questions import read_as
from shadowtime.services.processes.ask.why import COLUMNS, Explanations, JobQuestion, Why, why_text
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import StateStore, Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis
from tests.integration.streaming.test_run_follower import MemoryReader
from tests.support.patience import PATIENCE

(SCHEDULER,) = (stage for stage in STAGES if stage.name == "scheduler")


def submitted(number: int, processors: int, time: int = 0) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=processors, requested_time=3600)


EVENTS: tuple[Event, ...] = (
    submitted(1, 6),
    SchedulingPoint(time=0),
    JobStarted(time=0, job_number=1, processors=6, limit=3600),
    submitted(2, 8, 60),
    submitted(3, 2, 120),
    SchedulingPoint(time=120),
)


async def write(store: StateStore, run: str, cluster: str, *events: Event, snapshot: bool = False) -> None:
    """Store a run as a worker of the stage does."""
    state = StageRun(SCHEDULER)
    opened = ClusterOpened(time=0, cluster=cluster, processors=8, mode="closed")
    inputs, outputs = [], []
    for sequence, event in enumerate((opened, *events)):
        envelope = Envelope(run=run, cluster=cluster, sequence=sequence, event=event)
        answer = state.push(envelope)
        assert answer is not None
        inputs.append(envelope.to_bytes())
        outputs.append(answer.to_bytes())
    saved = state.snapshot() if snapshot else None
    await store.commit(Transaction(run, -1, state.sequence, state.sequence, 0, saved, inputs, outputs, 0))


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
        "job: no job 7 is known; run 'kth/old': 3 wait (2, 3, 9), 1 run (1); of ended"
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
        "cluster: there is no cluster 'kht'; known: ctc, kth",
    )
    assert refused(reader) == (422, "job: is missing")
    assert refused(reader, job="x")[0] == 422
    assert refused(reader, job=1, processors=4)[1] == (
        "processors: there is no such parameter; known: cluster, job, run"
    )


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
            assert (await (await client.get("/why?cluster=kth&job=1&job=2")).json())["error"] == "job: is given twice"

    asyncio.run(work())


def test_the_document_tells_of_it() -> None:
    described = document()["paths"]["/why"]["get"]
    assert [each["name"] for each in described["parameters"]] == ["cluster", "job", "run"]
    assert {"Why", "Ahead", "Endings", "Sooner"} <= document()["components"]["schemas"].keys()


def command(redis: Redis, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "shadowtime", "ask", *options],
        cwd=ROOT,
        env=os.environ | {"SHADOWTIME_REDIS_URL": redis.url},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_by_command_line(redis_server: Redis) -> None:
    async def store() -> None:
        client = connect(Settings(redis_url=redis_server.url))
        try:
            await write(RedisStore(client, SCHEDULER.name), "why/run", "why", *EVENTS)
        finally:
            await client.aclose()

    asyncio.run(store())
    said = command(redis_server, "--cluster=why", "--job=3")
    assert said.returncode == 0, said.stderr
    assert "goes first and must not be delayed." in said.stdout
    told = Why.model_validate_json(command(redis_server, "--cluster=why", "--job=2", "--json").stdout)
    assert told.sentences[2] == "It needs 8 procs, and 2 are free."
    missing = command(redis_server, "--cluster=why", "--job=77")
    assert missing.returncode != 0
    assert "--job: no job 77 is known; run 'why/run': 2 wait (2, 3), 1 run (1)" in " ".join(missing.stderr.split())
    wrong = command(redis_server, "--cluster=why", "--job=3", "--processors=4")
    assert "--processors: there is no such parameter" in " ".join(wrong.stderr.split())
