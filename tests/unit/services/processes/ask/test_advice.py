"""Advice before submission: from stored states, by the models of three stages, over HTTP and as a table."""

import asyncio
from io import StringIO
from itertools import pairwise, product
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from rich.console import Console

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, _require_room, unconsidered
from shadowtime.services.processes.ask.alternatives import (
    Alternative,
    AlternativeShape,
    RiskQuestion,
    marked,
    risk_of,
    shapes,
)
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.once import ADVISE
from shadowtime.services.processes.ask.openapi import document
from shadowtime.services.processes.ask.routes import application
from shadowtime.services.processes.ask.tables import advice_table
from shadowtime.services.processes.ask.words import JobPlace
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobSubmitted
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import StageRun
from tests.support.memory_reader import MemoryReader
from tests.support.stored_runs import NAMED, Stored, asked


@pytest.fixture(scope="module")
def stored() -> Stored:
    return Stored("easy", "empirical")


def test_what_is_told_of_a_job(stored: Stored) -> None:
    advice = stored.advise(user=1)
    assert (advice.cluster, advice.run) == ("kth", "kth/a")
    assert [each.stage for each in advice.as_of] == list(ADVISE)
    for each in advice.as_of:
        state = stored.states[each.stage]
        assert state.handler is not None
        assert (each.sequence, each.time) == (state.sequence, state.handler.time)
    assert advice.run_time.cut is not None
    assert all(low[1] <= high[1] for low, high in pairwise(advice.run_time.quantiles))
    assert any(each.grouping == "conformal" for each in advice.bounds)
    own, *others = advice.alternatives
    assert (own.processors, own.requested_time, own.cut) == (8, 7200, advice.run_time.cut)
    assert own.starts_within
    assert others
    assert sum(each.advised for each in advice.alternatives) == 1


def test_a_bound_that_the_waiting_jobs_contradict_is_not_advised() -> None:
    """`ask` and the live page withdraw such a bound. Ten days later, all that wait have outwaited theirs."""
    stored = Stored("easy", "empirical")
    before = {bound.grouping for bound in stored.advise().bounds if bound.bound is not None}
    state = StageRun(NAMED["wait_bound"])
    state.restore(stored.states["wait_bound"].snapshot())
    assert state.handler is not None
    late = JobSubmitted(time=state.handler.time + 10 * DAY, job_number=99_999, requested_processors=1)
    state.push(Envelope(run="kth/a", cluster="kth", sequence=state.sequence + 1, event=late))
    stored.readers["wait_bound"] = MemoryReader()
    asyncio.run(Stored._store(stored.readers["wait_bound"], state))  # noqa: SLF001
    advice = stored.advise()
    reasons = {bound.grouping: bound.reason for bound in advice.bounds if bound.bound is None}
    withdrawn = {name for name, reason in reasons.items() if "waiting jobs are past their bound" in (reason or "")}
    assert "conformal" in withdrawn & before
    output = StringIO()
    Console(file=output, width=100).print(advice_table(asked(), advice))
    assert "bound (conformal): none: withdrawn" in output.getvalue()


def test_advice_on_a_job_that_names_no_type_of_gpu_says_so(stored: Stored) -> None:
    types = (GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=4))
    mixed, alike = (Pool(name="gpu", processors=8, gpus=6, gpu_types=each) for each in (types, None))
    job = JobSubmitted(time=0, job_number=1, requested_processors=1, gpus=2)

    def note(pool: Pool, asked: JobSubmitted = job) -> str | None:
        return unconsidered(ClusterOpened(time=0, cluster="c", processors=8, pools=(pool,)), asked)

    assert note(mixed) == "No type of GPU is named, so GPUs of any type count: a100, v100."
    assert note(mixed, job.replaced(gpu_type="a100")) is None
    assert note(alike) is None
    assert note(mixed, job.replaced(gpus=None)) is None
    output = StringIO()
    Console(file=output, width=100).print(advice_table(asked(), stored.advise().replaced(note=note(mixed))))
    assert "GPUs of any type" in output.getvalue()


@pytest.mark.parametrize(
    ("gpus", "kind", "reason"),
    [
        (2, "a100", None),
        (3, "a100", "the job requests 3 a100 GPUs; the machine has 2"),
        (1, "h100", "the job requests 'h100' GPUs; the machine has a100, v100"),
        (7, None, "the job requests 7 GPUs; the machine has 6"),
    ],
)
def test_advice_requires_gpus_of_the_type_that_is_named(gpus: int, kind: str | None, reason: str | None) -> None:
    types = (GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=4))
    pool = Pool(name="gpu", processors=8, gpus=6, gpu_types=types)
    handler = StageHandler(ClusterOpened(time=0, cluster="c", processors=8, pools=(pool,)))
    question = AdviceQuestion(cluster="c", processors=1, requested_time=60, gpus=gpus, gpu_type=kind)
    job = question.job(0, AlternativeShape(1, 60), JobPlace())
    if reason is None:
        assert _require_room(handler, job) == 8
        return
    with pytest.raises(Unanswerable) as error:
        _require_room(handler, job)
    assert error.value.reason == reason


def test_asking_changes_nothing(stored: Stored) -> None:
    before = {name: state.snapshot() for name, state in stored.states.items()}
    assert stored.advise(moldable=True) == stored.advise(moldable=True)
    asyncio.run(_straight(stored))
    assert {name: state.snapshot() for name, state in stored.states.items()} == before


async def _straight(stored: Stored) -> None:
    """Ask the very states, not copies of them."""
    handler: Any = stored.states["scheduler"].handler
    runs: Any = stored.states["runtime_distribution"].handler
    job = asked().job(handler.time, AlternativeShape(8, 7200), JobPlace())
    assert len(handler.starts_of([(job, runs.run_time_of(job))] * 2)) == 2


def test_a_job_that_asks_for_less_never_starts_later_in_the_same_futures(stored: Stored) -> None:
    """Of the last in the queue: a shorter request is backfilled wherever a longer one is."""
    own, *others = stored.advise().alternatives
    for each in others:
        if each.processors == own.processors and each.requested_time < own.requested_time:
            assert own.mean_wait is not None
            assert each.mean_wait is not None
            assert each.mean_wait <= own.mean_wait


def test_sizes_are_offered_where_the_job_can_run_on_them(stored: Stored) -> None:
    assert {each.processors for each in stored.advise().alternatives} == {8}
    assert {each.processors for each in stored.advise(moldable=True).alternatives} == {4, 8, 16}


def test_without_distributions_it_says_so() -> None:
    advice = Stored("easy", "requested", "none").advise(moldable=True)
    assert advice.run_time.reason is not None
    assert "predicts no distributions" in advice.run_time.reason
    assert advice.bounds == ()
    own = advice.alternatives[0]
    assert (own.cut, own.advised) == (None, False)
    assert advice.unadvised == advice.run_time.reason
    assert own.starts_within


def test_of_a_policy_that_is_not_run_ahead_it_says_so() -> None:
    advice = Stored("conservative", "empirical").advise()
    assert advice.alternatives[0].reason is not None
    assert "policy conservative cannot be run ahead" in advice.alternatives[0].reason
    assert advice.run_time.cut is not None


@pytest.mark.parametrize(
    ("parameters", "status", "told"),
    [
        ({"processors": 100_000}, 422, "processors: the job requests 100000 processors; the machine has"),
        ({"cluster": "ctc"}, 404, "there is no cluster 'ctc'; known: kth"),
        ({"run": "kth/b"}, 404, "there is no run 'kth/b' of cluster 'kth'; other runs of cluster 'kth': kth/a"),
        ({"risk": "2"}, 422, "risk: '2'"),
        ({"quantile": "0.5"}, 422, "quantile: unknown parameter"),
    ],
)
def test_what_cannot_be_answered(stored: Stored, parameters: dict[str, object], status: int, told: str) -> None:
    with pytest.raises(Unanswerable) as caught:
        stored.advise(**parameters)
    assert caught.value.status == status
    assert told in str(caught.value)


def test_over_http_it_is_the_same(stored: Stored) -> None:
    async def there() -> None:
        return

    async def work() -> None:
        made = application(Answers(NAMED["wait_bound"], stored.readers["wait_bound"]), there, stored.advising)
        async with TestClient(TestServer(made)) as client:
            answer = await client.get("/advice", params={"cluster": "kth", "processors": "8", "requested_time": "7200"})
            assert answer.status == 200
            assert Advice.model_validate(await answer.json()) == await stored.advising.advise(asked())
            refused = await client.get("/advice", params={"cluster": "kth", "processors": "8"})
            assert (refused.status, (await refused.json())["parameter"]) == (422, "requested_time")

    asyncio.run(work())
    paths = document()["paths"]
    needed = [each["name"] for each in paths["/advice"]["get"]["parameters"] if each["required"]]
    assert needed == ["cluster", "processors", "requested_time"]


def test_the_table_says_it_in_words(stored: Stored) -> None:
    output = StringIO()
    question = asked(moldable=True)
    console = Console(file=output, width=160, highlight=False)
    console.print(advice_table(question, asyncio.run(stored.advising.advise(question))))
    told = output.getvalue()
    assert told.startswith(("Keep your request of 2:00 h:", "Request "))
    assert "longer than your 2:00 h with" in told
    assert "as of: runtime_distribution" in told
    assert "a risk of at most 5" in told
    assert told.count("*") >= 2


def test_marks() -> None:
    def of(mean_end: float | None, cut: float | None) -> Alternative:
        shape: dict[str, Any] = {"processors": 1, "requested_time": 60, "mean_wait": 0.0, "starts_within": ()}
        return Alternative(**shape, cut=cut, mean_end=mean_end)

    found = marked([of(6000, 0.0), of(3000, 0.04), of(2400, 0.2), of(3600, 0.1), of(None, None)], risk=0.05)
    assert [each.pareto_best for each in found] == [True, True, True, False, False]
    assert [each.advised for each in found] == [False, True, False, False, False]
    for exceeding in ([of(9, 0.5), of(8, 0.4)], [of(None, None)], [of(9, 0.051)]):
        assert not any(each.advised for each in marked(exceeding, risk=0.05))
    alike = marked([of(600, 0.04), of(599, 0.05), of(601, 0.01), of(700, 0.0)], risk=0.05)
    assert [each.advised for each in alike] == [False, False, True, False]
    longer = of(500, 0.03).model_copy(update={"requested_time": 120})
    assert [each.advised for each in marked([of(600, 0.06), longer], risk=0.05)] == [False, False]
    assert [each.advised for each in marked([of(600, 0.07), longer], risk=0.06)] == [False, True]
    unforecast = marked([of(None, 0.5), of(None, 0.02), of(None, 0.01)], risk=0.05)
    assert [each.advised for each in unforecast] == [False, True, False]


def test_the_rows_have_a_request_that_keeps_the_risk_or_say_that_none_does(stored: Stored) -> None:
    """F1: `Ask as you do` was said of a request that is cut with 22 %, and no row kept the 5 %."""
    advised = 0
    for risk, requested_time, user in product((0.001, 0.02, 0.2, 0.6), (60, 600, 3600, 14_400), (1, 2, 3, None)):
        features = {} if user is None else {"user": user}
        advice = stored.advise(risk=risk, requested_time=requested_time, **features)
        kept = [
            each
            for each in advice.alternatives
            if each.cut is not None and each.cut <= (risk if each.requested_time <= requested_time else risk / 2)
        ]
        chosen = [each for each in advice.alternatives if each.advised]
        assert len(chosen) == min(len(kept), 1)
        assert (advice.unadvised is None) == bool(chosen)
        if chosen:
            assert chosen[0] in kept
            advised += 1
        else:
            assert "the longest so far, has a risk of at most" in str(advice.unadvised)
            longest = max(each.requested_time for each in advice.alternatives)
            state: Any = stored.states["runtime_distribution"].handler
            assert longest == max(
                state.longest_request(asked().job(0, AlternativeShape(8, 60), JobPlace())), requested_time
            )
    assert advised > 40


def test_longer_requests_end_at_the_longest_so_far() -> None:
    class Risk:
        def of(self, time: float) -> float:
            return min(3600 / time, 1.0)

        def needed(self, risk: float) -> int:
            return round(3600 / risk)

    own = AlternativeShape(8, 3600)
    for longest, found in (
        (3600, [3600]),
        (5000, [3600, 5000]),
        (20_000, [3600, 7200, 20_000]),
        (10**6, [3600, 7200, 230_400, 460_800]),
    ):
        tried = shapes(own, RiskQuestion(Risk(), 0.05, longest))
        assert [each.requested_time for each in tried] == found
    wider = shapes(own, RiskQuestion(Risk(), 0.05, 20_000), largest=16)
    assert [each for each in wider if each.processors == 16] == [(16, 1800), (16, 3600), (16, 10_000)]
    assert risk_of(AlternativeShape(16, 10_000), 8, Risk()) == 0.18


def test_a_hint_is_for_newcomers_too(stored: Stored) -> None:
    """The plug-in of sbatch names users, accounts and partitions that have had no job yet; they got no line."""

    async def there() -> None:
        return

    async def visit() -> None:
        made = application(Answers(NAMED["wait_bound"], stored.readers["wait_bound"]), there, stored.advising)
        job = {"cluster": "kth", "processors": "8", "requested_time": "7200"}
        new = {"user": "eve", "account": "course", "partition": "fresh"}
        async with TestClient(TestServer(made)) as client:
            texts = []
            for more in ({}, new):
                answer = await client.get("/hint", params=job | more)
                assert answer.status == 200, await answer.text()
                texts.append(await answer.text())
            assert texts[0] == texts[1] != ""
            assert (await client.get("/hint", params=job | new | {"processors": "100000"})).status == 422
            assert (await client.get("/advice", params=job | new)).status == 422

    asyncio.run(visit())
