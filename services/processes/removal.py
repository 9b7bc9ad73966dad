"""Removal of a run: its state in Redis, and its series in VictoriaMetrics."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp
import orjson
from aiokafka.errors import KafkaError

from shadowtime.services.processes.metrics import session
from shadowtime.shared.errors import ShadowtimeError, StateAltered, reason_of
from shadowtime.shared.messages import ClusterClosed, Envelope, name_label
from shadowtime.shared.quoting import listed, quote
from shadowtime.shared.stages import JOBS, topics
from shadowtime.shared.streaming import RedisReader, Settings, connect, read_log
from shadowtime.shared.streaming import clients as bus

OWNERS = (*topics.WRITTEN_BY, "follow", "shadow")
"""Owners of state in Redis: the stages, followers and shadows."""

LIVE_SECONDS = 600
"""Age in seconds of its last event at which a run that was not closed counts as abandoned."""

ANSWER_SECONDS = 30.0


class RemovalRefused(ShadowtimeError):
    """A run is not removed: it is unknown or in progress, or VictoriaMetrics failed."""


class StoredPart(NamedTuple):
    """A run's state of one owner in Redis: its size in bytes, and the position of its last event in its topic."""

    owner: str
    size: int
    partition: int
    offset: int


async def stored_parts(readers: Sequence[tuple[str, RedisReader]], run: str) -> list[StoredPart]:
    """Return the state of a run in Redis: one part for each owner. Altered state has size 0 and position -1."""
    parts = []
    for owner, reader in readers:
        try:
            state = await reader.load(run)
        except StateAltered:
            parts.append(StoredPart(owner, 0, -1, -1))
            continue
        if state is not None:
            size = len(state.snapshot or b"") + sum(map(len, (*state.journal, *state.outbox)))
            parts.append(StoredPart(owner, size, state.partition, state.offset))
    return parts


async def going_on(
    settings: Settings, readers: Sequence[tuple[str, RedisReader]], run: str, parts: Sequence[StoredPart]
) -> str | None:
    """Return why a run counts as live: a process claims it, or its last event is recent. None if it is not live.

    Raise `BusError` if Kafka cannot be used.
    """
    for owner, reader in readers:
        if owner in ("follow", "shadow") and (holder := await reader.holder(run)) is not None:
            return f"{quote(holder.decode(errors='replace').rpartition(' ')[0])} publishes it"
    for part in parts:
        if part.owner != OWNERS[0] or part.offset < 0:
            continue
        try:
            async for record in read_log(settings, JOBS, part.partition, part.offset, part.offset + 1):
                envelope = Envelope.read(record.value) if record.key == run.encode() else None
                age = time.time() - record.timestamp / 1_000
                if envelope is not None and not isinstance(envelope.event, ClusterClosed) and age < LIVE_SECONDS:
                    return f"its last event came {age:.0f} s ago"
        except (KafkaError, OSError) as error:
            raise bus.unusable(settings, error) from None
    return None


async def count_series(store: aiohttp.ClientSession, run: str) -> int:
    """Return the number of series of a run in VictoriaMetrics."""
    async with store.get("api/v1/series", params=[*_selected(run), ("start", "1")]) as response:
        response.raise_for_status()
        return len(orjson.loads(await response.read())["data"])


def _selected(run: str) -> list[tuple[str, str]]:
    """Return the parameters that select the results of a run, and the comparisons of a shadow."""
    label = orjson.dumps(name_label(run)).decode()
    return [("match[]", f"{{{name}={label}}}") for name in ("run", "shadow")]


class Removal(NamedTuple):
    """The options of `remove_run`. With `dry`, nothing is removed. With `force`, a live run is removed, too.

    The series stay with `keep_metrics`. `key` is the key with which VictoriaMetrics lets series be deleted (its
    `-deleteAuthKey`); None if it has none.
    """

    dry: bool = False
    force: bool = False
    keep_metrics: bool = False
    key: str | None = None


async def remove_run(settings: Settings, run: str, how: Removal) -> list[str]:
    """Remove a run. Return a sentence for each part that was, or would be, removed.

    Raises
    ------
    RemovalRefused
        If the run is unknown, or live without `force`, or if VictoriaMetrics refuses or does not answer.
    StoreError, BusError
        If Redis or Kafka do not answer.
    """
    login = settings.victoria_metrics_username, settings.victoria_metrics_password
    async with AsyncExitStack() as stack:
        client = connect(settings)
        stack.push_async_callback(client.aclose)
        readers = [(owner, RedisReader(client, owner)) for owner in OWNERS]
        await readers[0][1].wait_for(settings.connect_seconds)
        store = await stack.enter_async_context(
            session(settings.victoria_metrics_url, *login, ANSWER_SECONDS, settings.victoria_metrics_ca_file)
        )
        try:
            series = 0 if how.keep_metrics else await count_series(store, run)
            parts = await stored_parts(readers, run)
            if not parts and not series:
                known = sorted({name for _, reader in readers for name in await reader.names()})
                raise RemovalRefused(f"nothing is stored of run {quote(run)}; stored runs: {listed(known, 100)}")
            live = await going_on(settings, readers, run, parts)
            if live is not None and not (how.dry or how.force):
                raise RemovalRefused(
                    f"run {quote(run)} is in progress: {live}; stop its publisher first, or remove it with --force"
                )

            if series and not how.dry:
                parameters = _selected(run) + ([] if how.key is None else [("authKey", how.key)])
                async with store.post("api/v1/admin/tsdb/delete_series", params=parameters) as response:
                    response.raise_for_status()
            for _, reader in () if how.dry else readers:
                await reader.forget(run)
        except aiohttp.ClientResponseError as error:
            hint = "; name its deleteAuthKey: --metrics-key FILE" if error.status in (401, 403) else ""
            url = settings.victoria_metrics_url
            raise RemovalRefused(
                f"VictoriaMetrics at {url} refuses a request: {error.status} {error.message}{hint}; "
                "to leave its series: --keep-metrics"
            ) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            url = settings.victoria_metrics_url
            raise RemovalRefused(
                f"VictoriaMetrics at {url} does not answer: {reason_of(error)}; to leave its series: --keep-metrics"
            ) from None

    lines = [f"Redis: the state of {part.owner}, {part.size:,} bytes" for part in parts]
    if not how.keep_metrics:
        lines.append(f"VictoriaMetrics: {series:,} series")
    if live is not None:
        lines.insert(0, f"the run is in progress: {live}")
    return lines
