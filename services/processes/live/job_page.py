"""The page of one job: its whole story as sentences, and each prediction beside the outcome."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from shadowtime.services.processes.ask import NO_WORDS, ClusterWords
from shadowtime.services.processes.live.outlook import MachineMoment
from shadowtime.services.processes.live.page_data import state_of
from shadowtime.services.processes.live.queue_rows import Sees, everything, naming
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.services.processes.live.story import Bounded, Story
from shadowtime.shared.formatting import clock, duration, percent
from shadowtime.shared.messages import moment
from shadowtime.shared.text import ADJUSTED, ENDS, LEFT, describe_start, procs

NOT_YET, HOLDS = "not known yet", "holds so far"
PREDICTED = {"run time": "run_time", "request as adjusted": "adjustment", "forecast start": "forecast"}


def job_page(
    view: LiveView, number: int, sees: Sees = everything, words: ClusterWords = NO_WORDS
) -> dict[str, Any] | None:
    """Return the data of the page of a job; None if the job is not remembered or not seen."""
    story = view.stories.get(number)
    if story is None or not sees(story):
        return None
    machine = view.machine()
    history = sorted(_story(view, story, machine, named=words.known), key=lambda entry: entry[0])
    return {
        "job": number,
        "id": words.job(number),
        "user": None if story.job.user_id is None else words.name("user", story.job.user_id),
        "processors": story.job.requested_processors,
        "state": state_of(story),
        "head": headline(view, story),
        "why": view.why(number, naming(view, words.job, sees)),
        "story": [
            (time, date, words.speak(what, view.log.pools))
            for time, date, what in history
            if sees is everything or not _names_hidden(what, view, sees)
        ],
        "predictions": [_marked(view, story, prediction) for prediction in _predictions(view, story, machine)],
        "marks": {
            "submitted": story.job.since,
            "started": None if story.started is None else moment(story.started),
            "ended": None if story.ended is None else moment(story.ended),
            "withdrawn": None if story.withdrawn is None else moment(story.withdrawn),
            "ran": _ran(view, story),
            "expected_end": None if (expected := view.expected_end(story)) is None else expected.end,
            "limit": _limit_ends(view, story),
            "starts": _mark(view, story),
            "now": view.time,
        },
    }


def _names_hidden(sentence: str, view: LiveView, sees: Sees) -> bool:
    """Return whether a sentence names a job that is not seen."""
    numbers = (int(number) for number in re.findall(r"\bjobs? ([0-9]+)", sentence))
    return not all(number in view.stories and sees(view.stories[number]) for number in numbers)


def headline(view: LiveView, story: Story) -> list[str]:
    """Return the present state of a job, in one to three sentences."""
    job, started, now = story.job, story.started, view.time
    at = view.machine().at
    if story.ended is not None and started is not None:
        waited = duration(story.wait)
        return [f"It {ENDS[story.ended.outcome]} after {duration(story.ended.run_time)}, having waited {waited}."]
    if story.withdrawn is not None:
        waited = duration(moment(story.withdrawn) - job.since)
        back = "" if story.withdrawn.reason == "cancelled" else " It waits again when it is released."
        return [f"It {LEFT[story.withdrawn.reason]} after it had waited for {waited}.{back}"]

    if started is not None:
        expected = view.expected_end(story)
        if story.suspended:
            return [f"It is suspended, and does not hold its {procs(started.processors)} until it resumes."]
        ran = view.jobs.running[job.job_number].ran(now)
        sentences = [f"It has run for {duration(ran)} on {procs(started.processors)}."]
        if expected is not None and expected.predicted and expected.end > now:
            sentences.append(f"It is expected to end at {at(expected.end)}, in {duration(expected.end - now)}.")
        if story.limit is not None:
            left = story.limit - ran
            sentences.append(
                f"{duration(left)} of its {duration(story.limit)} are left." if left > 0 else "Its time is up."
            )

        return sentences

    if job.job_number in view.starting:
        return [f"It starts now, having waited {duration(now - job.since)}."]
    place = 1 + sum(1 for _ in takewhile(lambda number: number != job.job_number, view.jobs.waiting))
    waiting = len(view.jobs.waiting)
    sentences = [f"It has waited for {duration(now - job.since)} and is number {place:,} of {waiting:,} that wait."]
    starts = view.starts(story)
    words = "" if starts is None else describe_start(starts, now, view.log.unix_start)
    return [*sentences, words] if words else sentences


def _mark(view: LiveView, story: Story) -> int | None:
    """Return the expected start of a waiting job, as a second of the log; None if it is unknown."""
    starts = view.starts(story) if story.started is None and story.withdrawn is None else None
    return None if starts is None else starts.expected


def _ran(view: LiveView, story: Story) -> int | None:
    """Return the seconds that a job has run, without its suspensions; None before its start."""
    if story.ended is not None:
        return story.ended.run_time
    return None if story.started is None else view.jobs.running[story.job.job_number].ran(view.time)


def _limit_ends(view: LiveView, story: Story) -> int | None:
    """Return when a job reaches its limit unless it is suspended again, as a second of the log; None if unknown."""
    if story.started is None or story.limit is None:
        return None
    running = None if story.ended is not None else view.jobs.running[story.job.job_number]
    stood_still = story.lost if running is None else running.stood_still(view.time)
    return moment(story.started) + stood_still + story.limit


def _story(view: LiveView, story: Story, machine: MachineMoment, *, named: bool) -> Iterator[tuple[int, str, str]]:
    """Yield the events of a job's story, each as (second of the log, its date, sentence).

    The date of a late event is that at which it happened.

    `named` adds the account and the partition, if they have names.
    """

    def at(time: int, what: str, happened: int | None = None) -> tuple[int, str, str]:
        return time, clock(time if happened is None else happened, view.log.unix_start), what

    job, started, ended = story.submitted, story.started, story.ended
    asks = "" if job.requested_time is None else f" for {duration(job.requested_time)}"
    owner = {"by user": job.user_id}
    if named:
        owner |= {"of group": job.group_id, "to queue": job.queue_number}
    owners = "".join(f" {what} {number}" for what, number in owner.items() if number is not None)
    yield at(job.time, f"submitted{owners}: asks for {procs(job.requested_processors)}{asks}")
    if sentences := list(_waiting_sentences(story)):
        yield at(job.time, "; ".join(sentences))
    if (awaited := story.awaited) is not None:
        again = f" (its {ordinal(awaited.times)} forecast)" if awaited.times > 1 else ""
        for (time, start), often in dict.fromkeys(((awaited.first, ""), (awaited.last, again))):
            yield at(time, f"the site expects it to start at {clock(start, machine.unix_start)[:-3]}{often}")

    for time, sentence in story.notes or ():
        yield at(time, sentence)
    if story.weighed is not None:
        time, head, share = story.weighed
        often = "" if story.times_weighed == 1 else f" for the {ordinal(story.times_weighed)} time"
        yield at(
            time,
            f"evaluated{often} and not started: it would delay job {head} with probability {percent(share, '.3g')}",
        )

    if story.overtaken_by is not None:
        time, number = story.overtaken_by
        often = "" if story.overtaken == 1 else f", as {story.overtaken - 1:,} did before"
        yield at(time, f"job {number} started ahead of it{often}")

    if started is not None:
        trial = " on trial" if started.trial else ""
        waited = f"having waited {duration(story.wait)}"
        yield at(started.time, f"started{trial} on {procs(started.processors)}, {waited}", moment(started))
    if (withdrawn := story.withdrawn) is not None:
        yield at(withdrawn.time, LEFT[withdrawn.reason], moment(withdrawn))
    if ended is not None:
        yield at(ended.time, f"{ENDS[ended.outcome]} after {duration(ended.run_time)}", moment(ended))


def _waiting_sentences(story: Story) -> Iterator[str]:
    if story.run_time is not None:
        yield f"predicted to run {duration(story.run_time)}"
    if story.adjusted is not None:
        yield f"its request adjusted to {duration(story.adjusted)}"


def _predictions(view: LiveView, story: Story, machine: MachineMoment) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row per prediction: its subject, the predicted value, the outcome so far, and a verdict."""
    ran, wait, now = None if story.ended is None else story.ended.run_time, story.wait, view.time
    gone = None if story.withdrawn is None else moment(story.withdrawn)
    so_far = NOT_YET if story.started is None else f"has run {duration(_ran(view, story))}"
    so_far = "it did not start" if state_of(story) == "cancelled" else so_far
    came = so_far if ran is None else duration(ran)
    if story.run_time is not None:
        yield "run time", duration(story.run_time), came, "" if ran is None else off(story.run_time - ran, "long")
    if story.job.requested_time is not None:
        used = "" if ran is None else f"{100 * ran / story.job.requested_time:.0f} % of it used"
        yield "request", duration(story.job.requested_time), came, used
    if story.adjusted is not None:
        verdict = "" if story.adjustment is None else ADJUSTED.get(story.adjustment, "as requested")
        yield "request as adjusted", duration(story.adjusted), came, verdict
    so_long = (now if gone is None else gone) - story.job.since if wait is None else wait
    waited = f"{'has ' * (wait is None and gone is None)}waited {duration(so_long)}"
    for wait_bound in story.bounds:
        held = _held(wait_bound, so_long, known=wait is not None)
        held = "" if gone is not None and held == HOLDS else held
        yield _scope(wait_bound), _limit(wait_bound), waited, held
    if story.forecast is not None:
        start = clock(story.job.since + story.forecast, machine.unix_start)[:-3]
        yield "forecast start", start, waited, "" if wait is None else off(story.forecast - wait, "late")
    elif story.forecast_reason is not None:
        yield "forecast start", f"none: {story.forecast_reason}", waited, ""

    if (awaited := story.awaited) is not None:
        words = {"first": awaited.first, "latest": awaited.last} if awaited.times > 1 else {"only": awaited.last}
        for word, (_, awaits) in words.items():
            verdict = "" if story.started is None else off(awaits - moment(story.started), "late")
            yield (
                f"start that the site expects, {word} forecast",
                clock(awaits, machine.unix_start)[:-3],
                waited,
                verdict,
            )


def _marked(view: LiveView, story: Story, row: tuple[str, str, str, str]) -> list[str]:
    """Return a row of `_predictions`. Until the job ends, mark an untrusted prediction with the date of its alarm."""
    what, text, *rest = row
    groupings = {_scope(wait_bound): wait_bound.grouping for wait_bound in story.bounds}
    of = "wait_bound" if what in groupings else PREDICTED.get(what)
    since = None if of is None else view.trust.since(story.job, of, groupings.get(what))
    if since is not None and story.ended is None:
        text += f" (not to be trusted since {clock(since, view.log.unix_start)[:-9]})"
    return [what, text, *rest]


def _scope(bound: Bounded) -> str:
    return f"wait, {percent(bound.quantile, '.4g')} bound by {bound.grouping}"


def _limit(bound: Bounded) -> str:
    limits = [] if bound.lower is None else [f"at least {duration(bound.lower)}"]
    limits += [] if bound.bound is None else [f"at most {duration(bound.bound)}"]
    return " and ".join(limits) or f"none: {bound.reason or 'unknown'}"


def _held(bound: Bounded, wait: int, *, known: bool) -> str:
    if bound.bound is None:
        return ""
    if wait > bound.bound:
        return f"missed by {duration(wait - bound.bound)}"
    return "held" if known else HOLDS


def off(seconds: float, more: str) -> str:
    """Return the error of a prediction in words: too long or too short, too late or too early.

    >>> off(3600, "long"), off(-60, "late"), off(0, "late")
    ('1.0 h too long', '1.0 min too early', 'exact')
    """
    if not round(seconds):
        return "exact"
    less = {"long": "short", "late": "early"}[more]
    return f"{duration(abs(seconds))} too {more if seconds > 0 else less}"


def ordinal(number: int) -> str:
    """Return a number as an English ordinal.

    >>> [ordinal(value) for value in (1, 2, 3, 11, 22, 113)]
    ['1st', '2nd', '3rd', '11th', '22nd', '113th']
    """
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
