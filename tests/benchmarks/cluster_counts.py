"""The largest number of clusters of waits: coverage of clustered groupings on every log at hand, and the choice.

`python -m tests.benchmarks.cluster_counts --logs FOLDER [--jobs N]` prints one JSON line per log, queue, grouping and
largest number of clusters, then a table, then the choice.

The rule of the choice, stated before the first measurement:

1. A row is a clustered grouping (nodes, rtime, rnprod) of a log, or of one of its queues, with at least `MIN_WAITS`
   bounded waits. It is short if its coverage is below 94.5 %, which the paper's tables would round to less than 95 %
   (Brevik 2006, section 4.3).
2. Of the candidates, those qualify whose number of short rows is at most one above the fewest of all candidates: one
   row more or less is chance.
3. Of those, the default is the candidate whose bounds are the tightest: the largest geometric mean, over rows, of the
   root mean square over-prediction of the plain bound by that of the row.

The choice is made again without each log in turn, to show how much it depends on one log.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.services.wait_bound.groups.bounders import waits_each
from shadowtime.services.wait_bound.groups.group_bound import bound
from shadowtime.services.wait_bound.groups.groupings import Grouping, groupings
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import JobSubmitted

LOGS = {
    "CTC": ("CTC-SP2-1996-3.1-cln", 338),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln", 128),
    "KTH": ("KTH-SP2-1996-2", 100),
    "HPC2N": ("HPC2N-2002-2.2-cln", 240),
    "Intrepid": ("ANL-Intrepid-2009-1", 163_840),
    "SDSC-Par-1996": ("SDSC-Par-1996-3.1-cln", 400),
}
"""File and processors of each log. Mira is left out: its recorded starts overlap more nodes than there are."""

CANDIDATES = (2, 3, 4, 5, 6, 8, 10, 15)
MIN_WAITS = 1_000
SHORT = 0.945
CLUSTERED = ("nodes", "rtime", "rnprod")


class Score:
    """Bounds and waits of one grouping in one scope."""

    def __init__(self) -> None:
        self.predictions = self.covered = 0
        self.squares = 0.0

    def add(self, seconds: int | None, wait: int) -> None:
        """Add a bound, if there was one, and its wait."""
        if seconds is not None:
            self.predictions += 1
            if seconds >= wait:
                self.covered += 1
                self.squares += float(seconds - wait) ** 2

    @property
    def over_rms(self) -> float:
        """The root mean square over-prediction."""
        return math.sqrt(self.squares / max(self.covered, 1))


class Scope:
    """The groupings of the cluster or of a queue, as in `QueueBounds`, without what costs and does not matter here."""

    def __init__(self, settings: BoundSettings, names: Sequence[str], history: int) -> None:
        self._recut, self._history = settings.recut, history
        self.groupings: list[Grouping] = [each for each in groupings(settings, history) if each.name in names]
        self._known: list[tuple[tuple[int, ...], int]] = []
        self._open: dict[int, list[int | None]] = {}
        self._submissions = 0
        self.scores = {each.name: Score() for each in self.groupings}

    def submit(self, job: JobSubmitted) -> None:
        """Issue bounds, and recut the ranges when this is due."""
        self._open[job.job_number] = [bound(each.groups, each.at(job), 0.95, 0.95)[0] for each in self.groupings]
        self._submissions += 1
        if self._submissions % self._recut == 0 and self._known:
            self._known = self._known[-self._history :]
            values, waits = zip(*self._known, strict=True)
            table, of_waits = np.array(values), np.array(waits)
            for place, each in enumerate(self.groupings):
                if each.cut is not None:
                    each.recut(table[:, place], of_waits)

    def reveal(self, job: JobSubmitted, wait: int) -> None:
        """Score the bounds of a job, and learn its wait."""
        for each, seconds in zip(self.groupings, self._open.pop(job.job_number), strict=True):
            self.scores[each.name].add(seconds, wait)
            each.groups[each.at(job)].add(wait, seconds)
        self._known.append((tuple(each.value(job) for each in self.groupings), wait))


def happenings(path: Path, processors: int, jobs: int | None) -> list[tuple[JobSubmitted, int | None]]:
    """Return the jobs of a log with a known wait, at their submission and at their start (with the wait), in order."""
    events = []
    table = read_swf(path).table[:jobs]
    asks = bool((table[:, FIELDS.index("requested_time")] > 0).any())  # as in a replay: then all jobs have to
    for row in table.tolist():
        of = dict(zip(FIELDS, row, strict=True))
        size = of["requested_processors"] if of["requested_processors"] > 0 else of["allocated_processors"]
        if (
            of["wait_time"] < 0
            or of["run_time"] <= 0
            or not 0 < size <= processors
            or (asks and of["requested_time"] <= 0)
        ):
            continue
        job = JobSubmitted(
            time=of["submit_time"],
            job_number=of["job_number"],
            requested_processors=size,
            requested_time=of["requested_time"] if of["requested_time"] > 0 else None,
            queue_number=of["queue_number"] if of["queue_number"] >= 0 else None,
        )
        events.append((job.time, 0, job.job_number, job, None))
        events.append((job.time + of["wait_time"], 1, job.job_number, job, of["wait_time"]))
    return [(job, wait) for _, _, _, job, wait in sorted(events, key=lambda each: each[:3])]


def rows_of(name: str, events: Sequence[tuple[JobSubmitted, int | None]], most: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each queue and clustered grouping, the whole cluster first."""
    settings = BoundSettings(clusters=f"1-{most}")
    names = ("plain", *CLUSTERED)
    history = waits_each(settings, len({job.queue_number for job, _ in events} - {None}))
    scopes: dict[int | None, Scope] = defaultdict(lambda: Scope(settings, names, history))
    for job, wait in events:
        for queue in {None, job.queue_number}:
            if wait is None:
                scopes[queue].submit(job)
            else:
                scopes[queue].reveal(job, wait)
    for queue, scope in sorted(scopes.items(), key=lambda item: -1 if item[0] is None else item[0]):
        if len(scopes) == 2 and queue is not None:
            continue  # the only queue is the cluster
        plain = scope.scores["plain"]
        for grouping in CLUSTERED:
            score = scope.scores[grouping]
            if score.predictions >= MIN_WAITS:
                yield {
                    "log": name,
                    "queue": "all" if queue is None else queue,
                    "grouping": grouping,
                    "most": most,
                    "predictions": score.predictions,
                    "coverage": round(score.covered / score.predictions, 4),
                    "tighter": round(plain.over_rms / score.over_rms, 3) if score.over_rms else None,
                }


class Candidate(NamedTuple):
    """A largest number of clusters: its short rows, the lowest coverage of its rows, and how tight they are."""

    most: int
    rows: int
    short: int
    lowest: float
    tighter: float


def candidates(rows: Sequence[dict[str, Any]]) -> list[Candidate]:
    """Return the figures of each candidate, over these rows."""
    found = []
    for most in sorted({row["most"] for row in rows}):
        own = [row for row in rows if row["most"] == most]
        ratios = [math.log(row["tighter"]) for row in own if row["tighter"]]
        short = sum(row["coverage"] < SHORT for row in own)
        lowest = min(row["coverage"] for row in own)
        found.append(Candidate(most, len(own), short, lowest, math.exp(sum(ratios) / len(ratios))))
    return found


def choice(found: Sequence[Candidate]) -> int:
    """Return the default by the rule of this module."""
    fewest = min(each.short for each in found)
    return max((each for each in found if each.short <= fewest + 1), key=lambda each: each.tighter).most


def main(
    logs: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the logs are.")],
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="The first so many lines only.")] = None,
    of: Annotated[list[str] | None, typer.Option(metavar="LOG", help="These logs only.")] = None,
) -> None:
    """Print the rows as JSON lines, then the table of candidates and the choice."""
    rows = []
    for name in of or LOGS:
        file, processors = LOGS[name]
        events = happenings(logs / f"{file}.swf.gz", processors, jobs)
        for most in CANDIDATES:
            for row in rows_of(name, events, most):
                print(json.dumps(row), flush=True)
                rows.append(row)
    found = candidates(rows)
    for each in found:
        print(json.dumps({"summary": each._asdict() | {"tighter": round(each.tighter, 3)}}))
    names = dict.fromkeys(row["log"] for row in rows)
    without = {
        name: choice(candidates([row for row in rows if row["log"] != name])) for name in names if len(names) > 1
    }
    print(json.dumps({"choice": choice(found), "without": without}))


if __name__ == "__main__":
    run_app(application(main))
