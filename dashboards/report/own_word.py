"""What the site's own scheduler expected of starts, beside our forecasts and bounds of the same jobs."""

from collections.abc import Mapping
from typing import Any

from shadowtime.dashboards.report.markup import cell, escape, table
from shadowtime.replayer.expected_starts import words
from shadowtime.shared.formatting import duration, percent, signed_duration

CAPTION = (
    "First and last are what the site's own scheduler said of a waiting job, the forecast is ours, at its submission; "
    "where fewer jobs were forecast, the site's words of these stand beside it. Errors are of the start that was told "
    "less the one that came, so one told too late has a positive one. Ahead: how long before the start it was told. "
    "Held: waits within their bounds."
)


def own_word(document: Mapping[str, Any]) -> str:
    """Return how the site's word fared, and ours; nothing where the site said none."""
    rows = document.get("expected_starts", [])
    several = len({(row["policy"], row["runtime"]) for row in rows}) > 1
    body = [
        [
            escape(f"{row['policy']}, run times: {row['runtime']}, " if several else "")
            + escape(f"{'all jobs' if row['queue'] == 'all' else 'queue ' + str(row['queue'])}: {word.whose}"),
            f"{word.jobs:,}",
            *(_time(word.scores.get(key)) for key in ("mean_absolute_error", "median_absolute_error")),
            _time(word.scores.get("mean_error"), signed=True),
            _share(word.scores.get("late_share")),
            _time(word.scores.get("mean_ahead")),
            _share(word.held),
        ]
        for row in rows
        for word in words(row)
    ]
    head = ["word", "jobs", "mean absolute error", "median", "mean error", "too late", "ahead", "held"]
    return table(head, body, "Against the site's own word", CAPTION) if body else ""


def _time(seconds: float | None, *, signed: bool = False) -> str:
    shown = signed_duration(seconds) if signed and seconds is not None else duration(seconds)
    return cell(seconds, shown)


def _share(value: float | None) -> str:
    return cell(value, "-" if value is None else percent(value))
