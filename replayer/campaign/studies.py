"""Studies of the papers that are not grids of replays: figures of single jobs, and generated data."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape as plain_text
from rich.table import Table

from shadowtime.replayer.campaign.file import Campaign, LogEntry
from shadowtime.replayer.campaign.logs import CampaignLog, find_logs, queue_names, workload_of
from shadowtime.replayer.comparison import BoundedWaits, RunPlan
from shadowtime.replayer.report import cell, clock_of, escape, figure, table, waits_and_bounds, whole
from shadowtime.replayer.simulation import EmbeddedReplay
from shadowtime.replayer.synthetic import ENDS, NEAR, interval_waits, recovered
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound import BoundSettings, cut
from shadowtime.shared.formatting import duration, percent
from shadowtime.shared.kernels import Integers
from shadowtime.shared.output import require_places, result_file


class Findings(NamedTuple):
    """The result of a study: a table, notes below it, and figures as HTML."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    drawn: str = ""


class BoundFigure(NamedTuple):
    """A figure of the paper: waits of a queue and their bounds.

    `days` are its beginning and its end, which is not included; None for all days of the log.
    """

    number: int
    log: str
    queue: str
    grouping: str
    days: tuple[datetime, datetime] | None = None


_FIGURE_3 = datetime(2005, 6, 22, tzinfo=UTC), datetime(2005, 7, 5, tzinfo=UTC)
_FIGURE_4 = datetime(2005, 7, 3, tzinfo=UTC), datetime(2005, 7, 6, tzinfo=UTC)
FIGURES = (
    BoundFigure(1, "SDSC-SP2@128", "high", "plain"),
    BoundFigure(2, "SDSC-SP2@128", "high", "rtime"),
    BoundFigure(3, "SDSC-DS", "high", "plain", _FIGURE_3),
    BoundFigure(4, "SDSC-DS", "high", "plain", _FIGURE_4),
    BoundFigure(4, "SDSC-DS", "normal", "plain", _FIGURE_4),
)
LOWER = 5
"""A bound is much lower than the plain one if it is at most the plain one divided by this number."""

HEAD = ("figure", "log, queue", "bound", "jobs", "covered", "median wait", "median bound", f"≤ plain / {LOWER}")


def figures_1_to_4(folder: Path, first: int | None) -> Findings:
    """Return the numbers and the drawings of the figures whose logs are in a folder.

    `first` limits the jobs of each log. Raise `TraceError` if no log is there.
    """
    entries = [LogEntry(log=log, optional=True) for log in dict.fromkeys(item.log for item in FIGURES)]
    campaign = Campaign(name="figures", title="", logs=tuple(entries), mode="recorded")
    rows: list[list[str]] = []
    notes = [
        "The paper says of figure 2 that many bounds are almost an order of magnitude lower than in figure 1.",
        "Figures 3 and 4 are of June and July 2005; by the paper's table 1, its DataStar log ends in April 2005.",
    ]
    drawn = ""
    for log in find_logs(campaign, folder, first):
        for item, bounded, plain, start in _of_log(log):
            name = f"Figure {item.number}: {log.cluster}, queue {item.queue}, {item.grouping}"
            if not len(bounded):
                notes.append(f"{name}: the log has no such job in the days of the figure")
                continue
            lower = float((LOWER * bounded[:, 2] <= plain[:, 2]).mean())
            covered = float((bounded[:, 1] <= bounded[:, 2]).mean())
            wait, bound = (duration(float(np.median(bounded[:, column]))) for column in (1, 2))
            row = [str(item.number), f"{log.cluster}, {item.queue}", item.grouping, f"{len(bounded):,}"]
            row += [percent(covered), wait, bound, percent(lower)]
            rows.append(row)
            caption, picture = waits_and_bounds(name, bounded, clock_of(start))
            drawn += figure(name, caption, picture, table(list(HEAD), [[cell(None, text) for text in row]], name))

    return Findings(HEAD, rows, notes, drawn)


def _of_log(log: CampaignLog) -> list[tuple[BoundFigure, Integers, Integers, int | None]]:
    """Replay a log. Return its figures, each with submit time, wait and bound of its jobs, and with the plain bounds.

    Both are of shape (jobs, 3), in seconds. The last value is the Unix time of second 0, if it is known.
    """
    workload, numbers = workload_of(log), {name: number for number, name in queue_names(Path(log.path)).items()}
    items = [item for item in FIGURES if item.log.partition("@")[0] == log.cluster.partition("@")[0]]
    waits = {item.queue: BoundedWaits(numbers.get(item.queue)) for item in items}
    bound = canonical("wait-bound", "bmbp")
    plan = RunPlan("figures", log.cluster, workload, configure("easy"), "recorded", bound)
    EmbeddedReplay(plan.opened(), plan.source(), list(waits.values()), stages=STAGES[:3]).run_to_end()

    drawn = []
    for item in items:
        by_grouping = waits[item.queue].by_grouping()
        nothing = np.empty((0, 3), np.int64)
        bounded, plain = by_grouping.get(item.grouping, nothing), by_grouping.get("plain", nothing)
        if item.days is not None:
            start, end = (day.timestamp() - (workload.unix_start_time or 0) for day in item.days)
            bounded, plain = (rows[(rows[:, 0] >= start) & (rows[:, 0] < end)] for rows in (bounded, plain))
        drawn.append((item, bounded, plain, workload.unix_start_time))
    return drawn


SEEDS = 10
PAPERS_ENDS = (39, 40, 100, 197, 300, 398, 492, 493)
"""Upper ends in seconds of the clusters that the paper recovered, except the last cluster."""


def artificial_trace() -> Findings:
    """Return the clusters recovered from artificial traces, one for each seed."""
    least, most = BoundSettings().cluster_counts
    rows = [["paper", "9", f"{recovered(PAPERS_ENDS)} of 4", ", ".join(map(str, PAPERS_ENDS))]]
    for seed in range(SEEDS):
        ends = cut(*interval_waits(seed), least=least, most=most)
        rows.append([str(seed), str(len(ends) + 1), f"{recovered(ends)} of 4", ", ".join(map(str, ends))])

    true = ", ".join(map(str, ENDS[:-1]))
    notes = [
        f"The waits differ by the intervals of requested time that end at {true} s. Recovered: an end within {NEAR} s.",
        f"The clusters are at least {least} and at most {most}. The paper's nine need nine or more.",
    ]
    return Findings(("seed", "clusters", "ends recovered", "ends"), rows, notes)


# The studies by name.


class Study(NamedTuple):
    """A study and its title. `carry_out` gets the folder of logs, and the number of jobs of each; None for all jobs."""

    title: str
    carry_out: Callable[[Path, int | None], Findings]


STUDIES = {
    "P2-figures-1-to-4": Study(
        "Brevik 2006, Figures 1 to 4: waits and their bounds over time",
        figures_1_to_4,
    ),
    "P2-section-3.5": Study("Brevik 2006, section 3.5: clusters of an artificial trace", lambda *_: artificial_trace()),
}
"""The studies, by the names that `reproduce` accepts."""


def carry_out_study(study: Study, folder: Path, first: int | None, report: Path | None) -> None:
    """Carry out a study, print its table, and write its page to the file `report` unless it is None.

    Raise `ShadowtimeError` if a log is missing or cannot be replayed, or the page cannot be written.
    """
    require_places((report,), ())
    findings = study.carry_out(folder, first)
    print_findings(study, findings)
    if report is not None:
        with result_file(report) as file:
            file.write(whole(study.title, "", section_of(study, findings)).encode())


def print_findings(study: Study, findings: Findings) -> None:
    """Print the table and the notes of a study."""
    console = Console(highlight=False, emoji=False)
    shown = Table(title=plain_text(study.title), title_justify="left")
    for heading in findings.head:
        shown.add_column(plain_text(heading), overflow="fold")
    for row in findings.rows:
        shown.add_row(*map(plain_text, row))
    console.print(shown)
    for note in findings.notes:
        console.print(note, markup=False)


def section_of(study: Study, findings: Findings) -> str:
    """Return the table, the notes and the figures of a study as HTML."""
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in findings.notes)
    body = [list(map(escape, row)) for row in findings.rows]
    return f"{table(list(findings.head), body, study.title)}{notes}<div class=figures>{findings.drawn}</div>"
