"""Slices of several runs, worked out together: handing one over to a thread costs more than most of them do."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from shadowtime.shared.stages import StageRun
from shadowtime.shared.streaming.worker.slices import LARGE_BYTES, Slice, Work, push_slice
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread, TimeLimitExceeded

TOGETHER_SECONDS = 0.02
"""After so long no further slice is begun: what is worked out is committed while the others are."""


@dataclass
class PendingSlice:
    """A slice of one run that is to be worked out, and what is waited for."""

    state: StageRun
    work: Sequence[Work]
    done: Slice
    begun: bool = False
    overrun: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, *, overrun: bool, failure: BaseException | None = None) -> None:
        """Tell who waits, if somebody still does, how it went."""
        if self.overrun.done():
            return
        if failure is None:
            self.overrun.set_result(overrun)
        else:
            self.overrun.set_exception(failure)


class ComputeBatcher:
    """Works slices out in the order in which they came, those that wait at the same time in one go of the thread.

    What is committed at the same time then goes to the store and to the stream together, too.

    Parameters
    ----------
    most
        Bytes of the largest output.
    """

    def __init__(self, thread: TimeLimitedThread, most: int, clock: Callable[[], float]) -> None:
        self._thread = thread
        self._most = most
        self._clock = clock
        self._waiting: list[PendingSlice] = []
        self._going: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def compute(self, state: StageRun, work: Sequence[Work], done: Slice) -> AsyncIterator[bool]:
        """Push events through a stage as `push_slice` does, and then let the caller settle the slice.

        It is told whether the thread was ended, since an event took too long; the run is in no state to be used then.
        After a slice that is large, or that spoiled its run, the next is worked out when the caller is through with it.
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
        """Work out what waits, until nothing does."""
        try:
            while self._waiting:
                await self._go_once()
        finally:
            self._going = None
            for piece in self._waiting:  # none, unless this was ended
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
        """Let what is done be committed while the next takes long."""
        for piece in through:
            piece.answer(overrun=False)
        self._later = asyncio.get_running_loop().call_later(2 * TOGETHER_SECONDS, self._finish, through)

    def _push(self, pieces: Sequence[PendingSlice], through: list[PendingSlice]) -> None:
        """Work slices out until time or space is up; `through` takes each as it is done."""
        began = time.perf_counter()
        for piece in pieces:
            self._thread.begin()
            piece.begun = True
            push_slice(piece.state, piece.work, piece.done, self._most, self._clock)
            through.append(piece)
            if time.perf_counter() - began > TOGETHER_SECONDS or _large(through):
                return


def _large(pieces: Sequence[PendingSlice]) -> bool:
    return sum(piece.done.size for piece in pieces) > LARGE_BYTES or any(piece.state.spoiled for piece in pieces)
