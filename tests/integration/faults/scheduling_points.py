"""Runs of nothing but scheduling points, and what the first stage answers to them."""

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import FLOW
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings


async def publish(settings: Settings, run: str, policy: str, points: int) -> None:
    producer = bus.producer(settings)
    await producer.start()
    opened = ClusterOpened(time=0, cluster=run, processors=8, policy=policy)
    events: list[Event] = [opened, *(SchedulingPoint(time=at) for at in range(points))]
    for number, event in enumerate(events):
        value = Envelope(run=run, sequence=number, event=event).to_bytes()
        await producer.send_and_wait("jobs", value, run.encode(), 0)
    await producer.stop()


async def answered(settings: Settings, run: str) -> list[Envelope]:
    records = read_log(settings, FLOW[1], 0)
    return [Envelope.from_bytes(record.value) async for record in records if record.key == run.encode()]
