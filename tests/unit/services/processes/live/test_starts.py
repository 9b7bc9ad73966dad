"""When a job starts is one answer: no two times on a row of the live page, or on a job's page, contradict."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import PAGE, overview, queue
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, Envelope, Event, JobStarted, JobSubmitted
from shadowtime.shared.messages.explanation import StartOutlook
from shadowtime.shared.messages.predictions import Coverage, WaitBound, WaitForecast
from shadowtime.shared.stages.job_start import StartPredictions, expected_start
from tests.support.full_machine import full_machine
from tests.support.small_logs import generated

ROWS = 200
SEEN = {"pass", "releases", "forecast", "bounds"}


@cache
def jammed(forecast: str, jobs: int = 400) -> list[Envelope]:
    """Return the log of a run into which jobs come faster than they can run."""
    configured = configure(f"easy:forecast={forecast}", "empirical", "auto")
    bound = canonical("wait-bound", "bmbp:history=100,publish=all")
    log: list[Envelope] = []
    RunPlan("easy", "jam", generated(jobs, load=12.0), configured, wait_bound=bound).replay([log.append]).run_to_end()
    return log


def sampled(log: Sequence[Envelope], rows: int, key: int = 1) -> Iterator[tuple[LiveView, int, dict[str, Any]]]:
    """Yield so many rows of waiting jobs with the view that has them, drawn at settled instants."""
    draws, runs, waits = np.random.default_rng(key), LiveRuns(), 0
    settled = []
    for envelope in log:
        waits += isinstance(envelope.event, JobSubmitted) - isinstance(envelope.event, JobStarted)
        if isinstance(envelope.event, Decided) and waits > 10:
            settled.append(envelope.sequence)
    chosen = set(draws.choice(settled, rows // 2, replace=False).tolist())
    for envelope in log:
        runs.push(envelope)
        if envelope.sequence in chosen:
            view = runs.view(envelope.run)
            at = int(draws.integers(len(view.jobs.waiting)))
            drawn = queue(view, at // PAGE * PAGE)
            for number in draws.choice(list(drawn), 2).tolist():
                yield view, number, drawn[number]


def contradictions(view: LiveView, number: int, row: dict[str, Any]) -> Iterator[str]:
    """Yield in words what a row says that cannot be."""
    starts, now = row["starts"], view.time
    if starts is None:
        if number not in view.starting:
            yield "nothing is said of a job that waits"
        return
    times = [starts[name] for name in ("earliest", "expected", "latest") if starts[name] is not None]
    if times != sorted(times):
        yield f"out of order: {starts}"
    if any(time < now for time in times):
        yield f"in the past: {starts}"
    if starts["passed"] is not None and (times or starts["passed"] > now):
        yield f"has not passed: {starts}"
    waited = now - row["since"]
    if starts["latest"] is not None and starts["latest"] - row["since"] < waited:
        yield f"a bound below the wait so far: {starts}"
    page = job_page(view, number)
    assert page is not None
    if page["marks"]["starts"] != starts["expected"]:
        yield f"the job's page says {page['marks']['starts']}: {starts}"
    minute = None if starts["expected"] is None else view.machine().at(starts["expected"])
    about = [match[1] for each in page["head"] if (match := re.search(r"about ((?:\d+ \w+ )?[\d:]+)", each))]
    if about != ([] if minute is None or starts["source"] == "pass" else [minute]):
        yield f"the job's page says about {about}, the row {minute}"
    if any(word in each for each in (*page["head"], *page["why"]) for word in ("submission", "forecast to start")):
        yield "what was predicted at the submission is said to hold now"


@pytest.mark.parametrize(("forecast", "jobs"), [("yes", 400), ("calibrated", 160)])
def test_no_two_times_on_a_row_contradict_each_other(forecast: str, jobs: int) -> None:
    sources = set()
    rows = list[list[str]]()
    for view, number, row in sampled(jammed(forecast, jobs), ROWS):
        sources.add(None if row["starts"] is None else row["starts"]["source"])
        rows.append(list(contradictions(view, number, row)))
    assert len(rows) == ROWS
    assert [each for each in rows if each] == []
    assert {"releases", "forecast"} <= sources <= {*SEEN, None}


def test_of_three_thousand_waiting_jobs_each_row_agrees_with_itself() -> None:
    runs = LiveRuns()
    for told in islice(full_machine(3_000), 20):
        for envelope in told:
            runs.push(envelope)
    view = runs.view("full")
    assert len(view.jobs.waiting) >= 2_900
    rows = [each for start in range(0, 3_000, 375) for each in queue(view, start).items()]
    assert len(rows) >= ROWS
    assert [
        list(contradictions(view, number, row)) for number, row in rows if list(contradictions(view, number, row))
    ] == []


def test_the_check_finds_what_is_made_untrue() -> None:
    (view, number, row), *_ = (each for each in sampled(jammed("yes"), 20) if each[2]["starts"]["source"] == "forecast")
    now = view.time
    for untrue in (
        {"latest": row["starts"]["expected"] - 1},
        {"earliest": row["starts"]["expected"] + 1},
        {"expected": now - 1},
        {"expected": row["starts"]["expected"] + 600},
        {"passed": now + 1},
        {"passed": now - 1},
    ):
        assert list(contradictions(view, number, row | {"starts": row["starts"] | untrue})), untrue


def test_processors_are_free_or_not_on_all_of_the_page() -> None:
    """Of jobs whose start is decided, the processors are not free: neither above, nor where it says why a job waits."""
    for view, _, row in sampled(jammed("yes"), 60):
        needs = re.search(r"([\d,]+) (?:is|are) free", row["why"])
        assert needs is None or int(needs[1].replace(",", "")) == overview(view)["free"]


def test_wait_so_far_conditions_what_is_expected() -> None:
    futures = tuple((share / 20, 60 * share) for share in range(1, 20))
    told = StartPredictions(futures=futures)
    fresh, later = expected_start(0, 0, told), expected_start(600, 0, told)
    assert (fresh.earliest, fresh.expected, fresh.latest) == (120, 600, 1080)
    assert (later.earliest, later.expected, later.latest) == (660, 900, 1140)
    assert expected_start(1_200, 0, told) == StartOutlook(passed=1_140)


def test_the_best_source_answers() -> None:
    told = StartPredictions(forecast=900, bounds=((0.25, 60), (0.5, 600), (0.95, 7_200)), site=1_800)
    asked = [
        expected_start(0, 0, told),
        expected_start(0, 0, told._replace(forecast=None)),
        expected_start(2_000, 0, told, 2_400, goes_first=True),
        expected_start(0, 0, told._replace(site=None)),
        expected_start(800, 0, told._replace(site=None), 1_000),
        expected_start(1_000, 0, told._replace(site=None)),
        expected_start(7_000, 0, told._replace(site=None)),
        expected_start(7_200, 0, told._replace(site=None)),
    ]
    assert [(each.source, each.expected) for each in asked] == [
        ("forecast", 900), ("site", 1_800), ("releases", 2_400), ("forecast", 900), ("forecast", 1_000),
        ("bounds", 4_467), (None, None), (None, None),
    ]  # fmt: skip
    assert asked[-2] == StartOutlook()  # not by 7,200: of the jobs that wait for so long, 21 % start by then
    assert asked[-1].passed == 7_200


@given(
    st.lists(st.integers(0, 100), min_size=2, max_size=7, unique=True).map(sorted),
    st.integers(0, 100),
    st.sampled_from([(0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99), (0.25, 0.5, 0.75), (0.5, 0.95)]),
)
def test_what_is_stated_has_its_probability_given_the_wait(
    waits: list[int], waited: int, shares: tuple[float, ...]
) -> None:
    table = tuple(zip(shares, waits, strict=False))
    outlook = expected_start(waited, 0, StartPredictions(bounds=table))
    at, upto = [0, *(wait for _, wait in table)], [0.0, *(share for share, _ in table)]
    past = np.interp(waited, at, upto) if waited < table[-1][1] else upto[-1]
    for second, share in ((outlook.latest, 0.9), (outlook.by_95, 0.95), (outlook.expected, 0.5)):
        if second is not None:
            assert (np.interp(second + 1, at, upto) - past) / (1 - past) >= share - 1e-9


def test_a_single_bound_is_no_bound_of_90_percent_if_it_is_of_less() -> None:
    for quantile, stated in ((0.5, (None, None)), (0.9, (600, None)), (0.95, (600, 600)), (0.99, (600, None))):
        outlook = expected_start(0, 0, StartPredictions(bounds=((quantile, 600),)))
        assert (outlook.latest, outlook.by_95) == stated


def bounded(waiting: int, long: int, covered: float) -> dict[str, Any]:
    """Return the row of a bound of 10 h: of so many waiting jobs so many have waited longer."""
    bound = WaitBound(grouping="ensemble", quantile=0.95, confidence=0.95, bound=36_000)
    runs, sequence = LiveRuns(), 0

    def push(event: Event, **added: Any) -> None:
        nonlocal sequence
        runs.push(Envelope(run="r", sequence=sequence, event=event).model_copy(update=added))
        sequence += 1

    push(ClusterOpened(time=0, cluster="jam", processors=8))
    push(JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=900_000))
    told = Coverage(grouping="ensemble", quantile=0.95, revealed=90, covered=covered, low=0.88, high=1.0)
    push(JobStarted(time=0, job_number=1, processors=8, limit=900_000),
         coverage=(told,))  # fmt: skip
    for number in range(2, waiting + 2):
        time = 0 if number < long + 2 else 50_000
        push(
            JobSubmitted(time=time, job_number=number, requested_processors=8, requested_time=60),
            wait_bounds=(bound,), forecast=WaitForecast(wait=90_000),
        )  # fmt: skip
    (row,) = overview(runs.view("r"))["bounds"]
    return dict(row)


@pytest.mark.parametrize(
    ("long", "covered", "high", "withdrawn"),
    [(0, 1.0, False, False), (4, 1.0, False, False), (5, 1.0, True, False), (40, 0.95, True, True)],
)
def test_a_bound_says_how_many_have_outwaited_it(long: int, covered: float, *, high: bool, withdrawn: bool) -> None:
    """The first of 100 have waited 50,000 s; at 5 % it is red, and too many of them withdraw it."""
    doubt = {"outwaited": long, "waiting": 100, "high": high, "withdrawn": withdrawn}
    assert bounded(100, long, covered)["doubt"] == doubt
