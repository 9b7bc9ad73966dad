"""A followed run with names of users, accounts and partitions, array tasks, and a job in its second life."""

from collections.abc import Mapping
from typing import Any

from shadowtime.services.processes.ask.words import ClusterWords
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.drifts import Drift
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.messages.reasons import Backfilled

NAMES = {"user:alice": b"7", "user:bob": b"8", "partition:gpu": b"3", "account:phys": b"5", "account:alice": b"6"}
NAMES |= {"pool:gpu": b"1", "requeued:100000311": b"311"}
WORDS = ClusterWords(NAMES)
TASK, OTHER, AGAIN = number_of(2754, 12), number_of(2754, 13), number_of(311, life=1)
RUN = "mine/live"


def submitted(number: int, processors: int, user: int = 7, account: int = 5) -> JobSubmitted:
    where: dict[str, Any] = {"user_id": user, "group_id": account, "queue_number": 3, "partition_number": 2, "pool": 1}
    return JobSubmitted(time=60, job_number=number, requested_processors=processors, requested_time=600, **where)


def runs() -> LiveRuns:
    """Return a followed run: job 311 runs in its second life, two tasks of 2754 wait."""
    pools = tuple(Pool(name=name, processors=8, nodes=2) for name in ("cpu", "gpu"))
    opened = ClusterOpened(
        time=0, cluster="mine", processors=16, mode="recorded", policy="easy", name="live", pools=pools
    )
    risky = Backfilled(head=TASK, shadow_time=700, extra_processors=0, ends_by_shadow_time=True)
    events: list[tuple[Event, dict[str, Any]]] = [
        (opened, {}),
        (submitted(AGAIN, 6, user=8, account=6), {}),
        (JobStarted(time=60, job_number=AGAIN, processors=6, limit=600), {}),
        (submitted(TASK, 8), {}),
        (submitted(OTHER, 1), {}),
        (
            JobChanged(
                time=70, job_number=OTHER, user_id=7, partition_number=1, queue_number=3, requested_processors=2
            ),
            {},
        ),
        (Decided(time=80, starts=(Start(job_number=OTHER, processors=2, reason=risky),)), {}),
    ]
    bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=7200, queue=3)
    drift = Drift(of="run_time", what="half", scope="user", number=7, since=60, share=0.4, most=0.2)
    events[-1][1]["drifts"] = (drift,)
    events[3][1]["wait_bounds"] = (bound,)
    made = LiveRuns()
    for sequence, (event, more) in enumerate(events):
        made.push(Envelope(run=RUN, sequence=sequence, event=event).model_copy(update=more))
    return made


class Stored:
    """Stands for the names that a follower stores."""

    async def names(self) -> list[str]:
        return [RUN]

    async def read_words(self, run: str) -> Mapping[str, bytes]:
        return NAMES
