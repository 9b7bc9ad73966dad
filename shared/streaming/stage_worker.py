"""One stage at work on a stream: effectively once, whatever the stream and the store do to it.

The rules it keeps, for each run:

1. Event `last + 1` is handled, one up to `last` is a duplicate, one beyond is never applied: what is missing is looked
   for in the log, once, and if it is not there, the event is a dead letter.
2. State, position and outputs change in one transaction, fenced by the sequence from which the worker started. When
   it fails in any way, the worker forgets the run and loads it again: recovery and start are one path. What comes next
   is worked out meanwhile, but not stored before it.
3. Outputs leave after their transaction, in order, and only then the outbox; what a predecessor left in the outbox
   leaves first.
4. An event that the stage cannot work out is undone. A run that cannot be carried on is quarantined: it says so in its
   log and on the dead letters, what comes later is counted and left aside, and all other runs go on.

What a record that cannot be used was, and why, goes to the dead letters; the stream goes on.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, Fenced, StoreError
from shadowtime.shared.streaming.handling import Handling, Received
from shadowtime.shared.streaming.stream import DeadLetters
from shadowtime.shared.streaming.work_thread import WorkThread
from shadowtime.shared.streaming.worker_context import WorkerContext
from shadowtime.shared.wording import shortened

log = logging.getLogger("shadowtime.worker")

FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0


class StageWorker:
    """Handles records in order of each run, several runs beside each other; one call at a time.

    Records that were handled are stored and delivered while the next are handled.

    Parameters
    ----------
    behind
        Whether runs that it begins are left to be followed up by the next worker that takes their partition.
    """

    def __init__(self, context: WorkerContext, *, behind: bool = False) -> None:
        self.stage = context.stage
        self.thread = WorkThread(context.stage.name, context.settings.handler_seconds)
        self._context = context
        self._letters = DeadLetters(context.stream, context.metrics)
        self._handling = Handling(context, self.thread, self._letters, behind=behind)
        self._unsettled: list[Received] = []
        """Records that were handled, and of which it is not known that they are stored and delivered."""
        self._again: list[Received] = []
        """Those of them that are to be handled again, since something of that failed."""
        self._done: list[Received] = []
        self.receive, self.holds = self._handling.receive, self._handling.holds

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Why runs are quarantined, by name."""
        return self._handling.progress.quarantined

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        await self.settle()
        await self._retry(lambda: self._handling.take(partition))

    async def handle(self, received: Sequence[Received]) -> Mapping[str, float]:
        """Handle records, those of a run in order; return each run's seconds.

        What was handled before is done with for good then; these are when this, or `settle`, is called again.
        """
        spent = self._handling.progress.spent
        spent.clear()
        await self._retry(lambda: self._handling.handle([*self._again, *received]))
        self._done += self._unsettled  # nothing, if something of it failed
        self._unsettled, self._again = [*self._again, *received], []
        return spent

    async def settle(self) -> Mapping[str, float]:
        """Return, when all that was handled is done with for good, the seconds of each run that is handled again."""
        spent: Mapping[str, float] = {}
        while self._unsettled or self._again:
            spent = await self.handle(())
        return spent

    def take_done(self) -> Sequence[Received]:
        """Return the records that are done with for good since this was called last."""
        done, self._done = self._done, []
        return done

    async def give_up(self) -> Sequence[Received]:
        """Forget all runs, and return the records that are not done with.

        They lie in the log, and are looked for when the next one of their run comes.
        """
        await self._drop()
        left, self._again = self._again, []
        return left

    def close(self) -> None:
        """Leave what is not settled to the next worker; the thread ends once its work has."""
        self._handling.progress.settling.cancel()
        self.thread.close()

    async def _drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        await self._handling.drop()
        self._again, self._unsettled = [*self._again, *self._unsettled], []

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`, again and again while Kafka or Redis fail: all of it may be repeated."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            try:
                await work()
                return await self._letters.deliver()
            except Fenced as fenced:
                log.warning("%s", shortened(str(fenced)))
                self._context.metrics.fenced.inc()
            except (StoreError, BusError) as error:
                pause = backoff.pause()
                log.warning("%s: %s; trying again in %.1f s", self.stage.name, shortened(str(error)), pause)
                self._context.metrics.retries.inc()
                await self._context.sleep(pause)
            await self._drop()
