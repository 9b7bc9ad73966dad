"""Users, accounts, partitions and jobs on the live page, in the words of the followed cluster."""

import asyncio
from collections.abc import Mapping

import pytest

from shadowtime.services.processes.ask.words import NO_WORDS, WordReader
from shadowtime.services.processes.live.job_page import job_page
from shadowtime.services.processes.live.page_data import matches, names_in, overview, queue, running, story_of
from shadowtime.services.processes.live.queue_rows import everything, restricted
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.errors import StoreError
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
