"""Backfilling by probability against a plain twin, against EASY, and its guards."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.kernels.terminations import Distributions, RunningEnds, refined_edges
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.probabilistic.acceptance import (
    UNITS,
    AcceptanceRule,
    Candidates,
    evaluate_candidates,
    in_units,
)
from shadowtime.services.scheduler.probabilistic.delay_probability import delay_bound, delay_probability
from shadowtime.services.scheduler.probabilistic.policy import Probabilistic
from shadowtime.services.scheduler.probabilistic.recalibration import BINS
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.job_table import NEVER, Queue, Running
from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.decisions import Evaluated, Start
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, Envelope, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.messages.reasons import Backfilled, FitsNow, ProbablyHarmless
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, StartedJob, WaitingJob, instances
from shadowtime.testing.workloads import workloads
from tests.support.plain_formulas import conditional
from tests.support.textbook_easy import easy, expected_ends_of, run_time

Ends = dict[float, float]


def policy_of(**keys: Any) -> Probabilistic:
    return Probabilistic(ProbabilisticSettings(**keys))


def decide(policy: Policy, instance: Instance) -> tuple[list[Start], list[Evaluated]]:
    decisions = policy.schedule(instance.now, *instance.tables(), instance.free)
    starts = [each for each in decisions if isinstance(each, Start)]
    return starts, [each for each in decisions if isinstance(each, Evaluated)]


# The twin


def ends_of(
    job: WaitingJob | StartedJob, start_time: int, now: int, end: float, mass: str, *, limited: bool = False
) -> Ends:
    if not job.histogram:
        return {end: 1.0}
    elapsed, limit = now - start_time, job.requested_time
    if limited and job.adjusted_time is not None:
        limit = job.adjusted_time if job.adjusted_time > elapsed else min(elapsed + 300, limit)
    upper = math.inf if limit >= NEVER else float(limit)
    times, left = conditional(np.array(job.histogram), elapsed, upper, censor=mass == "censor")
    return dict(zip((start_time + times).tolist(), left.tolist(), strict=True))


def twin(instance: Instance, settings: ProbabilisticSettings) -> list[tuple[int, float]]:
    """Return the starts with their probabilities; those of heads are -1."""
    now, free, uses = instance.now, instance.free, instance.uses
    limit, truncate = uses.distribution == "limit", uses.adjust_candidates
    running = [
        (job.processors, ends_of(job, job.start_time, now, end, settings.mass, limited=limit and uses.running))
        for job, (end, _) in zip(instance.running, expected_ends_of(instance), strict=True)
    ]

    def started(job: WaitingJob) -> tuple[int, Ends]:
        end = now + run_time(job, truncate=truncate)
        return job.processors, ends_of(job, now, now, end, settings.mass, limited=limit and truncate)

    waiting, starts = list(instance.queue), []
    while waiting and waiting[0].processors <= free:
        job = waiting.pop(0)
        starts.append((job.job_number, -1.0))
        free -= job.processors
        running.append(started(job))
    if not waiting:
        return starts
    head, *candidates = waiting
    if settings.candidates == "1/L":
        base = [
            job._replace(predicted_time=job.requested_time) if settings.by == "request" else job for job in candidates
        ]
        order = {job.job_number: run_time(job, truncate=uses.adjust_queue) for job in base}
        candidates.sort(key=lambda job: -(1 / order[job.job_number] + settings.weight * (now - job.submit_time)))
    spent = 0.0
    for job in candidates:
        if spent >= settings.budget:  # plain EASY from here on, which is not the twin's business
            break
        if job.processors > free:
            continue
        case = head.processors - free, running, started(job)
        exact = round(delay_probability(*case), 6)
        weighed = exact if settings.criterion == "exact" else round(delay_bound(*case), 6)
        risk = 1 - (1 - spent) * (1 - exact)
        if weighed < settings.tau and risk <= settings.budget + 1e-12:
            spent = risk
            starts.append((job.job_number, exact))
            free -= job.processors
            running.append(started(job))
    return starts


@given(
    instance=instances(max_waiting=6, max_running=4),
    tau=st.sampled_from([0.05, 0.3, 0.8, 1.0]),
    criterion=st.sampled_from(["exact", "paper"]),
    candidates=st.sampled_from(["queue", "fcfs", "1/L"]),
    by=st.sampled_from(["plan", "request"]),
    weight=st.sampled_from([0.0, 0.001, 0.1]),
    mass=st.sampled_from(["truncate", "censor"]),
    budget=st.sampled_from([1.0, 0.4]),
)
@examples(300)
def test_is_its_plain_twin(instance: Instance, **keys: Any) -> None:
    if instance.free <= 0:
        return
    starts, _ = decide(policy_of(**keys), instance)
    expected = twin(instance, ProbabilisticSettings(**keys))
    used_up = keys["budget"] < 1 or any(probability == 1 for _, probability in expected)
    if used_up and len(starts) > len(expected):
        starts = starts[: len(expected)]
    assert [each.job_number for each in starts] == [number for number, _ in expected]
    for each, (_, probability) in zip(starts, expected, strict=True):
        if isinstance(each.reason, ProbablyHarmless):
            assert each.reason.probability == pytest.approx(probability, abs=2e-6)


@given(instance=instances(max_waiting=5, max_running=4), points=st.integers(1, 3), weigh=st.booleans() | st.none())
@examples(60)
def test_trying_candidates_is_its_plain_twin(instance: Instance, points: int, weigh: bool | None) -> None:
    queue, running = instance.tables()
    if not len(queue):
        return
    masses, safe = queue.histograms.masses, np.arange(len(queue)) == 3
    mended = np.array([[0.5, 0.5, 0.5, *[0.1] * BINS], [-1.0, 2.0, 0.5, *[-0.1] * BINS]])[: 2 * (weigh is not None)]
    ends = running.start_time + running.requested_time
    arguments = (
        *(instance.now, 3, 60.0),
        RunningEnds(running.processors, running.start_time, ends, running.requested_time, running.slot),
        Candidates(queue.processors, queue.predicted_time, queue.requested_time, queue.slot, safe),
        Distributions(masses, refined_edges(points), points == 2),
        AcceptanceRule(points - 1, 0.3, 0.9, mended, bool(weigh)),
        1 << 62,
    )
    compiled, plain = evaluate_candidates(*arguments), evaluate_candidates.py_func(*arguments)  # type: ignore[attr-defined]
    for mine, expected in zip(compiled, plain, strict=True):
        assert np.asarray(mine) == pytest.approx(np.asarray(expected), rel=1e-3, abs=2e-6)


# EASY


@given(
    instance=instances(),
    tau=st.sampled_from([1e-9, 0.05, 0.5, 1.0]),
    criterion=st.sampled_from(["exact", "paper"]),
    safe=st.booleans(),
)
@examples(300)
def test_without_distributions_it_is_easy(instance: Instance, tau: float, criterion: Any, *, safe: bool) -> None:
    known = instance._replace(
        queue=[job._replace(histogram=()) for job in instance.queue],
        running=[job._replace(histogram=()) for job in instance.running],
    )
    starts, _ = decide(policy_of(tau=tau, criterion=criterion), known)
    assert [each.job_number for each in starts] == [each.job_number for each in easy(known)]
    if safe:
        on_requests = known.on_requests()
        starts, _ = decide(policy_of(tau=tau, criterion=criterion, accept_easy_safe=True), on_requests)
        assert [each.job_number for each in starts] == [each.job_number for each in easy(on_requests)]


@given(instance=instances())
@examples(150)
@pytest.mark.parametrize(
    "keys", [{"budget": 0.0}, {"patience": 0.0, "accept_easy_safe": True}], ids=["no-budget", "no-patience"]
)
def test_a_head_without_budget_or_patience_gets_plain_easy(keys: dict[str, Any], instance: Instance) -> None:
    aged = instance._replace(queue=[job._replace(submit_time=job.submit_time - 100) for job in instance.queue])
    starts, evaluated = decide(policy_of(tau=1.0, **keys), aged)
    assert [each.job_number for each in starts] == [each.job_number for each in easy(aged.on_requests())]
    assert not evaluated


# A head of 8 on a machine of 10: job 9 holds 6 and ends at 10 (bin 6) or 20 (bin 7) with probability 1/2 each.
SOON, LATE = EDGES[6], EDGES[7]
EITHER = (0.0,) * 5 + (0.5, 0.5)
MACHINE = [StartedJob(9, 0, 6, 3600, 3600, 0, EITHER)]


def candidate(number: int, processors: int = 3, histogram: tuple[float, ...] = ()) -> WaitingJob:
    return WaitingJob(number, 1, processors, 3600, 3600, histogram)


def blocked(*candidates: WaitingJob, free: int = 4, now: int = 0) -> Instance:
    return Instance(now, free, [WaitingJob(1, 0, 8, 3600, 3600), *candidates], MACHINE, ())


def test_what_a_decision_says() -> None:
    """The candidate ends at the late edge with 1/4, later never: it is in the way if job 9 ends before it."""
    shaped = (0.0,) * 4 + (0.75, 0.0, 0.25)
    (start,), (evaluated,) = decide(policy_of(tau=0.2), blocked(candidate(2), candidate(3, histogram=shaped)))
    assert evaluated == Evaluated(
        head=1,
        needed=4,
        after=0,
        job_numbers=(2, 3),
        probabilities=(1.0, 0.125),
        bounds=(1.0, 0.125),
        accepted=True,
    )
    reason = start.reason
    assert isinstance(reason, ProbablyHarmless)
    assert (start.job_number, reason.head, reason.probability, reason.bound) == (3, 1, 0.125, 0.125)
    assert (reason.tau, reason.criterion, reason.budget_left, reason.resolution) == (0.2, "exact", 0.875, None)
    assert [(risk.job_number, risk.time, risk.probability) for risk in reason.riskiest] == [(9, int(SOON), 0.125)]


def test_the_risk_to_one_head_is_bounded_over_passes() -> None:
    shaped = (0.0,) * 4 + (0.75, 0.0, 0.25)
    policy = policy_of(tau=0.2, budget=0.3)
    spent = 0.0
    for number in range(2, 4):
        starts, _ = decide(policy, blocked(candidate(number, histogram=shaped)))
        spent = 1 - (1 - spent) * (1 - 0.125)
        assert policy.heads.risk_spent[1] == pytest.approx(spent)
        assert len(starts) == 1
    starts, (evaluated,) = decide(policy, blocked(candidate(4, histogram=shaped)))
    assert not starts  # 0.33 would be more than 0.3
    assert not evaluated.accepted
    policy.observe(JobStarted(time=5, job_number=1, processors=8, limit=3600))
    assert policy.heads.risk_spent == {}


def test_a_spent_budget_leaves_plain_easy() -> None:
    shaped = (0.0,) * 4 + (0.75, 0.0, 0.25)
    policy = policy_of(tau=0.2, budget=0.125)
    decide(policy, blocked(candidate(2, histogram=shaped)))
    (start,), evaluated = decide(policy, blocked(candidate(3, processors=2, histogram=shaped), candidate(4)))
    assert not evaluated
    assert isinstance(start.reason, Backfilled)
    assert start.job_number == 3  # it takes the extra processors


def test_what_easy_would_start_costs_nothing() -> None:
    """Job 2 ends too late and is weighed; job 3 takes the extra processors, at whatever probability."""
    policy = policy_of(tau=0.05, accept_easy_safe=True)
    instance = blocked(candidate(2)._replace(requested_time=7200), candidate(3, processors=2, histogram=EITHER))
    (start,), (evaluated,) = decide(policy, instance)
    assert start.job_number == 3
    assert isinstance(start.reason, Backfilled)
    assert (evaluated.job_numbers, evaluated.accepted) == ((2,), False)
    assert policy.heads.risk_spent == {}


# What a delay costs


def test_the_cost_of_a_gain() -> None:
    """The head is ready at SOON or LATE; the candidate, until after both, stands in its way from then on."""
    long = (0.0,) * 8 + (1.0,)  # ends at EDGES[9]
    waiting = candidate(2, histogram=long)._replace(predicted_time=150)
    instance = blocked(waiting)
    head = instance.queue[0]._replace(predicted_time=700)
    delay = EDGES[9] - (SOON + LATE) / 2
    until_ready = (SOON + LATE) / 2
    expected = delay / 700 / (until_ready / 150)
    above, below = round(expected, 6) + 1e-6, round(expected, 6)
    (start,), _ = decide(policy_of(criterion="gain", tau=above), instance._replace(queue=[head, waiting]))
    assert isinstance(start.reason, ProbablyHarmless)
    assert start.reason.cost_of_gain == pytest.approx(expected, abs=1e-6)
    assert start.reason.probability == 1.0
    assert not decide(policy_of(criterion="gain", tau=below), instance._replace(queue=[head, waiting]))[0]


def test_the_cost_does_not_depend_on_who_else_waits() -> None:
    first = candidate(2, histogram=(0.0,) * 6 + (1.0,))._replace(predicted_time=30)
    other = candidate(3, processors=4, histogram=(0.0,) * 15 + (1.0,))._replace(predicted_time=3600)
    costs = []
    for waiting in ((first,), (first, other)):
        (start, *_), _ = decide(policy_of(criterion="gain", tau=1.0), blocked(*waiting))
        assert isinstance(start.reason, ProbablyHarmless)
        costs.append(start.reason.cost_of_gain)
    assert costs[0] == costs[1]


def test_a_promise_that_could_not_be_kept_is_made_again() -> None:
    """A head larger than a machine that has shrunk was promised nothing, and is patient again once it has grown."""
    running = [StartedJob(9, 0, 6, 1000, 1000, 0, EITHER)]
    head, long = WaitingJob(1, 0, 8, 3600, 3600), WaitingJob(2, 0, 3, 100_000, 100_000, (1.0,))
    policy = policy_of(tau=1.0, patience=0.0)
    decide(policy, Instance(0, 1, [head, WaitingJob(3, 0, 1, 3600, 3600)], running, ()))
    assert decide(policy, Instance(0, 4, [head, long], running, ()))[0] == []
    assert policy.heads.promises == {1: 1000}


class Promises:
    """Follows a replay: what each job could be promised when it came to be a blocked head, and the longest wait."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.promises: dict[int, int] = {}
        self.waiting: dict[int, JobSubmitted] = {}
        self.running: dict[int, tuple[int, int]] = {}
        self.free = 8
        self.longest_wait = 0

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self.waiting[event.job_number] = event
        elif isinstance(event, JobStarted):
            job = self.waiting.pop(event.job_number)
            promise = self.promises.get(event.job_number, event.time)
            assert event.time <= max(promise, job.time + self.patience * self.longest_wait)
            self.longest_wait = max(self.longest_wait, event.time - job.time)
            self.running[event.job_number] = event.time + (job.requested_time or 0), event.processors
            self.free -= event.processors
        elif isinstance(event, JobEnded):
            self.free += self.running.pop(event.job_number)[1]
        elif isinstance(event, Decided):
            self.promise(event)

    def promise(self, decided: Decided) -> None:
        heads = [self.waiting[each.job_number] for each in decided.starts if each.reason == FitsNow()]
        free = self.free - sum(job.requested_processors for job in heads)
        left = [job for job in self.waiting.values() if job not in heads]
        if not any(0 < job.requested_processors <= free for job in left[1:]) or left[0].job_number in self.promises:
            return
        head = left[0]
        ends = [(decided.time + (job.requested_time or 0), job.requested_processors) for job in heads]
        for end, processors in sorted([*self.running.values(), *ends]):
            free += processors
            if free >= head.requested_processors:
                self.promises[head.job_number] = end
                return


@pytest.mark.parametrize(
    "keys", ["tau=1", "tau=1,accept_easy_safe=yes,candidates=spf,by=request", "tau=1,criterion=gain"]
)
@given(jobs=workloads(), patience=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
@examples(60)
def test_no_head_starts_later_than_promised_or_than_patience_has_it(keys: str, jobs: Workload, patience: float) -> None:
    policy, runtime, adjustment = configure(f"probabilistic:{keys},patience={patience},runtime=empirical")
    opened = ClusterOpened(time=0, cluster="c", processors=8, policy=policy, runtime=runtime, adjustment=adjustment)
    EmbeddedReplay(opened, Machine(jobs), [Promises(patience)]).run_to_end()


def test_candidates_that_have_waited_for_half_of_the_patience_go_first() -> None:
    policy = policy_of(candidates="spf", by="request", patience=1.0)
    policy.observe(JobSubmitted(time=0, job_number=99, requested_processors=1))
    policy.observe(JobStarted(time=100, job_number=99, processors=1))
    jobs = [WaitingJob(2, 40, 4, 60, 60), WaitingJob(3, 60, 4, 50, 50)]
    running = [StartedJob(9, 0, 6, 3600, 3600, 0)]
    instance = Instance(95, 4, [WaitingJob(1, 0, 8, 3600, 3600), *jobs], running, ())
    assert [each.job_number for each in decide(policy, instance)[0]] == [2]
    assert [each.job_number for each in decide(policy_of(candidates="spf", by="request"), instance)[0]] == [3]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [({}, 2), ({"candidates": "spf", "by": "request"}, 3), ({"candidates": "spf"}, 4)],
)
def test_order_of_candidates(keys: dict[str, Any], expected: int) -> None:
    jobs = [
        WaitingJob(2, 1, 4, 900, 800),
        WaitingJob(3, 1, 4, 700, 600),
        WaitingJob(4, 1, 4, 800, 500),
    ]
    instance = Instance(0, 4, [WaitingJob(1, 0, 8, 3600, 3600), *jobs], [StartedJob(9, 0, 6, 3600, 3600, 0)], ())
    starts, _ = decide(policy_of(**keys), instance)
    assert [each.job_number for each in starts] == [expected]


# Large machines


def test_a_large_machine_is_counted_in_units_and_says_so() -> None:
    scale = 997  # a prime: the sizes have no common divisor once the small job runs
    queue = [
        WaitingJob(1, 0, 80 * scale, 3600, 3600),
        WaitingJob(2, 1, 30 * scale, 3600, 3600, (0.0,) * 4 + (0.75, 0.0, 0.25)),
    ]
    running = [StartedJob(9, 0, 60 * scale, 3600, 3600, 0, EITHER), StartedJob(10, 0, 1, 3600, 3600, 0)]
    instance = Instance(0, 40 * scale, queue, running, ())
    (start,), _ = decide(policy_of(tau=0.2), instance)
    assert isinstance(start.reason, ProbablyHarmless)
    assert start.reason.probability == 0.125
    assert start.reason.resolution is not None
    assert 70 * scale / start.reason.resolution <= UNITS


@pytest.mark.parametrize("jobs", [3990, 4096, 8192, 9001])
def test_small_jobs_on_a_large_machine_do_not_vanish_in_a_unit(jobs: int) -> None:
    """The head is ready once all have ended, at one instant, and the candidate is in its way then."""
    queue = [WaitingJob(1, 0, jobs + 5, 3600, 3600), WaitingJob(2, 1, 5, 7200, 7200)]
    running = [StartedJob(100 + number, 0, 1, 600, 600, 0) for number in range(jobs)]
    starts, (evaluated,) = decide(policy_of(tau=1.0), Instance(0, 5, queue, running, ()))
    assert not starts
    assert evaluated.probabilities == (1.0,)


@given(st.lists(st.integers(1, 60), max_size=12), st.integers(1, 9))
def test_units_add_up_to_what_is_held(sizes: list[int], unit: int) -> None:
    rounded = in_units(np.array(sizes, dtype=np.int64), unit)
    assert rounded.sum() == -(-sum(sizes) // unit)
    assert (abs(rounded - np.array(sizes) / unit) < 1).all()


def test_sizes_with_a_common_divisor_stay_exact() -> None:
    queue = [WaitingJob(1, 0, 80_000, 3600, 3600), WaitingJob(2, 1, 30_001, 3600, 3600, EITHER)]
    running = [StartedJob(9, 0, 60_000, 3600, 3600, 0, EITHER)]
    _, (evaluated,) = decide(policy_of(tau=0.2), Instance(0, 40_000, queue, running, ()))
    (start,), _ = decide(policy_of(tau=0.6), Instance(0, 40_000, queue, running, ()))
    assert isinstance(start.reason, ProbablyHarmless)
    assert start.reason.resolution is None
    assert evaluated.probabilities == (0.25,)


# Bad input


@pytest.mark.parametrize("tau", ["0", "-0.1", "1.01", "nan", "a"])
def test_a_tau_that_is_no_probability_is_named(tau: str) -> None:
    with pytest.raises(SettingsError, match=f"tau={tau}"):
        configure(f"probabilistic:tau={tau}")


def test_a_machine_that_has_shrunk_below_the_head_lets_others_pass() -> None:
    starts, _ = decide(policy_of(), Instance(0, 4, [WaitingJob(1, 0, 80, 9, 9), candidate(2)], MACHINE, ()))
    assert [each.job_number for each in starts] == [2]
    assert decide(policy_of(), Instance(0, 4, [WaitingJob(1, 0, 80, 9, 9), candidate(2)], [], ()))[0]


def test_a_job_beyond_its_request_is_expected_in_a_second() -> None:
    running = [StartedJob(9, 0, 6, 100, 100, 0, EITHER)]
    short = WaitingJob(2, 1, 3, 1, 1)
    instance = Instance(500, 4, [WaitingJob(1, 0, 8, 3600, 3600), short, candidate(3)], running, ())
    starts, _ = decide(policy_of(), instance)
    assert [each.job_number for each in starts] == [2]


def test_jobs_without_request_or_user_are_weighed_all_the_same() -> None:
    running = [StartedJob(9, 0, 6, NEVER, NEVER, 0, EITHER)]
    endless = WaitingJob(2, 1, 3, NEVER, NEVER, EITHER)
    (start,), _ = decide(policy_of(tau=0.5), Instance(0, 4, [WaitingJob(1, 0, 8, NEVER, NEVER), endless], running, ()))
    assert isinstance(start.reason, ProbablyHarmless)
    assert start.limit is None
    outlived = Instance(10**6, 4, [WaitingJob(1, 0, 8, NEVER, NEVER), endless], running, ())
    assert decide(policy_of(tau=0.5), outlived)[0]


def test_registered_and_state_survives() -> None:
    policy = POLICIES.build(parse("probabilistic:tau=0.2"))
    decide(policy, blocked(candidate(2, histogram=(0.0,) * 4 + (0.75, 0.0, 0.25))))
    again = POLICIES.build(parse("probabilistic:tau=0.2"))
    again.restore(policy.snapshot())
    assert again.snapshot() == policy.snapshot()
    assert policy.snapshot()["spent"]


def test_tables_are_left_alone() -> None:
    queue, running = Queue(), Running()
    assert policy_of().schedule(0, queue, running, 5) == []
    assert policy_of().schedule(0, *blocked().tables(), -3) == []
