"""Events, reasons and predictions in sentences, for terminals and the live page.

Names that people gave to clusters and runs may contain anything. Control characters are removed from them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shadowtime.shared.formatting import clock, duration, percent
from shadowtime.shared.messages import (
    CapacityChanged,
    ChangePoint,
    ClusterClosed,
    ClusterOpened,
    Coverage,
    Decided,
    Drift,
    Envelope,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    OfJob,
    Outcome,
    Rejected,
    WaitBound,
    bound_to_show,
    describe_drift,
    moment,
    whose,
)
from shadowtime.shared.quoting import plain
from shadowtime.shared.text.reasons import UNKNOWN, RunContext, describe_reason, left_undone, procs

ADJUSTED = {"over": "which was enough", "under": "too short", "bad": "too short by half an hour or more"}
"""Words for the outcome of an adjusted request, by class."""

ENDS: dict[Outcome, str] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "was cancelled",
    "limit": "was ended at its limit",
    "killed": "was killed",
}


YOUNG = "young: few waits are known, so it is wide"
"""Words for a bound of a young run."""


LEFT = {"cancelled": "was cancelled", "held": "is held"}
"""Words for jobs that left the queue, by reason."""


STARTS = {True: "starts", False: "could start", None: "may start"}
KILLED = {True: "is killed", False: "would be killed", None: "is to be killed"}
"""Words for a start and for a kill, by whether decisions are carried out; None if that is unknown."""


NAMED = {
    "user_id": "user",
    "group_id": "group",
    "queue_number": "queue",
    "partition_number": "partition",
    "priority": "priority",
}
"""Words for changed fields of a job besides its size and time."""


class Sentence(NamedTuple):
    """A sentence about an event: the kind of event, the job if there is one, the text, and details.

    >>> str(Sentence("start", 4711, "(16 procs) starts now", ("backfilled, delays job 4702 with 3 %",)))
    'job 4711 (16 procs) starts now: backfilled, delays job 4702 with 3 %'
    """

    kind: str
    job: int | None
    what: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the job, the text and the details as one line."""
        what = self.what if self.job is None else f"job {self.job} {self.what}"
        return f"{what}: {'; '.join(self.details)}" if self.details else what


def sentences(envelope: Envelope, log: RunContext = UNKNOWN) -> Iterator[Sentence]:
    """Yield sentences about an event; none if there is nothing to report, as for an empty decision."""
    event = envelope.event
    if isinstance(event, ClusterOpened):
        what = "" if event.mode == "closed" else "decisions are advice; "
        yield Sentence(
            "opened", None, "the run begins", (f"{what}{procs(event.processors)}", plain(event.name or event.policy))
        )
    elif isinstance(event, JobSubmitted):
        what = f"({procs(event.requested_processors)}) is submitted"
        yield Sentence("submitted", event.job_number, what, tuple(_submission(envelope, event)))
    elif isinstance(event, JobWithdrawn):
        yield Sentence("withdrawn", event.job_number, LEFT[event.reason], _late(event, log))
    elif isinstance(event, JobChanged):
        yield Sentence("changed", event.job_number, "changes", (*_changes(event), *_late(event, log)))
    elif isinstance(event, JobExpected):
        when = clock(event.start, log.unix_start, event.time)
        yield Sentence("expected", event.job_number, f"is expected by the site to start at {when}", _late(event, log))
    elif isinstance(event, JobSuspended):
        yield Sentence("suspended", event.job_number, "is suspended", _late(event, log))
    elif isinstance(event, JobResumed):
        yield Sentence("resumed", event.job_number, "goes on", _late(event, log))
    elif isinstance(event, JobStarted):
        yield Sentence("started", event.job_number, _begun(event), (*_late(event, log), *_learned(envelope, log)))
    elif isinstance(event, JobEnded):
        again = ", waits again" if event.requeued else ""
        what = f"{ENDS[event.outcome]} after {duration(event.run_time)}{again}"
        yield Sentence("ended", event.job_number, what, (*_late(event, log), *_learned(envelope, log)))
    elif isinstance(event, Decided):
        yield from _decisions(event, log)
    elif isinstance(event, CapacityChanged):
        yield Sentence("capacity", None, f"{_pool(event.pool, log)} has {procs(event.processors)}")
    elif isinstance(event, Rejected):
        yield Sentence("rejected", None, "an event is rejected", (plain(event.reason),))
    elif isinstance(event, ClusterClosed):
        yield Sentence("closed", None, "the run is over", tuple(_outcome(envelope)))


def _pool(pool: int | None, log: RunContext) -> str:
    """Return in words which part of the machine changed: `pool` counts from 0 and is None if it is the only one."""
    if pool is None or (pool == 0 and len(log.pools) < 2):
        return "the machine"
    return f"pool {plain(log.pools[pool])}" if pool < len(log.pools) else f"pool number {pool + 1}"


def chosen(bounds: Sequence[WaitBound]) -> WaitBound | None:
    """Return the one bound to show, as `bound_to_show` chooses it; None if there is no bound."""
    place = bound_to_show((bound.grouping, bound.queue, bound.bound) for bound in bounds)
    return None if place is None else bounds[place]


def bounded(bound: WaitBound) -> str:
    """Return a bound on the wait in words.

    >>> bounded(WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=7200))
    'waits at most 2.0 h (plain, 95 %)'
    """
    scope = bound.grouping if bound.queue is None else f"{bound.grouping}, queue {bound.queue}"
    if bound.reason is not None or bound.bound is bound.lower is None:
        return f"no bound ({plain(scope)}: {plain(bound.reason or 'unknown')})"
    limits = [f"at least {duration(bound.lower)}"] if bound.lower is not None else []
    limits += [f"at most {duration(bound.bound)}"] if bound.bound is not None else []
    young = f"; {YOUNG}" if bound.young else ""
    return f"waits {' and '.join(limits)} ({plain(scope)}, {percent(bound.quantile, '.4g')}{young})"


def _decisions(decided: Decided, log: RunContext) -> Iterator[Sentence]:
    for kill in decided.kills:
        yield Sentence("kill", kill.job_number, KILLED[log.obeyed], (plain(kill.reason),))
    for start in decided.starts:
        what = f"({procs(start.processors)}) {STARTS[log.obeyed]} now"
        yield Sentence("start", start.job_number, what, (describe_reason(start.reason, log, decided.time),))
    for cut in decided.cut_short or ():
        yield Sentence("cut short", None, left_undone(cut))
    if (now := decided.chosen) is not None and now.jobs is not None and now.member != log.member:
        on = f"best so far on {now.jobs:,} jobs"
        yield Sentence("member", None, f"{plain(now.member)} decides from now on", (on,))


def _submission(envelope: Envelope, job: JobSubmitted) -> Iterator[str]:
    if job.requested_time is not None:
        yield f"asks for {duration(job.requested_time)}"
    if job.blocked:
        yield "may not start for now"
    if job.site_reason is not None:
        yield f"waits for the site's reason {plain(job.site_reason)}"
    if envelope.run_time is not None and envelope.run_time.observations:
        yield f"expected to run {duration(envelope.run_time.point)}"
    if envelope.adjustment is not None and envelope.adjustment.key is not None:
        yield f"adjusted to {duration(envelope.adjustment.adjusted_time)}"
    if (bound := chosen(envelope.wait_bounds)) is not None:
        yield bounded(bound)
    elif envelope.wait_bounds:
        yield bounded(envelope.wait_bounds[0])

    if envelope.forecast is not None:
        reason, wait = envelope.forecast.reason, envelope.forecast.wait
        yield f"no forecast ({plain(reason or 'unknown')})" if wait is None else f"forecast to wait {duration(wait)}"


def _begun(started: JobStarted) -> str:
    limit = "" if started.limit is None else f", for {duration(started.limit)} at most"
    return f"({procs(started.processors)}) started{', on trial' if started.trial else ''}{limit}"


def _late(event: OfJob, log: RunContext) -> tuple[str, ...]:
    late = moment(event) < event.time
    return (f"at {clock(moment(event), log.unix_start, event.time)}, reported late",) if late else ()


def _changes(changed: JobChanged) -> Iterator[str]:
    if changed.requested_processors is not None:
        yield f"asks for {procs(changed.requested_processors)}"
    if changed.requested_time is not None:
        yield f"asks for {duration(changed.requested_time)}"
    if changed.unlimited:
        yield "asks for no limit"
    if changed.blocked is not None:
        yield "may not start for now" if changed.blocked else "may start"
    if changed.site_reason is not None:
        reason = plain(changed.site_reason)
        yield f"waits for the site's reason {reason}" if reason else "has no reason of the site any more"
    for field, name in NAMED.items():
        if (value := getattr(changed, field)) is not None:
            yield f"{name} {value}"


def _learned(envelope: Envelope, log: RunContext) -> Iterator[str]:
    """Yield the outcomes of earlier predictions that a start or an end has revealed."""
    if envelope.adjustment is not None and (outcome := envelope.adjustment.outcome) is not None:
        to = duration(envelope.adjustment.adjusted_time)
        yield f"adjusted to {to}, {ADJUSTED[outcome]}" if outcome in ADJUSTED else "not adjusted"
    if envelope.coverage:
        yield "waits within bounds: " + ", ".join(map(_covered, envelope.coverage))
    for change_point in envelope.change_points:
        scope, misses, kept = _scope(change_point), change_point.misses, change_point.kept
        yield f"change point of {scope}: {misses} misses in a row, {kept} waits kept"
    for drift in envelope.drifts or ():
        yield drifted(drift, log.unix_start, envelope.event.time)


def drifted(drift: Drift, unix_start: int, now: int | None = None) -> str:
    """Return in words that predictions no longer hold, or hold again. A time on the day of `now` has no date.

    >>> drifted(Drift(of="run_time", what="half", scope="user", number=7, since=86400, share=0.4, most=0.2), 0)
    'not to be trusted since 1 d 00:00:00: jobs run less than half as long as predicted, of user 7 (40 %, not 20 %)'
    """
    of = plain(f"{describe_drift(drift.of, drift.what)}, of {whose(drift.scope, drift.number)}")
    shares = f"({percent(drift.share, '.0f')}, {'at most' if drift.holds else 'not'} {percent(drift.most, '.0f')})"
    when = clock(drift.since, unix_start, now)
    return (
        f"hold again since {when}: it is over that {of} {shares}"
        if drift.holds
        else (f"not to be trusted since {when}: {of} {shares}")
    )


def _covered(coverage: Coverage) -> str:
    as_it_should_be = coverage.low <= coverage.covered <= coverage.high
    band = "" if as_it_should_be else f" (not {100 * coverage.low:.1f} to {100 * coverage.high:.1f} %)"
    return f"{_scope(coverage)} {percent(coverage.covered)}{band}"


def _scope(of: Coverage | ChangePoint) -> str:
    return plain(of.grouping if of.queue is None else f"{of.grouping} of queue {of.queue}")


def _outcome(envelope: Envelope) -> Iterator[str]:
    if envelope.scores is None or (scores := envelope.scores.policy).mean_wait is None:
        return
    slowdown = "" if scores.mean_bounded_slowdown is None else f", slowdown {scores.mean_bounded_slowdown:,.2f}"
    yield f"{scores.jobs:,} jobs, mean wait {duration(scores.mean_wait)}{slowdown}"
