"""What the log of a run tells of each life of a job, to stand beside what sacct prints."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    moment,
)
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from tests.support.slurm_samples import Life, printed


def log_of(settings: Settings, run: str) -> list[Envelope]:
    """Return the log of a run: each sequence once, without a hole."""

    async def read() -> list[Envelope]:
        partition = bus.partition_of(run, await topic_admin.prepare_topics(settings))
        found: list[Envelope] = []
        async for record in read_log(settings, JOBS, partition):
            if record.key == run.encode():
                envelope = Envelope.from_bytes(record.value)
                assert envelope.sequence <= len(found), f"{len(found)} is missing"
                if envelope.sequence == len(found):
                    found.append(envelope)
                else:
                    assert envelope == found[envelope.sequence], "told again, and otherwise"
        return found

    return asyncio.run(read())


def lives_told(events: Iterable[Event]) -> dict[int, Life]:
    """Return what events tell of each life, in seconds of Unix; sizes that it got while it ran without their times."""
    first, *rest = events
    assert isinstance(first, ClusterOpened)
    zero = first.unix_start
    known: dict[int, dict[str, Any]] = {}
    for event in rest:
        if isinstance(event, JobSubmitted):
            submit = event.since if event.submit_time is None else event.submit_time
            known[event.job_number] = {
                "submit": zero + submit,
                "eligible": zero + event.since,
                "start": None,
                "end": 0,
                "state": "going on",
                "limit": event.requested_time,
                "processors": event.requested_processors,
                "resized": (),
            }
        elif isinstance(event, JobChanged):
            job = known[event.job_number]
            if event.requested_time is not None or event.unlimited:
                job["limit"] = event.requested_time
            if event.requested_processors is not None:
                if job["start"] is None:
                    job["processors"] = event.requested_processors
                else:
                    job["resized"] += (event.requested_processors,)
        elif isinstance(event, JobStarted):
            known[event.job_number] |= {"start": zero + moment(event), "processors": event.processors}
        elif isinstance(event, JobEnded | JobWithdrawn):
            state = event.outcome if isinstance(event, JobEnded) else event.reason
            known[event.job_number] |= {"end": zero + moment(event), "state": state}
    return {number: Life(**job) for number, job in known.items()}


def lives_accounted(text: str) -> dict[int, Life]:
    """Return what sacct has printed of lives that are over and were eligible, in the same form."""
    head, *lines = text.splitlines()
    over = [line for line in lines if not {"PENDING", "RUNNING", "Unknown"} & set(line.split("|")[:20])]
    lives = printed("\n".join([head, *over]) + "\n")
    return {
        number: life._replace(resized=tuple(size for _, size in life.resized))  # type: ignore[misc]
        for number, life in lives.items()
        if life.start is not None or life.eligible <= life.end
    }


def predictions(log: Iterable[Envelope]) -> dict[int, list[Any]]:
    """Return of each job when its wait began, what it asked for then, and what was predicted of it.

    Changes of jobs are passed over: accounting knows what a job asked for in the end.
    """
    runs = [StageRun(stage) for stage in STAGES[:3]]
    found: dict[int, list[Any]] = {}
    zero = 0
    kept = (envelope for envelope in log if not isinstance(envelope.event, JobChanged))
    for sequence, envelope in enumerate(kept):
        envelope = envelope.model_copy(update={"sequence": sequence})
        for run in runs:
            forwarded = run.push(envelope)
            assert forwarded is not None
            envelope = forwarded
        if isinstance(opened := envelope.event, ClusterOpened):
            zero = opened.unix_start
        if isinstance(job := envelope.event, JobSubmitted):
            asked = zero + job.since, job.requested_processors, job.requested_time, job.queue_number
            predicted = envelope.model_dump(mode="json", include={"run_time", "adjustment", "wait_bounds"})
            found[job.job_number] = [asked, predicted]
    return found


def replayed(opened: ClusterOpened, sacct: Path, nodes: Path, names: Path) -> list[Envelope]:
    """Return what a recorded replay tells of what was accounted, with the names and settings of a run."""
    trace = read_trace(sacct, Reading(pools=nodes, names=names))
    workload = prepare(trace, recorded=True)
    machine = {"processors": workload.processors, "pools": workload.pools}
    settings = opened.model_copy(update={"time": 0, "unix_start": trace.unix_start_time, **machine})
    found: list[Envelope] = []
    EmbeddedReplay(settings, Recorded(workload), [found.append], stages=()).run_to_end()
    return found


def late(events: Iterable[Event], by: int = 1) -> int:
    """Return how many events were told more than so many seconds after they happened."""
    told = [each for each in events if isinstance(each, JobSubmitted | JobStarted | JobEnded | JobWithdrawn)]
    return sum(each.time - (each.since if isinstance(each, JobSubmitted) else moment(each)) > by for each in told)
