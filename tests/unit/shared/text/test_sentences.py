"""Whatever happens can be told in words, and the words do nothing to a terminal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.messages.decisions import Chosen, Kill, Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.explanation import Explanation, Refused
from shadowtime.shared.messages.predictions import (
    ChangePoint,
    Coverage,
    RunTimePrediction,
    WaitBound,
    WaitForecast,
    WalltimeAdjustment,
)
from shadowtime.shared.messages.reasons import Backfilled, FitsNow, ProbablyHarmless, Reason, Reserved, Speculated
from shadowtime.shared.text.events import bounded, chosen, sentences
from shadowtime.shared.text.explanations import reasons_of
from shadowtime.shared.text.reasons import RunContext, describe_reason
from tests.support.strategies.events import EVENT_TYPES, envelopes


@given(st.sampled_from(EVENT_TYPES).flatmap(envelopes))
def test_every_envelope_has_words_that_a_terminal_does_not_obey(envelope: Envelope) -> None:
    for each in sentences(envelope):
        assert str(each).isprintable()


@pytest.mark.parametrize(
    ("pool", "pools", "words"),
    [
        (None, (), "the machine has 8 procs"),
        (0, (), "the machine has 8 procs"),
        (0, ("all",), "the machine has 8 procs"),
        (0, ("cpu", "gpu"), "pool cpu has 8 procs"),
        (1, ("cpu", "gpu"), "pool gpu has 8 procs"),
        (1, (), "pool number 2 has 8 procs"),
    ],
)
def test_a_change_of_a_pool_is_not_one_of_the_machine(pool: int | None, pools: tuple[str, ...], words: str) -> None:
    """Of a cluster with 400 processors, of which a pool of 16 lost a node, it was said that "the machine has 8"."""
    envelope = Envelope(run="r", sequence=1, event=CapacityChanged(time=60, processors=8, pool=pool))
    assert list(map(str, sentences(envelope, RunContext(pools=pools)))) == [words]


def test_a_job_whose_limit_is_lifted_asks_for_none() -> None:
    envelope = Envelope(run="r", sequence=1, event=JobChanged(time=60, job_number=7, unlimited=True))
    assert list(map(str, sentences(envelope))) == ["job 7 changes: asks for no limit"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (FitsNow(), "nothing waits ahead of it, and it fits"),
        (
            Backfilled(head=2, extra_processors=3, ends_by_shadow_time=True),
            "backfilled, job 2 does not fit even when all running jobs have ended",
        ),
        (
            Backfilled(head=2, shadow_time=60, extra_processors=3, ends_by_shadow_time=True),
            "backfilled, ends by 00:01:00, when job 2 can start by requests",
        ),
        (
            Backfilled(head=2, shadow_time=86_400, extra_processors=1, ends_by_shadow_time=False),
            "backfilled, on what job 2 leaves: 1 proc left over at 2 Jan 00:00:00 by requests",
        ),
        (
            ProbablyHarmless(head=2, criterion="exact", probability=0.01234, bound=0, tau=0.05, budget_left=0.75),
            "backfilled, delays job 2 with 1.23 %, budget left 75 %",
        ),
        (
            ProbablyHarmless(
                head=2, criterion="gain", probability=0.06, recalibrated=0.284, bound=0, tau=1, budget_left=1
            ),
            "backfilled, delays job 2 with 28.4 % (raw 6 %)",
        ),
        (Reserved(), "its place in the plan has come"),
        (Reserved(guaranteed_start=60), "its place in the plan has come, guaranteed by 00:01:00"),
        (Speculated(attempt=2, hole=600, test_run=False), "attempt 2 in a hole of the plan of 10.0 min"),
        (Speculated(attempt=1, test_run=True), "test run in a hole of the plan"),
    ],
)
def test_reasons(reason: Reason, words: str) -> None:
    assert describe_reason(reason, RunContext(unix_start=1_704_067_200, plan="requests"), now=0) == words


def test_a_submission_tells_what_is_predicted_of_it() -> None:
    bounds = [
        WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=7200),
        WaitBound(grouping="static", quantile=0.95, confidence=0.95, bound=3600),
        WaitBound(grouping="plain", queue=1, quantile=0.95, confidence=0.95, bound=60),
        WaitBound(grouping="nodes", quantile=0.95, confidence=0.95, reason="too few waits"),
    ]
    envelope = Envelope(
        run="r",
        sequence=1,
        event=JobSubmitted(time=0, job_number=7, requested_processors=4, requested_time=3600),
        run_time=RunTimePrediction(point=90.0, observations=3),
        adjustment=WalltimeAdjustment(adjusted_time=1800, observations=4, key="user"),
        wait_bounds=tuple(bounds),
    )
    (found,) = sentences(envelope)
    assert str(found) == (
        "job 7 (4 procs) is submitted: asks for 1.0 h; expected to run 1.5 min; "
        "adjusted to 30.0 min; waits at most 2.0 h (plain, 95 %)"
    )
    assert bounded(bounds[3]) == "no bound (nodes: too few waits)"


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        (WaitForecast(wait=7200), "job 7 (4 procs) is submitted: forecast to wait 2.0 h"),
        (WaitForecast(wait=0), "job 7 (4 procs) is submitted: forecast to wait 0 s"),
        (WaitForecast(reason="too small\x1b"), "job 7 (4 procs) is submitted: no forecast (too small\ufffd)"),
    ],
)
def test_a_submission_tells_its_forecast(forecast: WaitForecast, words: str) -> None:
    event = JobSubmitted(time=0, job_number=7, requested_processors=4)
    (found,) = sentences(Envelope(run="r", sequence=1, event=event, forecast=forecast))
    assert str(found) == words


def test_starts_and_ends_tell_how_predictions_fared() -> None:
    def words(event: JobStarted | JobEnded, **told: object) -> str:
        (found,) = sentences(Envelope(run="r", sequence=1, event=event).model_copy(update=told))
        return str(found)

    started = JobStarted(time=0, job_number=7, processors=4)
    ended = JobEnded(time=90, job_number=7, run_time=90)
    told = Coverage(grouping="plain", quantile=0.95, revealed=1000, covered=0.95, low=0.929, high=0.971)
    low = told.model_copy(update={"grouping": "nodes", "queue": 2, "covered": 0.9})
    point = ChangePoint(grouping="static\x1b", misses=3, kept=59)
    assert words(started, coverage=(told, low), change_points=(point,)) == (
        "job 7 (4 procs) started: waits within bounds: plain 95.0 %, nodes of queue 2 90.0 % (not 92.9 to 97.1 %); "
        "change point of static\ufffd: 3 misses in a row, 59 waits kept"
    )
    assert words(ended, coverage=(told,)) == "job 7 completed after 1.5 min: waits within bounds: plain 95.0 %"
    tails: dict[Any, str] = {
        None: "",
        "none": ": not adjusted",
        "over": ": adjusted to 30.0 min, which was enough",
        "under": ": adjusted to 30.0 min, too short",
        "bad": ": adjusted to 30.0 min, too short by half an hour or more",
    }
    for outcome, tail in tails.items():
        adjustment = WalltimeAdjustment(adjusted_time=1800, observations=4, outcome=outcome)
        assert words(ended, adjustment=adjustment) == f"job 7 completed after 1.5 min{tail}"


def test_a_submission_tells_why_it_has_no_bound() -> None:
    none = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, reason="fewer than 59 waits")
    event = JobSubmitted(time=0, job_number=7, requested_processors=4)
    (found,) = sentences(Envelope(run="r", sequence=1, event=event, wait_bounds=(none,)))
    assert str(found) == "job 7 (4 procs) is submitted: no bound (plain: fewer than 59 waits)"


def test_the_bound_that_is_named_is_the_ensemble_or_the_first_not_the_lowest() -> None:
    def bound(grouping: str, seconds: int | None, queue: int | None = None) -> WaitBound:
        return WaitBound(grouping=grouping, queue=queue, quantile=0.95, confidence=0.95, bound=seconds)

    few = [bound("plain", None), bound("static", 90), bound("nodes", 60), bound("nodes", 5, queue=1)]
    assert chosen(few) == few[1]
    assert chosen([*few, ensemble := bound("ensemble", 80)]) == ensemble
    assert chosen([bound("plain", None), bound("plain", 5, queue=1)]) is None


def test_what_is_nothing_has_no_line() -> None:
    for event in (Decided(time=0), SchedulingPoint(time=0)):
        assert not list(sentences(Envelope(run="r", sequence=1, event=event)))


def test_each_start_of_a_decision_has_a_line() -> None:
    starts = tuple(Start(job_number=number, processors=1, reason=FitsNow()) for number in (3, 5))
    found = list(sentences(Envelope(run="r", sequence=1, event=Decided(time=0, starts=starts))))
    assert [each.job for each in found] == [3, 5]


def test_decisions_that_nobody_carries_out_are_advice() -> None:
    opened = ClusterOpened(time=0, cluster="x", processors=1, mode="recorded")
    decided = Decided(
        time=0,
        starts=(Start(job_number=3, processors=2, reason=FitsNow()),),
        kills=(Kill(job_number=4, requeue=True, reason="room"),),
    )
    told = [str(each) for each in sentences(Envelope(run="r", sequence=1, event=decided), RunContext.of(opened))]
    assert told == [
        "job 4 would be killed: room",
        "job 3 (2 procs) could start now: nothing waits ahead of it, and it fits",
    ]


def test_a_member_that_begins_to_decide_is_told_once() -> None:
    told: list[str] = []
    log = RunContext()
    for chosen_now in (
        Chosen(member="easy"),
        Chosen(member="easy", jobs=300, standings=()),
        Chosen(member="wfp3 60 h\x1b", jobs=12_345, standings=()),
        Chosen(member="wfp3 60 h\x1b"),
        Chosen(member="wfp3 60 h\x1b", jobs=13_000, standings=()),
    ):
        decided = Decided(time=0, chosen=chosen_now)
        told += map(str, sentences(Envelope(run="r", sequence=1, event=decided), log))
        log = log.after(decided).after(Decided(time=1))
    assert told == ["wfp3 60 h\ufffd decides from now on: best so far on 12,345 jobs"]


def test_of_a_run_whose_beginning_was_not_seen_every_choice_is_told() -> None:
    decided = Decided(time=0, chosen=Chosen(member="easy", jobs=300, standings=()))
    (found,) = sentences(Envelope(run="r", sequence=1, event=decided))
    assert str(found) == "easy decides from now on: best so far on 300 jobs"


def test_names_lose_what_a_terminal_obeys() -> None:
    opened = ClusterOpened(time=0, cluster="x", processors=1, policy="easy\x1b[2J")
    for event in (opened, Rejected(time=0, reason="job\n\x9b1m")):
        (found,) = sentences(Envelope(run="r", sequence=0, event=event))
        assert str(found).isprintable()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (JobWithdrawn(time=60, job_number=7), "job 7 was cancelled"),
        (JobWithdrawn(time=60, job_number=7, reason="held"), "job 7 is held"),
        (
            JobChanged(time=60, job_number=7, requested_time=600, requested_processors=1, queue_number=3, priority=9),
            "job 7 changes: asks for 1 proc; asks for 10.0 min; queue 3; priority 9",
        ),
        (JobChanged(time=60, job_number=7, blocked=True), "job 7 changes: may not start for now"),
        (JobChanged(time=60, job_number=7, blocked=False), "job 7 changes: may start"),
        (
            JobSubmitted(time=60, job_number=7, requested_processors=4, blocked=True),
            "job 7 (4 procs) is submitted: may not start for now",
        ),
        (
            JobExpected(time=60, job_number=7, start=3600, happened=45),
            "job 7 is expected by the site to start at 01:00:00: at 00:00:45, reported late",
        ),
        (JobSuspended(time=60, job_number=7, happened=45), "job 7 is suspended: at 00:00:45, reported late"),
        (JobResumed(time=60, job_number=7, happened=60), "job 7 goes on"),
    ],
)
def test_what_happens_to_a_job_is_told(event: Event, words: str) -> None:
    (told,) = sentences(Envelope(run="r", sequence=1, event=event))
    assert str(told) == words


@pytest.mark.parametrize(("tau", "times"), [(1.0, ""), (0.5, "0.5 times ")])
def test_a_rule_that_is_not_a_probability_is_said_in_words(tau: float, times: str) -> None:
    """`What goes by is the cost of gain, which must be less than 1`, without the cost, told nobody anything."""
    refused = Refused(
        time=60, head=2, needed=4, probability=0.06, bound=0.0, recalibrated=None, criterion="gain", tau=tau
    )
    why = Explanation(
        cluster="c", run="r", sequence=1, time=90, unix_start=0, obeyed=True, policy="best", job_number=7,
        state="waiting", processors=1, since=0, waits_for="head", refused=(refused,), starts_by=None,
    )  # fmt: skip
    assert reasons_of(why)[-1] == (
        "At 00:01:00 a pass weighed it and did not start it: it would delay job 2 with 6 %; by its rule, that job must "
        f"be expected to lose less than {times}what this one gains."
    )
