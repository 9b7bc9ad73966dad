"""Writer of decisions and predictions to Grafana Live as they arrive. Lines that Grafana does not accept are dropped.

The lines follow Influx's line protocol. There are two measurements with fixed tags: `decision` for each start and kill,
`prediction` for each submission. Times are Unix nanoseconds on the cluster's own time line. If the beginning of a run
was not read, its times are nanoseconds since second 0 of its log.
"""

import asyncio
import logging
from collections.abc import Iterator

import aiohttp

from shadowtime.services.processes.metrics.writer_health import MetricsHealth
from shadowtime.shared.backoff import Backoff
from shadowtime.shared.bounds import SIXTY_FOUR_BITS, saturated
from shadowtime.shared.errors import reason_of
from shadowtime.shared.messages import ClusterOpened, Decided, Envelope, JobSubmitted, label
from shadowtime.shared.streaming import TopicFollower

log = logging.getLogger("shadowtime.live")

STREAM = "shadowtime"
MAX_BATCH = 500
"""The maximum number of messages that are read at once, and so held in memory."""

MAX_RUNS = 1_000
"""The maximum number of runs whose beginnings are remembered."""

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
UNKNOWN = -1


class GrafanaLive:
    """Writer of decisions and predictions to one Grafana.

    Parameters
    ----------
    follower
        The follower of topic `decisions`, from its end on.
    session
        The HTTP client, with the URL of Grafana as its base, and the credentials.
    """

    def __init__(self, follower: TopicFollower, session: aiohttp.ClientSession, health: MetricsHealth) -> None:
        self._follower = follower
        self._session = session
        self._health = health
        self._unix_start: dict[str, int] = {}

    async def run(self) -> None:
        """Push until cancelled."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            records = await self._follower.try_next_batch(MAX_BATCH, 1.0)
            lines = [line for record in records for line in self._lines(record.value)]
            if not lines:
                continue
            failure = await self._push("\n".join(lines).encode())
            if failure is None:
                self._health.pushed.inc(len(lines))
                backoff.reset()
                continue

            self._health.dropped.inc(len(lines))
            pause = backoff.pause()
            log.warning(
                "Grafana Live refused lines, which are dropped: %s; the next are sent in %.0f s", failure, pause
            )
            await asyncio.sleep(pause)
            await self._follower.skip()

    async def _push(self, body: bytes) -> str | None:
        """Push lines. Return None if Grafana accepted them, else the reason why it did not."""
        try:
            async with self._session.post(f"api/live/push/{STREAM}", data=body) as response:
                text = await response.read()
                return None if response.status < 300 else f"{response.status} {text[:200].decode(errors='replace')}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return reason_of(error)

    def _lines(self, value: bytes | None) -> list[str]:
        envelope = Envelope.read(value)
        if envelope is None:
            return []
        if isinstance(envelope.event, ClusterOpened):
            self._unix_start[envelope.run] = envelope.event.unix_start
            if len(self._unix_start) > MAX_RUNS:
                del self._unix_start[next(iter(self._unix_start))]

        return list(live_lines(envelope, self._unix_start.get(envelope.run, 0)))


def live_lines(envelope: Envelope, unix_start: int) -> Iterator[str]:
    r"""Yield the lines of an event. An unknown value is -1, so that the set of fields never changes.

    >>> from shadowtime.shared.messages.decisions import Start
    >>> from shadowtime.shared.messages.reasons import FitsNow
    >>> decided = Decided(time=5, starts=(Start(job_number=7, processors=2, reason=FitsNow()),))
    >>> list(live_lines(Envelope(run="r 1", cluster="k", sequence=1, event=decided), 0))
    ['decision,cluster=k,run=r\\ 1 job=7i,kind="start",reason="fits-now",processors=2i,probability=-1.0 5000000000']
    """
    event = envelope.event
    tags = f"cluster={_tag(envelope.cluster)},run={_tag(envelope.run)}"
    time = saturated((unix_start + event.time) * 10**9, SIXTY_FOUR_BITS - 1)  # the range ends in 2262
    if isinstance(event, Decided):
        for start in event.starts:
            probability = float(getattr(start.reason, "probability", UNKNOWN))
            fields = f'kind="start",reason="{start.reason.kind}",processors={start.processors}i,{probability=!r}'
            yield f"decision,{tags} job={start.job_number}i,{fields} {time}"

        for kill in event.kills:
            fields = f'kind="kill",reason="{_text(kill.reason)}",processors={UNKNOWN}i,probability={float(UNKNOWN)}'
            yield f"decision,{tags} job={kill.job_number}i,{fields} {time}"
    elif isinstance(event, JobSubmitted):
        run_time = float(UNKNOWN if envelope.run_time is None else envelope.run_time.point)
        adjusted = UNKNOWN if envelope.adjustment is None else envelope.adjustment.adjusted_time
        bounds = [entry.bound for entry in envelope.wait_bounds if entry.queue is None and entry.bound is not None]
        wait_bound = bounds[0] if bounds else UNKNOWN
        fields = f"{run_time=!r},adjusted_time={adjusted}i,wait_bound={wait_bound}i"
        yield f"prediction,{tags} job={event.job_number}i,{fields} {time}"


def _tag(value: str) -> str:
    """Return the value of a tag: separators escaped, line breaks as blanks, never empty."""
    plain = " ".join(label(value).split()) or "-"
    return "".join(f"\\{character}" if character in "\\,= " else character for character in plain)


def _text(value: str) -> str:
    """Return the escaped content of a quoted text field."""
    return " ".join(label(value).split()).replace("\\", "\\\\").replace('"', '\\"')
