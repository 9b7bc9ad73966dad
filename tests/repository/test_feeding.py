"""What docs/feeding.md says of its source: three jobs give decisions, a mistake is rejected, it can begin again."""

import asyncio
import json
import time
from pathlib import Path

import orjson
import pytest

from shadowtime.services.asyncapi import document
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import Decided, Envelope, Rejected
from shadowtime.shared.stages.topics import DEAD_LETTERS, DECISIONS, JOBS
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.feeding import CODE, EVENTS, feed
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers


def values(kafka: Kafka, topic: str) -> list[bytes]:
    """Return what lies on a topic; dead letters are on any partition."""
    settings = Settings(kafka_bootstrap=kafka.address)

    async def found() -> list[bytes]:
        every = range(settings.partitions)
        return [each.value for partition in every async for each in read_log(settings, topic, partition)]

    return asyncio.run(found())


@pytest.mark.nightly
def test_three_jobs_give_decisions_and_a_mistake_is_a_dead_letter(empty_redis: Redis, tmp_path: Path) -> None:
    require(Kafka)
    count = len(EVENTS.splitlines())
    with Kafka(tmp_path / "kafka") as kafka, Workers(kafka, empty_redis, tmp_path) as workers:
        asyncio.run(topic_admin.prepare_topics(Settings(kafka_bootstrap=kafka.address)))
        feed(tmp_path, kafka.address, "\n".join(EVENTS.splitlines()[:5]))
        feed(tmp_path, kafka.address)  # again from the beginning, as after a failure
        until = time.monotonic() + PATIENCE
        while len(values(kafka, DECISIONS)) < count or not values(kafka, DEAD_LETTERS):
            assert time.monotonic() < until, workers.logs()
            workers.tend()
            time.sleep(0.2)
        sent = [orjson.loads(each) for each in values(kafka, JOBS)]
        answers = [Envelope.from_bytes(each) for each in values(kafka, DECISIONS)]
        letters = values(kafka, DEAD_LETTERS)
    assert [each.sequence for each in answers] == list(range(count))
    at_900 = next(each.event for each in answers if isinstance(each.event, Decided) and each.event.time == 900)
    assert [(type(start), start.job_number) for start in at_900.starts] == [(Start, 73)]
    (rejected,) = (each for each in answers if isinstance(each.event, Rejected))
    assert json.loads(EVENTS.splitlines()[rejected.sequence])["job_number"] == 74
    assert [orjson.loads(each)["sequence"] for each in letters] == [rejected.sequence]
    assert any(each.wait_bounds for each in answers)
    from jsonschema import Draft202012Validator  # here: it takes seconds, in every process that collects tests

    whole = document()
    schema = {"$ref": "#/components/schemas/SourceEnvelope", "components": whole["components"]}
    assert [list(Draft202012Validator(schema).iter_errors(each)) for each in sent] == [[]] * (count + 5)


def test_the_source_has_fifty_lines_at_most_and_imports_nothing_of_ours() -> None:
    assert len(CODE.splitlines()) <= 50
    assert "shadowtime" not in CODE
