"""Writer of the samples in topic `scores` to VictoriaMetrics. No sample is lost if a process is killed.

The pipeline never waits for this writer. Its rules:

1. A batch is retried until the server accepts it or refuses it for good. Then the next batch is read. A repeated write
   is harmless: it writes the same value with the same time.
2. VictoriaMetrics first holds a sample in memory, and a kill loses the samples that are not on its disk. So the writer
   commits a position only `DURABLE_SECONDS` after it was reached, and only if the server has not restarted meanwhile.
   After a restart, all samples after the committed position are written again.
"""

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any

import aiohttp
import orjson

from shadowtime.services.processes.metrics.writer_health import MetricsHealth
from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import reason_of
from shadowtime.shared.messages import Envelope, name_label
from shadowtime.shared.metric_names import RESULTS, RUN
from shadowtime.shared.streaming import GroupFollower, Offsets

# The lines are in VictoriaMetrics' import format of JSON, in which no name can be mistaken for syntax.

LABELS = {metric.name: metric.labels for metric in RESULTS}


def import_lines(envelopes: Iterable[Envelope]) -> tuple[bytes, int]:
    """Return one line per series with all of its samples in these envelopes, and the number of samples.

    Times are Unix milliseconds. A figure with an unknown metric, or with another number of labels, is left out: it
    comes from a scoreboard of another version.

    >>> from shadowtime.shared.messages.envelope import SchedulingPoint
    >>> from shadowtime.shared.messages.samples import Sample
    >>> sample = Sample(time=60, cluster='k"}', policy="easy", figures=(("shadowtime_running_jobs", (), 3),))
    >>> lines, count = import_lines([Envelope(run="r", sequence=1, event=SchedulingPoint(time=61), samples=(sample,))])
    >>> orjson.loads(lines)["metric"]["cluster"], orjson.loads(lines)["timestamps"], count
    ('k"}', [60000], 1)
    """
    series: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
    count = 0
    for envelope in envelopes:
        for sample in envelope.samples or ():
            run = name_label(envelope.run)
            source = sample.cluster, sample.experiment or run, sample.policy, run
            for name, labels, value in sample.figures:
                if len(LABELS.get(name, ())) != len(labels) or name not in LABELS:
                    continue
                times, values = series.setdefault((name, *source, *labels), ([], []))
                times.append(1_000 * sample.time)
                values.append(value)
                count += 1

    lines = [
        orjson.dumps(
            {
                "metric": {"__name__": name, **dict(zip((*RUN, *LABELS[name]), labels, strict=True))},
                "values": values,
                "timestamps": times,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for (name, *labels), (times, values) in series.items()
    ]
    return b"".join(lines), count


log = logging.getLogger("shadowtime.metrics")

MAX_BATCH = 500
"""The maximum number of messages in a batch."""

DURABLE_SECONDS = 15.0
"""Seconds after which VictoriaMetrics has a sample and its index on disk. It flushes within ten seconds."""

FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0
STARTED = re.compile(rb"^process_start_time_seconds (\S+)", re.MULTILINE)
MARK = b'"samples":['


class _RefusedError(Exception):
    """VictoriaMetrics refuses a request for good."""


class MetricsWriter:
    """Writer of the scoreboard's samples to one VictoriaMetrics.

    Parameters
    ----------
    follower
        Follower of the topic `scores`, in the consumer group of the writers.
    session
        The HTTP client, with the URL of VictoriaMetrics as its base, and the credentials if there are any.
    """

    def __init__(self, follower: GroupFollower, session: aiohttp.ClientSession, health: MetricsHealth) -> None:
        self._follower = follower
        self._session = session
        self._health = health
        self._server: bytes | None = None
        self._reached: Offsets = {}
        self._since = 0.0

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        self._server, self._since = await self._started(), loop.time()
        while True:
            records = await self._follower.try_next_batch(MAX_BATCH, 1.0)
            await self.write(records)
            self._health.lag.set(self._follower.lag(await self._follower.positions()))
            if loop.time() - self._since >= DURABLE_SECONDS:
                await self._checkpoint()
                self._since = loop.time()

    async def _checkpoint(self) -> None:
        """Commit the position of the last checkpoint. All samples before that position are on disk by now.

        If the server has restarted since the last checkpoint, go back to the committed position instead.
        """
        server = await self._started()
        if server != self._server:
            log.warning("VictoriaMetrics has restarted; samples that it may have lost are written again")
            self._server, self._reached = server, {}
            await self._follower.go_back()
            return

        await self._follower.commit(self._reached)
        self._reached = await self._follower.positions()

    async def write(self, records: Sequence[Any]) -> None:
        """Write the samples of records. Return when the server has accepted them, or refused them for good.

        A refused batch is written by halves, so that only the records with refused samples are left out.
        O(log records) requests for each of these.
        """
        envelopes = [Envelope.read(record.value) for record in records if MARK in (record.value or b"")]
        lines, count = import_lines(envelope for envelope in envelopes if envelope is not None)
        if not count:
            return
        try:
            await self._ask("POST", "api/v1/import", (400, 413), lines)
            self._health.written.inc(count)
        except _RefusedError as error:
            if len(records) > 1:
                half = len(records) // 2
                await self.write(records[:half])
                await self.write(records[half:])
                return
            (record,) = records
            log.error(
                *("VictoriaMetrics refuses the samples of %s, partition %d, offset %d, which are left out: %s",),
                *(record.topic, record.partition, record.offset, error),
            )
            self._health.refused.inc(count)

    async def _started(self) -> bytes | None:
        """Return the start time of the server, which differs after a restart; None if it does not report one."""
        try:
            match = STARTED.search(await self._ask("GET", "metrics", (400, 404)))
        except _RefusedError:
            return None
        return match[1] if match else None

    async def _ask(self, method: str, path: str, final: tuple[int, ...], body: bytes | None = None) -> bytes:
        """Return the server's answer, after any number of retries. Raise `_RefusedError` for a status in `final`."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            try:
                async with self._session.request(method, path, data=body) as response:
                    text = await response.read()
                    if response.status < 300:
                        self._health.answered()
                        return text
                    reason = f"{response.status} {text[:200].decode(errors='replace')}"
                    if response.status in final:
                        self._health.answered()
                        raise _RefusedError(reason)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                reason = reason_of(error)

            pause = backoff.pause()
            log.warning("VictoriaMetrics did not accept %s: %s; retrying in %.1f s", path, reason, pause)
            self._health.failed(reason)
            await asyncio.sleep(pause)
