"""The report of a comparison: one self-contained page that needs no network and runs no script."""

import platform
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

from shadowtime import __version__
from shadowtime.dashboards.report import day, figures, prediction_figures, tables
from shadowtime.dashboards.report.charts import table
from shadowtime.dashboards.report.markup import escape
from shadowtime.dashboards.report.statistics import DAY, paired
from shadowtime.dashboards.report.verdict import limits, verdict
from shadowtime.replayer.block_bootstrap import block_length
from shadowtime.replayer.run_record import RunRecord
from shadowtime.shared.chance import key_of

STYLE = Path(__file__).with_name("style.css").read_text()
MAX_IN_PAIRS = 5
"""Policies of which each is compared with each; of more, all are compared with the first."""

LIBRARIES = ("numpy", "scipy", "numba", "pydantic", "orjson")


def page(
    documents: Sequence[Mapping[str, Any]], arguments: Sequence[str], runs: Sequence[Sequence[RunRecord]] = ()
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    documents
        What `--json` gives, one per trace.
    arguments
        The command line that made them, for whoever wants to repeat it.
    runs
        For each document the record of each of its runs, in order; without them there are tables only.
    """
    recorded = not any(document["settings"]["obeyed"] for document in documents)
    title = "Predictions scored against what happened" if recorded else "Policies compared on the same work"
    per_document = list(runs) or [()] * len(documents)
    sections = [
        _cluster(place, document, records)
        for place, (document, records) in enumerate(zip(documents, per_document, strict=True))
    ]
    links = "".join(
        f'<li><a href="#cluster-{place}">{escape(document["cluster"])}</a></li>'
        for place, document in enumerate(documents)
    )
    contents = f'{links}<li><a href="#repeat">To repeat this</a></li>'
    return whole(title, contents, f"{''.join(sections)}{_repeat(documents, arguments, per_document)}")


def whole(title: str, contents: str, main: str) -> str:
    """Return a page of this title as HTML, from the items of its list of contents and what stands in it."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Shadowtime: {escape(title.lower())}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><header><p class=brand>Shadowtime</p><h1>{escape(title)}</h1></header>"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav><main>{main}</main></body></html>\n'
    )


def _cluster(place: int, document: Mapping[str, Any], runs: Sequence[RunRecord]) -> str:
    rows, recorded = document["policies"], not document["settings"]["obeyed"]
    schedules = runs[:1] if recorded else runs  # the recorded one is the same in every pass
    compared = len(rows) > 1
    told = verdict(document, _short([row["policy"] for row in rows]), schedules)
    predicted = _with_told(document)
    parts = [
        f'<section aria-labelledby="cluster-{place}"><h2 id="cluster-{place}">{escape(document["cluster"])}</h2>'
        f"<p>{document['jobs']:,} jobs on {document['processors']:,} processors"
        f"{', as they ran' if recorded else ''}. {_left_out(document)}</p>",
        f'<p class="verdict">{escape(told)} <small>{escape(limits(document))}</small></p>' if told else "",
        _part("The schedule as logged" if recorded else "Scores", tables.comparison(rows, predicting=not recorded)),
        tables.bars(rows) if compared else "",
        _part("What the names stand for", "" if recorded else tables.configurations(rows)),
        _part("Each job against itself", _differences(runs)) if compared and runs else "",
        _part("Predicted run times", tables.run_times(predicted) + _grid(prediction_figures.transforms(predicted))),
        _part("Adjusted requests", tables.adjustments(document)),
        _part("Forecasts of waits", tables.forecasts(predicted)),
        _bounds(predicted, schedules),
    ]
    if schedules and all(len(run.jobs) for run in schedules):
        parts += _figures(rows, schedules)
    return "".join([*parts, "</section>"])


def _with_told(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document whose predictions are those of the policies, and after them those of the replay beside them."""
    told = document["told_at_submission"]
    if told is None:
        return document
    known = {row["predictor"] for row in document["run_time_predictions"]}
    more = [row for row in told["run_time_predictions"] if row["predictor"] not in known]
    return {
        **document,
        "run_time_predictions": [*document["run_time_predictions"], *more],
        "wait_forecasts": [*document["wait_forecasts"], *told["wait_forecasts"]],
        "wait_bounds": [row for row in told["wait_bounds"] if row["queue"] == "all"],
    }


def _part(title: str, content: str) -> str:
    return f"<h3>{escape(title)}</h3>{content}" if content else ""


def _grid(drawn: str) -> str:
    return f'<div class="figures">{drawn}</div>' if drawn else ""


def _left_out(document: Mapping[str, Any]) -> str:
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in document["skipped"].items()) or "none"
    cut = f" {document['aligned']:,} larger ones were cut to the machine's size." if document["aligned"] else ""
    return escape(f"Jobs of the log left out: {skipped}.{cut}")


def _differences(runs: Sequence[RunRecord]) -> str:
    first = runs[0]
    if not len(first.jobs):
        return ""
    key = key_of(first.plan.seed, first.plan.cluster)
    pairs = combinations(runs, 2) if len(runs) <= MAX_IN_PAIRS else ((first, run) for run in runs[1:])
    found = [(f"{b.plan.label} against {a.plan.label}", paired(a.jobs, b.jobs, key)) for a, b in pairs]
    return tables.differences(found, block_length(first.jobs.submit_time) / DAY)


def _bounds(document: Mapping[str, Any], runs: Sequence[RunRecord]) -> str:
    rows = document["wait_bounds"]
    if not rows:
        return ""
    names = _short([run.plan.label for run in runs]) if len(runs) > 1 else [""] * len(runs)
    drawn = "".join(map(prediction_figures.bounds_over_time, runs, names))
    return _part("Bounds on waits", tables.wait_bounds(rows)) + _grid(drawn)


def _figures(rows: Sequence[Mapping[str, Any]], runs: Sequence[RunRecord]) -> list[str]:
    chosen = day.choose(runs[0])
    names = _short([row["policy"] for row in rows])
    drawn = [
        figures.wait_distribution(runs),
        figures.frontier(rows) if len(rows) > 1 else "",
        figures.by_shape(runs),
        figures.by_month(runs),
        *(
            prediction_figures.calibration(row, name)
            for row, name in zip(rows, names, strict=True)
            if row["calibration"]
        ),
    ]
    days = "".join(day.gantt(run, chosen) for run in runs)
    under = f" under {runs[0].plan.label}" if len(runs) > 1 else ""
    told = f"The day on which jobs waited most{under}, the waits of all taken together."
    title = "Where the differences are" if len(rows) > 1 else "Waits in detail"
    return [
        _part(title, _grid("".join(drawn))),
        _part("One day", f"<p>{escape(told)}</p>{_grid(days)}"),
    ]


def _short(labels: Sequence[str]) -> list[str]:
    """Return what each SPEC begins with, for where there is little room; the whole where another begins so, too.

    >>> _short(["easy", "probabilistic:criterion=exact,tau=0.05", "conservative:order=fcfs,shape=half,widen=yes"])
    ['easy', 'probabilistic:criterion=exa…', 'conservative:order=fcfs,sha…']
    >>> _short(["probabilistic:criterion=exact,tau=0.05", "probabilistic:criterion=exact,tau=0.5"])
    ['probabilistic:criterion=exact,tau=0.05', 'probabilistic:criterion=exact,tau=0.5']
    """
    cut = [label if len(label) <= 28 else f"{label[:27]}…" for label in labels]
    alike = Counter(cut)
    return [label if alike[each] > 1 else each for label, each in zip(labels, cut, strict=True)]


def _repeat(
    documents: Sequence[Mapping[str, Any]], arguments: Sequence[str], runs: Sequence[Sequence[RunRecord]]
) -> str:
    command = f"shadowtime replay {shlex.join(arguments)}"
    packages = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    seeds = ", ".join(sorted({str(document["settings"]["seed"]) for document in documents}))
    digests = [
        [escape(f"{run.plan.cluster} {run.plan.label}"), f"<code>{run.decisions_sha256}</code>"]
        for records in runs
        for run in records
    ]
    caption = (
        "SHA-256 of the decision log that --decisions writes of that run alone: the same log and settings give the "
        "same bytes."
    )
    return (
        '<section aria-labelledby="repeat"><h2 id="repeat">To repeat this</h2>'
        f"<pre tabindex=0>{escape(command)}</pre>"
        f'<p class="faint">Shadowtime {__version__}, Python {platform.python_version()}, {packages}; seed {seeds}.</p>'
        f"{table(['run', 'decisions'], digests, 'Digests', caption) if digests else ''}</section>"
    )
