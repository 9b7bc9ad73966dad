"""Work of a pass and of a forecast is bounded, counted and never timed; what is left undone is said."""

from typing import Any

import pytest

from shadowtime.services.scheduler import handler, work_limits
from shadowtime.services.scheduler import policy as scheduler_policy
from shadowtime.services.scheduler.forecasting import by_reservation as placing
from shadowtime.services.scheduler.forecasting import forecaster
from shadowtime.services.scheduler.forecasting import kernels as run_ahead
from shadowtime.services.scheduler.policies import all_reserve, conservative
from shadowtime.services.scheduler.policies import idle_processors as phases
from shadowtime.services.scheduler.probabilistic import backfill_pass
from shadowtime.services.scheduler.probabilistic.acceptance import TOO_MUCH, WORK_PER_STEP, evaluate_candidates
from shadowtime.services.scheduler.work_limits import WALKED
from shadowtime.shared.distributions.histogram import BINS
from shadowtime.shared.messages.decisions import CutShort
from shadowtime.shared.messages.envelope import Decided, Envelope, JobSubmitted, SchedulingPoint
from shadowtime.shared.messages.predictions import RunTimePrediction
from tests.support.told_scheduler import Told

ANYWHERE = (0.0, *[round(1 / (BINS - 1), 6)] * (BINS - 1))
FORETOLD = RunTimePrediction(point=5000, observations=9, histogram=ANYWHERE)


def crowded(policy: str, running: int, waiting: int, processors: int = 10_000) -> Told:
    """Return a scheduler of a machine on which nothing is known of when jobs end, and candidates have all sizes."""
    told = Told(processors, policy)
    for number in range(running):
        request = 10**6 + 7 * number
        told.tell(JobSubmitted(time=0, job_number=number, requested_processors=1, requested_time=request), FORETOLD)
    for number in range(running):
        told.start(number, 1)
    told.tell(JobSubmitted(time=0, job_number=10**6, requested_processors=processors, requested_time=10**6), FORETOLD)
    for number in range(waiting):
        told.tell(
            JobSubmitted(
                time=1,
                job_number=10**6 + 1 + number,
                requested_processors=1 + number % (processors * 3 // 5),
                requested_time=3600 + number,
            ),
            FORETOLD,
        )
    return told


def eight_jobs(policy: str) -> Told:
    """Return a scheduler of an idle machine, for which all of eight jobs are small."""
    told = Told(processors=10, policy=policy)
    for number in range(8):
        told.tell(JobSubmitted(time=0, job_number=number, requested_processors=1, requested_time=100))
    return told


def decided(told: Told, time: int = 2) -> Decided:
    event = told.tell(SchedulingPoint(time=time))
    assert isinstance(event, Decided)
    return event


@pytest.mark.parametrize("keys", ["", ":points=16", ":points=16,criterion=gain"])
def test_finding_06_all_walks_of_a_pass_share_one_budget(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """36 s and 511 MB before: some 18 walks of three billion steps."""
    works: list[tuple[int, int]] = []

    def noted(*arguments: Any) -> Any:
        found = evaluate_candidates(*arguments)
        works.append((found[-1], arguments[-1]))
        assert (found[0] == TOO_MUCH) == (found[-1] > arguments[-1])
        assert len(found[1]) * len(found[2]) < WALKED
        running, candidates, distributions = arguments[3:6]
        jobs = len(running.processors) + len(candidates.processors)
        arguments = (*arguments[:-1], 0)
        before = evaluate_candidates(*arguments)  # what is read before a walk counts, too
        assert (before[0], before[-1]) == (TOO_MUCH, WORK_PER_STEP * jobs * len(distributions.edges))
        return found

    monkeypatch.setattr(backfill_pass, "evaluate_candidates", noted)
    event = decided(crowded(f"probabilistic{keys}", 300, 300))
    assert event.cut_short is not None
    assert event.cut_short[0].by == "walks"
    *done, (last, allowed) = works
    assert sum(work for work, _ in done) <= WALKED
    assert last - allowed < WALKED / 4  # broken off, but for what each candidate reads of the last walk


def test_finding_06_beyond_the_budget_a_pass_is_plain_easy_on_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill_pass, "WALKED", 0)
    event = decided(crowded("probabilistic:tau=1", 20, 60, processors=100))
    plain = decided(crowded("easy:plan=requested", 20, 60, processors=100))
    assert event.cut_short == (CutShort(by="walks", left=60),)
    assert event.evaluated == ()
    assert event.starts == plain.starts
    assert len(event.starts) > 3


def test_finding_06_no_more_candidates_are_weighed_than_a_message_can_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill_pass, "WEIGHED", 100)
    event = decided(crowded("probabilistic", 20, 60, processors=100))
    assert sum(len(each.job_numbers) for each in event.evaluated) <= 100
    assert event.cut_short is not None


def test_a_pass_of_an_ordinary_machine_is_not_cut_short() -> None:
    assert decided(crowded("probabilistic", 60, 60, processors=200)).cut_short is None


@pytest.mark.parametrize(
    "policy",
    [
        *("fcfs", "lwf", "easy", "easy-sjbf", "wfp", "all-reserve", "conservative", "probabilistic", "guarded"),
        *("tuned", "conservative:speculate=expected,test_runs=yes"),
    ],
)
def test_no_more_jobs_start_at_once_than_a_message_can_tell_of(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (scheduler_policy, handler):
        monkeypatch.setattr(module, "MAX_STARTS", 3)
    told = eight_jobs(policy)
    event = decided(told, 0)
    assert [each.job_number for each in event.starts] == [0, 1, 2]
    assert event.cut_short == (CutShort(by="starts", left=5),)
    for each in event.starts:
        told.start(each.job_number, 1)
    assert [each.job_number for each in decided(told, 0).starts] == [3, 4, 5]


def test_slurm_starts_jobs_beyond_the_limit_at_its_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (scheduler_policy, handler):
        monkeypatch.setattr(module, "MAX_STARTS", 3)
    told = eight_jobs("slurm")
    event = decided(told, 0)
    assert event.cut_short == (CutShort(by="starts", left=5),)
    for each in event.starts:
        told.start(each.job_number, 1)
    told.end(event.starts[0].job_number, 60)
    assert len(decided(told, 60).starts) == 3


@pytest.mark.parametrize(
    ("policy", "module"),
    [
        *(("all-reserve", all_reserve), ("conservative", conservative), ("conservative:guarantees=no", conservative)),
        ("conservative:shape=greedy,widen=yes,test_runs=yes,speculate=expected", conservative),
    ],
)
def test_so_many_places_are_planned_at_a_pass(policy: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = decided(crowded(policy, 20, 60, processors=100))
    assert whole.cut_short is None
    monkeypatch.setattr(module, "PLANNED", 300)
    monkeypatch.setattr(phases, "PLANNED", 300)
    told = crowded(policy, 20, 60, processors=100)
    event = decided(told)
    assert event.cut_short is not None
    assert {each.by for each in event.cut_short} == {"depth"}
    assert {each.job_number for each in event.starts} <= {each.job_number for each in whole.starts}
    told.end(0, 3)
    resumed = told.restarted()
    assert decided(told, 3) == decided(resumed, 3)


@pytest.mark.parametrize("policy", ["fcfs", "lwf", "easy", "easy-sjbf", "all-reserve"])
def test_a_forecast_that_would_take_too_long_is_none(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(processors=10, policy=f"{policy}:forecast=yes")
    reasons = []
    for number in range(20):
        if number == 19:
            told.start(0, 6)  # all is worked out anew
            monkeypatch.setattr(run_ahead, "AHEAD", 100)
            monkeypatch.setattr(placing, "AHEAD", 20)
        event = JobSubmitted(time=0, job_number=number, requested_processors=6, requested_time=100 + number)
        answer = told.run.push(Envelope(run="r", sequence=told.run.sequence + 1, event=event))
        assert answer is not None
        assert answer.forecast is not None
        reasons.append(answer.forecast.reason)
    assert reasons[:19] == [None] * 19
    assert reasons[19] == "too many jobs run and wait ahead of it"


def test_behind_a_long_queue_no_forecast_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each submission to 50,000 waiting jobs took 0.2 s, to find that too many were ahead of it."""
    monkeypatch.setattr(forecaster, "MAX_AHEAD", 5)
    told = Told(processors=10, policy="easy:forecast=yes")
    reasons = []
    for number in range(8):
        event = JobSubmitted(time=0, job_number=number, requested_processors=6, requested_time=100)
        answer = told.run.push(Envelope(run="r", sequence=told.run.sequence + 1, event=event))
        assert answer is not None
        assert answer.forecast is not None
        reasons.append(answer.forecast.reason)
    assert reasons == [None] * 5 + ["too many jobs run and wait ahead of it"] * 3
    assert work_limits.MAX_AHEAD <= 1_000


@pytest.mark.parametrize("limit", ["WALKED", "PLANNED", "AHEAD", "FUTURES", "CHARGES"])
def test_as_many_steps_as_are_allowed_take_less_than_half_a_second(limit: str) -> None:
    """A sampled forecast was allowed two billion: each submission to a full machine took up to 3.5 s."""
    assert getattr(work_limits, limit) <= 500_000_000  # a step takes about a nanosecond
