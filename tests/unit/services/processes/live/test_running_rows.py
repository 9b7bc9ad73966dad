"""Rows of running jobs on the live page, beside their pages and the rows of portals, whatever happens to the jobs."""

from collections.abc import Iterator

from hypothesis import given, settings

from shadowtime.services.processes.ask.words import NO_WORDS
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import overview
from shadowtime.services.processes.live.queue_rows import queue_row
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event
from tests.support.strategies.logs import eventful_logs


def contradictions(view: LiveView) -> Iterator[str]:
    """Yield what does not agree about the running jobs."""
    now, state = view.time, overview(view)
    for number, row in state["running"].items():
        page, other = job_page(view, number), queue_row(view, view.stories[number], NO_WORDS)
        assert page is not None
        ran = max(0, (now if row["stopped"] is None else row["stopped"]) - row["began"])
        marks, limit, told = page["marks"], row["limit"], f"at {now}, of {number}: {row}"
        if marks["ran"] != ran or (row["stopped"] is not None) != (page["state"] == "suspended"):
            yield f"its page has {marks} {told}"
        if limit and (other.used != round(ran / limit, 4) or marks["limit"] != now - ran + limit):
            yield f"its limit is elsewhere {other} {marks} {told}"
        if limit and row["stopped"] is None and not row["predicted"] and row["end"] != now - ran + limit:
            yield f"it does not end at its limit {told}"
        if other.waited != view.stories[number].wait:
            yield f"it waited for another time {other} {told}"
    drawn = sum(sum(block[5][1::2]) for block in state["blocks"].values() if block[4])
    if drawn != state["busy"]:
        yield f"at {now}, {drawn} processors are drawn, and {state['busy']} are busy"


@settings(max_examples=30)
@given(eventful_logs())
def test_no_two_figures_of_a_running_job_contradict_each_other(log: tuple[ClusterOpened, list[Event]]) -> None:
    runs = LiveRuns()
    for sequence, event in enumerate((log[0], *log[1])):
        runs.push(Envelope(run="r", cluster="c", sequence=sequence, event=event))
        if sequence % 3 == 0:
            assert list(contradictions(runs.view("r"))) == []
