"""Which run answers, what is asked of it, and what is said when there is no answer; over HTTP and by command line."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from io import StringIO
from time import time as wall_clock
from typing import Any

import orjson
import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from rich.console import Console
from rich.table import Table
from yarl import URL

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, AsOf, RunTime
from shadowtime.services.processes.ask.answers import MAX_AT_ONCE, MAX_FOLLOWED, Answers, _shown
from shadowtime.services.processes.ask.openapi import document
from shadowtime.services.processes.ask.questions import (
    Answer,
    Offers,
    OffersQuestion,
    Problem,
    Question,
    log_age,
    read_as,
)
from shadowtime.services.processes.ask.routes import application
from shadowtime.services.processes.ask.tables import advice_table, answer_table, offers_table, ranges_table
from shadowtime.services.processes.ask.words import WordReader
from shadowtime.shared.cli.logs import MAX_LINES, FewAMinute
from shadowtime.shared.errors import StoreError, Unanswerable
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import Side, WaitBound, WaitRanges
from shadowtime.shared.streaming.protocols import Transaction
from tests.support.echo_runs import write
from tests.support.echo_stage import STAGE
from tests.support.memory_reader import MemoryReader


def asked(**parameters: object) -> Question:
    return read_as(Question, {"cluster": "kth", "processors": 4, **parameters})


def ask(reader: MemoryReader, **parameters: object) -> Answer:
    return asyncio.run(Answers(STAGE, reader).answer(asked(**parameters)))


def refused(reader: MemoryReader, **parameters: object) -> tuple[int, str]:
    with pytest.raises(Unanswerable) as caught:
        ask(reader, **parameters)
    return caught.value.status, str(caught.value)


@pytest.fixture
def reader() -> MemoryReader:
    made = MemoryReader()
    for run, cluster, latest in [("kth/old", "kth", 50), ("kth/new", "kth", 90), ("ctc/1", "ctc", 99)]:
        asyncio.run(write(made, run, cluster, latest))
    return made


def test_the_followed_run_answers_before_others_and_shadows_come_last() -> None:
    """Runs of equal time are in order of their names: mine/shadow/easy answered in the place of mine/live."""
    made = MemoryReader()
    runs = [("mine/shadow/easy", 50), ("mine/shadow/best", 90), ("mine/replay", 40), ("mine/live", 50)]
    for (run, latest), first in zip(
        runs, ("mine/shadow/easy", "mine/shadow/best", "mine/replay", "mine/live"), strict=True
    ):
        asyncio.run(write(made, run, "mine", latest))
        assert asyncio.run(Answers(STAGE, made).run_of("mine", None)) == first
    assert asyncio.run(Answers(STAGE, made).run_of("mine", "mine/shadow/best")) == "mine/shadow/best"


class Followers:
    """Stands for the runs that followers have stored."""

    async def names(self) -> list[str]:
        return ["mine/live", "mine/second"]

    async def read_words(self, run: str) -> dict[str, bytes]:
        return {}


@pytest.mark.parametrize(("live", "second", "answers"), [(50, 600, "mine/live"), (50, 700, "mine/second")])
def test_a_run_that_replaced_the_followed_one_answers_in_its_place(live: int, second: int, answers: str) -> None:
    """After `follow --run mine/second`, which new pools need, every command answered out of the dead mine/live.

    The time lines of both begin at other dates: by its own seconds, the dead run is far ahead here.
    """
    made = MemoryReader()
    for run, latest, start in (("mine/live", live + 10_000, 0), ("mine/second", second, 10_000), ("mine/old", 99, 0)):
        asyncio.run(write(made, run, "mine", latest, unix_start=start))
    words = WordReader(Followers())
    assert asyncio.run(Answers(STAGE, made, words=words).run_of("mine", None)) == answers


def test_times_of_a_log_with_a_date_are_dates(reader: MemoryReader) -> None:
    answer = ask(reader)
    titles = [answer_table(asked(), shown).title for shown in (answer, answer.replaced(unix_start=1_795_720_000))]
    assert ", at 0 d 00:01:30:" in str(titles[0])
    assert ", at 26 Nov " in str(titles[1])
    of_stage = AsOf(stage="scheduler", sequence=7, time=90, unix_start=1_795_720_000)
    output = StringIO()
    advice = Advice(
        cluster="kth", run="kth/new", as_of=(of_stage,), bounds=(), alternatives=(),
        run_time=RunTime(mean=None, quantiles=(), cut=None, observations=0, reason="nothing is known"),
    )  # fmt: skip
    question = read_as(AdviceQuestion, {"cluster": "kth", "processors": 4, "requested_time": 60})
    Console(file=output, width=200).print(advice_table(question, advice))
    assert "scheduler 26 Nov" in output.getvalue()


@pytest.mark.parametrize(("name", "age"), [("live", 300), ("shadow/easy", None)])
def test_the_age_of_the_log_of_a_followed_cluster_is_told(name: str, age: int | None) -> None:
    opened = ClusterOpened(time=0, cluster="mine", processors=4, mode="recorded", name=name, unix_start=1_000)
    told = log_age(opened, int(wall_clock()) - 1_000 - 300)
    assert told is None if age is None else told in (age, age + 1)
    question = read_as(Question, {"cluster": "mine", "processors": 4})
    answer = Answer(cluster="mine", run="mine/live", sequence=1, time=0, bounds=(), log_age=told)
    console = Console(file=StringIO(), width=100)
    console.print(answer_table(question, answer))
    assert ("the log is 5.0 min old" in console.file.getvalue()) == (age is not None)  # type: ignore[attr-defined]


def test_the_run_with_the_latest_event_answers(reader: MemoryReader) -> None:
    bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=4)
    assert ask(reader) == Answer(cluster="kth", run="kth/new", sequence=1, time=90, bounds=(bound,))
    assert ask(reader, run="kth/old").time == 50


def test_everything_that_is_asked_reaches_the_handler(reader: MemoryReader) -> None:
    answer = ask(reader, requested_time="100", queue="3", user="1000", quantile="0.5", confidence="0.8")
    assert answer.bounds == (WaitBound(grouping="plain", queue=3, quantile=0.5, confidence=0.8, bound=1104),)


def test_a_run_goes_on_and_another_overtakes_it(reader: MemoryReader) -> None:
    async def work() -> None:
        answers = Answers(STAGE, reader)
        assert (await answers.answer(asked())).time == 90
        envelope = Envelope(run="kth/old", cluster="kth", sequence=2, event=SchedulingPoint(time=95)).to_bytes()
        await reader.commit(Transaction("kth/old", 1, 2, 2, 0, None, [envelope], [envelope], 2))
        answer = await answers.answer(asked())
        assert (answer.run, answer.sequence, answer.time) == ("kth/old", 2, 95)
        await reader.forget("kth/old")
        assert (await answers.answer(asked())).run == "kth/new"

    asyncio.run(work())


@pytest.mark.parametrize("outputs", [True, False], ids=["rejected", "rebuilt"])
def test_a_run_is_found_though_its_last_output_does_not_tell(reader: MemoryReader, outputs: bool) -> None:
    """An event from the far future was rejected: the run is not the latest for that."""
    asyncio.run(write(reader, "kth/a", "kth", 95, Rejected(time=10**9, reason="why not"), outputs=outputs))
    asyncio.run(write(reader, "kth/b", "kth", 70, Rejected(time=10**9, reason="why not"), outputs=outputs))
    answer = ask(reader)
    assert (answer.run, answer.sequence, answer.time) == ("kth/a", 2, 95)


def test_a_damaged_run_does_no_harm_to_others(reader: MemoryReader) -> None:
    asyncio.run(write(reader, "kth/damaged", "kth", 99, outputs=False))
    reader.kept["kth/damaged"].snapshot = b'{"schema":0}'
    assert ask(reader).run == "kth/new"


def test_more_runs_than_are_held_in_memory(reader: MemoryReader) -> None:
    async def work() -> None:
        names = [f"many/{number}" for number in range(2 * MAX_FOLLOWED)]
        for name in names:
            await write(reader, name, "many", 10, outputs=False)
        answers = Answers(STAGE, reader)
        found = await asyncio.gather(*(answers.answer(asked(cluster="many", run=name)) for name in names * 2))
        assert [answer.run for answer in found] == names * 2
        assert (await answers.answer(asked(cluster="many"))).run == max(names)
        few, before = Answers(STAGE, reader, 2), reader.asked["load"]
        for name in (names[0], names[1], names[1], names[0], names[2], names[1]):
            await few.answer(asked(cluster="many", run=name))
        assert reader.asked["load"] == before + 4

    asyncio.run(work())


def test_many_questions_at_once_look_once_and_share_the_error(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    async def names() -> list[str]:
        nonlocal looked
        looked += 1
        await asyncio.sleep(0.1)
        if looked == 2:
            raise StoreError("Redis cannot be used: away")
        return sorted(reader.kept)

    monkeypatch.setattr(reader, "names", names)

    async def work() -> None:
        answers = Answers(STAGE, reader)
        many = await asyncio.gather(*(answers.answer(asked()) for _ in range(MAX_AT_ONCE)))
        assert {each.run for each in many} == {"kth/new"}
        assert looked == 1
        failed = await asyncio.gather(*(answers.answer(asked()) for _ in range(MAX_AT_ONCE)), return_exceptions=True)
        assert {type(each) for each in failed} == {StoreError}
        assert looked == 2
        assert (await answers.answer(asked())).run == "kth/new"

    asyncio.run(work())


def test_there_is_nothing_to_answer_from(reader: MemoryReader) -> None:
    assert refused(MemoryReader()) == (404, "cluster: stage wait_bound has no run yet")
    assert refused(reader, cluster="sdsc") == (404, "cluster: there is no cluster 'sdsc'; known: ctc, kth")
    status, reason = refused(reader, run="kth/none")
    assert (status, reason) == (404, "run: there is no run 'kth/none'; other runs of cluster 'kth': kth/new, kth/old")
    assert refused(reader, run="ctc/1") == (404, "run: 'ctc/1' is a run of cluster 'ctc', not of 'kth'")


def test_a_run_without_bounds_names_the_others(reader: MemoryReader) -> None:
    asyncio.run(write(reader, "kth/silent", "kth", 100, wait_bound="none"))
    status, reason = refused(reader, run="kth/silent")
    assert status == 409
    assert reason.endswith("was started without --wait-bound; other runs of cluster 'kth': kth/new, kth/old")


def test_the_latest_run_that_has_bounds_answers(reader: MemoryReader) -> None:
    for run, time in (("kth/silent", 100), ("kth/also-silent", 95)):
        asyncio.run(write(reader, run, "kth", time, wait_bound="none"))
    assert ask(reader).run == "kth/new"
    asyncio.run(write(reader, "sdsc/silent", "sdsc", 100, wait_bound="none"))
    hint = "start one with --wait-bound; runs of the cluster: sdsc/silent"
    told = f"cluster: no run of cluster 'sdsc' has bounds on waits; {hint}"
    assert refused(reader, cluster="sdsc") == (409, told)


def test_runs_without_bounds_are_looked_at_once(reader: MemoryReader) -> None:
    for number in range(MAX_FOLLOWED + 1):
        asyncio.run(write(reader, f"kth/silent-{number}", "kth", 100 + number, wait_bound="none"))

    async def work() -> None:
        answers = Answers(STAGE, reader)
        for _ in range(2):
            assert (await answers.answer(asked())).run == "kth/new"
            assert reader.asked["load"] == MAX_FOLLOWED + 2

    asyncio.run(work())


def test_the_table_is_for_people() -> None:
    bound = WaitBound(
        grouping="plain", quantile=0.95, confidence=0.95, bound=94_700, starts_within=((0.5, 5), (0.9, 5_400))
    )
    missing = WaitBound(grouping="nodes", queue=3, quantile=0.95, confidence=0.95, reason="too few waits")
    shown = printed(answer_table(asked(), Answer(cluster="kth", run="r", sequence=9, time=93_784, bounds=(bound,))))
    assert "at 1 d 02:03:04" in shown
    assert "26.3 h" in shown
    assert "0.5 within 5 s, 0.9 within 1.5 h" in shown
    assert "94700" not in shown
    assert "why none" not in shown, "no column that is empty"
    shown = printed(answer_table(asked(), Answer(cluster="kth", run="r", sequence=9, time=0, bounds=(bound, missing))))
    assert "why none" in shown
    assert "too few waits" in shown


def test_only_a_bound_with_a_confidence_claims_it() -> None:
    def shown(*groupings: str) -> str:
        bounds = tuple(WaitBound(grouping=each, quantile=0.95, confidence=0.95, bound=60) for each in groupings)
        return printed(answer_table(asked(), Answer(cluster="kth", run="r", sequence=9, time=0, bounds=bounds)))

    assert "with confidence 0.95 at least 0.95 of such jobs" in shown("plain", "ensemble")
    assert "confidence" not in shown("futures")
    assert "estimated: 0.95 of such jobs wait no longer than" in shown("conformal")
    both = shown("plain", "conformal")
    assert "with confidence 0.95" in both
    assert "conformal: without a confidence" in both


def printed(table: Table) -> str:
    text = StringIO()
    Console(file=text, width=160).print(table)
    return " ".join(text.getvalue().split())


def test_a_job_larger_than_the_machine(reader: MemoryReader) -> None:
    assert ask(reader, processors=10).bounds
    expected = "processors: the job requests 11 processors; the machine has 10"
    assert refused(reader, processors=11) == (422, expected)
    asyncio.run(write(reader, "kth/grown", "kth", 95, CapacityChanged(time=100, processors=20)))
    assert ask(reader, processors=20).bounds
    asyncio.run(write(reader, "kth/down", "kth", 100, CapacityChanged(time=101, processors=0)))
    assert ask(reader, processors=10).bounds, "as at submission: the machine may come back"


MALFORMED = [
    ("processors", "0", "greater than or equal to 1"),
    ("processors", "-4", "greater than or equal to 1"),
    ("processors", "4.5", "expected a whole number"),
    ("processors", "", "expected a whole number"),
    ("processors", "9" * 5000, "'9999999999999999999999999999999999999999'…"),
    ("requested_time", "0", "greater than or equal to 1"),
    ("requested_time", "1e3", "expected a whole number"),
    ("queue", "x" * 201, "at most 200 characters"),
    ("user", "", "at least 1 character"),
    ("quantile", "0", "greater than 0"),
    ("quantile", "1", "less than 1"),
    ("quantile", "nan", "less than 1"),
    ("confidence", "1.5", "less than 1"),
    ("confidence", "-0.5", "greater than 0"),
    ("cluster", "", "at least 1 character"),
    ("run", "x" * 201, "at most 200 characters"),
    ("walltime", "5", "unknown parameter; known: cluster, processors, requested_time, queue, user"),
]


@pytest.mark.parametrize(("name", "value", "reason"), MALFORMED, ids=lambda each: str(each)[:12])
def test_what_is_malformed_is_named(name: str, value: str, reason: str) -> None:
    with pytest.raises(Unanswerable) as caught:
        asked(**{name: value})
    assert (caught.value.status, caught.value.parameter) == (422, name)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 300


def over_http(reader: MemoryReader, work: Callable[[TestClient[Any, Any]], Awaitable[None]]) -> None:
    async def run() -> None:
        async def require_store() -> None:
            await reader.load("any")

        async with TestClient(TestServer(application(Answers(STAGE, reader), require_store))) as client:
            await work(client)

    asyncio.run(run())


async def problem(response: ClientResponse, status: int) -> Problem:
    """Return what was said; nothing of it looks like a traceback."""
    body = await response.text()
    assert response.status == status, body
    assert response.content_type == "application/json"
    assert "Traceback" not in body
    assert "\n" not in body
    return Problem.model_validate_json(body)


def test_http_answers_as_the_model_says(reader: MemoryReader) -> None:
    async def work(client: TestClient[Any, Any]) -> None:
        query = "cluster=kth&processors=4&requested_time=100&queue=3&quantile=0.5&confidence=0.8"
        response = await client.get(f"/bound?{query}")
        assert response.status == 200
        question = asked(requested_time=100, queue=3, quantile=0.5, confidence=0.8)
        expected = await Answers(STAGE, reader).answer(question)
        assert Answer.model_validate_json(await response.read()) == expected
        many = await asyncio.gather(*(client.get(f"/bound?{query}") for _ in range(50)))
        assert {await each.read() for each in many} == {await response.read()}
        assert await (await client.get("/health")).json() == {"healthy": True}
        assert await (await client.get("/openapi.json")).json() == document()

    over_http(reader, work)


@pytest.mark.parametrize(
    ("query", "status", "parameter"),
    [
        ("", 422, "cluster"),
        ("cluster=kth", 422, "processors"),
        ("cluster=kth&processors=4&processors=5", 422, "processors"),
        ("cluster=kth&processors=4&walltime=5", 422, "walltime"),
        ("cluster=kth&processors=4&quantile=1", 422, "quantile"),
        ("cluster=kth&processors=40", 422, "processors"),
        ("cluster=%ff%00%0a&processors=4", 404, "cluster"),
        ("cluster=sdsc&processors=4", 404, "cluster"),
        ("cluster=kth&processors=4&run=none", 404, "run"),
        ("cluster=silent&processors=4", 409, "cluster"),
        ("cluster=silent&processors=4&run=silent", 409, "run"),
    ],
)
def test_http_says_what_is_wrong(reader: MemoryReader, query: str, status: int, parameter: str) -> None:
    asyncio.run(write(reader, "silent", "silent", 100, wait_bound="none"))

    async def work(client: TestClient[Any, Any]) -> None:
        assert (await problem(await client.get(f"/bound?{query}"), status)).parameter == parameter

    over_http(reader, work)


def test_http_of_other_paths_and_methods(reader: MemoryReader) -> None:
    async def work(client: TestClient[Any, Any]) -> None:
        assert "/elsewhere" in (await problem(await client.get("/elsewhere"), 404)).error
        response = await client.post("/bound")
        await problem(response, 405)
        assert "GET" in response.headers["Allow"]

    over_http(reader, work)


@pytest.mark.parametrize(
    "asked_for",
    [
        "bound?{long}=1&{long}=2",
        "bound?{long}=1",
        "bound?cluster={long}&processors=4",
        "bound?cluster={name}&processors=4",
        "bound?cluster=kth&processors=4&run={name}",
        "bound?cluster=kth&processors={long}",
        "{long}",
    ],
)
def test_finding_18_names_of_any_length_are_cut_in_answers(reader: MemoryReader, asked_for: str) -> None:
    async def work(client: TestClient[Any, Any]) -> None:
        path = asked_for.format(long="%1b" * 1_300, name="%f3%a0%81%81" * 200)  # 200 of what is written out in ten
        response = await client.get(URL(f"/{path}", encoded=True))
        assert response.status in {404, 422}
        assert len(await response.read()) < 3_500

    over_http(reader, work)


def test_finding_13_errors_of_our_own_are_told_a_few_times_a_minute(
    reader: MemoryReader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("broken")

    log = logging.getLogger("shadowtime.ask")
    assert [type(each) for each in log.filters] == [FewAMinute]
    monkeypatch.setattr(log, "filters", [FewAMinute()])  # the minute of other tests does not count

    async def work(client: TestClient[Any, Any]) -> None:
        monkeypatch.setattr(reader, "names", broken)
        for _ in range(100):
            await problem(await client.get(f"/bound?cluster={'z' * 190}&processors=4"), 500)

    over_http(reader, work)
    lines = [record for record in caplog.records if record.name == "shadowtime.ask"]
    assert 1 <= len(lines) <= 2 * (MAX_LINES + 1)  # the minute may end meanwhile
    assert all(len(record.getMessage()) < 500 for record in lines)


def test_http_while_redis_is_away_and_after_it_is_back(reader: MemoryReader, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise StoreError("Redis cannot be used: away")

    async def work(client: TestClient[Any, Any]) -> None:
        assert (await client.get("/bound?cluster=kth&processors=4")).status == 200
        for lost in ("names", "positions", "journal_from"):
            with monkeypatch.context() as patch:
                patch.setattr(reader, lost, away)
                said = await problem(await client.get("/bound?cluster=kth&processors=4"), 503)
                assert said.error == "Redis cannot be used: away"
        with monkeypatch.context() as patch:
            patch.setattr(reader, "load", away)
            await problem(await client.get("/health"), 503)
        assert (await client.get("/bound?cluster=kth&processors=4")).status == 200

    over_http(reader, work)


def test_http_keeps_what_went_wrong_inside_to_its_log(reader: MemoryReader, caplog: pytest.LogCaptureFixture) -> None:
    async def work(client: TestClient[Any, Any]) -> None:
        said = await problem(await client.get("/bound?cluster=kth&processors=4&user=13"), 500)
        assert "secret" not in said.error
        assert (await client.get("/bound?cluster=kth&processors=4")).status == 200

    over_http(reader, work)
    assert "ZeroDivisionError" in caplog.text


def test_a_damaged_state_names_the_remedy(reader: MemoryReader) -> None:
    reader.kept["kth/new"].journal[1] = b"{}"

    async def work(client: TestClient[Any, Any]) -> None:
        said = await problem(await client.get("/bound?cluster=kth&processors=4"), 503)
        assert "shadowtime rebuild wait_bound --run 'kth/new'" in said.error

    over_http(reader, work)


def test_the_openapi_document() -> None:
    whole = document()

    def references(part: object) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if "$ref" in part else []
            return own + [found for value in part.values() for found in references(value)]
        return [found for value in part for found in references(value)] if isinstance(part, list) else []

    assert references(whole)
    for reference in references(whole):
        place: Any = whole
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    parameters = {each["name"]: each for each in whole["paths"]["/bound"]["get"]["parameters"]}
    assert list(parameters) == list(Question.model_fields)
    assert parameters["quantile"]["schema"] == {
        "type": "number",
        "default": 0.95,
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    }
    assert parameters["queue"]["schema"]["type"] == "string"
    assert set(whole["components"]["schemas"]["Answer"]["properties"]) == set(Answer.model_fields)
    assert orjson.loads(orjson.dumps(whole)) == whole


def offered(reader: MemoryReader, **parameters: object) -> Offers:
    question = read_as(OffersQuestion, {"processors": 4} | parameters)
    return asyncio.run(Answers(STAGE, reader).offers(question))


def test_several_clusters_and_queues_are_answered_best_first(reader: MemoryReader) -> None:
    """The echo bounds by the request and the user; a cluster that is not there has a row with the reason."""
    asyncio.run(write(reader, "slow/1", "slow", 10))
    offers = offered(reader, cluster=("slow", "nowhere", "kth"), queue=(2, 1), requested_time="10").offers
    assert [(each.cluster, each.queue) for each in offers[:4]] == [("slow", 2), ("slow", 1), ("kth", 2), ("kth", 1)]
    assert all(each.bound is not None and each.bound.bound == 14 for each in offers[:4])
    assert [each.cluster for each in offers[4:]] == ["nowhere", "nowhere"]
    assert offers[4].reason is not None
    shown = offers_table(read_as(OffersQuestion, {"processors": 4, "cluster": ("kth",)}), Offers(offers=offers))
    assert [column.header for column in shown.columns][-1] == "why none"


def test_a_bound_of_the_queue_and_of_the_ensemble_is_shown() -> None:
    made = [
        WaitBound(grouping=grouping, queue=queue, quantile=0.5, confidence=0.5, bound=bound)
        for grouping, queue, bound in (("plain", None, 1), ("ensemble", None, 2), ("plain", 3, 4), ("ensemble", 3, 5))
    ]
    assert _shown(made, 3) == made[3]
    assert _shown(made[:3], 3) == made[2]
    assert _shown(made[:2], 3) == made[1]
    assert _shown([made[0].model_copy(update={"reason": "too few"})], None) is None


def test_too_many_pairs_are_refused(reader: MemoryReader) -> None:
    with pytest.raises(Unanswerable, match=r"^110 pairs of a cluster and a queue; expected at most 100"):
        offered(reader, cluster=tuple(f"c{number}" for number in range(11)), queue=tuple(range(10)))


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"cluster": ("",)}, "cluster: '': expected at least 1 character"),
        ({"cluster": ()}, r"cluster: '\(\)': expected at least 1 item, found 0"),
        ({"cluster": ("a",), "queue": ("x" * 201,)}, "queue: .*: expected at most 200 characters"),
    ],
)
def test_problems_are_in_plain_words(reader: MemoryReader, parameters: dict[str, object], problem: str) -> None:
    with pytest.raises(Unanswerable, match=problem):
        offered(reader, **parameters)


def test_http_of_several_clusters(reader: MemoryReader) -> None:
    async def work() -> None:
        async with TestClient(TestServer(application(Answers(STAGE, reader), lambda: asyncio.sleep(0)))) as client:
            response = await client.get("/bounds?cluster=kth&cluster=ctc&processors=4&queue=1")
            assert [each["cluster"] for each in (await response.json())["offers"]] == ["kth", "ctc"]
            assert (await client.get("/bounds?cluster=kth&processors=4&processors=5")).status == 422

    asyncio.run(work())


def test_a_table_of_ranges() -> None:
    ranges = (
        WaitRanges(grouping="static", ends=(4, 16), waits=(10, 20, 30)),
        WaitRanges(grouping="nodes", ends=(8,), waits=(40, 20)),
    )
    answer = Answer(cluster="kth", run="r", sequence=1, time=1, bounds=(), ranges=ranges)
    console = Console(file=StringIO(), width=120)
    console.print(ranges_table(answer))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("1 to 8", "9 or more", "17 or more", "40", "30"))


@pytest.mark.parametrize(
    ("side", "lower", "told"), [("upper", None, "1.0 h"), ("both", 60, "1.0 min to 1.0 h"), ("lower", 60, "1.0 min")]
)
def test_each_side_is_shown(side: Side, lower: int | None, told: str) -> None:
    bound = WaitBound(
        grouping="plain", quantile=0.5, confidence=0.9, bound=None if side == "lower" else 3600, lower=lower
    )
    answer = Answer(cluster="kth", run="r", sequence=1, time=1, bounds=(bound,))
    table = answer_table(asked(side=side), answer)
    assert list(table.columns[2].cells) == [told]


def test_a_bound_says_how_many_waiting_jobs_have_outwaited_it(reader: MemoryReader) -> None:
    waiting: list[Event] = [
        JobSubmitted(time=90, job_number=1, requested_processors=4),
        JobSubmitted(time=93, job_number=2, requested_processors=4),
        SchedulingPoint(time=95),
    ]
    asyncio.run(write(reader, "kth/jam", "kth", 90, *waiting))
    answer = ask(reader, run="kth/jam")
    assert (answer.bounds[0].bound, answer.outwaited, answer.waiting) == (4, (1,), 2)
    said = StringIO()
    Console(file=said, width=120, markup=False).print(answer_table(asked(), answer))  # as the command prints it
    assert "outwaited, of 2 waiting" in said.getvalue()
    assert re.search(r"│ +1 │\n", said.getvalue())
    assert "outwaited" not in str(answer_table(asked(), ask(reader, run="kth/old")).columns)


def test_a_bound_that_too_many_have_outwaited_is_withdrawn(reader: MemoryReader) -> None:
    """`ask` stated a bound that the live page had withdrawn."""
    waiting: list[Event] = [JobSubmitted(time=90, job_number=number, requested_processors=4) for number in range(20)]
    asyncio.run(write(reader, "kth/jam", "kth", 90, *waiting, SchedulingPoint(time=95)))
    answer = ask(reader, run="kth/jam")
    reason = "withdrawn: 20 of 20 waiting jobs are past their bound"
    assert (answer.bounds[0].bound, answer.bounds[0].reason, answer.outwaited) == (None, reason, (20,))
    asyncio.run(write(reader, "jam/1", "jam", 90, *waiting, SchedulingPoint(time=95)))
    (offer,) = offered(reader, cluster=("jam",)).offers
    assert (offer.bound, offer.reason) == (None, reason)
