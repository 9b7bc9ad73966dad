"""The report of a comparison: one self-contained page that needs no network."""

import platform
import shlex
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from typing import Any

from replayer.comparison_table import duration

COLUMNS = (
    ("mean wait", "mean_wait"),
    ("geometric mean", "geometric_mean_wait"),
    ("longest wait", "max_wait"),
    ("mean response", "mean_response"),
    ("no wait", "zero_wait_share"),
    ("bounded slowdown", "mean_bounded_slowdown"),
    ("utilization", "utilization"),
)
SHARES = {"zero_wait_share", "utilization", "share"}
BARS = (
    ("Mean wait", "mean_wait"),
    ("Mean bounded slowdown", "mean_bounded_slowdown"),
    ("Longest wait", "max_wait"),
)

STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e8eb); --faint: light-dark(#57606a, #a2abb5);
  --line: light-dark(#d0d7de, #3a424b); --bar: light-dark(#2f6f9f, #5aa2d8); --page: light-dark(#fff, #14181d); }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; } .faint, caption { color: var(--faint); } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } caption { text-align: left; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; }
td { white-space: nowrap; } small { color: var(--faint); }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
.bars { display: grid; grid-template-columns: fit-content(40%) 1fr max-content; gap: .3rem .8rem;
  align-items: center; }
.bars span { overflow-wrap: anywhere; } .bars :nth-child(3n) { text-align: right; }
.bar { height: 1rem; background: var(--bar); min-width: 1px; print-color-adjust: exact; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); padding: .8rem; }
"""


def page(documents: Sequence[dict[str, Any]], arguments: Sequence[str]) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    documents
        What `--json` gives, one per trace.
    arguments
        The command line that made them, for whoever wants to repeat it.
    """
    command = f"python -m replayer {shlex.join(arguments)}".encode(errors="replace").decode()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pydantic"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shadowtime: comparison</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Policies compared on the same work</h1>"
        f"{''.join(map(_section, documents))}"
        f"<h2>To repeat this</h2><pre>{escape(command)}</pre>"
        f'<p class="faint">Python {platform.python_version()}, {packages}</p></body></html>\n'
    )


def _section(document: dict[str, Any]) -> str:
    rows = document["policies"]
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in document["skipped"].items()) or "none"
    return (
        f"<h2>{escape(document['cluster'])}</h2>"
        f"<p>{document['jobs']:,} jobs on {document['processors']:,} processors. Jobs left out: {escape(skipped)}.</p>"
        f"{_table(rows)}{''.join(_bars(title, key, rows) for title, key in BARS)}{_predictions(document)}"
    )


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in ("policy", *dict(COLUMNS)))
    body = "".join(
        f"<tr><td>{escape(row['policy'])}<br><small>run times: {escape(row['runtime'])}</small></td>"
        f"{''.join(f'<td>{_value(key, row[key])}</td>' for _, key in COLUMNS)}</tr>"
        for row in rows
    )
    return (
        '<div class="wide" tabindex="0"><table><caption>Waits from submission to start. Geometric mean: of waits of at '
        "least 10 s. Slowdown: response time over run time, bounded at 10 s.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _predictions(document: dict[str, Any]) -> str:
    """Return how run-time predictors and adjustments fared, where there is more than the request to speak of."""
    pairs = list(zip(document["run_time_predictions"], document["walltime_adjustments"], strict=True))
    if not any(run_time["predictions"] for run_time, _ in pairs):
        return ""
    titles = ("run times", "jobs predicted", "mean absolute error", "mean run time", "accuracy of requests")
    body = "".join(
        f"<tr><td>{escape(run_time['predictor'])}</td><td>{run_time['predictions']:,} of {run_time['jobs']:,}</td>"
        f"<td>{duration(run_time['mean_absolute_error'])}</td><td>{duration(run_time['mean_run_time'])}</td>"
        f"<td>{_value('share', adjustment['mean_accuracy'])}</td></tr>"
        for run_time, adjustment in pairs
    )
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return (
        '<h3>Run-time predictions</h3><div class="wide" tabindex="0"><table>'
        "<caption>The request stands in where nothing was predicted.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _bars(title: str, key: str, rows: Sequence[dict[str, Any]]) -> str:
    largest = max((row[key] or 0 for row in rows), default=0) or 1
    bars = "".join(
        f"<span>{escape(row['policy'])}</span>"
        f'<span class="bar" aria-hidden="true" style="width: {100 * (row[key] or 0) / largest:.1f}%"></span>'
        f"<span>{_value(key, row[key])}</span>"
        for row in rows
    )
    return f'<h3>{title}</h3><div class="bars">{bars}</div>'


def _value(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if key in SHARES:
        return f"{value:.1%}"
    return f"{value:,.2f}" if "slowdown" in key else duration(value)
