"""What the live page shows is what the log says, of any run and at any point, in bounded memory."""

from itertools import islice
from typing import Any

import orjson
import pytest

from shadowtime.services.processes.live.page import changes
from shadowtime.services.processes.live.page_data import PAGE
from shadowtime.services.processes.live.run_stories import DECISIONS
from shadowtime.services.processes.live.view import MAX_RUNS, LiveRuns
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
    WaitRanges,
)
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.text.events import chosen
from tests.support.full_machine import full_machine
from tests.support.live_logs import log_of


def shown(runs: LiveRuns, run: str | None = None) -> dict[str, Any]:
    state = runs.state(run)
    assert state["run"] is not None
    return state


@pytest.fixture(scope="module")
def log() -> list[Envelope]:
    return log_of(jobs=150)


def test_it_agrees_with_the_log_at_every_point() -> None:
    log = log_of(jobs=60)
    runs = LiveRuns()
    waiting: dict[int, JobSubmitted] = {}
    running: dict[int, JobStarted] = {}
    waits: list[int] = []
    for envelope in log:
        runs.push(envelope)
        event = envelope.event
        if isinstance(event, JobSubmitted):
            waiting[event.job_number] = event
        elif isinstance(event, JobStarted):
            waits.append(event.time - waiting.pop(event.job_number).time)
            running[event.job_number] = event
        elif isinstance(event, JobEnded):
            del running[event.job_number]
        state = shown(runs)
        assert state["busy"] == sum(each.processors for each in running.values())
        assert (state["waiting"], state["running_count"]) == (len(waiting), len(running))
        assert list(state["queue"]) == list(waiting)[:PAGE]
        assert set(state["running"]) == set(running)
        assert (state["time"], state["processors"]) == (event.time, 16)
        if waits:
            assert state["mean_wait"] == pytest.approx(sum(waits) / len(waits))
    assert state["closed"]
    assert log[-1].scores is not None
    assert state["scores"] == log[-1].scores.policy.model_dump()
    assert state["mean_wait"] == pytest.approx(state["scores"]["mean_wait"])
    assert state["longest_wait"] == state["scores"]["max_wait"]


def test_the_last_decisions_come_first_with_their_reasons(log: list[Envelope]) -> None:
    runs = LiveRuns()
    for envelope in log:
        runs.push(envelope)
    starts = [start.job_number for each in log if isinstance(each.event, Decided) for start in each.event.starts]
    state = shown(runs)
    assert [job for _, job, *_ in state["decisions"].values()] == starts[-DECISIONS:]
    assert all(reason for *_, reason in state["decisions"].values())


def test_the_members_of_a_portfolio_that_begin_to_decide_are_among_the_decisions() -> None:
    runs = LiveRuns()
    told = log_of(jobs=150, policy="tuned:runtime=empirical,least=20,every=900")
    shown_once: dict[str, str] = {}
    for envelope in told:
        runs.push(envelope)
        rows = shown(runs)["decisions"].items()
        shown_once |= {number: what for number, (_, _, kind, what, _) in rows if kind == "member"}
    assert told[-1].scores is not None
    assert told[-1].scores.portfolio is not None
    _, *changes = told[-1].scores.portfolio.changes
    assert changes
    assert list(shown_once.values()) == [f"{each.member} decides from now on" for each in changes]


def test_bounds_are_shown_with_their_coverage(log: list[Envelope]) -> None:
    runs = LiveRuns()
    for envelope in log:
        runs.push(envelope)
    (bound,) = shown(runs)["bounds"]
    last = [each for envelope in log for each in envelope.coverage if each.queue is None][-1]
    assert (bound["grouping"], bound["covered"], bound["revealed"]) == ("plain", last.covered, last.revealed)


def test_a_bound_is_shown_for_each_size_until_the_run_is_over(log: list[Envelope]) -> None:
    runs, told, stand = LiveRuns(), dict[int, tuple[int, int]](), 0
    for envelope in log:
        runs.push(envelope)
        job = envelope.event
        if isinstance(job, JobSubmitted) and (bound := chosen(envelope.wait_bounds)) and bound.bound is not None:
            least = next(size for size in (65, 17, 5, 2, 1) if job.requested_processors >= size)
            told[least] = (bound.bound, job.time)
            rows = {row[0]: (row[2], row[4]) for row in shown(runs)["sizes"]}
            assert rows.keys() == told.keys()
            for size, (seconds, time) in rows.items():
                assert (seconds or told[size][0], time) == told[size], "unless it is withdrawn"
                stand += seconds is not None
    assert stand > 0
    assert shown(runs)["sizes"] == []


def shown_midway(log: list[Envelope]) -> dict[str, Any]:
    runs = LiveRuns()
    deepest: dict[str, Any] = {}
    for envelope in log:
        runs.push(envelope)
        state = shown(runs)
        if len(state["queue"]) >= len(deepest.get("queue", ())):
            deepest = state
    return deepest


def opened(run: str, cluster: str = "kth") -> Envelope:
    return Envelope(run=run, cluster=cluster, sequence=0, event=ClusterOpened(time=0, cluster=cluster, processors=4))


def test_duplicates_change_nothing_and_gaps_end_it(log: list[Envelope]) -> None:
    runs = LiveRuns()
    for envelope in log[:50]:
        runs.push(envelope)
        runs.push(envelope)
    runs.push(log[0])
    before = shown(runs)
    once = LiveRuns()
    for envelope in log[:50]:
        once.push(envelope)
    assert before == shown(once)
    runs.push(log[60])
    assert runs.names() == []


def test_a_run_whose_beginning_is_gone_is_not_shown(log: list[Envelope]) -> None:
    runs = LiveRuns()
    runs.push(log[7])
    assert runs.state(None) == {"runs": [], "behind": 0, "run": None}


def test_of_those_that_go_on_the_run_that_began_last_comes_first_whichever_was_told_of_last() -> None:
    runs = LiveRuns()
    for name in ("a", "b", "c"):
        runs.push(opened(name, f"cluster {name}"))
    runs.push(Envelope(run="c", sequence=1, event=ClusterClosed(time=0)))
    runs.push(Envelope(run="a", sequence=1, event=SchedulingPoint(time=0)))
    assert runs.names() == ["b", "a", "c"]
    assert shown(runs)["run"] == "b"
    assert shown(runs, "c")["cluster"] == "cluster c"
    assert runs.state("d")["run"] is None


def test_a_cluster_comes_before_its_shadows() -> None:
    """The page of a followed cluster was that of the shadow that was started last."""
    runs = LiveRuns()
    for name in ("old/live", "mine/live", "mine/shadow/easy", "mine/shadow/best"):
        runs.push(opened(name, name.partition("/")[0]))
    assert runs.names() == ["mine/live", "old/live", "mine/shadow/best", "mine/shadow/easy"]
    assert shown(runs)["run"] == "mine/live"


def test_so_many_runs_are_remembered_and_closed_ones_go_first() -> None:
    runs = LiveRuns()
    runs.push(opened("over"))
    runs.push(Envelope(run="over", sequence=1, event=ClusterClosed(time=0)))
    for number in range(MAX_RUNS + 9):
        runs.push(opened(f"run {number}"))
    names = runs.names()
    assert len(names) == MAX_RUNS
    assert "over" not in names
    assert names[0] == f"run {MAX_RUNS + 8}"
    runs.push(Envelope(run="run 0", sequence=1, event=SchedulingPoint(time=0)))
    assert "run 0" not in runs.names()


def submitted(number: int) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=number, requested_processors=1, requested_time=60)


def test_runs_make_room_for_jobs_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty runs of a hundred thousand jobs each would take gigabytes."""
    monkeypatch.setattr("shadowtime.services.processes.live.view.MAX_JOBS_SHOWN", 5)
    runs = LiveRuns()
    for number in range(3):
        runs.push(opened(f"run {number}"))
    for sequence in range(1, 4):
        for run in ("run 2", "run 0"):
            runs.push(Envelope(run=run, sequence=sequence, event=submitted(sequence)))
    assert runs.names() == ["run 0"]
    assert shown(runs)["waiting"] == 3
    for sequence in range(4, 10):
        runs.push(Envelope(run="run 0", sequence=sequence, event=submitted(sequence)))
    assert shown(runs)["waiting"] == 9


def test_of_ten_thousand_waiting_jobs_little_is_sent() -> None:
    runs, log = LiveRuns(), full_machine(10_000)
    seen: dict[str, Any] | None = None
    sizes = []
    for told in islice(log, 50):
        for envelope in told:
            runs.push(envelope)
        state = runs.state(None)
        sizes.append(len(orjson.dumps(changes(seen, state))))
        seen = state
    assert len(runs.state(None)["queue"]) == PAGE
    assert sizes[0] < 50_000
    assert max(sizes[1:]) < 4_000


def test_ranges_of_processors_are_shown_beside_the_sites_own(log: list[Envelope]) -> None:
    ranges = (
        WaitRanges(grouping="static", ends=(4,), waits=(5, 7)),
        WaitRanges(grouping="nodes", waits=(12,)),
        WaitRanges(grouping="nodes", queue=3, ends=(1,), waits=(2, 3)),
    )
    at = max(place for place, each in enumerate(log) if isinstance(each.event, JobSubmitted))
    runs = LiveRuns()
    for place, envelope in enumerate(log):
        runs.push(envelope.model_copy(update={"wait_ranges": ranges}) if place == at else envelope)
    assert shown(runs)["ranges"] == [
        ["all", "all", "12", "1 to 4", "5"],
        ["", "", "", "5 or more", "7"],
        ["3", "1", "2", "", ""],
        ["", "2 or more", "3", "", ""],
    ]
    assert orjson.dumps(shown(runs)["ranges"])


def test_the_run_that_follows_a_cluster_now_answers_its_portals() -> None:
    """With `cluster=mine`, portals got the dead mine/live, or an error once that was removed."""
    runs = LiveRuns()
    assert runs.followed("mine") is None

    def opened(run: str, cluster: str, start: int, name: str = "live") -> None:
        event = ClusterOpened(time=0, cluster=cluster, processors=4, mode="recorded", name=name, unix_start=start)
        events: tuple[Event, ...] = (event, SchedulingPoint(time=5))
        for sequence, message in enumerate(events):
            runs.push(Envelope(run=run, cluster=cluster, sequence=sequence, event=message))

    opened("mine/second", "mine", 2_000)
    assert (runs.followed("mine"), runs.followed(), runs.followed("other")) == ("mine/second", "mine/second", None)
    opened("mine/live", "mine", 1_000)
    opened("mine/replay", "mine", 9_000, "easy")
    assert runs.followed("mine") == runs.followed() == "mine/second"
    opened("other/live", "other", 1_000)
    assert (runs.followed(), runs.followed("mine")) == ("other/live", "mine/second")


def test_a_run_whose_beginning_is_gone_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Once the retention of Kafka had passed, a restarted page had no followed cluster, and did not say why."""
    runs = LiveRuns()
    for sequence in (700, 701):
        event = SchedulingPoint(time=sequence)
        runs.push(Envelope(run="mine/live", cluster="mine", sequence=sequence, event=event))
    assert caplog.messages == ["run 'mine/live' is not shown: Kafka no longer has its beginning"]
    assert (runs.headless("mine"), runs.headless(None), runs.headless("other")) == (["mine/live"], ["mine/live"], [])
    events: tuple[Event, ...] = (ClusterOpened(time=0, cluster="b", processors=4), SchedulingPoint(time=5))
    for sequence, message in enumerate(events):
        runs.push(Envelope(run="b/easy", cluster="b", sequence=2 * sequence, event=message))  # a gap: it is forgotten
    assert runs.headless(None) == ["mine/live"]
    assert len(caplog.messages) == 1


def test_the_head_starts_when_listed_jobs_have_ended(log: list[Envelope]) -> None:
    """Else the page says "starts about 17:58" of a job that lacks processors, and "next end expected 18:02"."""
    runs, compared = LiveRuns(), 0
    for envelope in log:
        runs.push(envelope)
        view = runs.view(envelope.run)
        head = view.head()
        if head is None or head.start is None or head.story.job.requested_processors <= view.machine().free:
            continue
        ends = [end for story in view.running() if (end := view.end_or_never(story)) is not None]
        assert head.start >= min(ends)
        compared += 1
    assert compared > 10


def test_a_bound_for_a_size_is_withdrawn_if_the_waiting_jobs_contradict_it() -> None:
    runs = LiveRuns()
    bound = WaitBound(grouping="ensemble", quantile=0.95, confidence=0.95, bound=60, observations=100)

    def push(sequence: int, event: Event, *bounds: WaitBound) -> None:
        runs.push(Envelope(run="r", cluster="c", sequence=sequence, event=event, wait_bounds=bounds))

    push(0, ClusterOpened(time=0, cluster="c", processors=8, policy="fcfs"))
    push(1, JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=9_000), bound)
    for number in range(2, 30):
        push(number, JobSubmitted(time=0, job_number=number, requested_processors=2, requested_time=9_000), bound)
    assert [row[:3] for row in shown(runs)["sizes"]] == [[2, 4, 60], [5, 8, 60]], "no size exceeds the machine"
    push(30, JobSubmitted(time=5_000, job_number=30, requested_processors=2, requested_time=9_000), bound)
    assert [row[:3] for row in shown(runs)["sizes"]] == [[2, 4, None], [5, 8, None]]


def test_where_the_bound_to_show_is_withdrawn_one_in_force_is_shown() -> None:
    runs = LiveRuns()
    low, high = (
        WaitBound(grouping=grouping, quantile=0.95, confidence=0.95, bound=seconds, observations=100)
        for grouping, seconds in (("ensemble", 60), ("plain", 90_000))
    )

    def push(sequence: int, event: Event, *bounds: WaitBound) -> None:
        runs.push(Envelope(run="r", cluster="c", sequence=sequence, event=event, wait_bounds=bounds))

    push(0, ClusterOpened(time=0, cluster="c", processors=8, policy="fcfs"))
    for number in range(1, 30):
        push(number, JobSubmitted(time=0, job_number=number, requested_processors=2, requested_time=9_000), high, low)
    assert [[row[2], row[5]] for row in shown(runs)["sizes"]] == [[60, "ensemble"]]
    push(30, JobSubmitted(time=5_000, job_number=30, requested_processors=2, requested_time=9_000), high, low)
    assert [[row[2], row[5]] for row in shown(runs)["sizes"]] == [[90_000, "plain"]]
