"""The queue of a cluster: the same answers as those about single jobs and on the live page, and text that fits."""

import asyncio
import csv
from io import StringIO

import pytest
from typer.testing import CliRunner

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.ask.cluster_queue import ClusterQueues, QueueAnswer, QueueQuestion
from shadowtime.services.processes.ask.questions import read_as
from shadowtime.services.processes.ask.queue_text import SORTS, queue_csv, queue_lines
from shadowtime.services.processes.ask.why import Explanations, JobQuestion
from shadowtime.services.processes.ask.words import WordReader
from shadowtime.services.processes.live.page_data import PAGE, queue
from shadowtime.services.processes.queue_command import ORDERS, app
from shadowtime.shared.errors import SettingsError, Unanswerable
from shadowtime.shared.text.explanations import brief_of
from tests.support.crowded import NAMES, Crowded
from tests.support.echo_runs import write
from tests.support.echo_stage import STAGE
from tests.support.memory_reader import MemoryReader
from tests.support.stored_runs import Stored

POLICIES = ("easy:forecast=yes", "cautious:queue=priority,forecast=yes", "conservative", "fcfs", "best")


class Names:
    def __init__(self, *runs: str) -> None:
        self.runs = list(runs)

    async def names(self) -> list[str]:
        return self.runs

    async def read_words(self, run: str) -> dict[str, bytes]:
        return dict(NAMES) if run == "mine/live" else {}


def stored(crowded: Crowded) -> MemoryReader:
    reader = MemoryReader()
    asyncio.run(crowded.store(reader))
    return reader


def asked(reader: MemoryReader, **parameters: object) -> QueueAnswer:
    question = read_as(QueueQuestion, parameters)
    return asyncio.run(ClusterQueues(EXPLAINED, reader, words=WordReader(Names())).queue(question))


def require_same(reader: MemoryReader, answer: QueueAnswer, every: int) -> int:
    explanations = Explanations(EXPLAINED, reader, words=WordReader(Names()))
    words = asyncio.run(WordReader(Names()).of(answer.cluster, answer.run))
    compared = 0
    for row in answer.waiting[::every]:
        question = read_as(JobQuestion, {"cluster": answer.cluster, "job": row.job_id})
        why = asyncio.run(explanations.explain(question))
        assert (row.job_id, row.job_number, row.starts, row.since) == (
            why.job_id,
            why.job_number,
            why.starts,
            why.since,
        )
        assert row.waits_for == (why.waits_for or why.state)
        assert row.place == (None if why.ahead is None else why.ahead.jobs)
        assert row.why == brief_of(why, words.job)
        compared += 1
    return compared


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_equal_the_answers_about_single_jobs(policy: str) -> None:
    reader = stored(Crowded(40, policy))
    answer = asked(reader)
    assert (len(answer.waiting), len(answer.running)) == (40, 50)
    assert require_same(reader, answer, 3) >= 13


@pytest.mark.parametrize("policy", ["easy", "probabilistic:forecast=yes", "tuned"])
def test_rows_of_a_closed_replay_equal_them_too(policy: str) -> None:
    """There a pass starts jobs, so that what a pass would do counts."""
    made = Stored(policy, "last-two")
    answer = asked(made.readers["scheduler"], cluster="kth")
    assert require_same(made.readers["scheduler"], answer, 1) >= 10


@pytest.mark.parametrize("policy", ["easy:forecast=yes", "cautious:queue=priority,forecast=yes"])
def test_rows_equal_those_of_the_live_page(policy: str) -> None:
    crowded = Crowded(60, policy)
    view = crowded.runs.view("mine/live")
    shown = {number: row for start in (0, PAGE, 2 * PAGE) for number, row in queue(view, start).items()}
    rows = asked(stored(crowded)).waiting
    assert len(shown) == len(rows) == 60
    assert {row.job_number: row.starts and row.starts.model_dump() for row in rows} == {
        number: row["starts"] for number, row in shown.items()
    }


def test_names_select_and_are_shown() -> None:
    reader = stored(Crowded())
    everyone, alice = asked(reader), asked(reader, cluster="mine", user="alice", partition="gpu")
    assert [row for row in everyone.waiting if row.user == "alice"] == list(alice.waiting)
    assert (alice.waiting[0].job_id, alice.waiting[1].job_id, alice.waiting[0].partition) == ("311", "2754_2", "gpu")
    assert not alice.running
    assert {row.user for row in everyone.running} == {"a.name.of.thirty.characters.x"}
    with pytest.raises(Unanswerable, match=r"user: no user 'bob' has had a job yet; known: a.name"):
        asked(reader, user="bob")
    with pytest.raises(Unanswerable, match="there is no cluster 'other'; known: mine"):
        asked(reader, cluster="other")


def test_a_user_who_has_had_no_job_yet_has_none() -> None:
    """`queue --me` of a new user was an error about --user, with the names of others."""
    answer = asked(stored(Crowded()), user="bob", newcomer=True)
    assert (answer.waiting, answer.running) == ((), ())
    alice = asked(stored(Crowded()), user="alice", newcomer=True)
    assert alice.waiting == asked(stored(Crowded()), user="alice").waiting != ()


def test_the_only_followed_cluster_may_have_another_run_than_live() -> None:
    """`queue` without a cluster asked for a name, and `--run NAME` is how a cluster is followed anew."""
    reader = MemoryReader()
    for run in ("mine/second", "bundled/easy"):
        asyncio.run(write(reader, run, run.partition("/")[0], 50))
    queues = ClusterQueues(STAGE, reader, words=WordReader(Names("mine/second")))
    with pytest.raises(TypeError, match="does not list jobs"):  # the stage of this test; the cluster was clear
        asyncio.run(queues.queue(QueueQuestion()))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_the_text_fits(width: int) -> None:
    answer = asked(stored(Crowded()))
    lines = queue_lines(answer, width)
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.lstrip().startswith("JOB")]
    assert len(heads) == 2
    shown = heads[0]
    always = ("JOB", "USER", "START", "80 %", "95 %")
    assert all(name in shown for name in always), shown
    if width >= 80:
        assert all(name in shown for name in ("PARTITION", "PROCS", "LIMIT", "WAITED", "REASON")), shown
        assert all(name in heads[1] for name in ("LIMIT", "USED", "END")), heads[1]
    assert ("START AT" in shown) == (width >= 120)
    assert lines[1].endswith("old: the follower is down, or behind")
    assert f"{len(answer.waiting)} waiting, 50 running" in lines[0]


def test_the_time_that_a_job_has_run_is_the_share_of_its_limit() -> None:
    """RUN had the suspensions of a job, and USED beside it had not."""
    answer = asked(stored(Crowded()))
    row = answer.running[0]
    assert answer.running == tuple(
        row for row in answer.running if row.limit and row.used == round(row.ran / row.limit, 4)
    )
    stopped = answer.replaced(waiting=(), running=(row.replaced(limit=36_000, ran=3_600, used=0.1, suspended=True),))
    cells = queue_lines(stopped, 120)[-1].split()
    assert cells[4:7] == ["10h", "1.0h", "10"]


def test_two_names_do_not_look_alike() -> None:
    """Partitions `gpu_a100_40g` and `gpu_a100_80g` were both `gpu_a100…` in 80 columns."""
    answer = asked(stored(Crowded()))
    one, other = answer.waiting[:2]
    kinds = {"waits_for": "gpus", "place": 1}
    rows = (
        one.replaced(user="project-alpha-01", partition="gpu_a100_40g", gpu_type="nvidia_a100_40gb", **kinds),
        other.replaced(user="project-alpha-02", partition="gpu_a100_80g", gpu_type="nvidia_a100_80gb", **kinds),
    )
    _, _, _, *shown = queue_lines(answer.replaced(waiting=rows, running=()), 80)[:6]
    first, second = (line.split() for line in shown[1:3])
    assert all(mine != its for mine, its in zip(first[1:3], second[1:3], strict=True)), shown
    assert first[-1] != second[-1] or "…" not in first[-1], shown


def test_an_interval_surrounds_what_is_expected() -> None:
    known = [row.starts for row in asked(stored(Crowded())).waiting if row.starts is not None and row.starts.expected]
    assert len(known) > 50
    for starts in known:
        assert starts.expected is not None
        assert starts.earliest is None or starts.earliest <= starts.expected
        assert starts.by_95 is None or starts.by_95 >= max(starts.expected, starts.latest or 0)
    assert sum(starts.by_95 is not None for starts in known) > 20


def test_csv_has_every_job_and_number() -> None:
    answer = asked(stored(Crowded()))
    rows = list(csv.DictReader(StringIO(queue_csv(answer))))
    assert len(rows) == len(answer.waiting) + len(answer.running)
    by_id = {row["job"]: row for row in rows}
    for job in answer.waiting:
        row = by_id[job.job_id]
        expected = "" if job.starts is None or job.starts.expected is None else str(job.starts.expected)
        assert (row["expected_start"], row["waited_seconds"]) == (expected, str(answer.time - job.since))
    assert all(row["limit_used"] for row in rows if row["state"] == "running")


def test_no_text_in_csv_is_a_formula_or_obeyed_by_a_terminal() -> None:
    answer = asked(stored(Crowded()))
    evil = "=cmd|' /C calc'!A0\x1b[2J\u202e"
    row = answer.waiting[0].replaced(site_reason=evil, user="@SUM(1)", partition="-5", why="+1\n=2")
    shown = queue_csv(answer.replaced(waiting=(row,), running=()))
    (read,) = csv.DictReader(StringIO(shown))
    assert shown.replace("\n", "").isprintable()
    assert read["site_reason"] == "'=cmd|' /C calc'!A0\ufffd[2J\ufffd"
    assert (read["user"], read["partition"], read["why"]) == ("'@SUM(1)", "-5", "'+1 =2")


def test_every_order_sorts() -> None:
    answer = asked(stored(Crowded()))
    assert tuple(SORTS) == ORDERS
    first = {order: queue_lines(answer, 120, order)[4] for order in ORDERS}
    assert first["size"].split()[3] == "400"
    assert first["user"].split()[1].startswith("a.name")
    assert first["job"].split()[0] == "311"


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("No username set")])
def test_a_user_without_a_name_is_asked_for_one(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A container may run as a user that it does not know."""

    def getuser() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", getuser)
    done = CliRunner().invoke(app, ["--me"])
    assert isinstance(done.exception, SettingsError)
    assert str(done.exception) == "--me: your user has no name on this machine; give it with --user NAME"
