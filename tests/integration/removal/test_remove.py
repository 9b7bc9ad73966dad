"""Tests of `shadowtime remove` on real servers: everything of a run goes, and nothing of another run."""

import asyncio
import json
import urllib.request

import pytest

from shadowtime.services.processes.removal import OWNERS, Removal, RemovalRefused, remove_run
from shadowtime.shared.messages.envelope import ClusterClosed, ClusterOpened, Envelope
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Kafka, Redis, VictoriaMetrics
from tests.support.metric_store import exported
from tests.support.server_control import flush

OPENED = ClusterOpened(time=0, cluster="mine", processors=1, mode="recorded", wait_bound="none")


@pytest.fixture
def settings(kafka: Kafka, empty_redis: Redis, victoria_metrics: VictoriaMetrics) -> Settings:
    return Settings(kafka_bootstrap=kafka.address, redis_url=empty_redis.url, victoria_metrics_url=victoria_metrics.url)


async def stored(settings: Settings, run: str, *, closed: bool) -> None:
    """Store a run of one event in all places."""
    event = ClusterClosed(time=1) if closed else OPENED
    value = Envelope(run=run, cluster="mine", sequence=0, event=event).to_bytes()
    partition = bus.partition_of(run, await topic_admin.prepare_topics(settings))
    producer = bus.producer(settings)
    await producer.start()
    sent = await producer.send_and_wait(JOBS, value, run.encode(), partition)
    await producer.stop()
    client = connect(settings)
    for owner in OWNERS:
        model = {"user:eve": b"1"}
        store = RedisStore(client, owner)
        await store.commit(Transaction(run, -1, 0, sent.offset, partition, b"{}", (value,), (value,), 0, model))
    await client.aclose()


def measured(server: VictoriaMetrics, run: str) -> None:
    for label in ("run", "shadow"):
        row = {"metric": {"__name__": "shadowtime_x", label: run}, "values": [1], "timestamps": [1_700_000_000_000]}
        urllib.request.urlopen(f"{server.url}/api/v1/import", data=json.dumps(row).encode()).close()
    flush(server)


async def keys_of(settings: Settings, run: str) -> list[str]:
    client = connect(settings)
    keys = sorted([key.decode() async for key in client.scan_iter(match=f"*{run}*")])
    sets = [key async for key in client.scan_iter(match="*:partition:*")]
    members = {member for key in sets for member in await client.smembers(key)}
    await client.aclose()
    return keys + [run] * (run.encode() in members)


def removed(settings: Settings, run: str, how: Removal) -> list[str]:
    return asyncio.run(remove_run(settings, run, how))


def test_everything_of_a_run_is_removed_and_nothing_of_another(
    settings: Settings, victoria_metrics: VictoriaMetrics
) -> None:
    for run in ("mine/gone", "mine/gone/not"):
        asyncio.run(stored(settings, run, closed=True))
        measured(victoria_metrics, run)
    others = asyncio.run(keys_of(settings, "mine/gone/not"))
    listed = removed(settings, "mine/gone", Removal(dry=True))
    assert len(listed) == len(OWNERS) + 1
    assert listed[-1] == "VictoriaMetrics: 2 series"
    assert asyncio.run(keys_of(settings, "mine/gone")) != others
    assert removed(settings, "mine/gone", Removal()) == listed
    assert [key for key in asyncio.run(keys_of(settings, "mine/gone")) if not key.endswith("/not")] == []
    assert asyncio.run(keys_of(settings, "mine/gone/not")) == others
    assert list(exported(victoria_metrics, '{run="mine/gone"}')) == []
    assert len(exported(victoria_metrics, '{run="mine/gone/not"}')) == 1
    with pytest.raises(RemovalRefused, match=r"nothing is stored of run 'mine/gone'; stored runs: .*mine/gone/not"):
        removed(settings, "mine/gone", Removal())


def test_a_run_that_goes_on_is_removed_by_force_alone(settings: Settings) -> None:
    run = "mine/recent"
    asyncio.run(stored(settings, run, closed=False))
    with pytest.raises(RemovalRefused, match=r"is in progress: its last event came \d s ago; .*--force"):
        removed(settings, run, Removal())

    async def claim() -> None:
        client = connect(settings)
        await RedisStore(client, "shadow").claim(run, b"process 7 on host token", 60)
        await client.aclose()

    asyncio.run(claim())
    with pytest.raises(RemovalRefused, match="'process 7 on host' publishes it"):
        removed(settings, run, Removal())
    assert removed(settings, run, Removal(dry=True))[0].startswith("the run is in progress")
    removed(settings, run, Removal(force=True))
    assert asyncio.run(keys_of(settings, run)) == []


def test_without_victoria_metrics_it_says_so(kafka: Kafka, empty_redis: Redis) -> None:
    settings = Settings(
        kafka_bootstrap=kafka.address, redis_url=empty_redis.url, victoria_metrics_url="http://127.0.0.1:1"
    )
    asyncio.run(stored(settings, "mine/bare", closed=True))
    with pytest.raises(RemovalRefused, match=r"does not answer: .*--keep-metrics"):
        removed(settings, "mine/bare", Removal())
    assert len(removed(settings, "mine/bare", Removal(keep_metrics=True))) == len(OWNERS)
    assert asyncio.run(keys_of(settings, "mine/bare")) == []
