"""The base class of sources that read the lines of a file. Subclasses parse the lines.

Its rules:

1. A line is applied once. The position in the file, and observations that are not published yet, are stored with the
   published state.
2. A second is published `every` seconds late, so that a line that is written late is still in order. There is no delay
   if the lines themselves say which seconds are complete.
3. An invalid line is logged and counted. All other lines are still read.
"""

import asyncio
import logging
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from shadowtime.services.follower.cluster import JobObservation, Opening, shifted
from shadowtime.services.follower.io.mirrored import Mirrored
from shadowtime.services.follower.io.tail import FileLine, Tail
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting import read_parts
from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.errors import FollowError, SettingsError, TraceError
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import CapacityChanged, ClusterOpened
from shadowtime.shared.quoting import truncate

log = logging.getLogger("shadowtime.follow.lines")
log.addFilter(FewAMinute())

BEFORE = 14 * DAY
"""Seconds before the beginning of the log from which on files are read. Jobs that run at the beginning are in them."""


class ParsedLine(NamedTuple):
    """The content of a line: observations of jobs, or the new capacity `room` of a pool.

    `time` is the last Unix second in the line. If `known` is set, all facts before that second have been written.
    """

    observations: Sequence[JobObservation] = ()
    pool: str | None = None
    room: CapacityChanged | None = None
    time: int | None = None
    known: bool = False


class Tailed(Mirrored, ABC):
    """Base class of a source that reads the lines which one cluster writes.

    The options give the file or folder (`place`) and the machine (`pools`).
    """

    seen_once: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"place", "pools"})
    files: re.Pattern[str]
    """Names of the files of a folder; they are read in the order of their names."""

    def __init__(self, options: FollowOptions) -> None:
        super().__init__(options)
        self.place = options.required("place")
        try:
            self._parts = read_parts(options.required("pools"))
            os.stat(self.place)
        except TraceError as error:
            raise SettingsError(f"--pools {error}") from None
        except OSError as error:
            raise SettingsError(f"--from {self.place} cannot be read: {error.strerror}") from None

        self._tail = Tail(self.place, self.files)
        self._last: int | None = None
        self._known = False

    @abstractmethod
    def read(self, text: str) -> ParsedLine:
        """Return the content of a line.

        Raise `ValueError` if the line is invalid. The message names the fault.
        """

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return the opening of the run. If its stored state is lost, `opened` is its first event, otherwise None."""
        opening = (
            self._begin(self._parts, int(time.time())) if opened is None else self._begin_again(self._parts, opened)
        )
        self._tail = Tail(self.place, self.files, self._zero + opening.time - BEFORE)
        return opening

    async def listen(self) -> None:
        """Apply the next lines, and release the instants that are old enough. Wait if there are no lines."""
        began, mirror = time.monotonic(), self.mirror
        try:
            lines = await asyncio.to_thread(self._tail.read)
        except FollowError as error:  # without the lines, nothing may be published
            self.load.failures += 1
            self._note_behind()
            log.warning("%s", truncate(str(error)))
            await asyncio.sleep(self._options.every)
            return

        observations: list[JobObservation] = []
        for line in lines:
            observations += self._taken(line)
        mirror.take(shifted(observations, self._zero), mirror.now)
        lag = 0 if self._known else int(self._options.every)
        now = int(time.time())
        known = min(now, self._last or now) if lines or self._known else now
        if (until := known - 1 - lag - self._zero) > mirror.until:
            mirror.release(until, beat=not lines)
        self._note_poll(began)
        if not lines:
            await asyncio.sleep(self._options.every)

    def _taken(self, line: FileLine) -> Sequence[JobObservation]:
        """Return the observations of a line, and apply the capacity of a pool. Log and count an invalid line."""
        try:
            if line.text is None:
                raise ValueError(f"expected at most {MAX_LINE_LENGTH:,} bytes in a line")
            seen = self.read(line.text.decode(errors="replace"))
            if seen.pool is not None and seen.room is not None:
                self.mirror.capacity.see_pool(seen.pool, seen.room)
        except ValueError as error:
            self.load.refused += 1
            log.warning("%s is ignored: %s", line.where, truncate(str(error)))
            return ()

        if seen.time is not None and (seen.known or not self._known):
            self._last = max(self._last or 0, seen.time)
            self._known = self._known or seen.known
        return seen.observations

    async def close(self) -> None:
        """Close the file."""
        self._tail.close()

    def snapshot(self) -> Any:
        """Return the state of `Mirrored` and the position in the file."""
        return super().snapshot() | {"tail": self._tail.snapshot(), "last": self._last, "known": self._known}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self._last, self._known = state["last"], state["known"]
        self._tail.restore(state["tail"])
