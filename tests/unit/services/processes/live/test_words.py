"""Users, accounts, partitions and jobs on the live page, in the words of the followed cluster."""

import asyncio
from collections.abc import Mapping

import pytest

from shadowtime.services.processes.ask.gate import Viewer
from shadowtime.services.processes.ask.words import NO_WORDS, ClusterWords, WordReader
from shadowtime.services.processes.live import run_stories
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import matches, names_in, overview, queue, running, story_of
from shadowtime.services.processes.live.portals import queue_answer
from shadowtime.services.processes.live.queue_rows import everything, restricted, seen_by
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.errors import StoreError, Unanswerable
from shadowtime.shared.messages import ClusterOpened, Envelope, Event, JobSubmitted, JobWithdrawn
from tests.support.crowded import Crowded
from tests.support.named_runs import AGAIN, NAMES, OTHER, RUN, TASK, WORDS, runs


@pytest.fixture(name="view")
def made_view() -> LiveView:
    return runs().view(RUN)


def test_tables_and_sentences_have_ids_and_names(view: LiveView) -> None:
    state = overview(view, WORDS)
    assert state["ids"] == {AGAIN: "311", TASK: "2754_12", OTHER: "2754_13"}
    assert state["users"] == {7: "alice", 8: "bob"}
    said = [row[3:] for row in state["decisions"].values()]
    assert said[0] == ["changes", "asks for 2 procs; user alice; partition gpu; pool cpu"]
    assert said[1][1] == "backfilled, ends by 00:11:40, when job 2754_12 can start by requests"
    assert state["untrusted"] == ["jobs run less than half as long as predicted, of user alice, since 0 d"]


def test_a_run_without_names_is_shown_with_its_numbers(view: LiveView) -> None:
    state = overview(view, NO_WORDS)
    assert (state["ids"], state["users"], state["named"]) == ({}, {}, False)
    assert "user 7" in str(state["decisions"])


def test_the_page_of_a_job_names_its_owner_and_what_it_was_submitted_with(view: LiveView) -> None:
    page = job_page(view, OTHER, everything, WORDS)
    assert page is not None
    assert (page["id"], page["user"]) == ("2754_13", "alice")
    assert [what for _, _, what in page["story"]][:2] == [
        "submitted by user alice of account phys to partition gpu: asks for 1 proc for 10.0 min",
        "changes; asks for 2 procs; user alice; partition gpu; pool cpu",
    ]
    assert [time for time, _, _ in page["story"]][:2] == [60, 70]
    assert "2754_12" in " ".join(page["why"])
    assert "000" not in " ".join([*page["why"], *(what for _, _, what in page["story"])]).replace(":00", "")


@pytest.mark.parametrize(
    ("wanted", "of", "name", "jobs", "job"),
    [
        ("alice", "user", "alice", [OTHER, TASK], None),
        ("account alice", "account", "alice", [AGAIN], None),
        ("user 7", "user", "alice", [OTHER, TASK], None),
        ("partition gpu", "partition", "gpu", [OTHER, TASK, AGAIN], None),
        ("phys", "account", "phys", [OTHER, TASK], None),
        ("2754_12", None, "2754_12", [], "2754_12"),
        ("2754[12]", None, "2754[12]", [], "2754_12"),
        ("311", None, "311", [], "311"),
        (str(TASK), None, str(TASK), [], "2754_12"),
        ("nobody", None, "nobody", [], None),
    ],
)
def test_a_search_takes_the_words_of_the_cluster(
    view: LiveView, wanted: str, of: str | None, name: str, jobs: list[int], job: str | None
) -> None:
    answer = matches(view, wanted, everything, WORDS)
    assert (answer["of"], answer["name"]) == (of, name)
    assert [row[0] for row in answer["jobs"]] == jobs
    assert (answer["job"] or [None, None])[1] == job
    assert answer["also"] == (["account"] if wanted == "alice" else [])


def test_names_of_hidden_jobs_are_not_sent(view: LiveView) -> None:
    def sees(story: Story) -> bool:
        return story.job.user_id == 8

    assert story_of(view, "2754_12", sees, WORDS) is None
    assert matches(view, "alice", sees, WORDS)["count"] == 0

    tables = {"queue": queue(view, 0, sees, WORDS), "running": running(view, sees)}
    state = restricted(overview(view, WORDS), view, sees, tables)
    assert names_in(state, WORDS) == {"ids": {AGAIN: "311"}, "users": {8: "bob"}}
    assert state["seen"] == {"waiting": 0, "running": 1}
    assert "not drawn" in state["undrawn"]


def test_who_sees_some_jobs_gets_their_places_and_own_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two waiting jobs was the first, and a job of one's own that ends late was none."""
    monkeypatch.setattr("shadowtime.services.processes.live.page_data.PAGE", 1)
    view = Crowded(waiting=5).runs.view("mine/live")
    waiting, last = list(view.jobs.waiting), max(view.running(), key=lambda story: story.limit or 0)

    def sees(story: Story) -> bool:
        return story is last or story.job.job_number == waiting[3]

    assert {number: row["place"] for number, row in queue(view, 0, sees).items()} == {waiting[3]: 4}
    assert list(running(view, sees)) == [last.job.job_number]
    assert "place" not in queue(view, 0)[waiting[0]]


def test_the_longest_wait_is_of_any_job() -> None:
    """It was that of the first in the log, but a job that arrived later can have waited longer."""
    view = Crowded(waiting=120).runs.view("mine/live")
    assert overview(view)["longest_waiting"] == max(view.time - job.since for job in view.jobs.waiting.values())


def test_running_jobs_that_are_not_drawn_are_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    view = Crowded(waiting=5).runs.view("mine/live")
    assert overview(view)["undrawn"] == ""
    monkeypatch.setattr("shadowtime.services.processes.live.page_data.MAX_BLOCKS", 20)
    assert overview(view)["undrawn"] == "Only 20 of 50 running jobs are drawn."


class Away:
    """Stands for a Redis that answers once."""

    answers = 1

    async def names(self) -> list[str]:
        return []

    async def read_words(self, run: str) -> Mapping[str, bytes]:
        self.answers -= 1
        if self.answers < 0:
            raise StoreError("away")
        return NAMES


def test_without_redis_the_last_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.processes.ask.words.KEPT_SECONDS", 0.0)
    monkeypatch.setattr("shadowtime.services.processes.ask.words.READ_SHARE", 1e9)
    reader = WordReader(Away())
    for run in (RUN, RUN, "mine/shadow/easy"):
        assert asyncio.run(reader.latest("mine", run)).name("user", 7) == "alice"
    assert asyncio.run(reader.latest("other", "other/live")).name("user", 7) == "7"
    with pytest.raises(StoreError):
        asyncio.run(reader.of("mine", RUN))


def test_a_portal_learns_that_users_are_hashes(view: LiveView) -> None:
    hashed = ClusterWords({**NAMES, "hashed": b"1"})
    assert queue_answer(view, RUN, WORDS, everything, "eve").rows == ()
    with pytest.raises(Unanswerable, match="only hashes of names are known"):
        queue_answer(view, RUN, hashed, everything, "eve")
    assert queue_answer(view, RUN, hashed, everything, "alice").rows


def test_a_login_of_digits_is_no_number_of_the_log(view: LiveView) -> None:
    """A student with the login 7, who had had no job yet, saw the jobs of user number 7."""
    assert any(map(seen_by(Viewer("own", "alice"), view, WORDS), view.stories.values()))
    assert not any(map(seen_by(Viewer("own", "7"), view, WORDS), view.stories.values()))
    for words in (WORDS, NO_WORDS):
        assert queue_answer(view, RUN, words, everything, "7").rows == ()


def test_the_accounts_of_a_user_are_not_forgotten_with_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once 5,000 later jobs had ended, a member of a group no longer saw the group's jobs."""
    monkeypatch.setattr(run_stories, "MAX_ENDED", 0)
    view = LiveView(ClusterOpened(time=0, cluster="mine", processors=4, mode="recorded", name="live"))
    jobs = [
        JobSubmitted(time=0, job_number=number, requested_processors=1, requested_time=60, user_id=user, group_id=group)
        for number, user, group in ((1, 7, 5), (2, 8, 5), (3, 8, 6))
    ]
    events: tuple[Event, ...] = (*jobs, JobWithdrawn(time=1, job_number=1))
    for sequence, event in enumerate(events, 1):
        view.handle(Envelope(run=RUN, sequence=sequence, event=event))
    assert list(view.stories) == [2, 3]
    seen = {sees: list(map(seen_by(Viewer(sees, "alice"), view, WORDS), view.waiting())) for sees in ("account", "own")}
    assert seen == {"account": [True, False], "own": [False, False]}
