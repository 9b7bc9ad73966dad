"""The protocol of a live source: it observes a cluster, and emits the events of an instant once all are known."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting import MachineParts
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.cluster import Source
from shadowtime.shared.errors import ContradictionError, FollowError
from shadowtime.shared.messages import ClusterOpened, Event, Pool
from shadowtime.shared.quoting import truncate
from shadowtime.shared.streaming import Route

log = logging.getLogger("shadowtime.follow.left_out")
log.addFilter(FewAMinute())


class Opening(NamedTuple):
    """The opening of a run: the machine, the Unix second of its time 0, and the `time` at which its log begins.

    `pools` is None if the machine is not divided. If `obeyed_from` is set, decisions are carried out from then on.
    """

    processors: int
    pools: tuple[Pool, ...] | None
    unix_start: int
    time: int
    obeyed_from: int | None = None


def as_opened(parts: MachineParts, opened: ClusterOpened) -> MachineParts:
    """Return `parts` with the pools of the opening event. The mirror publishes how their sizes have changed since.

    Raise `FollowError` if the machine has other pools than its log.
    """
    names, known = ([pool.name for pool in pools] for pools in (parts.pools, opened.pools or ()))
    if names != known:
        raise FollowError(
            f"the machine has the pools {truncate(', '.join(names))}, "
            f"but the log of the run has the pools {truncate(', '.join(known))}; "
            "follow the cluster as a new run: --run NAME"
        )
    return parts._replace(pools=tuple(opened.pools or ()))


@dataclass
class SourceLoad:
    """The cost of a source, the lag of its log, and counts of problems.

    `answers` counts polls, and `failures` counts failed polls. `seconds` is the total duration of polls. `behind` is
    the lag in seconds. `share` is the share of the scheduler's time that the follower took. It is None if the cluster
    does not report this share. `late` counts late events, `guessed` guessed ends, `left_out` lives that are not
    published, `refused` invalid lines, and `held_back` events that would have broken an invariant. `failure` says why
    the last poll failed. If `contradicted`, two answers of the cluster contradict each other, and neither is believed.
    `left_out_partitions` are the partitions without a pool.
    """

    answers: int = 0
    failures: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    share: float | None = None
    late: int = 0
    guessed: int = 0
    left_out: int = 0
    refused: int = 0
    held_back: int = 0
    failure: str = ""
    contradicted: bool = False
    left_out_partitions: frozenset[str] = frozenset()

    def take(self, mirror: Mirror) -> None:
        """Copy the counts of a mirror. Warn of newly left-out lives, and of new partitions without a pool."""
        self.late, self.guessed, self.held_back = mirror.late, mirror.guessed, mirror.held_back
        if (left_out := mirror.left_out.total()) > self.left_out:
            reasons = (
                f"{count:,} {reason}" + (f", such as {', '.join(named)}" if (named := mirror.named.get(reason)) else "")
                for reason, count in mirror.left_out.items()
            )
            log.warning("jobs left out so far: %s", "; ".join(reasons))
        self.left_out = left_out
        if (unknown := mirror.capacity.unknown) != self.left_out_partitions:
            self.left_out_partitions = unknown
            if unknown:
                log.warning(
                    "the run has no pool for the partitions %s: their jobs are left out; "
                    "to include them, follow the cluster as a new run: --run NAME",
                    truncate(", ".join(sorted(unknown))),
                )

    def failed(self, error: FollowError) -> None:
        """Count a failed poll, and keep its reason."""
        self.failures += 1
        self.failure = truncate(str(error))
        self.contradicted = isinstance(error, ContradictionError)

    def succeeded(self) -> None:
        """Record that the last poll succeeded."""
        self.failure, self.contradicted = "", False

    def asked(self, seconds: float) -> None:
        """Count a poll and its duration in seconds."""
        self.answers += 1
        self.seconds += seconds


class LiveSource(Source, Protocol):
    """A live cluster. Each event is emitted once, however often the process is interrupted.

    Between two calls of `listen`, the object is a `Source` without I/O. The snapshot does not include `names`: new
    names are stored separately.
    """

    load: SourceLoad
    takes: ClassVar[frozenset[str]]
    """Fields of `FollowOptions` that this source reads, in addition to the fields that every source reads."""
    seen_once: ClassVar[bool]
    """Whether each observation is available only once. Then observations are stored with the published state. The state
    of any other source follows from an earlier snapshot and the events published since."""

    @property
    def over(self) -> bool:
        """Whether the source has ended and all its events were emitted."""
        ...

    @property
    def names(self) -> NameTable:
        """Names of users, accounts, …, and their numbers. They exist after `meet` or `restore`."""
        ...

    def __init__(self, options: FollowOptions) -> None: ...

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Connect to the cluster, and return the opening of the run.

        `opened` is None for a new run. If the stored state of a run is lost, but its log is left, `opened` is the first
        event of the log. The caller then passes the other events of the log to `published`.

        Raise `FollowError` if the cluster cannot be reached, or is not the one of `opened`.
        """
        ...

    async def listen(self) -> None:
        """Wait for new facts about the cluster, and apply them. If the cluster cannot be reached, retry later.

        Raise `FollowError` if the source can never continue, and `BusError` if Kafka does not answer a source that
        reads it.
        """
        ...

    def routes(self) -> Sequence[Route]:
        """Return the HTTP routes that only this source has. Requests may have a body."""
        ...

    async def close(self) -> None:
        """Close the connections to the cluster."""
        ...

    def published(self, event: Event) -> None:
        """Record an event of the log that an earlier process has published."""
        ...
