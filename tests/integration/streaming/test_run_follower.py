"""A follower stands where the worker stood after its last batch, whatever the store went through; it never writes."""

import asyncio
import copy
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.errors import SnapshotMismatch, StateAltered, StoreError
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobSubmitted
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.shared.streaming.protocols import StateStore, Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.shared.streaming.state.run_follower import ALTERED, Position, RedisReader, RunFollower, RunReader
from shadowtime.stack.servers.servers import Redis
from tests.support.memory_reader import MemoryReader

STAGE = Stage("wait_bound", "in", "out", StageHandler)


class Written:
    """A run as its worker writes it: `add` is one batch; `envelopes` counts from 0."""

    def __init__(self, store: StateStore, run: str = "r", cluster: str = "c") -> None:
        self.store = store
        self.run = run
        self.cluster = cluster
        self.state = StageRun(STAGE)
        self.offset = 0

    def envelope(self, sequence: int) -> Envelope:
        opened = ClusterOpened(time=0, cluster=self.cluster, processors=10)
        submitted = JobSubmitted(time=sequence, job_number=sequence, requested_processors=1)
        event: Event = submitted if sequence else opened
        return Envelope(run=self.run, cluster=self.cluster, sequence=sequence, event=event)

    async def add(self, count: int, *, snapshot: bool = False) -> None:
        started = self.state.sequence
        batch = [self.envelope(started + 1 + number) for number in range(count)]
        for each in batch:
            self.state.push(each)
        self.offset += count
        values = [each.to_bytes() for each in batch]
        saved = self.state.snapshot() if snapshot else None
        sequence = self.state.sequence
        await self.store.commit(
            Transaction(self.run, started, sequence, self.offset, 3, saved, values, values, count if started > 0 else 0)
        )


def whole(state: StageRun) -> bytes:
    return state.snapshot()


Check = Callable[[RunReader, StateStore], Awaitable[None]]


@pytest.fixture(params=["memory", "redis"])
def check(request: pytest.FixtureRequest) -> Callable[[Check], None]:
    def run(work: Check) -> None:
        async def on_memory() -> None:
            store = MemoryReader()
            await work(store, store)

        async def on_redis() -> None:
            client = connect(Settings(redis_url=request.getfixturevalue("empty_redis").url))
            try:
                store = RedisReader(client, STAGE.name)
                await work(store, store)
            finally:
                await client.aclose()

        asyncio.run(on_memory() if request.param == "memory" else on_redis())

    return run


def test_it_keeps_up_with_journal_and_snapshots(check: Callable[[Check], None]) -> None:
    async def work(reader: RunReader, store: StateStore) -> None:
        run, follower = Written(store), RunFollower(STAGE, reader, "r")
        assert await follower.ask(whole) is None
        for count, snapshot in [(1, False), (5, False), (2, True), (3, False), (1, True), (1, True), (4, False)]:
            await run.add(count, snapshot=snapshot)
            assert await follower.ask(whole) == run.state.snapshot()
            assert await follower.ask(whole) == run.state.snapshot()
            assert await RunFollower(STAGE, reader, "r").ask(whole) == run.state.snapshot()

    check(work)


def test_what_the_store_knows(check: Callable[[Check], None]) -> None:
    async def work(reader: RunReader, store: StateStore) -> None:
        assert list(await reader.names()) == []
        assert list(await reader.positions([])) == []
        first, second = Written(store, "b:*/1"), Written(store, "a")
        await first.add(3)
        await second.add(2, snapshot=True)
        assert list(await reader.names()) == ["a", "b:*/1"]
        assert list(await reader.positions(["b:*/1", "none", "a"])) == [
            Position(2, 3, first.envelope(2).to_bytes()),
            None,
            Position(1, 2, second.envelope(1).to_bytes()),
        ]
        assert await reader.journal_from("none", 0) is None
        end = await reader.journal_from("b:*/1", 2)
        assert end is not None
        assert (end.sequence, end.offset, end.start) == (2, 3, -1)
        assert list(end.entries) == [first.envelope(2).to_bytes()]

    check(work)


@given(
    st.lists(
        st.sampled_from(["add", "add", "snapshot", "ask", "ask", "lose", "wipe", "save"]), min_size=3, max_size=40
    ),
    st.integers(1, 4),
)
def test_it_is_right_whatever_happens_to_the_store(acts: list[str], batch: int) -> None:
    """Redis may lose its last second and go on, or be wiped and take another run of the same name."""

    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store, cluster="c0"), RunFollower(STAGE, store, "r")
        saved, wiped = store.image(), 0
        for act in acts:
            if act in ("add", "snapshot"):
                await run.add(batch, snapshot=act == "snapshot")
            elif act == "save":
                saved = store.image()
            elif act in ("lose", "wipe"):
                if act == "wipe":
                    wiped += 1
                    saved = {}
                    await store.forget("r")
                    assert await follower.ask(whole) is None
                store.kept = saved
                saved = store.image()
                run = Written(store, cluster=f"c{wiped}")
                kept = store.kept.get("r")
                run.offset = 1000 * wiped if kept is None else kept.offset
                for sequence in range(0 if kept is None else kept.sequence + 1):
                    run.state.push(run.envelope(sequence))
            else:
                expected = run.state.snapshot() if run.state.sequence >= 0 else None
                assert await follower.ask(whole) == expected

    asyncio.run(work())


def test_only_what_is_new_is_read() -> None:
    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store), RunFollower(STAGE, store, "r")
        await run.add(5, snapshot=True)
        for snapshot, loads in [(False, 1), (False, 1), (True, 2), (False, 2)]:  # a snapshot of more than was taken
            await follower.ask(whole)
            await run.add(3, snapshot=snapshot)
            await follower.ask(whole)
            assert store.asked["load"] == loads

    asyncio.run(work())


@pytest.mark.parametrize("taken", [4, 7, 9])
def test_another_run_of_the_same_name_is_loaded(taken: int) -> None:
    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store), RunFollower(STAGE, store, "r")
        await run.add(4, snapshot=taken > 4)
        await run.add(taken - 4 or 1)
        await follower.ask(whole)
        await store.forget("r")
        other = Written(store, cluster="other")
        await other.add(4, snapshot=taken > 4)
        await other.add(6)
        assert await follower.ask(whole) == other.state.snapshot()

    asyncio.run(work())


def test_questions_at_once_load_once() -> None:
    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store), RunFollower(STAGE, store, "r")
        await run.add(50)
        answers = await asyncio.gather(*(follower.ask(whole) for _ in range(20)))
        assert set(answers) == {run.state.snapshot()}
        assert store.asked["load"] == 1

    asyncio.run(work())


def test_an_error_of_the_question_costs_no_load_and_a_cancellation_does() -> None:
    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store), RunFollower(STAGE, store, "r")
        await run.add(5)

        def fail(state: StageRun) -> None:
            raise KeyError("question")

        for _ in range(2):
            with pytest.raises(KeyError):
                await follower.ask(fail)
        assert store.asked["load"] == 1
        task = asyncio.ensure_future(follower.ask(whole))
        for _ in range(3):  # to the journal, and on to the thread
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await follower.ask(whole) == run.state.snapshot()
        assert store.asked["load"] == 2

    asyncio.run(work())


def test_damage_is_named_with_the_remedy() -> None:
    async def work() -> None:
        store = MemoryReader()
        run, follower = Written(store), RunFollower(STAGE, store, "r")
        await run.add(5)
        image = store.image()
        for hole, trouble in [
            (2, "after sequence 1"),
            (4, "its journal ends at sequence 3; expected 4, its stored position"),
        ]:
            store.kept = copy.deepcopy(image)
            del store.kept["r"].journal[hole]
            with pytest.raises(SnapshotMismatch, match=f"{trouble}; rebuild it: shadowtime"):
                await follower.ask(whole)
        store.kept = image
        await follower.ask(whole)
        store.kept["r"].journal.append(b"{}")
        store.kept["r"].sequence += 1
        for _ in range(2):
            with pytest.raises(SnapshotMismatch, match=r"after sequence 4; rebuild it: shadowtime rebuild"):
                await follower.ask(whole)

    asyncio.run(work())


def test_a_user_who_may_only_read_is_enough(empty_redis: Redis) -> None:
    """What Redis itself says of it: no command that writes is sent."""

    async def work() -> None:
        owner = connect(Settings(redis_url=empty_redis.url))
        categories = ["-@all", "+@read", "+@connection", "+@transaction"]
        keys = ["shadowtime:*"]
        await owner.acl_setuser("asker", enabled=True, passwords=["+secret"], keys=keys, categories=categories)
        asker = connect(Settings(redis_url=empty_redis.url, redis_username="asker", redis_password="secret"))
        try:
            writer, reader = RedisStore(owner, STAGE.name), RedisReader(asker, STAGE.name)
            run, follower = Written(writer), RunFollower(STAGE, reader, "r")
            for snapshot in (False, True, False):
                await run.add(3, snapshot=snapshot)
                assert list(await reader.names()) == ["r"]
                assert len(await reader.positions(["r"])) == 1
                assert await follower.ask(whole) == run.state.snapshot()
            with pytest.raises(StoreError, match="permission"):
                await reader.forget("r")
        finally:
            await asker.aclose()
            await owner.acl_deluser("asker")
            await owner.aclose()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("part", "sequence"), [("state", None), ("outbox", None), ("state", "x"), ("state", "1"), ("state", "9" * 5_000)]
)
def test_altered_state_hides_no_other_run(empty_redis: Redis, part: str, sequence: str | None) -> None:
    """One key of another type made every question about every run fail."""

    async def work() -> None:
        client = connect(Settings(redis_url=empty_redis.url))
        try:
            run, reader = Written(RedisStore(client, STAGE.name)), RedisReader(client, STAGE.name)
            await run.add(3, snapshot=False)
            prefix = f"shadowtime:{{{STAGE.name}}}"
            await client.hset(f"{prefix}:state:evil", mapping={"sequence": "1"})
            await client.delete(key := f"{prefix}:{part}:evil")
            await (client.set(key, "x") if sequence is None else client.hset(key, "sequence", sequence))
            await client.hset(prefix.encode() + b":state:\xff", "sequence", "1")
            assert list(await reader.names()) == ["evil", "r"]
            altered, own = await reader.positions(["evil", "r"])
            assert altered == ALTERED
            assert own is not None
            assert own.sequence == run.state.sequence
            assert await RunFollower(STAGE, reader, "r").ask(whole) == run.state.snapshot()
            with pytest.raises(StateAltered, match="run 'evil' in Redis is not what this stage has stored"):
                await RunFollower(STAGE, reader, "evil").ask(whole)
        finally:
            await client.aclose()

    asyncio.run(work())
