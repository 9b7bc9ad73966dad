"""Every state store keeps the same rules: one transaction, fenced, and nothing of it lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import redis

from shadowtime.shared.errors import FencedError, StateAltered, StoreError
from shadowtime.shared.streaming.protocols import RunSummary, StateStore, Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state import redis_store as redis_store_module
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis
from tests.support.memory_store import MemoryStore
from tests.support.real_servers import require
from tests.support.redis_cluster import RedisCluster

Check = Callable[[StateStore], Awaitable[None]]


def transaction(expected: int, count: int, **changes: object) -> Transaction:
    """Return a transaction that takes `count` events on from `expected`."""
    numbers = range(expected + 1, expected + 1 + count)
    fields: dict[str, object] = {
        "run": "run",
        "expected": expected,
        "sequence": expected + count,
        "offset": 100 + expected + count,
        "partition": 3,
        "snapshot": None,
        "inputs": [b"in %d" % number for number in numbers],
        "outputs": [b"out %d" % number for number in numbers],
        "delivered": 0,
    }
    return Transaction(**(fields | changes))  # type: ignore[arg-type]


@asynccontextmanager
async def redis_store(server: Redis | RedisCluster) -> AsyncIterator[RedisStore]:
    client = connect(Settings(redis_url=server.url))
    try:
        yield RedisStore(client, "stage")
    finally:
        await client.aclose()


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    require(Redis)
    with RedisCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def empty_cluster(redis_cluster: RedisCluster) -> RedisCluster:
    for node in redis_cluster.nodes:
        with redis.Redis.from_url(node.url) as client:
            client.flushall()
            client.script_flush()
    return redis_cluster


@pytest.fixture(params=["memory", "redis", "cluster"])
def check(request: pytest.FixtureRequest) -> Callable[[Check], None]:
    def run(work: Check) -> None:
        async def on_memory() -> None:
            await work(MemoryStore())

        async def on_redis() -> None:
            server = "empty_redis" if request.param == "redis" else "empty_cluster"
            async with redis_store(request.getfixturevalue(server)) as store:
                await work(store)

        asyncio.run(on_memory() if request.param == "memory" else on_redis())

    return run


def test_nothing_is_known_of_a_new_run(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        assert await store.load("run") is None
        assert list(await store.runs(3)) == []

    check(work)


def test_transactions_add_up(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 2))
        await store.commit(transaction(1, 1, delivered=2))
        saved = await store.load("run")
        assert saved is not None
        assert (saved.sequence, saved.offset, saved.partition) == (2, 102, 3)
        assert list(saved.journal) == [b"in 0", b"in 1", b"in 2"]
        assert list(saved.outbox) == [b"out 2"]
        assert saved.snapshot is None
        assert list(await store.runs(3)) == ["run"]
        assert list(await store.runs(4)) == []

    check(work)


def test_the_last_unhandled_records_of_a_partition_are_kept(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        assert await store.unhandled_of(3) is None
        for content in (b"first", b"second", b""):
            await store.set_unhandled(3, content)
            assert await store.unhandled_of(3) == content
        assert await store.unhandled_of(4) is None

    check(work)


def test_unhandled_records_that_somebody_else_wrote_are_ignored(empty_redis: Redis) -> None:
    async def work() -> None:
        async with redis_store(empty_redis) as store:
            await store.set_unhandled(3, b"content")
            key = (await store._client.keys("*unhandled*"))[0]  # noqa: SLF001
            whole = cast("bytes", await store._client.hget(key, "3"))  # noqa: SLF001
            for altered in (whole + b"!", whole[:-1], b"", b"x" * 40):
                await store._client.hset(key, "3", altered)  # noqa: SLF001
                assert await store.unhandled_of(3) is None
            await store._client.hset(key, "4", whole)  # noqa: SLF001
            assert await store.unhandled_of(4) is None  # that of another partition
            await store._client.set(key, b"of another type")  # noqa: SLF001
            assert await store.unhandled_of(3) is None
            await store.set_unhandled(3, b"content")
            assert await store.unhandled_of(3) == b"content"

    asyncio.run(work())


def test_a_snapshot_takes_the_place_of_the_journal(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 5))
        await store.commit(transaction(4, 5, snapshot=b"\x00state"))
        await store.commit(transaction(9, 1))
        saved = await store.load("run")
        assert saved is not None
        assert saved.snapshot == b"\x00state"
        assert list(saved.journal) == [b"in 10"]

    check(work)


def test_the_fence_refuses_and_changes_nothing(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 3))
        before = await store.load("run")
        for expected in (-1, 1, 3):
            with pytest.raises(FencedError):
                await store.commit(transaction(expected, 2, read_model={"job:1": b"x"}))
        assert await store.load("run") == before

    check(work)


def test_a_summary_says_what_is_left_of_a_run(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 3))
        await store.commit(transaction(-1, 2, run="ended", quarantined="why", catching_up=True, delivered=0, log="t/0"))
        found = await store.summaries(["ended", "unknown", "run"])
        assert found == [RunSummary(1, 2, "why", True, 101, "t/0"), None, RunSummary(2, 3, None, False, 102)]
        assert await store.summaries([]) == []

    check(work)


def test_requests_beyond_the_limit_wait(check: Callable[[Check], None]) -> None:
    """Of 101 requests, redis-py refused one with "Too many connections"; a worker of 150 runs was down for ever.

    With 1,000 requests to a cluster, a busy machine could not connect within 5 s.
    """

    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 3))
        loaded = await asyncio.gather(*(store.load("run") for _ in range(150)))
        assert all(state == loaded[0] and state is not None for state in loaded)

    check(work)


def test_a_request_waits_no_longer_than_its_limit(empty_redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store_module, "WAIT_SECONDS", 0.2)

    async def work() -> None:
        async with redis_store(empty_redis) as store:
            with redis.Redis.from_url(empty_redis.url) as client:
                client.client_pause(1_500)
            loads = [store.load("run") for _ in range(redis_store_module.MAX_REQUESTS + 1)]
            *answered, refused = await asyncio.gather(*loads, return_exceptions=True)
            assert answered == [None] * redis_store_module.MAX_REQUESTS
            assert str(refused) == "Redis did not answer 32 requests within 0.2 s"
            assert isinstance(refused, StoreError)
            assert store.waiting_requests == 0

    asyncio.run(work())


def test_large_batches_pass(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 9_000, read_model={f"job:{job}": b"x" for job in range(5_000)}))
        saved = await store.load("run")
        assert saved is not None
        assert len(saved.journal) == len(saved.outbox) == 9_000

    check(work)


def test_forget(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        await store.commit(transaction(-1, 3))
        await store.forget("run")
        assert await store.load("run") is None
        assert list(await store.runs(3)) == []

    check(work)


def test_read_model_in_redis(empty_redis: Redis) -> None:
    async def work() -> None:
        async with redis_store(empty_redis) as store:
            await store.commit(transaction(-1, 1, read_model={"job:1": b"a", "job:2": b"b"}))
            await store.commit(transaction(0, 1, forgotten=["job:1"]))
            assert await store.read_model("run") == {"job:2": b"b"}

    asyncio.run(work())


def test_a_closed_run_expires_in_redis(empty_redis: Redis) -> None:
    async def work() -> None:
        async with redis_store(empty_redis) as store:
            await store.commit(transaction(-1, 1, read_model={"job:1": b"a"}, closed=True))
            client = connect(Settings(redis_url=empty_redis.url))
            for part in ("state", "journal", "outbox", "read-model"):
                assert 0 < await client.ttl(f"shadowtime:{{stage}}:{part}:run") <= 86_400
            await client.aclose()

    asyncio.run(work())


def test_a_full_redis_refuses_the_whole_transaction(tmp_path: Path) -> None:
    require(Redis)
    with Redis(tmp_path, settings={"maxmemory": "3mb"}) as server:

        async def work() -> None:
            async with redis_store(server) as store:
                await store.commit(transaction(-1, 1))
                done = 0

                async def fill() -> None:
                    nonlocal done
                    for done in range(100):
                        await store.commit(transaction(done, 1, inputs=[b"x" * 200_000]))

                with pytest.raises(StoreError, match="maxmemory"):
                    await fill()
                saved = await store.load("run")
                assert saved is not None
                assert saved.sequence == done
                assert len(saved.journal) == len(saved.outbox) == done + 1

        asyncio.run(work())


def test_a_redis_that_is_away_is_named() -> None:
    async def work() -> None:
        client = connect(Settings(redis_url="redis://127.0.0.1:1/0"))
        try:
            with pytest.raises(StoreError, match="Redis cannot be used"):
                await RedisStore(client, "stage").wait_for(0.1)
        finally:
            await client.aclose()

    asyncio.run(work())


def test_transactions_of_several_runs_at_once_and_one_of_them_fenced(check: Callable[[Check], None]) -> None:
    """They go to Redis together; each succeeds or fails for itself."""

    async def work(store: StateStore) -> None:
        runs = [f"run {number}" for number in range(5)]
        await store.commit(transaction(-1, 3, run="run 2"))
        found = await asyncio.gather(
            *(store.commit(transaction(-1, 2, run=run)) for run in runs), return_exceptions=True
        )
        assert [type(each) for each in found] == [type(None), type(None), FencedError, type(None), type(None)]
        states = [await store.load(run) for run in runs]
        assert [state and state.sequence for state in states] == [1, 1, 2, 1, 1]

    check(work)


def test_redis_that_forgot_the_script_is_told_it_again(empty_redis: Redis) -> None:
    async def work() -> None:
        async with redis_store(empty_redis) as store:
            await store.commit(transaction(-1, 1))
            client = connect(Settings(redis_url=empty_redis.url))
            await client.script_flush()
            await client.aclose()
            await asyncio.gather(*(store.commit(transaction(-1, 1, run=run)) for run in ("a", "b")))
            state = await store.load("b")
            assert state is not None
            assert state.sequence == 0

    asyncio.run(work())


def test_who_commits_counts_as_one_who_tries(empty_redis: Redis) -> None:
    """No attempt of his has to be counted before each event: the next process is the second."""

    async def work() -> None:
        async with redis_store(empty_redis) as store:
            assert [await store.attempt("run"), await store.attempt("run")] == [1, 2]
            await store.commit(transaction(-1, 1))
            assert await store.attempt("run") == 2

    asyncio.run(work())


def test_only_the_holder_of_the_secret_can_write_state_that_is_loaded(empty_redis: Redis) -> None:
    async def work() -> None:
        client = connect(Settings(redis_url=empty_redis.url))
        try:
            ours, theirs = (RedisStore(client, "stage", secret=secret) for secret in (b"ours", b"theirs"))
            await ours.commit(transaction(-1, 3))
            await ours.commit(transaction(2, 2, delivered=1))
            again = RedisStore(client, "stage", secret=b"ours")
            assert (await again.load("run")) == (await ours.load("run"))
            with pytest.raises(StateAltered, match="run 'run' in Redis is not what this stage has stored"):
                await theirs.load("run")
            with pytest.raises(FencedError):
                await theirs.commit(transaction(4, 1))
            await theirs.forget("run")
            assert await ours.load("run") is None
        finally:
            await client.aclose()

    asyncio.run(work())


def test_a_key_of_another_type_is_deleted_when_it_is_written(empty_redis: Redis) -> None:
    """A worker whose run is in memory notices it at its next transaction, and loads the run again."""

    async def work() -> None:
        async with redis_store(empty_redis) as store:
            await store.commit(transaction(-1, 3))
            with redis.Redis.from_url(empty_redis.url) as client:
                client.delete("shadowtime:{stage}:journal:run")
                client.set("shadowtime:{stage}:journal:run", "x")
            with pytest.raises(FencedError, match="not what this stage has stored"):
                await store.commit(transaction(2, 1))
            with pytest.raises(StateAltered, match="its seal does not match its content"):
                await store.load("run")

    asyncio.run(work())


def test_digests_of_many_runs_are_computed_again(empty_redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store_module, "MAX_SEALED", 2)
    monkeypatch.setattr(redis_store_module, "LARGE_STATE", 1)

    async def work() -> None:
        async with redis_store(empty_redis) as store:
            for expected in range(-1, 3):
                for run in "abcd":
                    await store.commit(transaction(expected, 1, run=run, snapshot=b"state" if expected == 1 else None))
            for run in "abcd":
                saved = await store.load(run)
                assert saved is not None
                assert (saved.sequence, saved.snapshot, list(saved.journal)) == (3, b"state", [b"in 3"])

    asyncio.run(work())


def test_the_log_of_a_partition_is_remembered(check: Callable[[Check], None]) -> None:
    async def work(store: StateStore) -> None:
        assert await store.log_of(3) is None
        await store.set_log(3, "topic/0")
        await store.commit(transaction(-1, 1, log="topic/0"))
        saved = await store.load("run")
        assert await store.log_of(3) == "topic/0"
        assert saved is not None
        assert saved.log == "topic/0"

    check(work)


@pytest.mark.parametrize("count", [str(2**63 - 1), str(-(2**63)), "1.5", "9" * 5_000, "x"])
def test_a_count_that_no_process_has_written_begins_anew(empty_redis: Redis, count: str) -> None:
    """Redis refuses to add 1 to 2^63 - 1: the stage took this for a failure of Redis, and waited for ever."""

    async def work() -> None:
        async with redis_store(empty_redis) as store:
            with redis.Redis.from_url(empty_redis.url) as client:
                client.hset("shadowtime:{stage}:attempts:run", "count", count)
            assert [await store.attempt("run"), await store.attempt("run")] == [1, 2]

    asyncio.run(work())
