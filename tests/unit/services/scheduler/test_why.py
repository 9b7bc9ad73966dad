"""What is said of a waiting job is true: each sentence is checked by hand against the log (support/why_by_hand.py)."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.services.catalogue import canonical
from shadowtime.services.explained import EXPLAINED, following
from shadowtime.services.scheduler.explain.stage import Explaining
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.explanation import Explanation, StartOutlook
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.text.explanations import sentences_of
from tests.support.small_logs import generated, plan_of
from tests.support.why_by_hand import Checked, as_read, asked, drawn, explained

POLICIES = {
    "easy": ("fcfs", False),
    "easy:plan=requested,forecast=yes,runtime=empirical": ("fcfs", True),
    "easy-sjbf:runtime=empirical": ("fcfs", False),
    "wfp": ("wfp3", False),
    "easy:queue=spf,runtime=last-two": ("spf", False),
    "fcfs": ("fcfs", False),
    "cautious": ("fcfs", True),
    "probabilistic:tau=0.05,runtime=empirical": ("fcfs", True),
    "probabilistic:tau=0.3,criterion=paper,runtime=empirical": ("fcfs", True),
}
KINDS: Counter[str] = Counter()


def log_of(policy: str, jobs: int = 250, processors: int = 16) -> list[Envelope]:
    found: list[Envelope] = []
    plan = plan_of(generated(jobs, processors, load=3.0), policy)
    carry_out(plan._replace(wait_bound=canonical("wait-bound", "bmbp:publish=plain,history=100")), [found.append])
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_each_sentence_is_true(policy: str) -> None:
    order, by_requests = POLICIES[policy]
    kinds = asked(log_of(policy), 40, 23, order, by_requests=by_requests)
    KINDS.update(kinds)
    assert kinds["ahead"]
    assert kinds["needs"]


def test_every_kind_of_sentence_was_met() -> None:
    """After those above."""
    if sum(KINDS.values()):
        assert {"first", "behind", "shadow", "ends", "enough", "refused", "expected", "late"} <= KINDS.keys()
        assert {"shorter", "fewer", "nothing", "blocked"} <= KINDS.keys()


def changed(why: Explanation, path: str, change: Callable[[float], float]) -> Explanation | None:
    """Return it with another number at some place; None if it has none there."""
    state: Any = why.model_dump()
    key: Any
    key, *rest = path.split(".")
    place = state
    for name in rest:
        if place[key] is None or place[key] == ():
            return None
        place[key] = list(place[key]) if isinstance(place[key], tuple) else place[key]
        place, key = place[key], int(name) if name.isdigit() else name
    if place[key] is None:
        return None
    place[key] = change(place[key])
    return Explanation.model_validate(state)


ENOUGH = 5
UNTRUE: dict[str, Callable[[float], float]] = {
    "processors": lambda each: each + 1,
    "since": lambda each: each - 3600,
    "ahead.jobs": lambda each: each + 1,
    "ahead.processors": lambda each: each + 1,
    "free": lambda each: each + 1,
    "asked": lambda each: each + 1,
    "ends.time": lambda each: each - 1,
    "ends.jobs": lambda each: each + 1,
    "ends.probability": lambda each: each * 0.9,
    "ends.named.0.job_number": lambda each: each + 1,
    "ends.named.0.processors": lambda each: each + 1,
    "ends.named.0.expected_end": lambda each: each + 1,
    "ends.named.0.probability": lambda each: each * 0.9,
    "ends.quantiles.0.1": lambda each: each - 600,
    "shadow.shadow_time": lambda each: each - 1,
    "shadow.extra_processors": lambda each: each + 1,
    "shadow.planned_end": lambda each: each + 1,
    "shadow.head": lambda each: each + 1,
    "refused.0.probability": lambda each: each * 0.9,
    "refused.0.head": lambda each: each + 1,
    "refused.0.time": lambda each: each - 1,
    "starts.expected": lambda each: each + 60,
    "starts.passed": lambda each: each + 60,
    "starts.latest": lambda each: each + 60,
    "sooner.0.requested_time": lambda each: each * 2,
    "sooner.0.processors": lambda each: each * 2,
    "sooner.0.cut": lambda each: 1 - each,
}


@pytest.fixture(scope="module")
def logs() -> dict[str, list[Envelope]]:
    tau = "probabilistic:tau=0.05,runtime=empirical,accept_easy_safe=yes,forecast=yes"
    return {policy: log_of(policy, jobs=400, processors=64) for policy in ("easy:forecast=yes,runtime=empirical", tau)}


@pytest.mark.nightly
def test_the_check_finds_what_is_made_untrue(logs: dict[str, list[Envelope]]) -> None:
    """Of every number that a sentence has; all but one in five, for another may be true by chance."""
    tried: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for policy, log in logs.items():
        for by_hand, real, number in drawn(log, 60, 7):
            why = explained(real, number)
            by_requests = policy.startswith("probabilistic")
            Checked(by_hand, real, why, "fcfs", by_requests=by_requests).all()
            for path, change in UNTRUE.items():
                other = changed(why, path, change)
                if tried[path] == ENOUGH or other is None or sentences_of(other) == sentences_of(why):
                    continue
                tried[path] += 1
                try:
                    Checked(by_hand, real, other, "fcfs", by_requests=by_requests).all()
                except (AssertionError, KeyError):
                    found[path] += 1
    assert tried.keys() == UNTRUE.keys()
    assert {path: (tried[path], found[path]) for path in tried if found[path] < tried[path] - 1} == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", ["easy:runtime=empirical", "cautious", "conservative", "tuned"])
def test_who_follows_decisions_says_the_same(policy: str) -> None:
    """But what only a run of the policy tells, where that has a state of its own."""
    log = log_of(policy, 150)
    follows, real = following(log[0].event), StageRun(EXPLAINED)  # type: ignore[arg-type]
    for envelope in log:
        real.push(as_read(envelope))
        if envelope.sequence:
            follows.handle(envelope)
        if envelope.sequence % 29 or real.handler is None:
            continue
        restored = StageRun(EXPLAINED)
        restored.restore(real.snapshot())
        for number in [*real.handler.jobs.waiting][:4] + [*real.handler.jobs.running][:4]:
            why = explained(real, number)
            assert explained(restored, number) == why
            said = follows.explain(number, "r", envelope.sequence)
            assert said is not None
            if policy.startswith("easy"):
                assert said == why
            elif why.waits_for != "pass":
                own = {"sooner": (), "tried": False}
                assert said == why.model_copy(update=own)


def told(*events: Event, **opening: object) -> StageRun:
    run = StageRun(EXPLAINED)
    opened = ClusterOpened.model_validate({"time": 0, "cluster": "c", "processors": 8} | opening)
    for sequence, event in enumerate((opened, *events)):
        run.push(Envelope(run="r", sequence=sequence, event=event))
    return run


def submitted(number: int, processors: int, time: int = 0, **more: object) -> JobSubmitted:
    fields = {"time": time, "job_number": number, "requested_processors": processors, "requested_time": 3600}
    return JobSubmitted.model_validate(fields | more)


def started(number: int, processors: int, time: int = 0) -> JobStarted:
    return JobStarted(time=time, job_number=number, processors=processors, limit=3600)


def test_a_pass_that_might_be_is_one_of_the_job_s_own_pool() -> None:
    """A reservation in the second pool leaves room for a run of 8 minutes; the first pool has none."""
    policy = "slurm:sched_delay=0,bf_resolution=1,reservations=1:500:9000:6"
    pools = [Pool(name="small", processors=8), Pool(name="large", processors=8)]
    run = told(submitted(1, 4, pool=1), SchedulingPoint(time=0), policy=policy, processors=16, pools=pools)
    why = explained(run, 1)
    assert [(each.requested_time, each.processors) for each in why.sooner] == [(480, None), (None, 2)]


def test_jobs_that_run_or_have_ended_get_a_short_answer() -> None:
    run = told(submitted(1, 8), SchedulingPoint(time=0), started(1, 8))
    assert sentences_of(explained(run, 1)) == [
        "Job 1 runs since 00:00:00 on 8 procs, for 1.0 h at most, having waited 0 s.",
        "It was decided to start it at 00:00:00: nothing waits ahead of it, and it fits.",
    ]
    run.push(Envelope(run="r", sequence=4, event=JobEnded(time=60, job_number=1, run_time=60)))
    assert sentences_of(explained(run, 1)) == [
        "Job 1 completed at 00:01:00 after 1.0 min on 8 procs; it had waited 0 s."
    ]
    assert isinstance(run.handler, Explaining)
    assert run.handler.explain(7, "r", 4) is None
    assert run.handler.known() == "0 wait, 0 run; of ended jobs the last 1 are known"


def test_a_job_that_is_about_to_start_says_so() -> None:
    run = told(submitted(1, 8), submitted(2, 8), SchedulingPoint(time=0))
    assert sentences_of(explained(run, 1))[1] == "It starts now."
    why = explained(run, 2)
    assert (why.ahead and why.ahead.jobs, why.free) == (0, 0)
    assert why.ends is not None
    assert [each.job_number for each in why.ends.named] == [1]


def test_times_before_second_0_have_quantiles_too() -> None:
    run = told(submitted(1, 8, -500), started(1, 8, -500), submitted(2, 8, -500), time=-500)
    ends = explained(run, 2).ends
    assert ends is not None
    assert (ends.time, ends.quantiles) == (3100, ((0.5, 3100), (0.9, 3100)))


@pytest.mark.parametrize(
    ("jobs", "number", "says"),
    [
        ([submitted(1, 8), started(1, 8), submitted(2, 4, blocked=True)], 2, "The site does not let it start for now"),
        (
            [submitted(1, 8), CapacityChanged(time=0, processors=4)],
            1,
            "It needs 8 procs, more than there are just now.",
        ),
    ],
)
def test_what_it_waits_for(jobs: list[Event], number: int, says: str) -> None:
    assert any(each.startswith(says) for each in sentences_of(explained(told(*jobs), number)))


def test_each_pool_is_a_queue_of_its_own_and_memory_may_lack() -> None:
    pools = (Pool(name="a", processors=4, memory=100), Pool(name="b", processors=4))
    run = told(
        submitted(1, 1, pool=0, memory=80),
        submitted(2, 4, pool=1),
        started(1, 1),
        started(2, 4),
        submitted(3, 1, pool=0, memory=30),
        submitted(4, 1, pool=1),
        pools=pools,
    )
    why = explained(run, 3)
    assert (why.waits_for, why.asked, why.free) == ("memory", 30, 20)
    assert why.ahead is not None
    assert why.ahead.jobs == 0
    assert "It needs 30 MiB of memory, and 20 are free." in sentences_of(why)
    assert why.ends is not None
    assert [each.job_number for each in why.ends.named] == [1]
    other = explained(run, 4)
    assert other.ends is not None
    assert [each.job_number for each in other.ends.named] == [2]


def test_advice_is_told_as_such() -> None:
    run = told(submitted(1, 4), SchedulingPoint(time=0), mode="recorded")
    assert sentences_of(explained(run, 1))[1:] == [
        "The policy first advised to start it at 00:00:00: nothing waits ahead of it, and it fits.",
        "It is the first in the order of the queue (fcfs).",
        "It fits, and the policy would start it; decisions are advice here, and the machine has not.",
    ]


def test_a_rule_of_its_own_is_told_as_such() -> None:
    run = told(submitted(1, 8), started(1, 8), submitted(2, 8), submitted(3, 1), policy="guarded")
    assert (
        "The policy serves the queue by a rule of its own. Came before it: 1 job, which requests 8 procs in all: 2."
        in (sentences_of(explained(run, 3)))
    )


@pytest.mark.parametrize("policy", ["guarded", "tuned"])
def test_the_head_that_a_decision_named_starts_once_it_fits(policy: str) -> None:
    """These policies serve the queue by a rule of their own."""
    events = submitted(1, 6), SchedulingPoint(time=0), started(1, 6), submitted(2, 8, 5), SchedulingPoint(time=5)
    assert explained(told(*events, policy=policy), 2).starts == StartOutlook()
    later = submitted(3, 1, 6, requested_time=60), SchedulingPoint(time=6), started(3, 1, 6)
    run = told(*events, *later, policy=policy)
    assert explained(run, 2).starts == StartOutlook(source="releases", expected=3600)
    assert isinstance(run.handler, Explaining)
    run.push(Envelope(run="r", sequence=9, event=JobEnded(time=60, job_number=1, run_time=60)))
    assert run.handler.passes.named == {2: None}
    run.push(Envelope(run="r", sequence=10, event=started(2, 8, 60)))
    assert run.handler.passes.named == {}


def test_what_is_kept_is_let_go_of() -> None:
    run = told(submitted(1, 8), SchedulingPoint(time=0), started(1, 8))
    for number in range(2, 300):
        ended = JobEnded(time=number, job_number=number - 1, run_time=0)
        for event in (ended, submitted(number, 8, number), SchedulingPoint(time=number), started(number, 8, number)):
            run.push(Envelope(run="r", sequence=run.sequence + 1, event=event))
    assert isinstance(run.handler, Explaining)
    kept = run.handler.passes
    assert [len(kept.reasons), len(kept.refused), len(kept.promises), len(kept.ended)] == [1, 0, 0, 100]
