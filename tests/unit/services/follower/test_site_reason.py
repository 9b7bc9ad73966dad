"""The reason that the site's scheduler gives for a wait: in the log, in sentences and in tables, and nowhere else."""

import asyncio
from dataclasses import replace

import pytest

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.cluster_queue import ClusterQueues, QueueQuestion
from shadowtime.services.processes.ask.queue_text import queue_csv, queue_lines
from shadowtime.services.processes.ask.why import Explanations, JobQuestion, why_text
from shadowtime.services.processes.live.page_data import overview
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.services.shadows.machine.event_effects import without_site_reason
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobChanged,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.stages.stage import StageRun
from tests.support.memory_reader import MemoryReader
from tests.support.waiting_runs import EVENTS, submitted, write
from tests.unit.services.follower.looks import WAITS, look, mirror
from tests.unit.services.follower.slurm_texts import WAITS as LINE
from tests.unit.services.follower.slurm_texts import read


@pytest.mark.parametrize(
    ("printed", "reason", "blocked"),
    [
        ("Priority", "Priority", False),
        ("None", "", False),
        ("(QOSMaxCpuPerUserLimit)", "QOSMaxCpuPerUserLimit", True),
        ("ReqNodeNotAvail, UnavailableNodes:n[01-64]", "ReqNodeNotAvail", True),
        (
            "Nodes required for job are DOWN, \x1b[2J DRAINED",
            "Nodes required for job are DOWN, \ufffd[2J DRAINED",
            True,
        ),
        ("x" * 500, "x" * 100, True),
    ],
)
def test_squeue_tells_it(printed: str, reason: str, blocked: bool) -> None:
    observation = read(LINE, Reason=printed)
    assert (observation.reason, observation.blocked) == (reason, blocked)


def test_the_log_has_it_as_it_changes_and_a_start_ends_it() -> None:
    seen = mirror()
    (told,) = look(seen, 20, replace(WAITS, reason="Priority"))
    assert isinstance(told, JobSubmitted)
    assert told.site_reason == "Priority"
    assert look(seen, 30, replace(WAITS, reason="Priority")) == []
    limit = replace(WAITS, reason="QOSGrpCpuLimit", blocked=True)
    assert look(seen, 40, limit) == [JobChanged(time=39, job_number=7, blocked=True, site_reason="QOSGrpCpuLimit")]
    assert look(seen, 50, WAITS) == [JobChanged(time=49, job_number=7, blocked=False, site_reason="")]
    look(seen, 60, replace(WAITS, reason="Resources"))
    runs = replace(WAITS, state="running", start=65)
    assert [type(event) for event in look(seen, 70, runs)] == [JobStarted]


def test_an_old_log_is_read_and_a_new_one_has_no_empty_fields() -> None:
    old = JobSubmitted.model_validate_json(b'{"kind":"JobSubmitted","time":0,"job_number":1,"requested_processors":1}')
    assert old.site_reason is None
    assert b"site_reason" not in Envelope(run="r", sequence=0, event=old).to_bytes()


REASON = JobChanged(time=130, job_number=3, site_reason="Resources")


def outputs(*events: Event) -> list[Envelope]:
    """Return the answers of all stages, without their sequence numbers."""
    opened = ClusterOpened(time=0, cluster="mine", processors=8, mode="closed", runtime="empirical", wait_bound="bmbp")
    runs, answers = [StageRun(stage) for stage in STAGES], []
    for sequence, event in enumerate((opened, *events)):
        envelope = Envelope(run="r", sequence=sequence, event=event)
        for run in runs:
            answer = run.push(envelope)
            assert answer is not None
            envelope = answer
        answers.append(envelope.replaced(sequence=0))
    return answers


def test_no_stage_decides_or_predicts_by_it() -> None:
    before, after = EVENTS[:-1], (submitted(4, 1, 140), SchedulingPoint(time=140))
    answers = outputs(*before, REASON, *after)
    (own,) = (answer for answer in answers if answer.event == REASON)
    assert (own.run_time, own.wait_bounds, own.adjustment, own.samples) == (None, (), None, None)
    assert [answer for answer in answers if answer is not own] == outputs(*before, *after)


BLOCKED = submitted(4, 1, 140).replaced(blocked=True, site_reason="QOSMaxCpuPerUserLimit")


def stored() -> MemoryReader:
    reader = MemoryReader()
    asyncio.run(write(reader, "mine/live", "mine", *EVENTS, REASON, BLOCKED))
    return reader


def test_why_says_it_beside_our_reason() -> None:
    def why(job: str) -> str:
        question = JobQuestion(cluster="mine", job=job)
        text = why_text(asyncio.run(Explanations(EXPLAINED, stored()).explain(question)))
        return " ".join(text.split())

    assert "The site's own scheduler gives the reason Resources." in why("3")
    assert "The site does not let it start for now: QOSMaxCpuPerUserLimit." in why("4")
    assert "gives the reason" not in why("2")


@pytest.mark.parametrize("width", [80, 160])
def test_the_queue_says_it_in_a_column_of_its_own(width: int) -> None:
    answer = asyncio.run(ClusterQueues(EXPLAINED, stored()).queue(QueueQuestion(cluster="mine")))
    assert [row.site_reason for row in answer.waiting] == ["", "Resources", "QOSMaxCpuPerUserLimit"]
    lines = queue_lines(answer, width)
    assert all(len(line) <= width for line in lines)
    head = next(line for line in lines if "SITE SAYS" in line)
    said = [line[head.index("SITE SAYS") :].split()[0] for line in lines if line.split()[:1] in (["2"], ["3"], ["4"])]
    assert said == ["-", "Resources", "QOSMaxCpuPerU…" if width == 80 else "QOSMaxCpuPerUserLimit"]
    assert queue_csv(answer).splitlines()[0].endswith(",site_reason")
    assert queue_csv(answer).splitlines()[-2].endswith(",QOSMaxCpuPerUserLimit")


def test_the_live_page_says_it_and_does_not_note_each_change() -> None:
    runs = LiveRuns()
    opened = ClusterOpened(time=0, cluster="mine", processors=8, mode="recorded", policy="easy")
    for sequence, event in enumerate((opened, *EVENTS, REASON, BLOCKED)):
        runs.push(Envelope(run="r", sequence=sequence, event=event))
    state = overview(runs.view("r"))
    assert [row["site"] for row in state["queue"].values()] == [None, "Resources", None]
    assert state["queue"][4]["why"] == "The site does not let it start for now: QOSMaxCpuPerUserLimit."
    assert state["decisions"] == {}


def test_a_shadow_has_reasons_of_its_own() -> None:
    assert without_site_reason(REASON) is None
    assert without_site_reason(BLOCKED) == BLOCKED.replaced(site_reason=None)
    both = REASON.replaced(priority=7)
    assert without_site_reason(both) == both.replaced(site_reason=None)
