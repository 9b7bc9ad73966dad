"""The protocol of a live source: it observes events, and emits an instant once all of it is known."""

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
from shadowtime.shared.errors import FollowError
from shadowtime.shared.messages import ClusterOpened, Event, Pool
from shadowtime.shared.quoting import truncate
from shadowtime.shared.streaming import Route

log = logging.getLogger("shadowtime.follow.left_out")
log.addFilter(FewAMinute())


class Opening(NamedTuple):
    """The opening of a run: the machine, the Unix second of its time 0, and the time at which its log begins.

    What is decided is done from `obeyed_from` on, where it is.
    """

    processors: int
    pools: tuple[Pool, ...] | None
    unix_start: int
    time: int
    obeyed_from: int | None = None


def as_opened(parts: MachineParts, opened: ClusterOpened) -> MachineParts:
    """Return a machine with the pools that its log was opened with; what they have now is told as a change.

    Raises
    ------
    FollowError
        If they are other pools.
    """
    names, known = ([pool.name for pool in pools] for pools in (parts.pools, opened.pools or ()))
    if names != known:
        raise FollowError(
            f"the machine has the pools {truncate(', '.join(names))}, its log {truncate(', '.join(known))}; "
            "follow it as a new run: --run NAME"
        )
    return parts._replace(pools=tuple(opened.pools or ()))


@dataclass
class SourceLoad:
    """The cost of a source and the lag of its log, both in seconds, and the count of late events.

    `share` is that of the time of the cluster's own scheduler which was spent on us, where it tells that.
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

    def take(self, mirror: Mirror) -> None:
        """Note what was told late, guessed and left out; the last is said, as it may come of a wrong setting."""
        self.late, self.guessed = mirror.late, mirror.guessed
        if (left_out := mirror.left_out.total()) > self.left_out:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in mirror.left_out.items())
            log.warning("left out so far: %s", reasons)
        self.left_out = left_out

    def asked(self, seconds: float) -> None:
        """Note what one answer took."""
        self.answers += 1
        self.seconds += seconds


class LiveSource(Source, Protocol):
    """A cluster as it is now; what it tells is told once, however often it is interrupted.

    Between two calls of `listen` it is a source as any other, sans-I/O. Its snapshot is without names, of which only
    the new ones are stored.
    """

    load: SourceLoad
    takes: ClassVar[frozenset[str]]
    """Fields of `Given` that this source reads, beside those that every source reads."""

    @property
    def over(self) -> bool:
        """Whether all was told that there will ever be."""
        ...

    @property
    def names(self) -> NameTable:
        """The names of users, accounts and the like, and their numbers; once it was met, or restored."""
        ...

    def __init__(self, options: FollowOptions) -> None: ...

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return what a new run opens with.

        Parameters
        ----------
        opened
            How the run was opened of which the log is left, but no state; `told` tells its events then.

        Raises
        ------
        FollowError
            If the cluster cannot be had, or is another than the one that was opened.
        """
        ...

    async def listen(self) -> None:
        """Wait for what is new, and take it in; what cannot be had is waited for."""
        ...

    def routes(self) -> Sequence[Route]:
        """Return what it answers over HTTP, beside the pages that every worker has; each may be sent a body."""
        ...

    async def close(self) -> None:
        """Let go of the cluster."""
        ...

    def published(self, event: Event) -> None:
        """Note that an event of the log was told, by another process before this one."""
        ...
