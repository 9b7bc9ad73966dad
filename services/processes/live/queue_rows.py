"""Rows of waiting and running jobs with the names of their cluster, without jobs that a visitor does not see."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import Field

from shadowtime.services.processes.ask import ClusterWords, Viewer
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.messages import FrozenModel, StartOutlook, Whole, moment
from shadowtime.shared.text import NamesJob, start_in

Sees = Callable[[Story], bool]
"""Function of a job's story that returns whether a visitor sees the job."""


def everything(story: Story) -> bool:
    """Return True: the visitor sees every job."""
    return True


class QueueRow(FrozenModel):
    """A job that waits or runs. All times are Unix seconds."""

    job: str = Field(description="id of the job")
    user: str = Field(description="its user; empty if unknown")
    partition: str = Field(description="its partition; empty if unknown")
    state: str = Field(description="waiting, running or suspended")
    processors: Whole
    limit: Whole | None = Field(description="seconds that it may run; null if unknown")
    since: Whole = Field(description="when it began to wait")
    waited: Whole = Field(description="seconds that it has waited, or waited before its start")
    starts: StartOutlook | None = Field(default=None, description="of a waiting job: its expected start")
    text: str = Field(default="", description="of a waiting job: its start in words")
    reason: str = Field(default="", description="of a waiting job: why it waits")
    site_reason: str = Field(default="", description="of a waiting job: why it waits, as the site's scheduler says")
    started: Whole | None = Field(default=None, description="of a running job: when it started")
    end: Whole | None = Field(default=None, description="of a running job: its expected end; null if unknown")
    predicted: bool = Field(default=False, description="whether a prediction gives that end, not the limit")
    used: float | None = Field(default=None, description="of a running job: share of its limit that it has run")


def queue_row(view: LiveView, story: Story, words: ClusterWords, sees: Sees = everything) -> QueueRow:
    """Return the row of a job that waits or runs. Its expected start is the same as in all other answers.

    The reason names no job that is not seen.
    """
    job, at = story.job, view.log.unix_start
    user, partition = words.name("user", job.user_id), words.name("partition", job.queue_number)
    started, processors = story.started, job.requested_processors
    if started is not None:
        expected, ran = view.expected_end(story), view.jobs.running[job.job_number].ran(view.time)
        return QueueRow(
            job=words.job(job.job_number),
            user=user,
            partition=partition,
            state="suspended" if story.suspended else "running",
            processors=started.processors,
            limit=story.limit,
            since=at + job.since,
            waited=max(0, moment(started) - job.since),
            started=at + moment(started),
            end=None if expected is None else at + expected.end,
            predicted=expected is not None and expected.predicted,
            used=None if not story.limit else round(ran / story.limit, 4),
        )
    starts = view.starts(story)
    return QueueRow(
        job=words.job(job.job_number),
        user=user,
        partition=partition,
        state="waiting",
        processors=processors,
        limit=story.limit,
        since=at + job.since,
        waited=max(0, view.time - job.since),
        starts=None if starts is None else dated(starts, at),
        text="" if starts is None else start_in(starts, view.time),
        reason=view.brief(job.job_number, naming(view, words.job, sees)),
        site_reason=job.site_reason or "",
    )


def queue_rows(view: LiveView, words: ClusterWords, sees: Sees = everything) -> Iterator[QueueRow]:
    """Yield the rows of the jobs that the visitor sees: those that wait, in order of arrival, then those that run."""
    for stories in (view.waiting(), view.running()):
        yield from (queue_row(view, story, words, sees) for story in stories if sees(story))


def naming(view: LiveView, job_id: NamesJob, sees: Sees) -> NamesJob:
    """Return a function that names jobs in sentences: by id, or as `of another user` if they are not seen."""

    def name(number: int) -> str:
        story = view.stories.get(number)
        return job_id(number) if story is not None and sees(story) else "of another user"

    return job_id if sees is everything else name


def dated(starts: StartOutlook, unix_start: int) -> StartOutlook:
    """Return an outlook whose times are Unix seconds."""
    times = {name: getattr(starts, name) for name in StartOutlook.model_fields if name != "source"}
    return starts.model_copy(update={name: unix_start + time for name, time in times.items() if time is not None})


def seen_by(viewer: Viewer, view: LiveView, words: ClusterWords) -> Sees:
    """Return the filter of the jobs that a visitor sees. A user without known jobs sees none."""
    if viewer.sees == "all":
        return everything
    number = None if viewer.user is None else words.login(viewer.user, followed=view.followed)
    if number is None:
        return lambda story: False
    accounts = view.accounts.get(number, set()) if viewer.sees == "account" else set()
    return lambda story: story.job.user_id == number or story.job.group_id in accounts


def restricted(state: dict[str, Any], view: LiveView, sees: Sees, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a page without the rows of jobs that are not seen. Sums over all jobs stay.

    `tables` has the seen rows of `queue` and `running`. `seen` counts the jobs of both that are seen. Only the names
    that `names_in` returns for the restricted state may be shown.
    """

    def known(number: object) -> bool:
        return isinstance(number, int) and number in view.stories and sees(view.stories[number])

    return state | {
        **tables,
        "seen": {"waiting": sum(map(sees, view.waiting())), "running": sum(map(sees, view.running()))},
        "undrawn": "Jobs that you may not see are not drawn.",
        "decisions": {number: row for number, row in state["decisions"].items() if known(row[1])},
        "blocks": {key: row for key, row in state["blocks"].items() if known(row[0])},
        "planned": [row for row in state["planned"] if known(row[0])],
    }
