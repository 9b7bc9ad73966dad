"""Samples against the log up to their moment, read all at once; and what keeps their number and their names bounded."""

from collections import Counter
from collections.abc import Iterator

import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.services.catalogue import configure
from shadowtime.services.processes.metrics.writer import import_lines
from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.sampling import MAX_QUEUES, MAX_REASONS, Sampling
from shadowtime.shared.bounds import MAX_DURATION, MAX_TIME
from shadowtime.shared.distributions.job_classes import HOUR_AND_EIGHT, SHAPES, shape_of
from shadowtime.shared.messages.decisions import Kill
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.messages.samples import Sample
from shadowtime.shared.metric_names import RESULTS
from shadowtime.shared.statistics.quantile_sketch import WaitQuantiles
from shadowtime.testing.chain import Chain

EVERY = 900
LABELS = {metric.name: metric.labels for metric in RESULTS}


def play(jobs: int, policy: str, every: int | None) -> list[Envelope]:
    """Return all that leaves the scoreboard in a replay of the bundled trace."""
    workload = prepare(read_swf(BUNDLED), limit=jobs)
    plan = RunPlan("made", "bundled", workload, configure(policy), wait_bound="bmbp", sample_every=every)
    return [answer for _, answer in Chain(plan.opened()).play(plan.source())]


@pytest.fixture(scope="module")
def told() -> list[Envelope]:
    return play(150, "probabilistic:tau=0.3,runtime=empirical,adjustment=auto", EVERY)


def samples(told: list[Envelope]) -> Iterator[tuple[list[Event], Sample]]:
    """Yield each sample with all events up to its moment."""
    opened = told[0].event
    assert isinstance(opened, ClusterOpened)
    events = [envelope.event for envelope in told]
    for envelope in told:
        for sample in envelope.samples or ():
            yield [event for event in events if event.time <= sample.time - opened.unix_start], sample


def figure(sample: Sample, name: str, *labels: str) -> float:
    (found,) = (value for metric, of, value in sample.figures if (metric, of) == (f"shadowtime_{name}", labels))
    return found


def test_they_are_what_the_log_says_up_to_their_moment(told: list[Envelope]) -> None:
    count = 0
    for events, sample in samples(told):
        submitted = {event.job_number: event for event in events if isinstance(event, JobSubmitted)}
        started = {event.job_number: event for event in events if isinstance(event, JobStarted)}
        ended = {event.job_number: event for event in events if isinstance(event, JobEnded)}
        running = started.keys() - ended.keys()
        waiting = submitted.keys() - started.keys()
        starts = sum(len(event.starts) for event in events if isinstance(event, Decided))
        waits = [started[job].time - submitted[job].time for job in ended]
        time = sample.time - events[0].unix_start  # type: ignore[union-attr]
        assert figure(sample, "queued_jobs", "all") == len(waiting)
        assert figure(sample, "processors_busy") == sum(started[job].processors for job in running)
        assert figure(sample, "running_jobs") == len(running)
        assert figure(sample, "jobs_total") == len(ended)
        assert figure(sample, "wait_seconds_total") == sum(waits)
        shapes = Counter(
            SHAPES[shape_of(job.requested_time or 0, job.requested_processors, HOUR_AND_EIGHT)]
            for job in map(submitted.__getitem__, ended)
        )
        assert {of[0]: value for name, of, value in sample.figures if name == "shadowtime_shape_jobs_total"} == shapes
        by_shape = [value for name, _, value in sample.figures if name == "shadowtime_shape_wait_seconds_total"]
        assert sum(by_shape) == sum(waits)
        reasons = [value for name, _, value in sample.figures if name == "shadowtime_waiting_reasons"]
        assert sum(reasons) == len(waiting)
        if ended:
            assert figure(sample, "waits_total", "all jobs", "+Inf") == len(ended)
            assert figure(sample, "waits_total", "all jobs", "3600") == sum(wait <= 3_600 for wait in waits)
            errors = [
                abs((submitted[job].requested_time or 0) - end.run_time)
                for job, end in ended.items()
                if submitted[job].requested_time is not None
            ]
            assert figure(sample, "request_mean_absolute_error_seconds") == sum(errors) / len(errors)
            by_user = Counter(submitted[job].user_id for job in ended)
            for user, jobs in by_user.most_common(3):
                assert figure(sample, "owner_jobs_total", f"user {user}") == jobs

        longest = max((time - submitted[job].time for job in waiting), default=0)
        assert figure(sample, "longest_wait_seconds") == longest
        decided = sum(value for name, of, value in sample.figures if name == "shadowtime_decisions_total")
        assert decided == starts
        count += 1
    assert count > 50


def test_they_stand_at_whole_steps_and_at_the_end(told: list[Envelope]) -> None:
    opened = told[0].event
    assert isinstance(opened, ClusterOpened)
    times = [sample.time - opened.unix_start for _, sample in samples(told)]
    assert times == sorted(set(times))
    assert all(time % EVERY == 0 for time in times[:-1])
    assert times[-1] == told[-1].event.time


def test_the_last_one_agrees_with_the_scores(told: list[Envelope]) -> None:
    scores = told[-1].scores
    assert scores is not None
    assert told[-1].samples is not None
    last = told[-1].samples[-1]
    assert figure(last, "mean_wait_seconds") == scores.policy.mean_wait
    assert figure(last, "utilization") == scores.policy.utilization
    assert scores.calibration is not None
    assert figure(last, "delay_brier_score", "exact") == scores.calibration.exact.brier_score
    for bound in scores.wait_bounds:
        queue = "all" if bound.queue is None else str(bound.queue)
        assert figure(last, "wait_bound_predictions_total", bound.grouping, queue, "0.95") == bound.predictions


def test_forecasts_agree_with_the_scores() -> None:
    last = play(100, "easy:forecast=yes", EVERY)[-1]
    assert last.scores is not None
    assert last.samples is not None
    scores = last.scores.wait_forecast
    assert scores is not None
    assert figure(last.samples[-1], "wait_forecasts_total") == scores.forecasts == 100
    assert figure(last.samples[-1], "wait_forecast_mean_absolute_error_seconds") == scores.mean_absolute_error
    assert figure(last.samples[-1], "wait_forecast_mean_seconds") == scores.mean_forecast
    assert figure(last.samples[-1], "wait_forecast_mean_wait_seconds") == scores.mean_wait


def test_sampling_changes_nothing_else(told: list[Envelope]) -> None:
    plain = play(150, "probabilistic:tau=0.3,runtime=empirical,adjustment=auto", None)
    assert [each.model_copy(update={"samples": None}).event for each in told[1:]] == [each.event for each in plain[1:]]
    assert all(each.samples is None for each in plain)
    assert told[-1].scores == plain[-1].scores


def test_every_figure_is_of_a_known_metric_with_its_labels(told: list[Envelope]) -> None:
    for _, sample in samples(told):
        series = [(name, labels) for name, labels, _ in sample.figures]
        assert len(series) == len(set(series))
        assert all(len(labels) == len(LABELS[name]) for name, labels in series)


def test_many_queues_reasons_and_jobs_share_labels() -> None:
    sampling = Sampling(60)
    assert len({sampling.queue_of(number) for number in range(1_000)}) == MAX_QUEUES + 1
    assert sampling.queue_of(3) == "3"
    assert sampling.queue_of(999) == "others"
    kills = tuple(Kill(job_number=number, requeue=False, reason=f"because {number}") for number in range(1_000))
    sampling.decide(Decided(time=0, kills=kills))
    assert len(sampling.decisions) == MAX_REASONS + 1
    assert sampling.decisions.total() == 1_000


def test_names_of_others_are_harmless_in_queries_and_pages() -> None:
    opened = ClusterOpened(time=0, cluster='k"} or vector(1) #<script>\n', processors=4, sample_every=60)
    chain = Chain(opened)
    chain.push(opened)
    chain.push(JobSubmitted(time=1, job_number=1, requested_processors=1))
    answer = chain.push(JobSubmitted(time=100, job_number=2, requested_processors=1))
    assert answer.samples is not None
    assert answer.samples[0].cluster == "k__ or vector(1) #_script__ 93ef4593"


def test_the_hidden_state_is_the_one_told_last() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4, sample_every=60))
    for number, state in enumerate((3, None, 5)):
        job = JobSubmitted(time=61 * number, job_number=number, requested_processors=1)
        said = RunTimePrediction(point=60, observations=9, histogram=(1.0,), state=state)
        board.handle(Envelope(run="r", sequence=number, event=job, run_time=said))
    again = Scoreboard(board.opened)
    again.restore(board.snapshot())
    job = JobSubmitted(time=300, job_number=9, requested_processors=1)
    answer = again.handle(Envelope(run="r", sequence=9, event=job))
    assert answer.samples is not None
    assert figure(answer.samples[0], "run_time_state") == 5


def test_quantiles_of_waits_are_within_one_percent() -> None:
    waits = [number**3 % 90_007 for number in range(5_000)]
    sketch = WaitQuantiles()
    for wait in waits:
        sketch.add(wait)
    shares = [0.05, 0.5, 0.95, 0.99]
    for share, found in zip(shares, sketch.quantiles(shares), strict=True):
        true = sorted(waits)[round(share * len(waits)) - 1]
        assert found == pytest.approx(true, rel=0.011)
    again = WaitQuantiles()
    again.restore(sketch.snapshot())
    assert again.quantiles(shares) == sketch.quantiles(shares)


def test_absurd_times_and_predictions_leave_samples_that_can_be_stored() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4, unix_start=MAX_TIME, sample_every=60))
    absurd = RunTimePrediction(point=float(MAX_DURATION), observations=1)
    for number in range(3):
        for event in (
            JobSubmitted(time=number, job_number=number, requested_processors=1),
            JobStarted(time=number, job_number=number, processors=1),
            JobEnded(time=number, job_number=number, run_time=0),
        ):
            board.handle(Envelope(run="r", sequence=1, event=event, run_time=absurd))
    answer = board.handle(Envelope(run="r", sequence=9, event=ClusterClosed(time=100)))
    assert answer.samples is not None
    assert [sample.time for sample in answer.samples] == [MAX_TIME + 60, MAX_TIME + 100]
    names = {name for name, _, _ in answer.samples[0].figures}
    assert "shadowtime_mean_wait_seconds" in names
    assert "shadowtime_run_time_mean_absolute_error_seconds" in names
    assert Envelope.from_bytes(answer.to_bytes()).samples == answer.samples
    assert import_lines([answer])[1] > 0


def test_of_queues_that_share_a_label_it_is_told_when_they_are_empty() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4, sample_every=60))
    last = MAX_QUEUES + 1
    jobs = (JobSubmitted(time=0, job_number=at, requested_processors=1, queue_number=at) for at in range(last + 1))
    waited: list[float] = []
    events: list[Event] = [
        *jobs,
        JobStarted(time=70, job_number=last - 1, processors=1),
        JobStarted(time=70, job_number=last, processors=1),
        JobEnded(time=130, job_number=last, run_time=60),
    ]
    for event in events:
        answer = board.handle(Envelope(run="r", sequence=1, event=event))
        waited += [figure(sample, "queued_jobs", "others") for sample in answer.samples or ()]
    assert waited == [2, 2, 0]


@pytest.mark.parametrize(
    ("name", "experiment", "labels"),
    [
        (None, None, ("tuned", None)),
        ("best", "2026-11-23 18:45:07", ("best", "2026-11-23 18:45:07")),
        ("<b>", 'x"', ("_b_", "x_ a4a5e3a5")),
    ],
)
def test_a_sample_is_called_as_people_called_the_run(
    name: str | None, experiment: str | None, labels: tuple[str, str | None]
) -> None:
    policy = configure("best").policy
    opened = ClusterOpened(
        time=0, cluster="k", processors=4, policy=policy, sample_every=60, name=name, experiment=experiment
    )
    closed = Scoreboard(opened).handle(Envelope(run="r", sequence=1, event=ClusterClosed(time=90)))
    assert {(each.policy, each.experiment) for each in closed.samples or ()} == {labels}
