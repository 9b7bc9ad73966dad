"""What the page says of one job is what the stages said of it, and why it waits is true."""

from typing import Any, Literal

import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.processes.ask.words import NO_WORDS, ClusterWords
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import matches, overview, queue
from shadowtime.services.processes.live.queue_rows import queue_row
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.drifts import Drift
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
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitBound, WaitForecast, WalltimeAdjustment
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from tests.support.small_logs import generated


def view_of(
    *told: tuple[Event, dict[str, Any]] | Event, mode: Literal["closed", "recorded"] = "closed", policy: str = "easy"
) -> LiveView:
    """Return the view of a machine of eight processors after these events."""
    runs = LiveRuns()
    first: Event = ClusterOpened(time=0, cluster="kth", processors=8, mode=mode, policy=policy)
    for sequence, each in enumerate((first, *told)):
        event, added = each if isinstance(each, tuple) else (each, {})
        runs.push(Envelope(run="r", sequence=sequence, event=event).model_copy(update=added))
    return runs.view("r")


def submitted(number: int, processors: int, time: int = 0, asks: int = 3600) -> JobSubmitted:
    return JobSubmitted(
        time=time, job_number=number, requested_processors=processors, requested_time=asks, user_id=number % 3
    )


RUNS = submitted(1, 6), JobStarted(time=0, job_number=1, processors=6, limit=3600)
BOUND = WaitBound(
    grouping="ensemble", quantile=0.95, confidence=0.95, bound=7200, starts_within=((0.5, 60), (0.9, 600), (0.95, 7200))
)
TOLD = {
    "run_time": RunTimePrediction(point=900.0, observations=5),
    "adjustment": WalltimeAdjustment(adjusted_time=1800, observations=5, key="user", percentile=90),
    "wait_bounds": (BOUND,),
    "forecast": WaitForecast(wait=300),
}


def test_a_waiting_job_has_its_place_its_reason_and_when_it_starts() -> None:
    view = view_of(
        submitted(1, 6), JobStarted(time=0, job_number=1, processors=6, limit=3600),
        submitted(2, 8), (submitted(3, 1), TOLD),
    )  # fmt: skip
    first, second = queue(view, 0).values()
    assert first["why"] == "It needs 8 procs, and 2 are free."
    unknown = dict.fromkeys(("earliest", "latest", "by_95", "passed"))
    assert first["starts"] == {"source": "releases", "expected": 3600, **unknown}
    assert second == {
        "user": 0, "processors": 1, "asks": 3600, "adjusted": 1800, "expected": 900, "since": 0, "untrusted": {},
        "starts": {"source": "forecast", "expected": 300, "earliest": 12, "latest": 600, "by_95": 7200, "passed": None},
        "why": "It fits into what is free, but job 2 goes first and must not be delayed.",
        "site": None,
    }  # fmt: skip
    page = job_page(view, 3)
    assert page is not None
    assert page["head"] == [
        "It has waited for 0 s and is number 2 of 2 that wait.",
        "It is expected to start at about 00:05 (00:00 to 00:10), by the forecast.",
    ]
    assert list(queue(view, 1)) == [3]
    late = view_of(
        submitted(1, 6), JobStarted(time=0, job_number=1, processors=6, limit=3600),
        submitted(2, 8), (submitted(3, 1), TOLD), CapacityChanged(time=7300, processors=8),
    )  # fmt: skip
    page = job_page(late, 3)
    assert page is not None
    assert page["head"][1] == (
        "It is later than predicted: the last time that was predicted, 02:00, has passed 1.7 min ago."
    )
    assert [each[:2] for each in overview(view)["planned"]] == [[3, 300], [2, 3600]]


@pytest.mark.parametrize(
    ("events", "number", "reason"),
    [
        (
            (submitted(2, 8), CapacityChanged(time=9, processors=7)),
            2,
            "It needs 8 procs, more than there are just now.",
        ),
        ((submitted(2, 4),), 2, "It needs 4 procs, and 2 are free."),
        ((submitted(2, 2),), 2, "It fits, and the next pass starts it, unless something comes before that."),
        (
            (submitted(2, 8), submitted(3, 1)),
            3,
            "It fits into what is free, but job 2 goes first and must not be delayed.",
        ),
        (
            (submitted(2, 1).model_copy(update={"blocked": True}),),
            2,
            "The site does not let it start for now, for its own reason such as a limit on its user.",
        ),
    ],
)
def test_why_a_job_waits(events: tuple[Event, ...], number: int, reason: str) -> None:
    assert queue(view_of(*RUNS, *events), 0)[number]["why"] == reason


def test_of_a_policy_that_is_not_known_here_nobody_says_why() -> None:
    view = view_of(*RUNS, submitted(2, 8), policy="unheard-of")
    assert queue(view, 0)[2]["why"] == ""
    page = job_page(view, 2)
    assert page is not None
    assert page["why"] == []


def test_the_story_of_a_job_and_how_good_each_prediction_was() -> None:
    start = Start(
        job_number=3, processors=1,
        reason=Backfilled(head=2, shadow_time=3600, extra_processors=0, ends_by_shadow_time=True),
    )  # fmt: skip
    events: list[tuple[Event, dict[str, Any]] | Event] = [
        submitted(1, 6), JobStarted(time=0, job_number=1, processors=6), submitted(2, 8), (submitted(3, 1), TOLD),
        Decided(time=420, starts=(start,)),
    ]  # fmt: skip
    decided = view_of(*events)
    assert queue(decided, 0)[3]["why"] == "It starts now."
    assert decided.machine().free == 1
    events.append(JobStarted(time=420, job_number=3, processors=1, limit=3600))
    page = job_page(view_of(*events), 3)
    assert page is not None
    assert page["state"] == "running"
    assert page["head"][1] == "It is expected to end at 00:22, in 15.0 min."
    ended = TOLD["adjustment"].model_copy(update={"outcome": "over"})  # type: ignore[attr-defined]
    events.append((JobEnded(time=1020, job_number=3, run_time=600), {"adjustment": ended}))
    view = view_of(*events)
    page = job_page(view, 3)
    assert page is not None
    assert [what for _, _, what in page["story"]] == [
        "submitted by user 0: asks for 1 proc for 1.0 h",
        "predicted to run 15.0 min; its request adjusted to 30.0 min",
        "decided to start it: backfilled, ends by 01:00:00, when job 2 can start by requests",
        "started on 1 proc, having waited 7.0 min",
        "completed after 10.0 min",
    ]
    assert page["predictions"] == [
        ["run time", "15.0 min", "10.0 min", "5.0 min too long"],
        ["request", "1.0 h", "10.0 min", "17 % of it used"],
        ["request as adjusted", "30.0 min", "10.0 min", "which was enough"],
        ["wait, 95 % bound by ensemble", "at most 2.0 h", "waited 7.0 min", "held"],
        ["forecast start", "0 d 00:05", "waited 7.0 min", "2.0 min too early"],
    ]
    head = job_page(view, 2)
    assert head is not None
    assert [what for _, _, what in head["story"] if "ahead" in what] == ["job 3 started ahead of it"]
    assert job_page(view, 4) is None


def test_a_late_start_is_shown_at_the_time_when_it_happened() -> None:
    """A follower found it late: the page had the time at which it was found, beside the true wait."""
    begun = JobStarted(time=300, job_number=1, processors=6, limit=3600, happened=60)
    view = view_of(submitted(1, 6), begun, submitted(2, 1, 360))
    row, page = queue_row(view, view.stories[1], ClusterWords()), job_page(view, 1)
    assert page is not None
    assert (row.started, row.waited, row.used, page["marks"]["started"]) == (60, 60, 0.0833, 60)
    assert overview(view)["running"][1]["began"] == 60
    assert page["predictions"][0][:3] == ["request", "1.0 h", "has run 5.0 min"]
    assert [(date[-8:], what) for _, date, what in page["story"]][-1] == (
        "00:01:00",
        "started on 6 procs, having waited 1.0 min",
    )


def test_what_the_site_expects_stands_beside_what_we_forecast() -> None:
    job: tuple[Event, dict[str, Any]] = submitted(3, 8, asks=600), TOLD
    words = [JobExpected(time=time, job_number=3, start=start) for time, start in ((60, 900), (120, 1200), (180, 720))]
    events: list[tuple[Event, dict[str, Any]] | Event] = [job, words[0]]
    once = job_page(view_of(*events, mode="recorded"), 3)
    assert once is not None
    assert once["head"][-1] == "It is expected to start at about 00:05 (00:02 to 02:00), by the forecast."
    assert once["predictions"][-1] == [
        "start that the site expects, only forecast",
        "0 d 00:15",
        "has waited 1.0 min",
        "",
    ]
    events += [*words[1:], JobStarted(time=780, job_number=3, processors=8)]
    page = job_page(view_of(*events, mode="recorded"), 3)
    assert page is not None
    assert [(when, what) for when, _, what in page["story"] if "the site" in what] == [
        (60, "the site expects it to start at 0 d 00:15"),
        (180, "the site expects it to start at 0 d 00:12 (its 3rd forecast)"),
    ]
    assert page["predictions"][-3:] == [
        ["forecast start", "0 d 00:05", "waited 13.0 min", "8.0 min too early"],
        ["start that the site expects, first forecast", "0 d 00:15", "waited 13.0 min", "2.0 min too late"],
        ["start that the site expects, latest forecast", "0 d 00:12", "waited 13.0 min", "1.0 min too early"],
    ]
    late = job_page(view_of(*events[:-1], submitted(4, 1, time=730), mode="recorded"), 3)
    assert late is not None
    assert late["head"][-1] == "It has waited for 12.2 min and is number 1 of 2 that wait."  # by 02:00: less than half


def test_of_a_job_that_waits_again_the_site_has_said_nothing_yet() -> None:
    word = JobExpected(time=0, job_number=3, start=50)
    begun = JobStarted(time=60, job_number=3, processors=8)
    back = JobEnded(time=70, job_number=3, run_time=10, requeued=True)
    page = job_page(view_of(submitted(3, 8), word, begun, back, mode="recorded"), 3)
    assert page is not None
    assert "the site" not in str(page)


def test_advice_is_advice_and_told_once_for_each_job() -> None:
    start = Start(job_number=1, processors=4, reason=FitsNow())
    view = view_of(submitted(1, 4), *(Decided(time=time, starts=(start,)) for time in (0, 60, 120)), mode="recorded")
    state = overview(view)
    assert not state["obeyed"]
    (told,) = state["decisions"].values()
    assert told[3] == "(4 procs) could start now"
    assert state["queue"][1]["why"] == (
        "It fits, and the policy would start it; decisions are advice here, and the machine has not."
    )
    page = job_page(view, 1)
    assert page is not None
    assert [what for _, _, what in page["story"] if "advised" in what] == [
        "advised to start it: nothing waits ahead of it, and it fits"
    ]


def test_jobs_are_found_by_number_and_by_user() -> None:
    view = view_of(*(submitted(number, 1) for number in range(1, 10)))
    told = matches(view, "1")
    assert told["job"][0] == 1
    assert (told["count"], [each[0] for each in told["jobs"]]) == (3, [7, 4, 1])
    nothing: dict[str, Any] = {"of": "user", "name": "77", "also": [], "job": None, "count": 0, "jobs": []}
    assert matches(view, "77") == nothing


def test_a_job_that_changes_its_user_is_found_by_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.processes.live.run_stories.MAX_ENDED", 0)
    change = JobChanged(time=1, job_number=2, user_id=5)
    view = view_of(*RUNS, submitted(2, 8), change)
    assert [[each[0] for each in matches(view, user)["jobs"]] for user in ("2", "5")] == [[], [2]]
    over = view_of(*RUNS, submitted(2, 8), change, JobWithdrawn(time=2, job_number=2))  # the run itself was forgotten
    assert 2 not in over.stories


@pytest.fixture(scope="module")
def log() -> list[Envelope]:
    told: list[Envelope] = []
    plan = RunPlan(
        "easy", "kth", generated(300), configure("easy:forecast=yes", "empirical", "auto"),
        wait_bound=canonical("wait-bound", "bmbp:history=100"),
    )  # fmt: skip
    replay = plan.replay([told.append])
    replay.run_to_end()
    return told


def test_what_is_said_of_every_job_agrees_with_the_log(log: list[Envelope]) -> None:
    runs, told, started = LiveRuns(), {}, {}
    for envelope in log:
        runs.push(envelope)
        event = envelope.event
        if isinstance(event, JobSubmitted):
            told[event.job_number] = envelope
        elif isinstance(event, JobStarted):
            started[event.job_number] = event.time
    (view,) = map(runs.view, runs.names())
    assert set(view.ended) == set(started) == set(told)
    held = {True: 0, False: 0}
    for number, envelope in told.items():
        page = job_page(view, number)
        assert page is not None
        assert page["state"] == "ended"
        wait = started[number] - envelope.event.time
        verdicts = {each[0]: each[3] for each in page["predictions"]}
        (bound,) = (each for each in envelope.wait_bounds if each.grouping == "ensemble" and each.queue is None)
        if bound.bound is not None:
            assert (verdicts["wait, 95 % bound by ensemble"] == "held") == (wait <= bound.bound)
            held[wait <= bound.bound] += 1
        assert envelope.forecast is not None
        assert (verdicts["forecast start"] == "exact") == (envelope.forecast.wait == wait)
    assert held[True] > 0 < held[False]


def test_jobs_are_let_go_of_and_what_is_kept_is_counted(log: list[Envelope], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.processes.live.run_stories.MAX_ENDED", 20)
    monkeypatch.setattr("shadowtime.services.processes.live.rows.MAX_BLOCKS", 10)
    runs = LiveRuns()
    for envelope in log[:-1]:
        runs.push(envelope)
        view = runs.view(runs.names()[0])
        assert len(view.ended) <= 20
        assert view.remembered == len(view.jobs.waiting) + len(view.jobs.running) + len(view.ended)
        assert sum(map(len, view.of_user.values())) <= view.remembered
        assert len(view.picture.blocks) <= 10
        assert runs.remembered == view.remembered
    blocks = overview(view)["blocks"].values()
    assert min(each[3] for each in blocks if not each[4]) >= view.picture.covered_from


def test_no_two_jobs_are_drawn_on_one_another(log: list[Envelope]) -> None:
    runs = LiveRuns()
    for envelope in log:
        runs.push(envelope)
        view = runs.view(runs.names()[0])
        taken = [row for each in view.running() for start, size in each.ranges for row in range(start, start + size)]
        assert len(taken) == len(set(taken)) == view.busy
        assert not taken or max(taken) < 16


def headline_of(view: LiveView, number: int) -> tuple[str, list[str]]:
    page = job_page(view, number)
    assert page is not None
    return page["state"], page["head"]


def test_a_job_that_left_the_queue_says_so() -> None:
    queue = submitted(2, 8, 60), submitted(4, 8, 60)
    left = JobWithdrawn(time=660, job_number=2), JobWithdrawn(time=660, job_number=4, reason="held")
    view = view_of(*RUNS, *queue, *left)
    assert headline_of(view, 2) == ("cancelled", ["It was cancelled after it had waited for 10.0 min."])
    assert headline_of(view, 4) == (
        "held",
        ["It is held after it had waited for 10.0 min. It waits again when it is released."],
    )
    assert overview(view)["waiting"] == 0
    assert [each[3] for each in overview(view)["decisions"].values()] == ["was cancelled", "is held"]


@pytest.mark.parametrize("reason", ["cancelled", "held"])
def test_a_job_that_left_the_queue_waits_no_longer(reason: Literal["cancelled", "held"]) -> None:
    """The page of a job that was cancelled after ten minutes went on to count its wait, and to hold its bounds."""
    left = JobWithdrawn(time=660, job_number=2, reason=reason)
    page = job_page(view_of(*RUNS, (submitted(2, 8, 60), TOLD), left, SchedulingPoint(time=9000)), 2)
    assert page is not None
    assert page["marks"]["withdrawn"] == 660
    rows = {row[0]: row[1:] for row in page["predictions"]}
    assert rows["wait, 95 % bound by ensemble"] == ["at most 2.0 h", "waited 10.0 min", ""]
    assert rows["forecast start"][1] == "waited 10.0 min"
    assert rows["request"][1] == ("it did not start" if reason == "cancelled" else "not known yet")


def test_a_held_job_begins_a_new_story_when_it_comes_back() -> None:
    held = submitted(2, 8, 60), JobWithdrawn(time=70, job_number=2, reason="held"), submitted(2, 8, 600)
    state, head = headline_of(view_of(*RUNS, *held), 2)
    assert state == "waiting"
    assert head[0].startswith("It has waited for 0 s")


def test_a_suspended_job_gives_its_place_and_gets_one_again() -> None:
    stopped = view_of(*RUNS, JobSuspended(time=600, job_number=1))
    assert headline_of(stopped, 1)[0] == "suspended"
    assert overview(stopped)["busy"] == 0
    view = view_of(*RUNS, JobSuspended(time=600, job_number=1), JobResumed(time=1200, job_number=1))
    assert headline_of(view, 1) == (
        "running",
        ["It has run for 10.0 min on 6 procs.", "50.0 min of its 1.0 h are left."],
    )
    assert overview(view)["busy"] == 6
    over = view_of(*RUNS, JobSuspended(time=600, job_number=1), JobEnded(time=700, job_number=1, run_time=600))
    assert overview(over)["busy"] == 0
    assert over.picture.rows.take(8) == view_of().picture.rows.take(8)


def test_all_figures_of_a_running_job_leave_its_suspensions_out() -> None:
    """The row of a job said 20 min of its hour were left, beside an end in 40 min; its page had both."""
    stopped = JobSuspended(time=610, job_number=1, happened=600)
    for resumed, now, ran in (((), 1500, 600), ((JobResumed(time=1800, job_number=1),), 2400, 1200)):
        view = view_of(*RUNS, stopped, *resumed, SchedulingPoint(time=now))
        row, page = overview(view)["running"][1], job_page(view, 1)
        assert page is not None
        assert (now if row["stopped"] is None else row["stopped"]) - row["began"] == ran
        assert row["end"] is None if row["stopped"] else row["end"] - now == row["limit"] - ran
        assert page["marks"]["ran"] == ran
        assert page["marks"]["limit"] == now + 3600 - ran
        assert ["request", "1.0 h", f"has run {ran // 60}.0 min", ""] in page["predictions"]
        assert queue_row(view, view.stories[1], NO_WORDS).used == round(ran / 3600, 4)
    ended = job_page(view_of(*RUNS, stopped, JobEnded(time=3000, job_number=1, run_time=600)), 1)
    assert ended is not None
    assert (ended["marks"]["ran"], ended["marks"]["limit"]) == (600, 2400 + 3600)


def test_a_new_limit_of_a_running_job_moves_its_end_at_once() -> None:
    view = view_of(*RUNS, SchedulingPoint(time=1000))
    assert overview(view)["running"][1]["end"] == 3600
    envelope = Envelope(run="r", sequence=4, event=JobChanged(time=1001, job_number=1, requested_time=7200))
    view.handle(envelope)
    assert (overview(view)["running"][1]["limit"], overview(view)["running"][1]["end"]) == (7200, 7200)


def test_a_running_job_whose_limit_is_taken_away_has_none() -> None:
    change = JobChanged(time=1000, job_number=1, unlimited=True)
    view = view_of(*RUNS, change)
    assert overview(view)["running"][1]["limit"] is None
    row = queue_row(view, view.stories[1], NO_WORDS)
    assert (row.limit, row.used) == (None, None)
    again = JobChanged(time=1000, job_number=1, requested_time=7200)
    assert overview(view_of(*RUNS, change, again))["running"][1]["limit"] == 7200


def test_while_a_job_is_suspended_others_have_reasons_to_wait() -> None:
    """On a machine without memory or GPUs, the page, `queue` and `ask --job` ended with a traceback of numpy."""
    view = view_of(*RUNS, submitted(2, 8), JobSuspended(time=600, job_number=1), SchedulingPoint(time=1500))
    assert queue(view, 0)[2]["why"] == "It starts now."
    blocked = JobStarted(time=700, job_number=3, processors=2, limit=3600)
    events = *RUNS, submitted(3, 2), submitted(2, 8), JobSuspended(time=600, job_number=1), blocked
    view = view_of(*events, SchedulingPoint(time=1500))
    assert queue(view, 0)[2]["why"] == "It needs 8 procs, and 6 are free."


def test_an_explanation_that_fails_leaves_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(*RUNS, submitted(2, 8))

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(view._explains, "explain", fails)  # noqa: SLF001
    assert queue(view, 0)[2]["why"] == ""
    assert overview(view)["waiting"] == 1


def test_a_job_past_its_limit_is_not_expected_to_end_before_now() -> None:
    told = {"run_time": RunTimePrediction(point=9000.0, observations=5)}
    view = view_of((RUNS[0], told), RUNS[1], SchedulingPoint(time=4000))
    assert headline_of(view, 1)[1] == ["It has run for 1.1 h on 6 procs.", "Its time is up."]


def test_a_job_that_changes_is_told_as_it_is_now() -> None:
    changes = (
        JobChanged(time=60, job_number=2, requested_time=60),
        JobChanged(time=60, job_number=1, requested_processors=8, requested_time=7200),
    )
    view = view_of(*RUNS, submitted(2, 8), *changes)
    assert queue(view, 0)[2]["asks"] == 60
    assert headline_of(view, 1)[1][-1] == "2.0 h of its 2.0 h are left."
    assert overview(view)["busy"] == 8


def test_predictions_under_alarm_are_marked_until_they_hold_again() -> None:
    """Of the user's jobs that have not ended: in rows, at its own page, and above."""
    drift = Drift(of="run_time", what="longer", scope="user", number=0, since=0, share=0.5, most=0.2)
    alarm = submitted(9, 1), {"drifts": (drift,)}
    view = view_of((submitted(3, 1), TOLD), alarm)
    assert queue(view, 0)[3]["untrusted"] == {"run_time": 0}
    page = job_page(view, 3)
    assert page is not None
    assert {row[0]: row[1] for row in page["predictions"]}["run time"].endswith("(not to be trusted since 0 d)")
    assert overview(view)["untrusted"] == ["run times are longer than predicted, of user 0, since 0 d"]
    again = submitted(12, 1), {"drifts": (drift.model_copy(update={"holds": True}),)}
    view = view_of((submitted(3, 1), TOLD), alarm, again)
    assert queue(view, 0)[3]["untrusted"] == {}
    assert overview(view)["untrusted"] == []


def test_alarms_that_are_not_listed_are_counted() -> None:
    drift = Drift(of="run_time", what="longer", scope="user", number=0, since=0, share=0.5, most=0.2)
    drifts = tuple(drift.model_copy(update={"number": number}) for number in range(14))
    listed = overview(view_of((submitted(9, 1), {"drifts": drifts})))["untrusted"]
    assert (len(listed), listed[-1]) == (13, "2 more")


def test_why_it_waits_is_what_the_decisions_say() -> None:
    view = view_of(
        submitted(1, 8), JobStarted(time=0, job_number=1, processors=8), submitted(2, 8, 60), submitted(3, 8, 120)
    )
    page = job_page(view, 3)
    assert page is not None
    assert page["why"][:2] == [
        "Before it in the order of the queue (fcfs): 1 job, which requests 8 procs in all: 2.",
        "It needs 8 procs, and 0 are free.",
    ]
    other = job_page(view, 1)
    assert other is not None
    assert other["why"] == []


def test_without_the_policy_a_run_is_shown_all_the_same() -> None:
    runs = LiveRuns()
    opened = ClusterOpened(time=0, cluster="c", processors=8, policy="of-a-plug-in")
    events: list[Event] = [opened, submitted(1, 8)]
    for sequence, event in enumerate(events):
        runs.push(Envelope(run="r", sequence=sequence, event=event))
    page = job_page(runs.view("r"), 1)
    assert page is not None
    assert page["why"] == []
