"""Data of the live page, as values for JSON. Times are seconds of the log; the page shows them as dates."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from shadowtime.services.processes.ask import NO_WORDS, SEARCHED, ClusterWords
from shadowtime.services.processes.live.outlook import base
from shadowtime.services.processes.live.queue_rows import Sees, everything, naming
from shadowtime.services.processes.live.rows import MAX_BLOCKS
from shadowtime.services.processes.live.run_stories import SIZES, size_class
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.messages import WaitBound, moment
from shadowtime.shared.stages import doubt_of
from shadowtime.shared.text import NEUTRAL, OTHER_COLOURS, POLICY_COLOURS, range_rows

BELIEVED = 20
"""Number of waits of a size that are taken to have kept their bounds as stated, so that one job proves nothing."""

PAGE = 25
"""Rows of one page of a table."""

MAX_RANGES = 100
"""The maximum number of rows in the table of ranges of processors."""

MAX_FOUND = 50
"""The maximum number of jobs in the result of a search."""


MAX_DIGITS = 16


def overview(view: LiveView, words: ClusterWords = NO_WORDS) -> dict[str, Any]:
    """Return all parts of the page of a run. `ROWS` in page.py names the parts that are rows."""
    opened, scores = view.opened, view.scores
    head = view.head()
    state = {
        "cluster": opened.cluster,
        "name": opened.name or opened.policy,
        "policy": opened.policy,
        "colour": POLICY_COLOURS.get(base(opened.name or opened.policy), NEUTRAL),
        "palette": OTHER_COLOURS,
        "predicts": {"runtime": opened.runtime, "adjustment": opened.adjustment, "wait_bound": opened.wait_bound},
        "obeyed": view.log.obeyed,
        "followed": view.followed,
        "unix_start": view.log.unix_start,
        "began": opened.time,
        "time": view.time,
        "closed": view.closed,
        "named": words.known,
        "quarantined": None if view.quarantined is None else words.speak(view.quarantined, view.log.pools),
        "untrusted": [words.speak(alarm, view.log.pools) for alarm in view.trust.words(view.log.unix_start)],
        "processors": view.processors,
        "busy": view.busy,
        "free": max(0, view.machine().free),
        "waiting": len(view.jobs.waiting),
        "running_count": len(view.jobs.running),
        "ended": view.count_ended,
        "mean_wait": view.wait / view.count_started if view.count_started else None,
        "longest_wait": view.longest_wait if view.count_started else None,
        "longest_waiting": max((view.time - job.since for job in view.jobs.waiting.values()), default=None),
        "scores": None if scores is None else scores.model_dump(),
        "queue": queue(view, 0, words=words),
        "running": running(view),
        "seen": None,
        "undrawn": _undrawn(len(view.jobs.running)),
        "decisions": {
            number: [
                time,
                decision.job,
                decision.kind,
                words.speak(decision.what, view.log.pools),
                words.speak("; ".join(decision.details), view.log.pools),
            ]
            for number, time, decision in view.decisions
        },
        "covered_from": view.picture.covered_from,
        "blocks": _blocks(view),
        "history": dict(view.picture.history),
        "planned": [[plan.job, plan.start, plan.end, plan.forecast, _flat(plan.rows)] for plan in view.planned(head)],
        "bounds": [
            {
                "grouping": last_bound.grouping,
                "quantile": last_bound.quantile,
                "bound": last_bound.bound,
                "lower": last_bound.lower,
                "reason": last_bound.reason,
                "young": last_bound.young is True,
            }
            | _covered(view, last_bound.grouping)
            | {"doubt": _doubt(view, last_bound)}
            for last_bound in view.last_bounds
        ],
        "sizes": _by_size(view),
        "ranges": [
            [words.name("partition", int(row.queue)) if row.queue.isdecimal() else row.queue, *row[1:]]
            for row in range_rows(view.ranges.values())[:MAX_RANGES]
        ],
    }
    return state | names_in(state, words)


def names_in(state: Mapping[str, Any], words: ClusterWords) -> dict[str, dict[int, str]]:
    """Return the ids of the jobs whose id is not their number, and the names of the users, in the tables of a page.

    Both are empty if the run has no names.

    >>> words = ClusterWords({"user:eve": b"3"})
    >>> names_in({"queue": {500000085: {"user": 3}, 7: {"user": None}}}, words)
    {'ids': {500000085: '85_4'}, 'users': {3: 'eve'}}
    """
    if not words.known:
        return {"ids": {}, "users": {}}
    rows = [*state["queue"].items(), *state.get("running", {}).items()]
    jobs = {number: row["user"] for number, row in rows}
    jobs |= {block[0]: block[1] for block in state.get("blocks", {}).values()}
    others = [row[1] for row in state.get("decisions", {}).values()] + [row[0] for row in state.get("planned", ())]
    ids = {number: words.job(number) for number in sorted({*jobs, *others} - {None})}
    return {
        "ids": {number: name for number, name in ids.items() if name != str(number)},
        "users": {user: words.name("user", user) for user in sorted({*jobs.values()} - {None})},
    }


def queue(
    view: LiveView, start: int, sees: Sees = everything, words: ClusterWords = NO_WORDS
) -> dict[int, dict[str, Any]]:
    """Return up to `PAGE` of the waiting jobs that are seen, without the first `start`, by number."""
    placed = ((place, story) for place, story in enumerate(view.waiting(), 1) if sees(story))
    jobs = islice(placed, start, start + PAGE)
    return {other.job.job_number: _waiting(view, other, place, sees, words) for place, other in jobs}


def running(view: LiveView, sees: Sees = everything) -> dict[int, dict[str, Any]]:
    """Return up to `PAGE` running jobs that are seen: those that are expected to end first."""
    return {story.job.job_number: _running(view, story) for story in view.next_to_end(PAGE, sees)}


def _undrawn(count: int) -> str:
    return f"Only {MAX_BLOCKS:,} of {count:,} running jobs are drawn." if count > MAX_BLOCKS else ""


def _waiting(view: LiveView, story: Story, place: int, sees: Sees, words: ClusterWords) -> dict[str, Any]:
    """Return the row of a waiting job, with its `place` in the queue unless all jobs are seen."""
    job, starts = story.job, view.starts(story)
    placed = {} if sees is everything else {"place": place}
    return placed | {
        "user": job.user_id,
        "processors": job.requested_processors,
        "asks": job.requested_time,
        "adjusted": story.adjusted,
        "expected": None if story.run_time is None else round(story.run_time),
        "since": job.since,
        "starts": None if starts is None else starts.model_dump(),
        "untrusted": view.trust.marks(story),
        "why": view.brief(job.job_number, naming(view, words.job, sees)),
        "site": None if job.blocked else job.site_reason,
    }


def _running(view: LiveView, story: Story) -> dict[str, Any]:
    """Return the row of a job that runs. It has run from `began`, without its suspensions, until now or `stopped`."""
    execution, expected = view.jobs.running[story.job.job_number], view.expected_end(story)
    started = execution.started
    return {
        "user": story.job.user_id,
        "processors": started.processors,
        "began": moment(started) + execution.lost,
        "stopped": execution.suspended,
        "limit": story.limit,
        "end": None if expected is None else expected.end,
        "predicted": expected is not None and expected.predicted,
        "trial": started.trial is True,
        "untrusted": view.trust.marks(story),
    }


def _blocks(view: LiveView) -> dict[str, list[Any]]:
    """Return each job in the picture, as a list of number, user, start, end, 1 if it runs else 0, and rows.

    The end of a running job is the expected one.
    """
    page: dict[str, list[Any]] = {
        f"{block.job}/{block.start}": [block.job, block.user, block.start, block.end, 0, _flat(block.rows)]
        for block in view.picture.blocks
        if block.end > block.start
    }
    for job, started, *_ in islice(view.jobs.running.values(), MAX_BLOCKS):
        story = view.stories[job.job_number]
        expected = view.expected_end(story)
        end = None if expected is None else expected.end
        key = f"{job.job_number}/{started.time}"
        page[key] = [job.job_number, job.user_id, started.time, end, 1, _flat(story.ranges)]

    return page


def _flat(rows: Iterable[tuple[int, int]]) -> list[int]:
    return [number for row in rows for number in row]


def _covered(view: LiveView, grouping: str) -> dict[str, Any]:
    coverage = view.coverage.get((grouping, None))
    if coverage is None:
        return {"covered": None, "revealed": 0, "low": 0.0}
    return {"covered": coverage.covered, "revealed": coverage.revealed, "low": coverage.low}


def _doubt(view: LiveView, bound: WaitBound) -> dict[str, Any] | None:
    """Return how many waiting jobs have waited longer than their bounds; None without a bound or waiting jobs."""
    if bound.bound is None or view.closed:
        return None
    covered = view.coverage.get((bound.grouping, None))
    known = (0, 1.0) if covered is None else (covered.revealed, covered.covered)
    doubt = doubt_of(bound, _waits(view, bound, view.waiting()), *known)
    return None if doubt is None else doubt._asdict()


def _waits(view: LiveView, bound: WaitBound, waiting: Iterable[Story]) -> Iterator[tuple[int, int | None]]:
    """Yield how long each waiting job has waited, and its bound of the same grouping."""
    return ((view.time - story.job.since, story.bound_of(bound.grouping)) for story in waiting)


def _by_size(view: LiveView) -> list[list[Any]]:
    """Return a row for each class of sizes.

    A row has the smallest and the largest size; seconds, quantile, time and grouping of the latest bound. It is the
    bound to show, or the first that is in force. The seconds are None if none is: the waiting jobs of that size
    contradict each, or all waiting jobs contradict its grouping. The list is empty after the end of the run, as no more
    jobs are submitted.
    """
    if view.closed:
        return []
    least, most = [1, *(size + 1 for size in SIZES)], [*SIZES, view.processors]
    waiting: dict[int, list[Story]] = {}
    for story in view.waiting():
        waiting.setdefault(size_class(story.job.requested_processors), []).append(story)
    contradicted: dict[str, bool] = {}
    """Whether all waiting jobs contradict a grouping."""

    def in_force(bound: WaitBound, of_size: Iterable[Story]) -> bool:
        if bound.grouping not in contradicted:
            doubt = _doubt(view, bound)
            contradicted[bound.grouping] = doubt is not None and doubt["withdrawn"]
        if contradicted[bound.grouping]:
            return False
        doubt_of_size = doubt_of(bound, _waits(view, bound, of_size), BELIEVED, bound.quantile)
        return doubt_of_size is None or not doubt_of_size.withdrawn

    rows: list[list[Any]] = []
    for kind, (time, bounds) in sorted(view.by_size.items()):
        valid = next((bound for bound in bounds if in_force(bound, waiting.get(kind, ()))), None)
        bound = bounds[0] if valid is None else valid
        size = [least[kind], min(most[kind], view.processors)]
        rows.append([*size, None if valid is None else valid.bound, bound.quantile, time, bound.grouping])

    return rows


def matches(view: LiveView, wanted: str, sees: Sees = everything, words: ClusterWords = NO_WORDS) -> dict[str, Any]:
    """Return the seen jobs that a text may mean: a job by its id, and those of a user, an account or a partition.

    A name is of the first kind that has it; `of` names this kind, and `also` the others. With a kind before the name,
    as in `account physics`, only this kind is meant. `of` is None if nothing has this name.
    """
    kind, _, rest = wanted.partition(" ")
    only = rest.strip() != "" and kind in SEARCHED
    asked, name = ((kind,), rest.strip()) if only else (SEARCHED, wanted)
    known = {of: words.numbered(of, name, or_number=only or (of == "user" and not words.known)) for of in asked}
    numbers = {of: number for of, number in known.items() if number is not None}
    of, number = next(iter(numbers.items()), (kind if only else None, None))
    jobs = [] if of is None or number is None else _jobs_of(view, of, number, sees)
    job = None if only else story_of(view, name, sees, words)
    return {
        "of": of,
        "name": name if of is None else words.name(of, number) or name,
        "also": [other for other in numbers if other != of],
        "job": None if job is None else _line(job, words),
        "count": len(jobs),
        "jobs": [_line(story, words) for story in islice(reversed(jobs), MAX_FOUND)],
    }


def story_of(view: LiveView, job: str, sees: Sees, words: ClusterWords) -> Story | None:
    """Return the story of the latest life of a job by its id, or by its number in the log; None if it is not seen."""
    numbers = (*words.lives(job), *((int(job),) if job.isdecimal() and len(job) <= MAX_DIGITS else ()))
    stories = (view.stories.get(number) for number in numbers)
    return next((story for story in stories if story is not None and sees(story)), None)


def _jobs_of(view: LiveView, kind: str, number: int, sees: Sees) -> list[Story]:
    if kind == "user":
        return [story for job in view.of_user.get(number, ()) if sees(story := view.stories[job])]
    field = {"account": "group_id", "partition": "queue_number"}[kind]
    return [story for story in view.stories.values() if getattr(story.job, field) == number and sees(story)]


def _line(story: Story, words: ClusterWords) -> list[Any]:
    number = story.job.job_number
    return [number, words.job(number), story.job.requested_processors, state_of(story), story.job.since]


def state_of(story: Story) -> str:
    """Return the state of a job: waiting, running, suspended, ended, or the reason of its withdrawal."""
    if story.withdrawn is not None:
        return story.withdrawn.reason
    return "ended" if story.ended else "suspended" if story.suspended else "running" if story.started else "waiting"
