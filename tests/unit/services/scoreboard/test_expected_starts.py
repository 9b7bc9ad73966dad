"""What the site expected against what came: the sums against their definitions over the whole log at once."""

from collections.abc import Iterable, Sequence
from io import StringIO
from statistics import fmean, median, median_low
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from shadowtime.replayer.presentation.live_scores import starts_by_table
from shadowtime.replayer.presentation.site_expectations import expectations_of, starts_table
from shadowtime.services.scoreboard.figures import figures
from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores.bound_coverage import Bound
from shadowtime.services.scoreboard.scores.event_probabilities import ProbabilitySums
from shadowtime.services.scoreboard.scores.site_expectations import ExpectedStarts
from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES, MAX_TIME
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.messages.predictions import WaitBound, WaitForecast
from shadowtime.shared.messages.scores import (
    ExpectedStartScores,
    PairedStartScores,
    Scores,
    StartErrorScores,
    StartProbabilityScores,
)
from shadowtime.testing.examples import examples

OPENED = ClusterOpened(time=0, cluster="c", processors=8, mode="recorded")


class Life(NamedTuple):
    """A job: when it is submitted to which queue, how long it waits, what is said of it, and what becomes of it."""

    submitted: int
    queue: int | None
    wait: int
    forecast: int | None
    bound: int | None
    words: list[tuple[int, int]]
    """Seconds into its wait, and the start that the site expects, in seconds from its submission."""
    fate: str


LIVES = st.lists(
    st.builds(
        Life,
        submitted=st.integers(0, 60),
        queue=st.none() | st.integers(-1, 2),
        wait=st.integers(0, 60),
        forecast=st.none() | st.integers(0, 90),
        bound=st.none() | st.integers(0, 90),
        words=st.lists(st.tuples(st.integers(0, 60), st.integers(-50, 200)), max_size=3),
        fate=st.sampled_from(
            ["starts", "starts", "starts", "moves", "trial", "requeued", "cancelled", "held", "waits"]
        ),
    ),
    max_size=12,
)


class Said(NamedTuple):
    """What was said of one start, and what came."""

    queue: int | None
    first: tuple[int, int]
    last: tuple[int, int]
    start: int
    wait: int
    forecast: int | None
    bound: int | None


def told(lives: Sequence[Life]) -> tuple[list[Envelope], list[Said]]:
    """Return the log of these lives, and all starts of which the site had said something."""
    log: list[tuple[int, int, Event, dict[str, Any]]] = []
    found: list[Said] = []

    def tell(event: Event, **more: Any) -> None:
        log.append((event.time, len(log), event, more))

    for number, life in enumerate(lives):
        begin, start = life.submitted, life.submitted + life.wait
        added = {"forecast": WaitForecast(wait=life.forecast), "wait_bounds": bounds(life.bound)}
        job = JobSubmitted(time=begin, job_number=number, requested_processors=1, queue_number=life.queue)
        tell(job, **added)
        words = [(min(begin + at, start), begin + expected) for at, expected in sorted(life.words)]
        for at, expected in words:
            tell(JobExpected(time=at, job_number=number, start=expected))
        queue, forecast, bound = life.queue, life.forecast, life.bound
        if life.fate == "held":
            tell(JobWithdrawn(time=start, job_number=number, reason="held"))
            tell(job.model_copy(update={"time": start}), **added)
            begin = start
            words = [(start, start + 5)]
            tell(JobExpected(time=start, job_number=number, start=start + 5))
        elif life.fate == "moves":
            tell(JobChanged(time=start, job_number=number, queue_number=7))
            queue, bound = 7, None  # what was said was about another queue
        elif life.fate == "trial":
            tell(JobStarted(time=start, job_number=number, processors=1, trial=True))
            tell(JobEnded(time=start + 1, job_number=number, run_time=1, requeued=True))
            start += 3
        if life.fate == "cancelled":
            tell(JobWithdrawn(time=start, job_number=number))
        if life.fate in ("cancelled", "waits"):
            continue
        tell(JobStarted(time=start, job_number=number, processors=1))
        if words:
            found.append(Said(queue, turned(words[0]), turned(words[-1]), start, start - begin, forecast, bound))
        tell(JobEnded(time=start + 9, job_number=number, run_time=9, requeued=life.fate == "requeued"))
        if life.fate == "requeued":  # its forecast and its bound were of its first start
            tell(JobExpected(time=start + 9, job_number=number, start=start + 14, happened=start + 4))
            tell(JobStarted(time=start + 11, job_number=number, processors=1))
            word = start + 14, start + 4
            found.append(Said(queue, word, word, start + 11, start + 11 - begin, None, None))
    log.sort(key=lambda each: each[:2])
    return [Envelope(run="r", sequence=at, event=event, **more) for at, (_, _, event, more) in enumerate(log, 1)], found


def turned(word: tuple[int, int]) -> tuple[int, int]:
    return word[1], word[0]


def said_of(bound: int) -> tuple[tuple[float, int], ...]:
    return ((0.5, bound // 2), (0.9, bound))


def bounds(seconds: int | None) -> tuple[WaitBound, ...]:
    """Return bounds of which one is to be named: not that of a queue, nor the one without seconds, nor a lower one."""
    return (
        WaitBound(grouping="plain", queue=1, quantile=0.5, confidence=0.95, bound=1),
        WaitBound(grouping="nodes", quantile=0.5, confidence=0.95, reason="no history"),
        WaitBound(grouping="plain", quantile=0.5, confidence=0.95, bound=None if seconds is None else 2),
        WaitBound(
            grouping="ensemble",
            quantile=0.95,
            confidence=0.95,
            bound=seconds,
            starts_within=() if seconds is None else said_of(seconds),
        ),
    )


def foretold(words: Iterable[tuple[int, int]], starts: Sequence[int]) -> StartErrorScores:
    """Return the scores of starts that were foretold at some moments, by their definitions."""
    errors, ahead = [], []
    for (word, said), start in zip(words, starts, strict=True):
        errors.append(word - start)
        ahead.append(start - said)
    return StartErrorScores(
        jobs=len(errors),
        mean_absolute_error=fmean(map(abs, errors)),
        median_absolute_error=median_low(map(abs, errors)),
        mean_error=fmean(errors),
        late_share=fmean(error > 0 for error in errors),
        mean_ahead=fmean(ahead),
    )


def defined(found: Sequence[Said], queue: int | None) -> ExpectedStartScores:
    """Return the scores of a queue by their definitions."""
    of = [each for each in found if queue is None or each.queue == queue]
    both = [each for each in of if each.forecast is not None]
    bounded = [each.wait <= each.bound for each in of if each.bound is not None]
    starts, paired = [each.start for each in of], [each.start for each in both]
    ours = [(each.start - each.wait + (each.forecast or 0), each.start - each.wait) for each in both]
    return ExpectedStartScores(
        queue=queue,
        first=foretold([each.first for each in of], starts),
        last=foretold([each.last for each in of], starts),
        paired=None
        if not both
        else PairedStartScores(
            first=foretold([each.first for each in both], paired),
            last=foretold([each.last for each in both], paired),
            forecast=foretold(ours, paired),
            at_once=foretold([(each.start - each.wait, each.start - each.wait) for each in both], paired),
        ),
        bounded=len(bounded),
        bound_coverage=fmean(bounded) if bounded else None,
        bound_quantile=0.95 if bounded else None,
        mean_bound=fmean(each.bound for each in of if each.bound is not None) if bounded else None,
        within=within([each for each in of if each.bound is not None]),
    )


def within(of: Sequence[Said]) -> StartProbabilityScores | None:
    """Return the scores of what was said of starts by some time."""
    said = [
        (probability, each.wait <= seconds, each.first[0] - (each.start - each.wait) <= seconds)
        for each in of
        for probability, seconds in said_of(each.bound or 0)
    ]
    if not said:
        return None
    return StartProbabilityScores(
        jobs=len(of),
        mean_probability=fmean(probability for probability, *_ in said),
        started_share=fmean(came for _, came, _ in said),
        brier=fmean((probability - came) ** 2 for probability, came, _ in said),
        site_brier=fmean(came != expected for _, came, expected in said),
    )


def flat(scores: Any, path: str = "") -> dict[str, Any]:
    """Return all figures of scores by their paths."""
    if not isinstance(scores, dict):
        return {path: scores}
    return {name: value for key, each in scores.items() for name, value in flat(each, f"{path} {key}").items()}


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether figures are the same, medians within 1 %."""
    return one.keys() == other.keys() and all(
        value == (None if other[name] is None else pytest.approx(other[name], rel=0.01 if "median" in name else 1e-12))
        for name, value in one.items()
    )


def last_scores(board: Scoreboard, log: Sequence[Envelope], *, restarted: bool) -> Scores:
    """Return what a scoreboard says in the end; with `restarted` another goes on from its state after every event."""
    time = max((each.event.time for each in log), default=0)
    closed = Envelope(run="r", sequence=len(log) + 1, event=ClusterClosed(time=time))
    for envelope in (*log, closed):
        answer = board.handle(envelope)
        if restarted:
            state = orjson.dumps(board.snapshot())
            board = Scoreboard(OPENED)
            board.restore(orjson.loads(state))
            assert orjson.dumps(board.snapshot()) == state
    assert answer.scores is not None
    return answer.scores


@given(LIVES)
@examples(150)
def test_scores_are_their_definitions_however_often_the_stage_restarts(lives: list[Life]) -> None:
    log, found = told(lives)
    scores = last_scores(Scoreboard(OPENED), log, restarted=False)
    assert scores == last_scores(Scoreboard(OPENED), log, restarted=True)
    if not found:
        assert scores.expected_starts is None
        return
    assert scores.expected_starts is not None
    queues = sorted({each.queue for each in found if each.queue is not None})
    assert [each.queue for each in scores.expected_starts] == [None, *queues]
    for each in scores.expected_starts:
        said = each if each.paired is None else each.replaced(paired=each.paired.replaced(last_waits=None))
        assert alike(flat(said.model_dump()), flat(defined(found, each.queue).model_dump()))


def test_a_naive_forecast_is_the_median_of_the_last_hundred_known_waits() -> None:
    events: list[Event] = []
    for number in range(250):
        wait = number if number < 249 else 7
        time = 1_000 * number
        job = JobSubmitted(time=time, job_number=number, requested_processors=1)
        events += [job, JobExpected(time=time, job_number=number, start=time)]
        events.append(JobStarted(time=time + wait, job_number=number, processors=1))
        events.append(JobEnded(time=time + wait, job_number=number, run_time=0))
    forecast: dict[str, Any] = {"forecast": WaitForecast(wait=0)}
    nothing: dict[str, Any] = {}
    log = [
        Envelope(run="r", sequence=at, event=event, **(forecast if isinstance(event, JobSubmitted) else nothing))
        for at, event in enumerate(events, 1)
    ]
    scores = last_scores(Scoreboard(OPENED), log, restarted=False).expected_starts
    assert scores is not None
    naive = (scores[0].paired or pytest.fail("nothing is paired")).last_waits
    waits = [*range(249), 7]
    told = [round(median(waits[max(0, at - 100) : at])) if at else 0 for at in range(250)]
    assert naive is not None
    assert naive.jobs == 250
    assert naive.mean_error == fmean(word - wait for word, wait in zip(told, waits, strict=True))
    assert naive.mean_absolute_error == fmean(abs(word - wait) for word, wait in zip(told, waits, strict=True))


def test_how_often_a_start_came_by_the_time_that_was_told() -> None:
    """For each queue, of the one bound that users are shown, whether the site said anything or not."""
    lives = [(queue, wait) for queue in (1, 2) for wait in (10, 50, 70)] + [(2, 80)]
    log: list[Envelope] = []
    for number, (queue, wait) in enumerate(lives):
        time = 1_000 * number
        job = JobSubmitted(time=time, job_number=number, requested_processors=1, queue_number=queue)
        begun = JobStarted(time=time + wait, job_number=number, processors=1)
        ended = JobEnded(time=time + wait, job_number=number, run_time=0)
        events: tuple[Event, ...] = (job, begun, ended)
        for event in events:
            told_bounds: dict[str, Any] = {"wait_bounds": bounds(60)} if event is job else {}
            log.append(Envelope(run="r", sequence=len(log) + 1, event=event, **told_bounds))
    scores = last_scores(Scoreboard(OPENED), log, restarted=True)
    rows = [(row.queue, row.jobs, row.came_true, row.stated, row.mean_bound) for row in scores.starts_by or ()]
    assert rows == [(None, 7, 4 / 7, 0.95, 60), (1, 3, 2 / 3, 0.95, 60), (2, 4, 0.5, 0.95, 60)]
    closed = ClusterOpened(time=0, cluster="c", processors=8, mode="closed")
    assert last_scores(Scoreboard(closed), log, restarted=False).starts_by is None
    output = StringIO()
    table = starts_by_table(scores.starts_by or (), {1: "cpu", 2: "gpu"}.__getitem__)
    Console(file=output, width=80).print(table)
    assert [line.split()[:2] for line in output.getvalue().splitlines()[4:7]] == [
        ["all", "57.1"], ["cpu", "66.7"], ["gpu", "50.0"],
    ]  # fmt: skip
    assert "jobs that still wait do not count" in " ".join(output.getvalue().split())


@pytest.mark.parametrize("width", [80, 120])
def test_at_eighty_columns_the_table_keeps_what_counts(width: int) -> None:
    score = StartErrorScores(
        jobs=2103, mean_absolute_error=159.0, median_absolute_error=61.0, mean_error=-222.0, late_share=0.1,
        mean_ahead=3600.0,
    )  # fmt: skip
    names = ("first", "last", "forecast", "at_once", "last_waits")
    paired = PairedStartScores(**dict.fromkeys(names, score))
    row = ExpectedStartScores(first=score.replaced(jobs=2200), last=score, paired=paired)
    output = StringIO()
    table = starts_table("mine/live", [("", "interactive", shown) for shown in expectations_of(row.model_dump())])
    Console(file=output, width=width).print(table)
    text = output.getvalue()
    wide = ("off",) if width == 120 else ()
    for heading in ("median", "signed", "too late", "jobs", *wide):
        assert f" {heading} " in f"{text.splitlines()[1]} "
    for source in ("last 100 waits", "starts at once"):
        assert source in text.split("median: of")[0]
    assert all(len(line) <= width for line in text.splitlines())


def test_in_time_are_the_times_that_we_state_and_not_those_of_the_site() -> None:
    """Its share counts starts by each time in our tables: two of three here. The site's word is in no way in it."""
    within = ProbabilitySums().plus([(0.5, 60), (0.9, 600), (0.95, 700)], wait=100, expected=20).scores()
    score = StartErrorScores(
        jobs=1, mean_absolute_error=80.0, median_absolute_error=80.0, mean_error=-80.0, late_share=0.0, mean_ahead=9.0
    )
    row = ExpectedStartScores(first=score, last=score, within=within)
    output = StringIO()
    Console(file=output, width=200).print(
        starts_table("c", [("", "all", shown) for shown in expectations_of(row.model_dump())])
    )
    text = " ".join(output.getvalue().split())
    assert "in time, predicted 78.3 %" in text
    assert "66.7" in text
    assert "in time: share of starts by the times of which we state probabilities" in text


def board_told(*events: Event, opened: ClusterOpened = OPENED) -> Scoreboard:
    """Return a scoreboard that has been told these events."""
    board = Scoreboard(opened)
    for sequence, event in enumerate(events, 1):
        board.handle(Envelope(run="r", sequence=sequence, event=event))
    return board


def submitted(number: int, queue: int | None = None) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=number, requested_processors=1, queue_number=queue)


def test_the_first_and_the_last_word_are_scored_and_an_old_one_too() -> None:
    words = [JobExpected(time=time, job_number=1, start=start) for time, start in ((0, 130), (10, 500), (60, 40))]
    board = board_told(submitted(1), *words, JobStarted(time=100, job_number=1, processors=1))
    (told,) = board.tally.scores().expected_starts or ()
    assert (told.first.mean_error, told.first.late_share, told.first.mean_ahead) == (30, 1, 100)
    assert (told.last.mean_error, told.last.late_share, told.last.mean_ahead) == (-60, 0, 40)
    assert (told.first.mean_absolute_error, told.last.mean_absolute_error) == (30, 60)
    assert (told.paired, told.bounded) == (None, 0)


def test_what_is_said_late_was_said_before() -> None:
    word = JobExpected(time=50, job_number=1, start=100, happened=20)
    board = board_told(submitted(1), word, JobStarted(time=120, job_number=1, processors=1, happened=100))
    scores = board.tally.scores()
    (told,) = scores.expected_starts or ()
    assert (told.first.mean_absolute_error, told.first.mean_ahead) == (0, 80)
    assert scores.happenings is not None
    assert (scores.happenings.expected, scores.happenings.told_late) == (1, 2)


def test_a_site_that_says_nothing_has_no_scores() -> None:
    board = board_told(submitted(1), JobStarted(time=5, job_number=1, processors=1))
    scores = board.tally.scores()
    assert scores.expected_starts is None
    assert scores.happenings is None
    assert b"expected" not in Envelope(run="r", sequence=1, event=ClusterClosed(time=9), scores=scores).to_bytes()


def test_later_queues_count_in_the_whole_only() -> None:
    starts = ExpectedStarts()
    for number in range(MAX_EXPECTED_QUEUES + 5):
        starts.expect(JobExpected(time=0, job_number=number, start=7))
        starts.reveal(number, number, start=5, wait=5, forecast=None, bound=None)
    scores = starts.scores() or ()
    assert [each.queue for each in scores] == [None, *range(MAX_EXPECTED_QUEUES)]
    assert [each.first.jobs for each in scores] == [MAX_EXPECTED_QUEUES + 5, *[1] * MAX_EXPECTED_QUEUES]


def test_the_longest_errors_are_summed_exactly() -> None:
    starts = ExpectedStarts()
    for number in range(3):
        starts.expect(JobExpected(time=-MAX_TIME, job_number=number, start=-MAX_TIME))
        starts.reveal(number, None, start=MAX_TIME, wait=2 * MAX_TIME, forecast=0, bound=None)
    sums = starts.sums[None].site["first"]
    sums.absolute_error = 2**70
    again = ExpectedStarts()
    again.restore(orjson.loads(orjson.dumps(starts.snapshot())))
    assert again.sums[None].site["first"].absolute_error == 2**70
    assert again.scores() == starts.scores()


def test_figures_agree_with_the_scores() -> None:
    opened = OPENED.model_copy(update={"sample_every": 60})
    events: list[Event] = [submitted(1, 3), submitted(2, 3)]
    events += [JobExpected(time=0, job_number=number, start=50) for number in (1, 2)]
    events += [JobStarted(time=30 + number, job_number=number, processors=1) for number in (1, 2)]
    board = board_told(*events, opened=opened)
    assert board.sampling is not None
    told = {
        (name.removeprefix("shadowtime_expected_start"), *labels): value
        for name, labels, value in figures(board, board.tally, board.sampling, 60)
        if "expected" in (name, *labels) or "expected_start" in name
    }
    for queue in ("all", "3"):
        for by in ("first", "last"):
            assert told["s_total", by, queue] == 2
            assert told["_mean_error_seconds", by, queue] == told["_mean_absolute_error_seconds", by, queue] == 18.5
    assert told["shadowtime_happenings_total", "expected"] == 2
    assert len(told) == 13


def test_a_bound_holds_up_to_its_last_second() -> None:
    starts = ExpectedStarts()
    for number, wait in enumerate((99, 100, 101, 102)):
        starts.expect(JobExpected(time=0, job_number=number, start=7))
        starts.reveal(number, None, start=wait, wait=wait, forecast=None, bound=Bound(0.95, 100))
    (told,) = starts.scores() or ()
    assert (told.bounded, told.bound_coverage, told.bound_quantile) == (4, 0.5, 0.95)
