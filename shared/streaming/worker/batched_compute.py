"""Slices of several runs, computed together. Passing a slice to a thread costs more than computing most slices."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf

from shadowtime.shared.stages import StageRun
from shadowtime.shared.streaming.worker.slices import LARGE_BYTES, Slice, Work, push_slice
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread, TimeLimitExceeded

TOGETHER_SECONDS = 0.02
"""Seconds after which no further slice is begun: computed slices are committed while the others are computed."""


class TurnEndedError(Exception):
    """The time of a turn is over before the work on a run began. It is done in a later turn."""


@dataclass
class PendingSlice:
    """A slice of one run that waits to be computed.

    `overrun` is done when the slice is computed: its result is whether an event took too long. `finished` is set at the
    end of the caller's block, see `ComputeBatcher.compute`.
    """

    state: StageRun
    work: Sequence[Work]
    done: Slice
    begun: bool = False
    overrun: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, *, overrun: bool, failure: BaseException | None = None) -> None:
        """Set the result for the waiting caller, unless it is set or the caller was cancelled."""
        if self.overrun.done():
            return
        if failure is None:
            self.overrun.set_result(overrun)
        else:
            self.overrun.set_exception(failure)


class ComputeBatcher:
    """Computes slices in order of arrival. Slices that wait at the same time are computed in one call to the thread.

    Their commits then also reach the store and the stream together.

    Parameters
    ----------
    most
        Maximum bytes of an output.
    """

    def __init__(self, thread: TimeLimitedThread, most: int, clock: Callable[[], float]) -> None:
        self._thread = thread
        self._most = most
        self._clock = clock
        self._left = inf
        """Seconds of work that the turn still has."""
        self._waiting: list[PendingSlice] = []
        self._going: asyncio.Task[None] | None = None

    def limit(self, seconds: float) -> None:
        """Begin a turn: no work begins after `seconds` of work."""
        self._left = seconds

    @property
    def turn_ended(self) -> bool:
        """Whether the time of the turn is over."""
        return self._left <= 0

    def restore(self, state: StageRun, snapshot: bytes | None, journal: Sequence[bytes]) -> float:
        """Restore a run as `StageRun.replay` does, in the thread. Return the seconds that it took.

        Raise `TurnEndedError`, and restore nothing, if the time of the turn is over.
        """
        if self.turn_ended:
            raise TurnEndedError
        began = self._clock()
        state.replay(snapshot, journal)
        took = self._clock() - began
        self._left -= took
        return took

    @asynccontextmanager
    async def compute(self, state: StageRun, work: Sequence[Work], done: Slice) -> AsyncIterator[bool]:
        """Push events through a stage like `push_slice`. Then let the caller commit the slice in its block.

        Yield whether the work was stopped because an event took too long. If so, do not use the state of the run.
        After a slice that is large, or that spoiled its run, the next slice is computed only after the caller's block.

        Raise `TurnEndedError`, and compute nothing, if the time of the turn is over.
        """
        piece = PendingSlice(state, work, done)
        self._waiting.append(piece)
        if self._going is None:
            self._going = asyncio.create_task(self._go())
        try:
            yield await piece.overrun
        finally:
            piece.finished.set()

    async def _go(self) -> None:
        """Compute the waiting slices, until none waits."""
        try:
            while self._waiting:
                if self.turn_ended:
                    waiting, self._waiting = self._waiting, []
                    for piece in waiting:
                        piece.answer(overrun=False, failure=TurnEndedError())
                else:
                    await self._go_once()
        finally:
            self._going = None
            for piece in self._waiting:  # empty, unless this task was cancelled
                piece.overrun.cancel()

    async def _go_once(self) -> None:
        through: list[PendingSlice] = []
        failure: BaseException | None = None
        self._finish(through)
        try:
            await self._thread.run(self._push, list(self._waiting), through)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failure = error
        finally:
            self._later.cancel()

        self._waiting = self._waiting[len(through) :]
        for piece in through:
            piece.answer(overrun=False)
        overrun = isinstance(failure, TimeLimitExceeded)
        if failure is not None and self._waiting and (self._waiting[0].begun or not (overrun and through)):
            self._waiting.pop(0).answer(overrun=overrun, failure=None if overrun else failure)
        if _large(through):
            for piece in through:
                await piece.finished.wait()

    def _finish(self, through: Sequence[PendingSlice]) -> None:
        """Let finished slices be committed at once, even if the next slice takes long."""
        for piece in through:
            piece.answer(overrun=False)
        self._later = asyncio.get_running_loop().call_later(2 * TOGETHER_SECONDS, self._finish, through)

    def _push(self, pieces: Sequence[PendingSlice], through: list[PendingSlice]) -> None:
        """Compute slices until time or space is up. Add each to `through` as soon as it is done."""
        began = time.perf_counter()
        for piece in pieces:
            self._thread.begin()
            piece.begun = True
            push_slice(piece.state, piece.work, piece.done, self._most, self._clock)
            through.append(piece)
            self._left -= piece.done.effort.seconds
            if time.perf_counter() - began > TOGETHER_SECONDS or self.turn_ended or _large(through):
                return


def _large(pieces: Sequence[PendingSlice]) -> bool:
    return sum(piece.done.size for piece in pieces) > LARGE_BYTES or any(piece.state.spoiled for piece in pieces)
