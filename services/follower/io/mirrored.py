"""The base class of sources that keep a mirror of their cluster."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from shadowtime.services.follower.cluster import Mirror, NameTable, Opening, SourceLoad, as_opened
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting import MachineParts, Names
from shadowtime.shared.errors import FollowError
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import ClusterOpened, Event, Pool
from shadowtime.shared.streaming import Route


class Mirrored:
    """Base class of a `LiveSource`. Subclasses add `meet`, `listen` and `close`.

    The options give the access to the cluster, and the length of the history in its log.
    """

    name: ClassVar[str]
    seen_once: ClassVar[bool] = False
    over: ClassVar[bool] = False
    """Whether the source has ended. A cluster never ends."""

    def __init__(self, options: FollowOptions) -> None:
        self.load = SourceLoad()
        self._options = options
        self._zero = 0
        self._ahead: float | None = None  # seconds by which our clock is ahead of that of the cluster; None if unknown
        self._mirror: Mirror | None = None

    @property
    def mirror(self) -> Mirror:
        """The mirror of the cluster. Access raises `FollowError` before `meet` or `restore` was called."""
        if self._mirror is None:
            raise FollowError(f"{self.name}: call meet or restore first")
        return self._mirror

    @property
    def names(self) -> NameTable:
        """The names of users, accounts, …, and their numbers."""
        return self.mirror.names

    def routes(self) -> Sequence[Route]:
        """Return no routes: the source receives nothing over HTTP."""
        return ()

    def next_time(self) -> int | None:
        """Return the time of the next instant that is completely known; None if there is none yet."""
        return self.mirror.next_time()

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant."""
        return self.mirror.next_instant()

    def published(self, event: Event) -> None:
        """Record that an event was published."""
        self.mirror.published(event)

    def snapshot(self) -> Any:
        """Return the published state and the opening as plain values. If `seen_once`, also return the observations."""
        parts = self.mirror.parts
        return {
            "zero": self._zero,
            "begin": self.mirror.begin,
            "pools": [pool.model_dump() for pool in parts.pools],
            "of_partition": parts.of_partition,
            "of_node": parts.of_node,
            "type_of_node": dict(parts.type_of_node),
            "mirror": self.mirror.snapshot(seen=self.seen_once),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._zero = state["zero"]
        pools = tuple(Pool.model_validate(pool) for pool in state["pools"])
        types = state.get("type_of_node", {})  # an older version does not store them
        self._know(MachineParts(pools, state["of_partition"], state["of_node"], types), state["begin"])
        self.mirror.restore(state["mirror"])

    def _begin(self, parts: MachineParts, now: int) -> Opening:
        """Open a new run at the Unix second `now`, with the configured history before it."""
        begin = now - self._options.history
        self._zero = begin - begin % DAY
        return self._know(parts, begin - self._zero)

    def _begin_again(self, parts: MachineParts, opened: ClusterOpened) -> Opening:
        """Reopen a run from its log, after its stored state was lost."""
        self._zero = opened.unix_start
        return self._know(as_opened(parts, opened), opened.time)

    def _know(self, parts: MachineParts, begin: int) -> Opening:
        self._mirror = Mirror(parts, NameTable(Names(self._options.key)), begin, self._options.patience)
        return Opening(sum(pool.processors for pool in parts.pools), parts.pools, self._zero, begin)

    def _note_poll(self, began: float) -> None:
        """Record a poll that began at `began` (monotonic clock), the counts of the mirror, and the lag of the log."""
        self.load.asked(time.monotonic() - began)
        self.load.take(self.mirror)
        self._note_behind()

    def _note_behind(self) -> None:
        self.load.behind = self._behind()

    def _behind(self) -> float:
        """Return the lag of the log behind the cluster in seconds, by the clock of the cluster."""
        return time.time() - (self._ahead or 0.0) - (self._zero + self.mirror.until)
