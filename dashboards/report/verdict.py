"""What a report says first: what was better, by how much and how sure that is, and what it does not show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shadowtime.dashboards.report.statistics import paired
from shadowtime.replayer.block_bootstrap import Interval
from shadowtime.replayer.run_record import RunRecord
from shadowtime.shared.chance import key_of
from shadowtime.shared.formatting import duration

Row = Mapping[str, Any]


def verdict(document: Row, names: Sequence[str], runs: Sequence[RunRecord]) -> str:
    """Return two sentences on what came out; nothing where there is nothing to compare.

    Parameters
    ----------
    document
        What `--json` gives of one log.
    names
        What its policies are called.
    runs
        The records of its runs, in the same order; without them nothing is said of how sure it is.
    """
    rows = document["policies"]
    if not document["settings"]["obeyed"]:
        return f"{_of_run_times(document)} {_of_bounds(document['wait_bounds'])}"
    if any(row["mean_bounded_slowdown"] is None for row in rows):
        return ""
    if len(rows) == 1:
        (row,) = rows
        return (
            f"Under {names[0]} jobs waited {duration(row['mean_wait'])} on average and {duration(row['max_wait'])} at "
            f"most, with a mean bounded slowdown of {_slowdown(row['mean_bounded_slowdown'])}. No other policy was "
            "replayed, so nothing says whether one would do better."
        )
    return f"{_of_slowdowns(rows, names, runs)} {_of_waits(rows, names, runs)}"


def limits(document: Row) -> str:
    """Return a sentence on what the results of a log do not show."""
    settings = document["settings"]
    if not settings["obeyed"]:
        return (
            "This is one log, and jobs started as they did: it does not show what other logs would give, or what "
            "following the decisions would have changed."
        )
    rewritten = settings.get("requests", "as-logged")
    asked = "" if rewritten == "as-logged" else f", with requests that nobody made ({rewritten})"
    return (
        "It does not show what other logs would give, or how users would react: this is one log and one draw of chance "
        f"(seed {settings['seed']}), and users submit as they did, however long they wait{asked}."
    )


def _of_slowdowns(rows: Sequence[Row], names: Sequence[str], runs: Sequence[RunRecord]) -> str:
    lowest, following = _in_order(rows, "mean_bounded_slowdown")[:2]
    least = rows[lowest]["mean_bounded_slowdown"]
    more = rows[following]["mean_bounded_slowdown"] - least
    sure = _sure(runs, lowest, following, "slowdown", _slowdown)
    behind = f"{_slowdown(more)} more{sure}" if more else "the same"
    return (
        f"{names[lowest]} had the lowest mean bounded slowdown, {_slowdown(least)}; the next, {names[following]}, had "
        f"{behind}."
    )


def _of_waits(rows: Sequence[Row], names: Sequence[str], runs: Sequence[RunRecord]) -> str:
    lowest = _in_order(rows, "mean_bounded_slowdown")[0]
    shortest, least = (_in_order(rows, key)[0] for key in ("mean_wait", "max_wait"))
    gap = rows[lowest]["mean_wait"] - rows[shortest]["mean_wait"]
    mean = (
        f"Under {names[shortest]} jobs waited {duration(gap)} less on average"
        f"{_sure(runs, shortest, lowest, 'wait', duration)}"
        if gap
        else f"Its mean wait, {duration(rows[lowest]['mean_wait'])}, was the shortest too"
    )
    longest = duration(rows[lowest]["max_wait"])
    if rows[lowest]["max_wait"] == rows[least]["max_wait"]:
        return f"{mean}; no policy had a shorter longest wait than {names[lowest]}, {longest}."
    shorter = duration(rows[least]["max_wait"])
    return f"{mean}; the longest wait was {longest} under {names[lowest]}, but {shorter} under {names[least]}."


def _in_order(rows: Sequence[Row], key: str) -> list[int]:
    return sorted(range(len(rows)), key=lambda place: rows[place][key])


def _sure(runs: Sequence[RunRecord], low: int, high: int, what: str, show: Callable[[float], str]) -> str:
    """Return in brackets between which bounds the difference lies; nothing without records."""
    if not runs or not all(len(runs[place].jobs) for place in (low, high)):
        return ""
    plan = runs[0].plan
    interval: Interval = getattr(paired(runs[low].jobs, runs[high].jobs, key_of(plan.seed, plan.cluster)), what)
    if interval.low is None or interval.high is None:
        return " (the log is too short to say how sure that is)"
    if interval.low <= 0:
        return f" (which may be chance: 95 % interval -{show(-interval.low)} to {show(interval.high)})"
    return f" (95 % interval {show(interval.low)} to {show(interval.high)})"


def _slowdown(value: float) -> str:
    return f"{value:,.2f}"


def _of_run_times(document: Row) -> str:
    requests = document["requests_as_run_times"]["mean_absolute_error"]
    rows = [row for row in document["run_time_predictions"] if row["predictions"]]
    if not rows:
        return f"Requests are {duration(requests)} off the run times on average; nothing else was scored beside them."
    best = min(rows, key=lambda row: row["mean_absolute_error"])
    name, error = best["predictor"].partition("(")[0], duration(best["mean_absolute_error"])
    if best["mean_absolute_error"] < requests:
        return f"{name} predicted run times best, {error} off on average, where requests are {duration(requests)} off."
    return f"No predictor beat the requests, {duration(requests)} off on average: the best, {name}, was {error} off."


def _of_bounds(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["queue"] == "all" and row["coverage"] is not None]
    if not found:
        return "Waits were not bounded."
    held = sum(row["coverage"] >= row["quantile"] for row in found)
    least = min(row["coverage"] for row in found)
    return (
        f"Of {len(found)} bounds on waits {held} covered the {100 * found[0]['quantile']:g} % that they aim at; the "
        f"lowest coverage was {100 * least:.1f} %."
    )
