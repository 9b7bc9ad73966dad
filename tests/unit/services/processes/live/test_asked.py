"""What the page asks of Redis, over HTTP: as `ask --serve` answers, one question after the other, bounded."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, RunTime
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.gate import Gate, VisitorAccess
from shadowtime.services.processes.ask.once import STAGE
from shadowtime.services.processes.ask.routes import application
from shadowtime.services.processes.ask.words import WordReader
from shadowtime.services.processes.live.asked import MAX_ASKED, InTurn, asked
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.services.shadows.comparison.live_page import LiveShadows, Twin
from shadowtime.services.shadows.comparison.stored import StoredShadowCache
from tests.support.answers_away import Away
from tests.support.memory_reader import MemoryReader
from tests.support.stored_runs import Stored
from tests.support.stored_shadows import BEST, keeping
from tests.support.stored_shadows import stored as shadow

JOB = {"cluster": "kth", "run": "kth/a", "processors": "8", "requested_time": "7200"}
LONG = "9" * 400

HOSTILE = [
    {},
    {**JOB, "processors": "<script>"},
    {**JOB, "processors": "0"},
    {**JOB, "processors": LONG},
    {**JOB, "processors": "1e3"},
    {**JOB, "requested_time": "-1"},
    {**JOB, "risk": "nan"},
    {**JOB, "risk": "2"},
    {**JOB, "user": "null"},
    {**JOB, "moldable": "perhaps"},
    {**JOB, "nothing": "1"},
    {**JOB, "<b>" + LONG: "1"},
    {**JOB, "cluster": ""},
    {**JOB, "cluster": "ctc"},
    {**JOB, "run": "\x1b[2J\n<img src=x>"},
    {**JOB, "processors": "100000"},
]


@pytest.fixture(scope="module")
def stored() -> Stored:
    return Stored("easy", "empirical")


def visiting(advises: Any, visit: Callable[[TestClient[Any, Any]], Awaitable[None]]) -> None:
    async def go() -> None:
        reader = MemoryReader()
        await keeping(reader, BEST, shadow(20))
        made = LivePage(LiveRuns(), asked(advises, LiveShadows(StoredShadowCache(reader)))).application()
        async with TestClient(TestServer(made)) as client:
            await visit(client)

    asyncio.run(go())


def test_advice_is_that_of_the_command(stored: Stored) -> None:
    async def visit(client: TestClient[Any, Any]) -> None:
        response = await client.get("/ask/advice", params=JOB)
        assert response.status == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert Advice.model_validate_json(await response.read()) == await stored.advising.advise(
            AdviceQuestion.model_validate(JOB)
        )

    visiting(stored.advising, visit)


def test_what_is_hostile_is_refused_as_ask_refuses_it(stored: Stored) -> None:
    async def there() -> None:
        return

    made = application(Answers(STAGE, MemoryReader()), there, stored.advising)

    async def visit(client: TestClient[Any, Any]) -> None:
        async with TestClient(TestServer(made)) as ask:
            for parameters in [*(list(each.items()) for each in HOSTILE), [*JOB.items(), ("processors", "9")]]:
                refused, expected = [
                    await each.get(path, params=parameters)
                    for each, path in ((client, "/ask/advice"), (ask, "/advice"))
                ]
                assert refused.status == expected.status, parameters
                assert refused.status in (404, 422), parameters
                said = await refused.json()
                assert said == await expected.json()
                assert len(said["error"]) < 400
                assert "\n" not in said["error"]

    visiting(stored.advising, visit)


@pytest.mark.parametrize("cluster", ["", "kth/", LONG, "<img src=x>", "\x00"])
def test_a_cluster_without_shadows_is_refused(stored: Stored, cluster: str) -> None:
    async def visit(client: TestClient[Any, Any]) -> None:
        refused = await client.get("/ask/twin", params={"cluster": cluster})
        assert refused.status in (404, 422)
        assert len((await refused.json())["error"]) < 400
        for path in ("/ask/twin", "/ask/twin?cluster=kth&users=yes", "/ask/twin?cluster=kth&cluster=kth"):
            assert (await client.get(path)).status == 422
        for path in ("/ask/bound", "/ask/", "/ask/../ask/why", "/ask/%2e%2e/advice"):
            assert (await client.get(path)).status == 404
        assert (await client.post("/ask/advice")).status == 405

    visiting(stored.advising, visit)


def test_the_twin_is_told(stored: Stored) -> None:
    async def visit(client: TestClient[Any, Any]) -> None:
        response = await client.get("/ask/twin", params={"cluster": "kth"})
        assert response.status == 200
        assert [each.run for each in Twin.model_validate_json(await response.read()).shadows] == [BEST]

    visiting(stored.advising, visit)


class Named:
    async def names(self) -> list[str]:
        return ["kth/live"]

    async def read_words(self, run: str) -> Mapping[str, bytes]:
        assert run == "kth/live"
        return {"user:alice": b"7"}


def test_the_twin_has_names_of_users_and_only_who_sees_all_jobs_gets_users(stored: Stored) -> None:
    """Users were numbers, beside names on all other pages, and every visitor got them."""
    access = VisitorAccess(sees="own", login_header="X-User", proxies=("127.0.0.1",), managers=("root",))

    async def go() -> None:
        reader = MemoryReader()
        await keeping(reader, BEST, shadow(20))
        below = asked(stored.advising, LiveShadows(StoredShadowCache(reader)), WordReader(Named()))
        made = LivePage(LiveRuns(), below, Gate(access)).application()
        async with TestClient(TestServer(made)) as client:
            twins = []
            for user in ("root", "alice"):
                response = await client.get("/ask/twin", params={"cluster": "kth"}, headers={"X-User": user})
                twins.append(Twin.model_validate_json(await response.read()))
        (every,), (own,) = (twin.shadows for twin in twins)
        assert (len(every.compared.users), every.more_users) == (20, 10)
        assert (twins[0].names[7], twins[0].names[8]) == ("alice", "8")
        assert (own.compared.users, own.more_users, twins[1].names) == ((), 0, {})
        assert own.compared.all == every.compared.all

    asyncio.run(go())


class Slow:
    """Advice that takes until it is let go; `most` is how many were at it at once."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.begun = self.now = self.most = 0

    async def advise(self, question: AdviceQuestion) -> Advice:
        self.begun += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await self.let_go.wait()
        self.now -= 1
        run_time = RunTime(mean=None, quantiles=(), cut=None, observations=0)
        return Advice(cluster="kth", run="kth/a", as_of=(), run_time=run_time, bounds=(), alternatives=())


def test_one_is_worked_on_few_wait_the_next_is_sent_away_and_all_else_goes_on() -> None:
    slow = Slow()

    async def visit(client: TestClient[Any, Any]) -> None:
        waiting = [asyncio.create_task(client.get("/ask/advice", params=JOB)) for _ in range(MAX_ASKED)]
        while slow.begun == 0:
            await asyncio.sleep(0.01)
        refused = await client.get("/ask/advice", params=JOB)
        assert refused.status == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert "retry in" in (await refused.json())["error"]
        assert (await client.get("/health")).status == 200
        assert (await client.get("/ask/twin?cluster=kth")).status == 200
        slow.let_go.set()
        assert {each.status for each in await asyncio.gather(*waiting)} == {200}
        assert (slow.begun, slow.most) == (MAX_ASKED, 1)
        assert (await client.get("/ask/advice", params=JOB)).status == 200

    visiting(slow, visit)


def test_who_leaves_starts_nothing_beside_what_he_has_started() -> None:
    """Nor does he hold a place in the queue."""

    async def go() -> None:
        slow, turns = Slow(), InTurn()
        question = AdviceQuestion.model_validate(JOB)
        for _ in range(MAX_ASKED):
            leaving = asyncio.create_task(turns.answer(lambda: slow.advise(question)))
            await asyncio.sleep(0)
            leaving.cancel()
        await asyncio.sleep(0.01)
        assert slow.now == 1
        slow.let_go.set()
        await turns.answer(lambda: slow.advise(question))
        assert slow.most == 1

    asyncio.run(go())


def test_without_redis_it_is_one_sentence_with_a_time_to_ask_again() -> None:
    async def visit(client: TestClient[Any, Any]) -> None:
        refused = await client.get("/ask/advice", params=JOB)
        assert refused.status == 503
        assert "Retry-After" in refused.headers
        assert await refused.json() == {"error": "Redis cannot be used: refused", "parameter": None}

    visiting(Away(), visit)
