"""The interface of bounds on waits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from shadowtime.shared.messages import (
    ChangePoint,
    Coverage,
    JobSubmitted,
    RunTimePrediction,
    RunTimeRevision,
    Side,
    WaitBound,
    WaitRanges,
)
from shadowtime.shared.stages import Passthrough, Predictor


class Updates(NamedTuple):
    """Messages to publish after a wait was learned, or after a submission was observed (`wait_ranges`)."""

    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    wait_ranges: tuple[WaitRanges, ...] | None = None


NO_UPDATES = Updates()


class IssuedBounds(NamedTuple):
    """The upper bounds that waiting jobs got in one grouping, at one quantile, and how well earlier bounds held.

    `bound_of` returns the bound of a job by its number, in seconds; None if the job got none. `covered` is the share of
    the last `revealed` known waits within their bounds.
    """

    quantile: float
    bound_of: Callable[[int], int | None]
    revealed: int
    covered: float


class Bounder(Predictor[JobSubmitted, int, tuple[WaitBound, ...]], Protocol):
    """A predictor of bounds on waits, also for jobs that have not been submitted."""

    updates: Updates = NO_UPDATES
    """Messages to publish after the last learned wait or observed submission."""

    def note_prediction(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Record the predicted run time of the job whose bounds are asked for next. Most bounders ignore it."""
        return  # not abstract

    def note_revisions(self, revisions: Sequence[RunTimeRevision]) -> None:
        """Record run times of jobs in the system that were predicted anew. Most bounders ignore them."""
        return  # not abstract

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, in seconds, at any quantile and confidence; pure."""
        ...

    def sided_bounds_at(
        self, x: JobSubmitted, now: int, quantile: float, confidence: float, side: Side
    ) -> tuple[WaitBound, ...]:
        """Return the bounds of a side that a job would have now; empty if the bounder has none on this side; pure."""
        return self.bounds_at(x, now, quantile, confidence) if side == "upper" else ()

    def ranges_at(self, x: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors behind the bounds that a job would have; most bounders have none; pure."""
        return ()

    def issued(self, grouping: str, queue: int | None) -> IssuedBounds | None:
        """Return the upper bounds of waiting jobs by a grouping of a queue, or of the cluster if `queue` is None; pure.

        Return None if the bounder does not store them.
        """
        return None


MAX_QUEUES = 64
"""Maximum number of queues with bounds: the first in the log. Jobs of other queues have only the cluster's bounds."""

Scope = TypeVar("Scope")


def scopes_of(
    job: JobSubmitted, cluster: Scope, queues: Mapping[int, Scope], new: Callable[[int], Scope]
) -> list[Scope]:
    """Return the scope of the cluster, and that of the job's queue. The caller stores the `new` scope of a new queue.

    A queue beyond the first `MAX_QUEUES` is left out.
    """
    queue = job.queue_number
    if queue is None or (queue not in queues and len(queues) >= MAX_QUEUES):
        return [cluster]
    return [cluster, queues[queue] if queue in queues else new(queue)]


def beyond_queues(
    job: JobSubmitted, scopes: Sequence[object], quantile: float, confidence: float, groupings: Iterable[str]
) -> Iterator[WaitBound]:
    """Yield a message without a bound for each grouping if the job's queue is left out of its `scopes`."""
    reason = f"only the first {MAX_QUEUES} queues have their own bounds"
    for name in groupings if job.queue_number is not None and len(scopes) == 1 else ():
        yield WaitBound(grouping=name, queue=job.queue_number, quantile=quantile, confidence=confidence, reason=reason)


# No bound on the wait.


class Unbounded(Passthrough, Bounder):
    """Give no bound on the wait."""

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[()]:
        """Return no bounds."""
        return ()
