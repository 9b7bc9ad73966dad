"""What wakes a follower before its next look is due: a message on a topic that the cluster itself writes."""

import asyncio
import logging
from contextlib import suppress

from aiokafka.errors import KafkaError

from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, SettingsError
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.wording import quoted, shortened

log = logging.getLogger("shadowtime.follow")


class Waker:
    """Listens to topics, such as those of Slurm's jobcomp/kafka.

    That something came is all that it tells: a message may be lost, or come twice, and none is written at a submission;
    what happened is asked for.

    Parameters
    ----------
    place
        HOST:PORT/TOPIC, or several topics with commas between them.
    """

    def __init__(self, place: str) -> None:
        host, slash, topics = place.partition("/")
        if not slash or ":" not in host or not all(topics.split(",")):
            raise SettingsError(
                f"--jobcomp {quoted(place)}: expected HOST:PORT/TOPIC, as kafka:9092/slurm-start,slurm-end"
            )
        self._topics = topics.split(",")
        self._settings = Settings(kafka_bootstrap=host)
        self._came = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Wait so many seconds, or until something has come since the last time."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._came.wait()
        self._came.clear()

    async def close(self) -> None:
        """Stop listening."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        backoff = Backoff(1.0, 60.0)
        while True:
            consumer = bus.reader(self._settings, begin="latest")
            try:
                consumer.subscribe(self._topics)
                await consumer.start()
                backoff.reset()
                while True:
                    if await consumer.getmany(timeout_ms=60_000, max_records=1_000):
                        self._came.set()
            except (KafkaError, BusError, OSError) as error:
                pause = backoff.pause()
                log.warning("jobcomp: %s; trying again in %.0f s", shortened(str(error)), pause)
                await asyncio.sleep(pause)
            finally:
                await consumer.stop()
