"""Backfilling by the probability of delaying the head."""

import math
from typing import Any

import numpy as np

from services.scheduler.candidates import MEASURES, Flags, Tried, try_candidates
from services.scheduler.easy import BEYOND, shadow_of
from services.scheduler.expected_end import Column, expected_ends
from services.scheduler.job_table import NEVER, Queue, Running
from services.scheduler.orders import ranked
from services.scheduler.policy import FITS_NOW, Policy, backfilled, start
from services.scheduler.probabilistic_keys import ProbabilisticKeys
from services.scheduler.terminations import refined_edges
from shared.chance import key_of
from shared.events import ClusterOpened, Decision, Evaluated, Event, JobStarted, JobSubmitted
from shared.predictions import DIGITS
from shared.reasons import ProbablyHarmless, Reason, Risk

RISKIEST = 3
"""Terminations that a decision names."""

ROUNDED = 0.5 * 10.0**-DIGITS
"""What is no more than this rounds to nothing."""

NO_CORRECTIONS: Column = np.empty(0, dtype=np.int64)


def add_risk(spent: float, probability: float) -> float:
    """Return the probability of at least one delay, if that was `spent` before one more of `probability`.

    >>> add_risk(0.5, 0.1)
    0.55
    """
    return 1.0 - (1.0 - spent) * (1.0 - probability)


class Probabilistic(Policy):
    """Start the head while it fits; then whatever delays the first job that does not with a probability below tau.

    A candidate's probability is of what was predicted of its run time and of those of the running jobs, at most their
    requests, or their adjusted requests where those limit distributions; what is safe, promised or due at a deadline
    is so on the requests themselves. Without predictions this is EASY, start for start, at any tau and by either
    probability. What a pass has started counts as running for the candidates after it.

    O(candidates * terminations + terminations * log(jobs) * processors) for each job that starts; terminations are
    about ten a running job.

    References
    ----------
    Nissimov, Feitelson: Probabilistic backfilling, JSSPP 2007. Exact probability, budget and patience: spec section 7
    and 1.3.
    """

    name = "probabilistic"
    Keys = ProbabilisticKeys

    def __init__(self, keys: ProbabilisticKeys) -> None:
        self.keys = keys
        self.spent: dict[int, float] = {}
        """Of each waiting job that was head: the probability, so far, that it has been delayed."""
        self.promises: dict[int, int] = {}
        """And its shadow time on the requests when a candidate first fitted ahead of it."""
        self.submit_times: dict[int, int] = {}
        """Of each waiting job."""
        self.longest_wait = 0
        self.chance = 0

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own."""
        self.chance = key_of(opened.seed, opened.cluster)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Decision | Evaluated]:
        """Return the starts of one pass: heads that fit, then candidates, with what was found of each."""
        if free <= 0 or not len(queue):
            return []
        processors, requested = queue.processors, queue.requested_time
        heads = int(np.searchsorted(np.cumsum(processors), free, side="right"))
        decisions: list[Decision | Evaluated] = [start(queue, row, FITS_NOW) for row in range(heads)]
        free -= int(processors[:heads].sum())
        rows = heads + 1 + np.flatnonzero(processors[heads + 1 :] <= free)
        if not len(rows):
            return decisions
        busy = _Busy(now, queue, running)
        for row in range(heads):
            busy.add(row)
        head, size = int(queue.job_number[heads]), int(processors[heads])
        deadline = math.inf
        aged = np.zeros(len(rows), dtype=np.bool_)
        if self.keys.patience < math.inf:
            limit = self.keys.patience * self.longest_wait
            promise, _ = shadow_of(size, free, busy.processors, busy.requested_ends())
            if self.promises.get(head, now + NEVER) - now >= NEVER:  # none yet, or none that could be kept
                self.promises[head] = promise
            deadline = max(self.promises[head], int(queue.submit_time[heads]) + limit)
            aged = now - queue.submit_time[rows] > limit / 2
        rows = np.concatenate((rows[aged], self._in_order(now, queue, rows[~aged])))
        while len(rows):
            spent = self.spent.get(head, 0.0)
            plain, shadow_time, extra = spent >= self.keys.budget, -BEYOND, -1  # nothing is safe by that
            if plain or self.keys.accept_easy_safe or deadline < math.inf:
                ends = busy.requested_ends()
                shadow_time, extra = shadow_of(size, free, busy.processors, ends)
                plain |= shadow_time > deadline
            safe = (now + requested[rows] <= shadow_time) | (processors[rows] <= extra)
            if plain:
                rows, safe = rows[safe], safe[safe]
            elif deadline < math.inf:  # at the deadline the head must find room, should all jobs run to their requests
                room = free + int(busy.processors[ends <= deadline].sum()) - size
                patient = safe | (now + requested[rows] <= deadline) | (processors[rows] <= room)
                rows, safe = rows[patient], safe[patient] & self.keys.accept_easy_safe
            if not len(rows):
                break
            accepted = 0
            if not safe[0]:
                tried = self._try(busy, rows, size - free, float(queue.predicted_time[heads]), safe, spent)
                accepted = tried.accepted
                weighed = tried.measures[: len(tried.measures) - bool(accepted >= 0 and safe[accepted])]
                evaluated = Evaluated(
                    head=head,
                    needed=size - free,
                    after=busy.started,
                    job_numbers=tuple(queue.job_number[rows[: len(weighed)]].tolist()),
                    probabilities=tuple(weighed[:, 0].tolist()),
                    bounds=tuple(weighed[:, 1].tolist()),
                    accepted=accepted >= 0 and not safe[accepted],
                )
                decisions.append(evaluated)
            if accepted < 0:
                break
            row = int(rows[accepted])
            if safe[accepted]:
                reason: Reason = backfilled(head, shadow_time, extra, now, now + int(requested[row]))
            else:
                reason = self._risk(head, spent, tried, busy)
            decisions.append(start(queue, row, reason))
            free -= int(processors[row])
            busy.add(row)
            rows = rows[accepted + 1 :]
            rows = rows[processors[rows] <= free]
        return decisions

    def observe(self, event: Event) -> None:
        """Keep the longest wait; forget the risk of a head that has started, and what it was promised."""
        if isinstance(event, JobSubmitted):
            self.submit_times[event.job_number] = event.time
        elif isinstance(event, JobStarted):
            submit_time = self.submit_times.pop(event.job_number, event.time)  # a requeued job counts once
            self.longest_wait = max(self.longest_wait, event.time - submit_time)
            self.spent.pop(event.job_number, None)
            self.promises.pop(event.job_number, None)

    def snapshot(self) -> Any:
        """Return what is known of the waiting jobs, and the longest wait."""
        tables = {name: list(getattr(self, name).items()) for name in ("spent", "promises", "submit_times")}
        return {**tables, "longest_wait": self.longest_wait}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.spent, self.promises = dict(state["spent"]), dict(state["promises"])
        self.submit_times, self.longest_wait = dict(state["submit_times"]), state["longest_wait"]

    def _in_order(self, now: int, queue: Queue, rows: Column) -> Column:
        """Return the candidates in the order in which they are tried."""
        if self.keys.order == "fcfs":
            return rows
        times = queue.order_request if self.keys.order == "sjbf" else queue.order_time
        shortest = self.keys.order in ("sjbf", "expected")
        if shortest and not self.keys.weight:
            return rows[np.argsort(times[rows], kind="stable")]
        order = ranked(now, queue, times, "1/L" if shortest else self.keys.order, self.keys.weight, self.chance)
        return order[np.isin(order, rows)]

    def _try(self, busy: "_Busy", rows: Column, needed: int, head_run_time: float, safe: Flags, spent: float) -> Tried:
        """Walk once for all candidates; what has been spent on the head bounds what may be spent on it still."""
        queue, keys = busy.queue, self.keys
        return Tried(
            *try_candidates(
                busy.now,
                needed,
                head_run_time,
                busy.processors,
                busy.start_times,
                busy.expected_ends,
                busy.limit_times,
                busy.slots,
                queue.processors[rows],
                queue.predicted_time[rows],
                queue.limit_time[rows],
                queue.slot[rows],
                safe,
                queue.histograms.masses,
                refined_edges(keys.points),
                keys.mass == "censor",
                MEASURES.index(keys.criterion),
                keys.tau,
                1.0 - (1.0 - keys.budget) / (1.0 - spent),
            )
        )

    def _risk(self, head: int, spent: float, tried: Tried, busy: "_Busy") -> ProbablyHarmless:
        """Put the head to the risk of the accepted candidate, and return it as a reason."""
        probability, bound, gain = tried.measures[-1].tolist()
        self.spent[head] = add_risk(spent, probability)
        riskiest = [k for k in np.argsort(-tried.risks, kind="stable")[:RISKIEST].tolist() if tried.risks[k] > ROUNDED]
        return ProbablyHarmless(
            head=head,
            criterion=self.keys.criterion,
            probability=probability,
            bound=bound,
            cost_of_gain=gain if self.keys.criterion == "gain" else None,
            tau=self.keys.tau,
            budget_left=max(round(self.keys.budget - self.spent[head], DIGITS), 0.0),
            riskiest=tuple(
                Risk(
                    job_number=int(busy.numbers[tried.jobs[k]]),
                    time=int(tried.times[k]),
                    probability=round(float(tried.risks[k]), DIGITS),
                )
                for k in riskiest
            ),
            resolution=tried.resolution or None,
        )


class _Busy:
    """The running jobs, and those that this pass has started, as columns."""

    def __init__(self, now: int, queue: Queue, running: Running) -> None:
        self.now = now
        self.queue = queue
        self.started = 0
        self.numbers = running.job_number
        self.processors = running.processors
        self.start_times = running.start_time
        self.requested_times = running.requested_time
        self.slots = running.slot
        starts, requested, limits = running.start_time, running.requested_time, running.limit_time
        self.expected_ends = expected_ends(
            now, starts, running.predicted_time, running.adjusted_time, requested, running.corrections
        )
        self.limit_times = expected_ends(now, starts, limits, limits, requested, NO_CORRECTIONS) - starts

    def add(self, row: int) -> None:
        """Take in a waiting job as started now."""
        queue = self.queue
        self.started += 1
        self.numbers = np.append(self.numbers, queue.job_number[row])
        self.processors = np.append(self.processors, queue.processors[row])
        self.start_times = np.append(self.start_times, self.now)
        self.requested_times = np.append(self.requested_times, queue.requested_time[row])
        self.limit_times = np.append(self.limit_times, queue.limit_time[row])
        self.slots = np.append(self.slots, queue.slot[row])
        self.expected_ends = np.append(self.expected_ends, self.now + queue.predicted_time[row])

    def requested_ends(self) -> Column:
        """Return when each job ends at the latest; one that has outlived its request, in a second."""
        requested = self.requested_times
        return expected_ends(self.now, self.start_times, requested, requested, requested, NO_CORRECTIONS)
