"""The page of a statement: plain English, one sheet of A4, with the look of the report."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from shadowtime._version import __version__
from shadowtime.replayer.report import cell, escape, table, whole
from shadowtime.replayer.statement.month import AT_ONCE, DAYS, FIRST, LAST, OURS, MonthOfStarts, StartsInTime
from shadowtime.services.shadows import StoredShadow, verdict
from shadowtime.shared.formatting import DAY, counted, duration, percent
from shadowtime.shared.messages import StartErrorScores

STATED = 0.95
"""Stated probability that a job starts by the stated time."""

FEW = 30
"""Minimum number of jobs of a partition whose share may be named as the lowest."""

MOST_PARTITIONS, MOST_SHADOWS = 10, 3
"""Maximum rows of the tables, so that the page fits on one sheet."""

LONG_NAMES = 'style="overflow-wrap: anywhere"'
"""Attribute of paragraphs with names, which may be longer than the screen of a phone."""

BEST = "best"
"""The policy that is recommended."""

WORDS = {
    OURS: "Shadowtime, at the submission",
    FIRST: "the site's scheduler, first expectation",
    LAST: "the site's scheduler, last expectation",
    AT_ONCE: "a guess: the job starts at once",
}


class StatementFacts(NamedTuple):
    """The facts of a statement. Times are seconds of the log; `partition` names a queue by its number.

    `unix_start` is the Unix time of second 0, or 0 if unknown. `now` is the time of the last event.
    """

    cluster: str
    run: str
    unix_start: int
    now: int
    month: MonthOfStarts
    partition: Callable[[int], str]
    shadows: Sequence[StoredShadow] = ()

    @property
    def begins(self) -> int:
        """The second from which on submissions count."""
        begins = self.month.begins
        return self.month.first if begins is None else max(self.month.first, begins)

    def day(self, second: int) -> str:
        """Return the date of a second of the log, in UTC; the number of the day if the log has no date."""
        if not self.unix_start:
            return f"day {second // DAY + 1}"
        return f"{datetime.fromtimestamp(self.unix_start + second, UTC):%d %b %Y}".lstrip("0")


def statement_page(facts: StatementFacts) -> str:
    """Return the statement as a self-contained HTML page."""
    rows = facts.month.starts_by(facts.now)
    words = dict(facts.month.words())
    until = f"{datetime.fromtimestamp(facts.unix_start + facts.now, UTC):%H:%M} UTC"
    days = (facts.now - facts.begins) / DAY
    whole_month = "" if days > DAYS - 1 else f" The stored log begins then, so this covers {max(days, 0.0):.1f} days."
    past = facts.month.afterwards
    later = f" Of these, {past:,} were submitted before they were followed: their times were computed later."
    read = later if past else ""
    sections = {
        "How often “starts by” came true": _promises(facts, rows),
        "How far off expected starts were": _errors(words),
        "What another policy would have changed": _policies(facts),
    }
    contents = "".join(f'<li><a href="#part-{place}">{title}</a></li>' for place, title in enumerate(sections))
    parts = [
        f"<p {LONG_NAMES}><b>{escape(facts.cluster)}</b>, {facts.day(facts.begins)} to {facts.day(facts.now)}, "
        f"{until}: {counted(facts.month.jobs, 'job')} submitted.{whole_month}{read}</p>",
        f'<p class="verdict" {LONG_NAMES}>{escape(_unbroken(" ".join(_summary(facts, rows, words))))}</p>',
        *(f'<h2 id="part-{place}">{title}</h2>{part}' for place, (title, part) in enumerate(sections.items())),
        f'<p class="faint" {LONG_NAMES}><small>{escape(_how(facts))}</small></p>',
    ]
    return whole("How far predicted starts held", contents, "".join(parts))


def _summary(facts: StatementFacts, rows: Sequence[StartsInTime], words: dict[str, StartErrorScores]) -> Iterator[str]:
    every, *partitions = rows
    if every.share is None:
        yield "No job had a stated time by which it starts, or none of these times has passed."
    else:
        stated = f"with a stated time by which each starts with a probability of {percent(STATED, '.0f')}"
        yield f"Of {counted(every.jobs, 'job')} {stated}, {percent(every.share)} started by then."
        known = [row for row in partitions if row.jobs >= FEW and row.share is not None]
        if len(known) > 1:
            lowest = min(known, key=lambda row: row.share or 0)
            yield f"Partition {_name(facts, lowest)} had the lowest share, {percent(lowest.share or 0)}."
    if OURS in words:
        others = [
            f"{text}, {duration(words[name].median_absolute_error)}"
            for name, text in (
                (FIRST, "of the first expectation of the site's scheduler"),
                (AT_ONCE, "of a guess of no wait"),
            )
            if name in words
        ]
        ours = duration(words[OURS].median_absolute_error)
        yield f"The median error of expected starts was {ours}; {'; '.join(others)}."
    shadow = next(iter(_chosen(facts)), None)
    conclusion = None if shadow is None else verdict(shadow.compared, shadow.unix_start)
    if shadow is None:
        yield "No other policy is followed beside the cluster."
    elif conclusion is None:
        yield f"Of {shadow.name}, nothing is known yet."
    else:
        yield f"Under {shadow.name}: {conclusion}."


def _promises(facts: StatementFacts, rows: Sequence[StartsInTime]) -> str:
    every, *partitions = rows
    if not every.jobs + every.open:
        return "<p>No such time was stated. It needs a bound on waits, or a forecast with quantiles.</p>"
    body = [
        [
            escape(_name(facts, row)),
            f"{row.jobs:,}",
            cell(row.share, "-" if row.share is None else percent(row.share)),
            f"{row.jobs - row.kept:,}",
            f"{row.open:,}",
        ]
        for row in [every, *partitions[:MOST_PARTITIONS]]
    ]
    left = len(partitions) - MOST_PARTITIONS
    note = (
        f"Stated with a probability of {percent(STATED, '.0f')} at submission. A job counts once its time has "
        "passed; if it still waits then, it is too late. Still open: the time has not passed."
        + (f" Left out: {counted(left, 'partition')} with the fewest jobs." if left > 0 else "")
    )
    head = ["partition", "jobs", "came true", "too late", "still open"]
    return table(head, body, "How often starts by came true", note)


def _errors(words: dict[str, StartErrorScores]) -> str:
    if not words:
        return "<p>No job had an expected start. Waits are forecast if the policy of the run has forecast=yes.</p>"
    body = [
        [
            escape(WORDS[name]),
            f"{scores.jobs:,}",
            cell(scores.median_absolute_error, duration(scores.median_absolute_error)),
            cell(scores.mean_absolute_error, duration(scores.mean_absolute_error)),
            cell(scores.late_share, percent(scores.late_share or 0)),
            cell(scores.mean_ahead, duration(scores.mean_ahead)),
        ]
        for name in (OURS, FIRST, LAST, AT_ONCE)
        if (scores := words.get(name)) is not None
    ]
    same = (
        "All rows are of the same jobs, those for which the site's scheduler expected a start."
        if FIRST in words
        else "The site's scheduler expected no starts."
    )
    note = (
        f"{same} A job that still waits has no error yet. Errors are without sign. Too late: the expected start was "
        "later than the real one. Ahead: mean time from the expectation to the start."
    )
    head = ["expected by", "jobs", "median error", "mean error", "too late", "ahead"]
    return table(head, body, "How far off expected starts were", note)


def _chosen(facts: StatementFacts) -> list[StoredShadow]:
    """Return the shadows of the page, the recommended policy first."""
    return sorted(facts.shadows, key=lambda shadow: (shadow.name != BEST, shadow.name))[:MOST_SHADOWS]


def _policies(facts: StatementFacts) -> str:
    if not facts.shadows:
        return (
            "<p>No policy is followed in a shadow of this cluster, so nothing is known. "
            "<code>shadowtime shadow</code> follows one.</p>"
        )
    body = []
    for shadow in _chosen(facts):
        compared = shadow.compared
        conclusion, result = verdict(compared, shadow.unix_start), compared.all
        name = escape(shadow.name) + (" (recommended)" if shadow.name == BEST else "")
        if result is None or conclusion is None:
            body.append([name, "0", "no day is over yet", "-", "-"])
            continue
        waits = [f"{duration(pair.real)} → {duration(pair.shadow)}" for pair in (result.wait, result.longest_wait)]
        body.append([name, f"{result.jobs:,}", escape(conclusion), *map(escape, waits)])
    left = len(facts.shadows) - len(body)
    note = (
        "The same jobs on a simulated machine, since each shadow was started; 95 % interval in brackets. "
        "Waits: really → under the policy."
        + (f" Further policies that are followed: {left:,}; see shadowtime twin." if left > 0 else "")
    )
    return table(["policy", "jobs", "what would have changed", "mean wait", "longest wait"], body, "Policies", note)


def _unbroken(text: str) -> str:
    """Return a text in which no line breaks between a number and its unit."""
    return re.sub(r"(?<=[0-9]) (?=%|min|h|s\b)", "\N{NO-BREAK SPACE}", text)


def _name(facts: StatementFacts, row: StartsInTime) -> str:
    return "all" if row.queue is None else facts.partition(row.queue)


def _how(facts: StatementFacts) -> str:
    return (
        "A job counts from its submission to its first start, and anew if it is requeued. Jobs that were withdrawn or "
        f"moved to another partition do not count. Run {facts.run}, Shadowtime {__version__}. "
        "Shadowtime writes nothing to the scheduler."
    )
