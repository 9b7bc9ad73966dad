"""A follower beside a real Slurm in trouble: its log tells what sacct tells, and nothing that cannot be."""

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSuspended,
)
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.slurm.troubles import Troubles, Watcher
from tests.support.follower_process import following
from tests.support.life_checks import broken, job_of
from tests.support.lives import lives_accounted, lives_told
from tests.support.real_servers import require_reason
from tests.support.rejections import rejected
from tests.support.slurm_cluster import SlurmCluster, unavailable
from tests.support.slurm_samples import Life, spelled_out
from tests.support.troubled_cluster import TroubledCluster

SECONDS = float(os.environ.get("SHADOWTIME_TROUBLES", "600"))
CONFIGURED = {0: 48, 1: 8, 2: 8}
SETTLED = 30.0
"""Seconds before and after a look at sinfo in which nothing may have changed, for the log to be compared with it."""


@pytest.mark.nightly
def test_the_log_is_right_whatever_happens_to_nodes_jobs_and_partitions(
    kafka: Kafka, redis_server: Redis, tmp_path: Path
) -> None:
    require_reason(unavailable())
    with TroubledCluster() as cluster, following(cluster, kafka, redis_server, tmp_path / "log") as follower:

        def kill() -> None:
            follower.kill()
            time.sleep(2)
            follower.start()

        follower.wait_until_told(int(time.time()))
        watcher = Watcher(cluster)
        troubles = Troubles(cluster, SECONDS, kill)
        troubles.happen()
        log = follower.wait_until_told(int(time.time()) + 10)
        watcher.stop()
        text = sacct(cluster)
    (tmp_path / "sacct").write_text(text)
    (tmp_path / "events").write_bytes(b"\n".join(envelope.to_bytes() for envelope in log))
    (tmp_path / "seen.json").write_text(json.dumps([watcher.seen, sorted(watcher.ran)]))
    report = reported(log, text, watcher) | {"done": dict(troubles.done)}
    (tmp_path / "report.json").write_text(json.dumps(report, indent=1, default=str))
    print(json.dumps({name: value for name, value in report.items() if not isinstance(value, list)}, indent=1))
    for row in report["wrong"][:50]:
        print(*(f"{name}: {value}" for name, value in row.items()), sep="\n  ")
    assert report["compared"] >= 1_000
    # a task that an array held back, cancelled within seconds: squeue never showed it, and sacct had it later
    assert [row for row in report["wrong"] if row["log"] or row["sacct"].start is not None] == []
    assert len(report["wrong"]) <= report["compared"] / 500
    assert report["rewritten_by_slurm"] <= report["compared"] / 100
    assert report["ran_only_in_the_log"] == []
    assert report["broken"] == []
    assert report["capacity_differs"] == []
    assert report["rejected"] == 0
    assert report["capacity_compared"] >= 20


def sacct(cluster: SlurmCluster) -> str:
    """Return what sacct prints, without names, each row on a line with `|` between its fields."""
    end = "|4f1c8a|"
    command = ("sacct", "-apXD", "--noconvert", f"--delimiter={end}", "-S", "now-1days", "-o", ",".join(FIELDS))
    fields = cluster.run("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "TZ=UTC", *command).split(end)
    rows = [fields[at : at + len(FIELDS)] for at in range(0, len(fields) - 1, len(FIELDS))]
    return (
        "\n".join(["|".join(FIELDS), *("|".join([*row[:-1], "name"]).strip() for row in without_repeats(rows[1:]))])
        + "\n"
    )


def without_repeats(rows: Sequence[list[str]]) -> list[list[str]]:
    """Return rows in which that of a cancelled array lists no tasks that have rows of their own."""
    number, submit = FIELDS.index("JobID"), FIELDS.index("Submit")
    own = {(row[number], row[submit]) for row in rows if "[" not in row[number]}
    kept = []
    for row in rows:
        array, bracket, _ = row[number].partition("_[")
        if bracket:
            tasks = [
                task
                for task in spelled_out(row[number].partition("_")[2])
                if (f"{array}_{task}", row[submit]) not in own
            ]
            if not tasks:
                continue
            row = [*row]
            row[number] = f"{array}_[{','.join(map(str, tasks))}]"
        kept.append(row)
    return kept


def name_of(key: tuple[int, int, int]) -> str:
    """Return the name of a job or a task as squeue prints it."""
    return f"{key[0]}_{key[1]}" if key[1] >= 0 else str(key[0])


def reported(log: Sequence[Envelope], text: str, watcher: Watcher) -> dict[str, Any]:
    """Return what is to be reported of a log: lives compared, wrong rows, what is broken, capacity against sinfo.

    Slurm's accounting loses runs, as of an array task that is requeued: the watcher has the runs that squeue has shown.
    Slurm also rewrites the row of a job that is over, if its node dies during the Epilog: the log has the first end.
    """
    events = [envelope.event for envelope in log]
    arrays = {int(line.split("|")[1].split("_")[0]) for line in text.splitlines()[1:] if "_" in line.split("|")[1]}
    accounted, told = lives_accounted(text), lives_told(events)
    rows, lives = by_submission(accounted, arrays), by_submission(told, arrays)
    wrong, rewritten, overwritten = [], 0, 0
    place = [FIELDS.index(name) for name in ("JobID", "Submit", "Partition", "Start", "State")]
    fields = [[line.split("|")[at] for at in place] for line in text.splitlines()[1:]]
    of_deleted = {
        (job, int(submit))
        for job, submit, partition, start, state in fields
        if partition.startswith("fresh") and not start.isdigit() and state == "NODE_FAIL"
    }
    stopped = {told[number] for number in suspended_to_the_end(events)}
    for key, life in rows.items():
        of_key = lives.get(key, [])
        overwritten += len(of_key) > 1
        row = life[-1]
        if of_key and of_key[-1] in stopped:
            row = row._replace(end=max(row.end, of_key[-1].end))
        if (
            of_key
            and (name_of(key), key[2], of_key[-1].start, of_key[-1].end) in watcher.ended
            and row.end > of_key[-1].end
        ):
            rewritten += 1
        elif not of_key and (name_of(key), key[2]) in of_deleted:
            continue  # the partition was deleted before anybody looked at sinfo: its jobs are left out, and counted
        elif not of_key or not alike(of_key[-1], row, of_key[:-1]):
            wrong.append({"job": key, "sacct": life[-1], "log": of_key})
    only = [
        {"job": key, "log": life}
        for key, of_key in lives.items()
        if key not in rows
        for life in of_key
        if life.start is not None and (name_of(key), life.start) not in watcher.ran
    ]
    zero = events[0].unix_start  # type: ignore[union-attr]
    compared, differs = capacities(events, zero, watcher.seen)
    return {
        "compared": len(rows),
        "wrong": wrong,
        "rewritten_by_slurm": rewritten,
        "two_lives_in_one_row": overwritten,
        "ran_only_in_the_log": only,
        "events": len(events),
        "started": sum(isinstance(event, JobStarted) for event in events),
        "states": dict(Counter(life.state for life in accounted.values())),
        "broken": broken(events, arrays, CONFIGURED),
        "rejected": len(rejected(log)),
        "capacity_compared": compared,
        "capacity_differs": differs,
    }


def suspended_to_the_end(events: Sequence[Event]) -> set[int]:
    """Return the lives that ended while they were suspended: Slurm accounts the suspension as their end."""
    last: dict[int, Event] = {}
    found: set[int] = set()
    for event in events:
        if isinstance(event, JobSuspended | JobResumed | JobEnded):
            if isinstance(event, JobEnded) and isinstance(last.get(event.job_number), JobSuspended):
                found.add(event.job_number)
            last[event.job_number] = event
    return found


def by_submission(lives: dict[int, Life], arrays: set[int]) -> dict[tuple[int, int, int], list[Life]]:
    """Return the lives by job, task and submission, in order: accounting has one row for each."""
    sorted_lives: dict[tuple[int, int, int], list[Life]] = {}
    for number in sorted(lives):
        sorted_lives.setdefault((*job_of(number, arrays), lives[number].submit), []).append(lives[number])
    return sorted_lives


def alike(told: Life, accounted: Life, before: Sequence[Life]) -> bool:
    """Return whether a life is told as it was accounted. Its wait begins after the lives before with its submission."""
    since = max([accounted.eligible, *(life.end for life in before)])
    return told._replace(resized=()) == accounted._replace(eligible=since, resized=())


def capacities(
    events: Sequence[Event], zero: int, seen: Sequence[tuple[float, dict[int, int]]]
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many looks at sinfo could be compared with the log, and those that differ."""
    opened = events[0]
    assert isinstance(opened, ClusterOpened)
    changes = [event for event in events if isinstance(event, CapacityChanged)]
    compared, differs = 0, []
    for at, usable in seen[1:-1]:
        near = [other for time_of, other in seen if abs(time_of - at) <= SETTLED]
        if any(other != usable for other in near) or at + SETTLED > seen[-1][0]:
            continue
        published = {pool: part.processors for pool, part in enumerate(opened.pools or ())}
        published |= {change.pool or 0: change.processors for change in changes if zero + change.time <= at}
        compared += 1
        if published != usable:
            differs.append({"at": at, "log": published, "sinfo": usable})
    return compared, differs
