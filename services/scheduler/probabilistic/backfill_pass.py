"""One pass of probabilistic backfilling behind a blocked head.

Theory of operation
-------------------
The head does not fit. Waiting jobs that fit into the idle resources are candidates. The pass repeats five steps until
no candidate is left:

1. Find the head's shadow time, if a rule needs it.
2. Drop candidates that no rule can accept, and mark those that are safe: EASY with requested times would start them.
3. Order the rest, once. Jobs that have waited for half of the longest allowed wait come first.
4. Evaluate candidates in this order until one is accepted.
5. Start the accepted candidate, which then counts as running. Drop candidates that no longer fit.

The work of a pass is counted, not timed. A pass that exceeds its allowance goes on as plain EASY with requested times,
and its decisions report this. The jobs that the pass has already started stay started.
"""

import math

import numpy as np

from shadowtime.services.scheduler.kernels import Distributions, refined_edges
from shadowtime.services.scheduler.ordering import Ordering
from shadowtime.services.scheduler.policy import Output, backfilled, backfills, start
from shadowtime.services.scheduler.probabilistic.acceptance import (
    MEASURES,
    STATED,
    TOO_MUCH,
    AcceptanceRule,
    Evaluation,
    evaluate_candidates,
)
from shadowtime.services.scheduler.probabilistic.head_guard import HeadGuard, add_risk
from shadowtime.services.scheduler.probabilistic.pass_state import PassState
from shadowtime.services.scheduler.probabilistic.prefilter import filter_candidates, sift_by_deadline
from shadowtime.services.scheduler.probabilistic.recalibration import NOTHING_LEARNED, DelayRecalibration
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
from shadowtime.services.scheduler.tables import fits_each
from shadowtime.services.scheduler.work_limits import EACH_RUNNING, MAX_STARTS, WALKED, WEIGHED
from shadowtime.shared.kernels import BEYOND, Flags, FloatTable, Integers, backfilled_rows, shadow_of
from shadowtime.shared.messages import DIGITS, CutShort, Evaluated, ProbablyHarmless, Reason, construct_unchecked


class BackfillPass:
    """The state of one pass: idle resources, running jobs, and the work that is left.

    Parameters
    ----------
    settings, heads, ordering, recalibration
        Parts of the policy. The pass writes the risk of the head into `heads`, and its candidates into `recalibration`.
    obeyed
        Whether decisions take effect. If decisions are advice only, candidates behind a start of this pass are not
        followed to their outcomes.
    busy
        The running jobs, and the heads that this pass has started.
    head_row
        The blocked head's row in the queue.
    idle
        Idle amounts of each resource.
    """

    def __init__(
        self,
        settings: ProbabilisticSettings,
        heads: HeadGuard,
        ordering: Ordering,
        recalibration: DelayRecalibration | None,
        obeyed: bool,
        busy: PassState,
        head_row: int,
        idle: Integers,
    ) -> None:
        self.settings = settings
        self.heads = heads
        self.ordering = ordering
        self.recalibration = recalibration
        self.obeyed = obeyed

        self.busy = busy
        self.now = busy.now
        self.queue = busy.queue
        self.head_row = head_row
        self.head = int(self.queue.job_number[head_row])
        self.head_size = self.queue.sizes[head_row]
        self.idle = idle

        self.decisions: list[Output] = []
        self.work_left = WALKED
        self.evaluations_left = WEIGHED
        self.ordered = False
        self.shadow: tuple[int, Integers] | None = None

        self.longest_wait, self.deadline = math.inf, math.inf
        if settings.patience < math.inf:
            self.longest_wait = settings.patience * heads.longest_wait
            self.shadow = self._shadow()
            promise = heads.promise(self.head, self.now, self.shadow[0])
            self.deadline = max(promise, int(self.queue.submit_time[head_row]) + self.longest_wait)

    def run(self, rows: Integers) -> list[Output]:
        """Return the decisions about candidates, given as rows of the queue in the order of submission."""
        while len(rows) and self.busy.started <= MAX_STARTS:
            self.work_left -= EACH_RUNNING * len(self.busy.numbers) + len(rows)
            if self.work_left < 0:
                return self._as_easy(rows if self.ordered else rows[self._order(rows)])

            # Steps 1 and 2.
            spent = self.heads.risk_spent.get(self.head, 0.0)
            shadow_time, extra, plain = self._bounds(spent)
            rows, safe = self._sift(rows, shadow_time, extra, plain=plain)
            if not len(rows):
                break

            # Step 3. Ordering is expensive, so it comes after the sift.
            if not self.ordered and len(rows) > 1:
                order = self._order(rows)
                rows, safe, self.ordered = rows[order], safe[order], True

            # Step 4. A first candidate that is safe needs no evaluation.
            accepted = 0
            reason: Reason | None = None
            if not safe[0]:
                evaluation = self._evaluate(rows, safe, spent)
                if evaluation is None:
                    return self._as_easy(rows)
                accepted = evaluation.accepted
                if accepted < 0:
                    break
                reason = None if safe[accepted] else self._risk(spent, evaluation)

            # Step 5.
            if reason is None:
                planned_end = self.now + int(self.queue.requested_time[rows[accepted]])
                reason = backfilled(self.head, shadow_time, int(extra[0]), self.now, planned_end)
            rows = self._start(rows, accepted, reason)

        return self.decisions

    def _shadow(self) -> tuple[int, Integers]:
        """Return the head's shadow time and extra amounts if every running job runs to its request."""
        return shadow_of(self.head_size, self.idle, self.busy.sizes, self.busy.requested_ends)

    @property
    def _by_deadline_or_resources(self) -> bool:
        """Whether a deadline or a further resource limits candidates, in addition to the delay probability."""
        return self.deadline < math.inf or len(self.idle) > 1

    def _bounds(self, spent: float) -> tuple[int, Integers, bool]:
        """Return shadow time, extra amounts, and whether only safe candidates may start."""
        plain = spent >= self.settings.budget
        if not (plain or self.settings.accept_easy_safe or self._by_deadline_or_resources):
            return -BEYOND, -self.idle, False  # no candidate is safe by these bounds

        shadow_time, extra = self.shadow or self._shadow()
        lacks_no_processors = self.head_size[0] <= self.idle[0]  # delay probabilities consider only processors
        return shadow_time, extra, bool(plain or shadow_time > self.deadline or lacks_no_processors)

    def _sift(self, rows: Integers, shadow_time: int, extra: Integers, *, plain: bool) -> tuple[Integers, Flags]:
        """Return the candidates that some rule can accept, and for each whether it is safe."""
        arguments = self.now, rows, self.queue.sizes, self.queue.requested_time, shadow_time, extra
        if plain or not self._by_deadline_or_resources:
            return filter_candidates(*arguments, plain)

        # The head must find room by its deadline, even if every job runs to its request.
        beside_head = self.idle - self.head_size
        rows, safe = sift_by_deadline(*arguments, self.deadline, beside_head, self.busy.sizes, self.busy.requested_ends)
        return rows, safe & self.settings.accept_easy_safe

    def _order(self, rows: Integers) -> Integers:
        """Return the order to try rows in. Jobs that have waited for half of the longest allowed wait come first."""
        waits = self.now - self.queue.submit_time[rows]
        aged = int(np.count_nonzero(waits > self.longest_wait / 2))  # the first rows: rows are by submission
        return np.concatenate((np.arange(aged), aged + self.ordering.among(self.now, self.queue, rows[aged:])))

    def _evaluate(self, rows: Integers, safe: Flags, spent: float) -> Evaluation | None:
        """Evaluate candidates until one is accepted, and emit the result. Return None if the allowance is exceeded."""
        self.evaluations_left -= len(rows)
        if self.evaluations_left < 0:
            return None

        needed = int(self.head_size[0] - self.idle[0])
        evaluation = self._measure(rows, safe, needed, spent)
        self.work_left -= evaluation.work
        accepted = evaluation.accepted
        if accepted == TOO_MUCH:
            return None

        # A safe candidate that ends the evaluation is not reported: its measures did not matter.
        measured = len(evaluation.measures) - bool(accepted >= 0 and safe[accepted])
        measures = evaluation.measures[:measured]
        evaluated = construct_unchecked(
            Evaluated,
            head=self.head,
            needed=needed,
            after=self.busy.started,
            job_numbers=tuple(self.queue.job_number[rows[:measured]].tolist()),
            probabilities=tuple(measures[:, 0].tolist()),
            bounds=tuple(measures[:, 1].tolist()),
            recalibrated=tuple(measures[:, STATED].tolist()) if self.recalibration else None,
            accepted=accepted >= 0 and not safe[accepted],
        )
        self.decisions.append(evaluated)
        self._follow(evaluated, self.queue.processors[rows], measures)
        return evaluation

    def _measure(self, rows: Integers, safe: Flags, needed: int, spent: float) -> Evaluation:
        """Measure all candidates in one walk. The head's spent risk limits the risk of the accepted candidate."""
        settings, busy = self.settings, self.busy
        masses = Distributions(busy.queue.histograms.masses, refined_edges(settings.points), settings.mass == "censor")
        rule = AcceptanceRule(
            MEASURES.index(settings.criterion),
            settings.tau,
            1.0 - (1.0 - settings.budget) / (1.0 - spent),
            NOTHING_LEARNED if self.recalibration is None else self.recalibration.weights,
            settings.recalibrate == "yes",
        )
        head_run_time = float(self.queue.predicted_time[self.head_row])
        jobs = busy.ends(), busy.candidates(rows, safe), masses
        return Evaluation(*evaluate_candidates(self.now, needed, head_run_time, *jobs, rule, self.work_left))

    def _follow(self, evaluated: Evaluated, processors: Integers, measures: FloatTable) -> None:
        """Register the candidates with the recalibration, which follows them to their outcomes."""
        if self.recalibration is None or not len(measures) or (self.busy.started and not self.obeyed):
            return
        numbers = self.busy.numbers
        started = numbers[len(numbers) - self.busy.started :].tolist()
        passes = (measures[:, MEASURES.index(self.settings.criterion)] < self.settings.tau).tolist()
        columns = evaluated.job_numbers, processors.tolist(), evaluated.probabilities, measures[:, STATED].tolist()
        candidates = list(zip(*columns, passes, strict=False))
        self.recalibration.outcomes.follow(self.now, evaluated.needed, started, candidates)

    def _risk(self, spent: float, evaluation: Evaluation) -> ProbablyHarmless:
        """Charge the head with the accepted candidate's risk, and return it as the reason of the start."""
        probability, bound, gain, stated = evaluation.measures[-1].tolist()
        self.heads.risk_spent[self.head] = add_risk(
            spent, stated if self.settings.recalibrate == "yes" else probability
        )
        return construct_unchecked(
            ProbablyHarmless,
            head=self.head,
            criterion=self.settings.criterion,
            probability=probability,
            bound=bound,
            recalibrated=stated if self.recalibration else None,
            cost_of_gain=gain if self.settings.criterion == "gain" else None,
            tau=self.settings.tau,
            budget_left=max(round(self.settings.budget - self.heads.risk_spent[self.head], DIGITS), 0.0),
            riskiest=evaluation.riskiest(self.busy.numbers),
            resolution=evaluation.resolution or None,
        )

    def _start(self, rows: Integers, accepted: int, reason: Reason) -> Integers:
        """Start a candidate, and return the candidates behind it that still fit."""
        row = int(rows[accepted])
        self.decisions.append(start(self.queue, row, reason))
        self.idle, self.shadow = self.idle - self.queue.sizes[row], None

        behind = rows[accepted + 1 :]
        behind = behind[fits_each(self.idle, self.queue.sizes, behind)]
        if len(behind):
            self.busy.add(rows[accepted : accepted + 1])
        return behind

    def _as_easy(self, rows: Integers) -> list[Output]:
        """Return all decisions. Plain EASY with requested times decides about the remaining candidates. O(n log n)."""
        requested = self.queue.requested_time
        shadow_time, extra = self._shadow()
        accepted = backfilled_rows(self.now, self.idle, shadow_time, extra, self.queue.sizes, requested, rows).tolist()
        head = self.head, shadow_time, int(extra[0])
        self.decisions += backfills(self.now, self.queue, accepted, requested, *head)
        return [*self.decisions, CutShort(by="walks", left=len(rows))]
