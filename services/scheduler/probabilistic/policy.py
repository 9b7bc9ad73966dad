"""Backfilling by the probability of delaying the head."""

import math
from typing import Any

import numpy as np

from shadowtime.services.scheduler.forecasting import (
    Forecaster,
    SampledFutures,
    easy_ahead,
    easy_futures,
    forecaster_of,
)
from shadowtime.services.scheduler.kernels import Distributions, refined_edges
from shadowtime.services.scheduler.limits import EACH_RUNNING, MAX_STARTS, WALKED, WEIGHED
from shadowtime.services.scheduler.ordering import InOrder, Ordering
from shadowtime.services.scheduler.policy import FITS_NOW, Output, Policy, backfilled, backfills, start
from shadowtime.services.scheduler.probabilistic.acceptance import (
    MEASURES,
    STATED,
    TOO_MUCH,
    Evaluation,
    Rule,
    evaluate_candidates,
)
from shadowtime.services.scheduler.probabilistic.head_guard import ALWAYS, HeadRecord, add_risk
from shadowtime.services.scheduler.probabilistic.pass_state import Busy
from shadowtime.services.scheduler.probabilistic.prefilter import sift, sift_by_deadline
from shadowtime.services.scheduler.probabilistic.recalibration import NOTHING_LEARNED, Recalibration
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
from shadowtime.services.scheduler.tables import Queue, Running, fits_each, front
from shadowtime.shared.kernels import BEYOND, Flags, FloatTable, Integers, backfilled_rows, shadow_of
from shadowtime.shared.messages import (
    DIGITS,
    ClusterOpened,
    CutShort,
    Evaluated,
    Event,
    ProbablyHarmless,
    SchedulingPoint,
    trusted,
)

# How a pass of probabilistic backfilling goes on that may weigh no more.


def as_easy(busy: Busy, rows: Integers, head: int, size: Integers, idle: Integers) -> list[Output]:
    """Return the starts of plain EASY on the requests, and how much was left. O(n log n).

    Parameters
    ----------
    busy
        What runs, and what the pass has started before: that stays where it is, as does what was weighed and left.
    rows
        The candidates that are left, as rows of the queue in the order in which they are tried.
    head, size, idle
        The head's job number, what it needs and what is idle, of each resource.
    """
    now, queue, requested = busy.now, busy.queue, busy.queue.requested_time
    shadow_time, extra = shadow_of(size, idle, busy.sizes, busy.requested_ends)
    accepted = backfilled_rows(now, idle, shadow_time, extra, queue.sizes, requested, rows).tolist()
    allowed, of_head = MAX_STARTS - busy.started, (head, shadow_time, int(extra[0]))
    decisions: list[Output] = [*backfills(now, queue, accepted[:allowed], requested, *of_head)]
    if len(accepted) > allowed:
        decisions.append(CutShort(by="starts", left=len(rows) - rows.tolist().index(accepted[allowed])))
    return [*decisions, CutShort(by="walks", left=len(rows))]


class Probabilistic(InOrder, Policy):
    """Start the head while it fits; then whatever delays the first job that does not with a probability below tau.

    A candidate's probability is of what was predicted of its run time and of those of the running jobs, at most their
    requests, or their adjusted requests where those limit distributions; what is safe, promised or due at a deadline
    is so on the requests themselves. Without predictions this is EASY, start for start, at any tau and by either
    probability. What a pass has started counts as running for the candidates after it.

    O(candidates * terminations + terminations * log(jobs) * processors) for each job that starts; terminations are
    about ten a running job. A pass for which that comes to more than `limits.WALKED`, or to more than
    `limits.WEIGHED` candidates, goes on as plain EASY.

    References
    ----------
    docs/algorithms.md#probabilistic-backfilling (Nissimov 2007, section 4). Budget and patience:
    docs/algorithms.md#guards-of-the-head.
    """

    name = "probabilistic"
    Settings = ProbabilisticSettings

    def __init__(self, settings: ProbabilisticSettings) -> None:
        self.settings = settings
        self.heads = HeadRecord()
        self.ordering = Ordering(settings, weight=settings.weight)
        self.obeyed = ALWAYS.obeys  # whether what it decides is what happens
        self.recalibration = None if settings.recalibrate == "no" else Recalibration()

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own."""
        self.ordering.open(opened)
        self.obeyed = opened.obeys

    def forecaster(self) -> Forecaster | None:
        """Return what runs EASY ahead in the order of this queue, where the key `forecast` asks for it."""
        return forecaster_of(self.settings.forecast, easy_ahead(self.settings.queue), self.futures())

    def futures(self) -> SampledFutures | None:
        """Return what runs EASY ahead in the order of this queue through sampled futures; None in one that changes."""
        return easy_futures(self.settings.queue, self.ordering.chance)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Output]:
        """Return the starts of one pass: heads that fit, then candidates, with what was found of each."""
        if self.recalibration is not None:
            self.recalibration.learn_until(now)
        if free <= 0 or not len(queue) or (free < queue.least and self.ordering.as_submitted):  # as mostly
            return []
        idle, sizes, requested = running.free(free), queue.sizes, queue.requested_time
        served = self.ordering.rows(now, queue)
        heads, rows = front(idle, sizes, served)
        decisions: list[Output] = [start(queue, row, FITS_NOW) for row in served[: min(heads, MAX_STARTS)].tolist()]
        if heads > MAX_STARTS:
            return [*decisions, CutShort(by="starts", left=len(queue) - MAX_STARTS)]
        if heads == len(queue):
            return decisions
        at = int(served[heads])
        head, size = int(queue.job_number[at]), sizes[at]
        if not self.ordering.as_submitted:
            self.heads.follow(head, overtaken=heads > 0)
        if heads:
            idle = idle - sizes[served[:heads]].sum(axis=0)
        if not len(rows):
            return decisions
        busy = Busy(now, queue, running)
        if heads:
            busy.add(served[:heads])
        deadline, limit, shadow, ordered = math.inf, math.inf, None, False
        if self.settings.patience < math.inf:
            limit = self.settings.patience * self.heads.longest_wait
            shadow = shadow_of(size, idle, busy.sizes, busy.requested_ends)
            deadline = max(self.heads.promise(head, now, shadow[0]), int(queue.submit_time[at]) + limit)
        allowed, weighable, limited = WALKED, WEIGHED, len(idle) > 1
        while len(rows):
            allowed -= EACH_RUNNING * len(busy.numbers) + len(rows)
            if busy.started == MAX_STARTS:
                return [*decisions, CutShort(by="starts", left=len(rows))]
            if allowed < 0:
                rows = rows if ordered else rows[self._in_order(now, queue, rows, limit)]
                return decisions + as_easy(busy, rows, head, size, idle)
            spent = self.heads.spent.get(head, 0.0)
            plain, shadow_time, extra = spent >= self.settings.budget, -BEYOND, -idle  # nothing is safe by that
            if plain or self.settings.accept_easy_safe or deadline < math.inf or limited:
                shadow_time, extra = shadow or shadow_of(size, idle, busy.sizes, busy.requested_ends)
                plain |= shadow_time > deadline or size[0] <= idle[0]  # a head that lacks no processors
            asked = now, rows, sizes, requested, shadow_time, extra
            if plain or not (limited or deadline < math.inf):
                rows, safe = sift(*asked, bool(plain))
            else:  # then the head must find room, should all jobs run to their requests
                rows, safe = sift_by_deadline(*asked, deadline, idle - size, busy.sizes, busy.requested_ends)
                safe &= self.settings.accept_easy_safe
            if not len(rows):
                break
            if not ordered and len(rows) > 1:  # only what is left of all that fit
                order, ordered = self._in_order(now, queue, rows, limit), True
                rows, safe = rows[order], safe[order]
            accepted = 0
            if not safe[0]:
                weighable -= len(rows)
                if weighable < 0:
                    return decisions + as_easy(busy, rows, head, size, idle)
                run_time, needed = float(queue.predicted_time[at]), int(size[0] - idle[0])
                tried = self._try(busy, rows, needed, run_time, safe, spent, allowed)
                allowed, accepted = allowed - tried.work, tried.accepted
                if accepted == TOO_MUCH:
                    return decisions + as_easy(busy, rows, head, size, idle)
                weighed = tried.measures[: len(tried.measures) - bool(accepted >= 0 and safe[accepted])]
                evaluated = trusted(
                    Evaluated,
                    head=head,
                    needed=needed,
                    after=busy.started,
                    job_numbers=tuple(queue.job_number[rows[: len(weighed)]].tolist()),
                    probabilities=tuple(weighed[:, 0].tolist()),
                    bounds=tuple(weighed[:, 1].tolist()),
                    recalibrated=tuple(weighed[:, STATED].tolist()) if self.recalibration else None,
                    accepted=accepted >= 0 and not safe[accepted],
                )
                decisions.append(evaluated)
                self._follow(busy, evaluated, queue.processors[rows], weighed)
            if accepted < 0:
                break
            row = int(rows[accepted])
            due = now + int(requested[row])
            promised = backfilled(head, shadow_time, int(extra[0]), now, due) if safe[accepted] else None
            decisions.append(start(queue, row, promised or self._risk(head, spent, tried, busy)))
            idle, shadow = idle - sizes[row], None
            behind = rows[accepted + 1 :]
            behind = behind[fits_each(idle, sizes, behind)]
            if len(behind):
                busy.add(rows[accepted : accepted + 1])
            rows = behind
        return decisions

    def _in_order(self, now: int, queue: Queue, rows: Integers, limit: float) -> Integers:
        """Return the order in which rows, in that of submission, are tried: first who waits for half the limit."""
        aged = int(np.count_nonzero(now - queue.submit_time[rows] > limit / 2))  # the first of them
        return np.concatenate((np.arange(aged), aged + self.ordering.among(now, queue, rows[aged:])))

    def observe(self, event: Event) -> None:
        """Notice waits, and which heads have started."""
        if type(event) is SchedulingPoint:
            return
        self.heads.observe(event)
        if self.recalibration is not None:
            self.recalibration.observe(event)

    def _follow(self, busy: Busy, evaluated: Evaluated, processors: Integers, measures: FloatTable) -> None:
        """Have candidates followed; where decisions are advice only, those that no start of the pass came before."""
        if self.recalibration is not None and len(measures) and (not busy.started or self.obeyed(busy.now)):
            started = busy.numbers[len(busy.numbers) - busy.started :].tolist()
            passes = (measures[:, MEASURES.index(self.settings.criterion)] < self.settings.tau).tolist()
            told = evaluated.job_numbers, processors.tolist(), evaluated.probabilities, measures[:, STATED].tolist()
            candidates = list(zip(*told, passes, strict=False))
            self.recalibration.outcomes.follow(busy.now, evaluated.needed, len(busy.numbers), started, candidates)

    def snapshot(self) -> Any:
        """Return what is known of the waiting jobs, and the longest wait."""
        learned = {} if self.recalibration is None else {"recalibration": self.recalibration.snapshot()}
        return self.heads.snapshot() | learned

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.heads.restore(state)
        if self.recalibration is not None:
            self.recalibration.restore(state["recalibration"])

    def _try(
        self, busy: Busy, rows: Integers, needed: int, head_run_time: float, safe: Flags, spent: float, allowed: int
    ) -> Evaluation:
        """Walk once for all candidates; what has been spent on the head bounds what may be spent on it still."""
        settings = self.settings
        masses = Distributions(busy.queue.histograms.masses, refined_edges(settings.points), settings.mass == "censor")
        ends = busy.ends(), busy.candidates(rows, safe), masses
        rule = Rule(
            MEASURES.index(settings.criterion),
            settings.tau,
            1.0 - (1.0 - settings.budget) / (1.0 - spent),
            NOTHING_LEARNED if self.recalibration is None else self.recalibration.weights,
            settings.recalibrate == "yes",
        )
        return Evaluation(*evaluate_candidates(busy.now, needed, head_run_time, *ends, rule, allowed))

    def _risk(self, head: int, spent: float, tried: Evaluation, busy: Busy) -> ProbablyHarmless:
        """Put the head to the risk of the accepted candidate, and return it as a reason."""
        probability, bound, gain, stated = tried.measures[-1].tolist()
        self.heads.spent[head] = add_risk(spent, stated if self.settings.recalibrate == "yes" else probability)
        return trusted(
            ProbablyHarmless,
            head=head,
            criterion=self.settings.criterion,
            probability=probability,
            bound=bound,
            recalibrated=stated if self.recalibration else None,
            cost_of_gain=gain if self.settings.criterion == "gain" else None,
            tau=self.settings.tau,
            budget_left=max(round(self.settings.budget - self.heads.spent[head], DIGITS), 0.0),
            riskiest=tried.riskiest(busy.numbers),
            resolution=tried.resolution or None,
        )
