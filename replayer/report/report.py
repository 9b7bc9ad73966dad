"""The report of a comparison: one self-contained HTML page without network access or scripts."""

import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

from shadowtime._version import __version__
from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report import charts, day, figures, prediction_figures, tables
from shadowtime.replayer.report.affected_classes import whom_table
from shadowtime.replayer.report.machine_and_queue import machine_and_queue
from shadowtime.replayer.report.markup import escape, table
from shadowtime.replayer.report.month_figures import by_month
from shadowtime.replayer.report.names import named, spelled_out
from shadowtime.replayer.report.sections import expected_starts, who_decided
from shadowtime.replayer.report.statistics import paired
from shadowtime.replayer.report.verdict import baseline, contenders, limits, verdict
from shadowtime.shared.chance import key_of
from shadowtime.shared.formatting import counted

STYLE = Path(__file__).with_name("style.css").read_text() + charts.STYLE
MAX_IN_PAIRS = 5
"""Maximum number of policies that are compared pairwise. More policies are compared with the baseline only."""

LIBRARIES = ("numpy", "scipy", "numba", "pydantic", "orjson")


def page(
    documents: Sequence[Mapping[str, Any]],
    command: str | None,
    runs: Sequence[Sequence[RunRecord]] = (),
    draws: str = "",
) -> str:
    """Return the page of a report as HTML.

    Parameters
    ----------
    documents
        Documents as written by `--json`, one per trace.
    command
        Command line that produced them, printed for readers who want to repeat it; None if a Python program did.
    runs
        Records of the runs of each document, in order. Without records, the page has tables only.
    draws
        HTML of a table of the same policies on several copies of the first log, for the part after its scores.
    """
    recorded = not any(document["settings"]["obeyed"] for document in documents)
    compared = any(len(document["policies"]) > 1 for document in documents)
    replayed = "Policies compared on the same work" if compared else "One policy, replayed"
    title = "Predictions scored against what happened" if recorded else replayed
    per_document = list(runs) or [()] * len(documents)
    typed = list(map(_with_separate_predictions, documents))
    named_documents = [named(document, records) for document, records in zip(typed, per_document, strict=True)]
    sections = [
        _cluster(place, document, records, spelled_out(typed[place]), "" if place else draws)
        for place, (document, records) in enumerate(named_documents)
    ]
    listed = [
        _contents(place, document["cluster"], section)
        for place, (document, section) in enumerate(zip(documents, sections, strict=True))
    ]
    contents = f'{"".join(item for item, _ in listed)}<li><a href="#repeat">To repeat this</a></li>'
    return whole(
        title,
        contents,
        "".join(section for _, section in listed)
        + _repeat(documents, command, [records for _, records in named_documents]),
    )


def whole(title: str, contents: str, main: str) -> str:
    """Return a complete HTML page from its title, the items of its table of contents, and its main part."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Shadowtime: {escape(title.lower())}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><header><p class=brand>Shadowtime</p><h1>{escape(title)}</h1></header>"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav><main>{main}</main></body></html>\n'
    )


def _cluster(place: int, document: Mapping[str, Any], runs: Sequence[RunRecord], names: str, draws: str) -> str:
    rows, recorded = document["policies"], not document["settings"]["obeyed"]
    schedules = runs[:1] if recorded else runs  # a recorded schedule is the same in every run
    ended = bool(schedules) and all(len(run.jobs) for run in schedules)
    compared, base = len(rows) > 1, baseline(document)
    conclusion = verdict(document, runs if ended else [])
    predictions = [
        _part("Predicted run times", tables.run_times(document) + _grid(prediction_figures.transforms(document))),
        _part("Adjusted requests", tables.adjustments(document)),
        _part("Forecasts of waits", tables.forecasts(document)),
        _bounds(document, schedules),
        _part("Expected starts, the site's and ours", expected_starts(document)),
    ]
    drawn = _figures(rows, schedules, base) if ended else []
    parts = [
        f'<section aria-labelledby="cluster-{place}"><h2 id="cluster-{place}">{escape(document["cluster"])}</h2>'
        f"<p>{counted(document['jobs'], 'job')} on {counted(document['processors'], 'processor')}"
        f"{', as they ran' if recorded else ''}. {_left_out(document)}</p>",
        _lacks(document),
        f'<div class="verdict">{_paragraphs(conclusion)}<small>{escape(limits(document))}</small></div>'
        if conclusion
        else "",
        _part("The schedule as logged" if recorded else "Scores", tables.comparison(rows)),
        tables.at_a_glance(rows) if compared else "",
        _part("On copies of the log", draws),
        _part("For whom", whom_table(runs, base)) if compared and ended else "",
        _part("Each job against itself", _differences(runs, base)) if compared and ended else "",
        *(predictions + drawn if recorded else drawn + predictions),
        _part("Who decided", who_decided(rows, (runs[0].plan.workload.unix_start_time if runs else None) or 0)),
        _part("What the names stand for", names),
    ]
    return "".join([*parts, "</section>"])


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())


def _with_separate_predictions(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document that includes the scores of the separate prediction replay, if there was one.

    The scores of that replay replace the wait bounds, and the run-time scores of the same predictors. (Predictors learn
    from job ends, so their scores differ between policies.) The wait forecasts of that replay are added. So the report
    shows the same scores as the terminal.
    """
    predicted = document["told_at_submission"]
    if predicted is None:
        return document
    known = {row["predictor"] for row in predicted["run_time_predictions"]}
    more = [row for row in document["run_time_predictions"] if row["predictor"] not in known]
    return {
        **document,
        "run_time_predictions": [*predicted["run_time_predictions"], *more],
        "wait_forecasts": [*document["wait_forecasts"], *predicted["wait_forecasts"]],
        "wait_bounds": [row for row in predicted["wait_bounds"] if row["queue"] == "all"],
    }


def _part(title: str, content: str) -> str:
    return f"<h3>{escape(title)}</h3>{content}" if content else ""


def _contents(place: int, cluster: str, section: str) -> tuple[str, str]:
    """Return the item of the table of contents for the section of a log, and the section with an id in each heading."""
    titles: list[str] = []

    def marked(heading: re.Match[str]) -> str:
        titles.append(heading[1])
        return f'<h3 id="part-{place}-{len(titles)}">{heading[1]}</h3>'

    section = re.sub("<h3>(.*?)</h3>", marked, section)
    parts = "".join(f'<li><a href="#part-{place}-{at}">{title}</a></li>' for at, title in enumerate(titles, 1))
    return f'<li><a href="#cluster-{place}">{escape(cluster)}</a><ol>{parts}</ol></li>', section


def _grid(drawn: str, name: str = "figures") -> str:
    return f'<div class="{name}">{drawn}</div>' if drawn else ""


def _left_out(document: Mapping[str, Any]) -> str:
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in document["skipped"].items()) or "none"
    cut = f" Jobs cut to the machine's size: {document['aligned']:,}." if document["aligned"] else ""
    return escape(f"Jobs of the log left out: {skipped}.{cut}")


def _lacks(document: Mapping[str, Any]) -> str:
    """Return the log's overlaps (more processors in use than there are), then a folded list of its missing data."""
    over = "".join(
        f"<p>{counted(remark['times'], 'job')} {escape(remark['what'])}; first {escape(remark['example'])}.</p>"
        for remark in document["overlaps"]
    )
    if not document["lacks"]:
        return over
    rows = "".join(f"<li><b>{escape(lack['what'])}</b>: {escape(lack['therefore'])}</li>" for lack in document["lacks"])
    return f"{over}<details><summary>What this log does not state</summary><ul>{rows}</ul></details>"


def _differences(runs: Sequence[RunRecord], base: int) -> str:
    first, others = runs[base], [run for place, run in enumerate(runs) if place != base]
    key = key_of(first.plan.seed, first.plan.cluster)
    pairs = combinations([first, *others], 2) if len(runs) <= MAX_IN_PAIRS else ((first, run) for run in others)
    compared = [(f"{b.plan.label} against {a.plan.label}", paired(a.jobs, b.jobs, key)) for a, b in pairs]
    return tables.differences(compared, first.plan.label)


def _bounds(document: Mapping[str, Any], runs: Sequence[RunRecord]) -> str:
    rows = document["wait_bounds"]
    if not rows:
        return ""
    runs = [run for run in runs if run.bounded_waits.by_grouping()]
    charts = sum(len(run.bounded_waits.by_grouping()) for run in runs)
    shown, further = "", ""
    for run in runs:
        name = run.plan.label if len(runs) > 1 else ""
        drawn = prediction_figures.bounds_over_time(run, name, charts)  # none without jobs with an upper bound
        shown, further = shown + "".join(drawn[:1]), further + "".join(drawn[1:])

    ranges = "".join(tables.wait_ranges(run.bounded_waits.ranges.values()) for run in runs[:1])
    chosen = tables.bounds_to_show(rows)
    more = tables.wait_bounds(rows, "All bounds on waits") if len(chosen) < len(rows) else ""
    folded = more + ranges + _grid(further)
    summary = "Every grouping and queue, and the ranges of processors"
    folded = f"<details class=more><summary>{summary}</summary>{folded}</details>" if folded else ""
    return _part("Bounds on waits", tables.wait_bounds(chosen) + _grid(shown, "figures small") + folded)


def _figures(rows: Sequence[Mapping[str, Any]], runs: Sequence[RunRecord], base: int) -> list[str]:
    compared = len(runs) > 1
    shown = [runs[place] for place in contenders(rows, base)] if compared else runs
    chosen = day.choose(runs[base])
    drawn = [
        figures.wait_distribution(runs, base),
        figures.frontier(rows) if compared else "",
        figures.by_shape(runs),
        by_month(runs, base),
        *(prediction_figures.calibration(row) for row in rows if row["calibration"]),
    ]
    return [
        _part("Where the differences are" if compared else "Waits in detail", _grid("".join(drawn))),
        _part("One day", _grid(machine_and_queue(shown, chosen))),
    ]


def _repeat(documents: Sequence[Mapping[str, Any]], command: str | None, runs: Sequence[Sequence[RunRecord]]) -> str:
    how = f"<pre tabindex=0>{escape(command)}</pre>" if command else "<p>A Python program made this page.</p>"
    packages = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    seeds = ", ".join(sorted({str(document["settings"]["seed"]) for document in documents}))
    logs = [
        [escape(f"log {document['trace']}"), f"<code>{document['log_sha256']}</code>"]
        for document in documents
        if document.get("log_sha256")
    ]
    digests = logs + [
        [escape(f"{run.plan.cluster} {run.plan.label}{'' if decisions else ', schedule'}"), f"<code>{digest}</code>"]
        for records in runs
        for run in records
        for decisions in [run.decisions_sha256]
        for digest in [decisions or run.jobs.sha256]
    ]
    caption = (
        "SHA-256 of the log's file, and of the decision log that --decisions writes of that run alone: the same log "
        "and settings give the same bytes. A run on the compiled machine has no decision log; its digest is that of "
        "the starts and ends of all jobs."
    )
    return (
        '<section aria-labelledby="repeat"><h2 id="repeat">To repeat this</h2>'
        f"{how}"
        f'<p class="faint">Shadowtime {__version__}, Python {platform.python_version()}, {packages}; seed {seeds}.</p>'
        f"{table(['of', 'digest'], digests, 'Digests', caption) if digests else ''}</section>"
    )
