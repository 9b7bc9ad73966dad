"""The verdict of a report: the best policy, its advantage and certainty, and the limits of the results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shadowtime.replayer.comparison import RunRecord, is_worse
from shadowtime.replayer.report.affected_classes import groups
from shadowtime.replayer.report.statistics import FEW, PairedDifferences, paired, worst_off
from shadowtime.shared.chance import key_of
from shadowtime.shared.formatting import counted, duration, percent, slowdown
from shadowtime.shared.statistics import Interval

Row = Mapping[str, Any]

NAMED = 4
"""Number of policies that a sentence names; it counts the others."""


def verdict(document: Row, runs: Sequence[RunRecord]) -> str:
    """Return the verdict as paragraphs with line breaks between them; empty if a policy has no mean slowdown.

    The policy with the lowest mean slowdown is compared with the baseline. If others cannot be told apart from it, the
    next columns decide: the mean wait, and then the longest wait. The verdict of a recorded log is on its predictions.

    Parameters
    ----------
    document
        `--json` document of one log.
    runs
        Records of its runs, in the same order. Without records, the verdict lacks confidence intervals and job shapes.
    """
    rows = document["policies"]
    if not document["settings"]["obeyed"]:
        return f"{_of_run_times(document)}\n{_of_bounds(document['wait_bounds'])}"
    if any(row["mean_bounded_slowdown"] is None for row in rows):
        return ""
    if len(rows) == 1:
        (row,) = rows
        return (
            f"Under {row['policy']} jobs waited {duration(row['mean_wait'])} on average and "
            f"{duration(row['max_wait'])} at most, with a mean bounded slowdown of "
            f"{slowdown(row['mean_bounded_slowdown'])}. No other policy was replayed, so nothing says whether one "
            "would do better."
        )

    lowest, following = _in_order(rows)[:2]
    alike = _alike(rows, runs, lowest)
    chosen, why = _decided(rows, runs, lowest, alike)
    base = baseline(document)
    if base == chosen:
        base = next(index for index in (lowest, following) if index != chosen)
    begins = _what_is_best(rows, runs, base, lowest, alike)
    best = " ".join(filter(None, [begins, why]))
    return "\n".join(filter(None, [best, *_at_what_price(rows, runs, base, chosen), _worse_than_requests(document)]))


def baseline(document: Row) -> int:
    """Return the index of the baseline policy."""
    return [row["policy"] for row in document["policies"]].index(document["settings"]["baseline"])


def contenders(rows: Sequence[Row], base: int) -> tuple[int, int]:
    """Return the indices of two policies to compare: the baseline `base`, and the one with the lowest mean slowdown.

    If the baseline itself has the lowest slowdown, the first index is the policy with the second lowest slowdown.

    >>> means = {"fcfs": 9, "easy": 4, "lwf": 3}
    >>> rows = [{"policy": name, "mean_bounded_slowdown": mean} for name, mean in means.items()]
    >>> contenders(rows, 1), contenders(rows[:2], 1)
    ((1, 2), (0, 1))
    """
    lowest, following = _in_order(rows)[:2]
    return (following if base == lowest else base), lowest


def limits(document: Row) -> str:
    """Return a sentence on the limits of the results of a log."""
    settings = document["settings"]
    if not settings["obeyed"]:
        return (
            "This is one log, and jobs started as they did: it does not show what other logs would give, or what "
            "following the decisions would have changed."
        )
    rewritten = settings.get("requests", "as-logged")
    load = settings.get("load", "1")
    pace = "" if load == "1" else f", at {load} times the load"
    asked = "" if rewritten == "as-logged" else f", with requests that nobody made ({rewritten})"
    return (
        "It does not show what other logs would give, or how users would react: this is one log and one draw of chance "
        f"(seed {settings['seed']}), and users submit as they did, however long they wait{pace}{asked}."
    )


def _alike(rows: Sequence[Row], runs: Sequence[RunRecord], lowest: int) -> list[int]:
    """Return the indices of policies whose slowdown differs from the lowest by no more than chance, by slowdown."""
    least = rows[lowest]["mean_bounded_slowdown"]
    return [
        index
        for index in _in_order(rows)
        if index != lowest
        and (rows[index]["mean_bounded_slowdown"] == least or _may_be_chance(runs, lowest, index, "slowdown"))
    ]


def _may_be_chance(runs: Sequence[RunRecord], first: int, other: int, figure: str) -> bool:
    comparison = _paired(runs, first, other)
    if comparison is None:
        return False
    low, high = getattr(comparison, figure).low, getattr(comparison, figure).high
    return low is None or high is None or low <= 0 <= high


def _decided(rows: Sequence[Row], runs: Sequence[RunRecord], lowest: int, alike: Sequence[int]) -> tuple[int, str]:
    """Return the index of the best policy by the columns after the slowdown, and a sentence on why.

    The sentence is empty if no other policy is as good by slowdown.
    """
    if not alike:
        return lowest, ""
    left = sorted([lowest, *alike], key=lambda index: float(rows[index]["mean_wait"]))
    first, *others = left
    by_wait = [index for index in others if rows[index]["mean_wait"] == rows[first]["mean_wait"]]
    by_wait += [index for index in others if index not in by_wait and _may_be_chance(runs, first, index, "wait")]
    if not by_wait:
        figures = _figures(rows, left, "mean_wait")
        return first, f"The mean wait decides: it is the shortest under {rows[first]['policy']} ({figures})."
    left = sorted([first, *by_wait], key=lambda index: (int(rows[index]["max_wait"]), index != lowest))
    best = left[0]
    figures = _figures(rows, left, "max_wait")
    if rows[left[1]]["max_wait"] == rows[best]["max_wait"]:
        return best, f"Neither their mean waits nor their longest waits ({figures}) tell them apart."
    return best, f"The longest wait decides: it is the shortest under {rows[best]['policy']} ({figures})."


def _figures(rows: Sequence[Row], indices: Sequence[int], figure: str) -> str:
    shown = [f"{rows[index]['policy']} {duration(rows[index][figure])}" for index in indices[:NAMED]]
    return ", ".join([*shown, *_others(indices)])


def _others(indices: Sequence[int]) -> list[str]:
    """Return how many policies a sentence does not name, as a list of at most one text."""
    return [counted(len(indices) - NAMED, "other")] if len(indices) > NAMED else []


def _what_is_best(rows: Sequence[Row], runs: Sequence[RunRecord], base: int, lowest: int, alike: Sequence[int]) -> str:
    following = _in_order(rows)[1]
    least = rows[lowest]["mean_bounded_slowdown"]

    def less_than(index: int) -> str:
        name, less = rows[index]["policy"], rows[index]["mean_bounded_slowdown"] - least
        return f"{slowdown(less)} less than {name}{_sure(runs, index, lowest)}" if less else f"the same as {name}"

    next_one = "" if base == following else f", and {less_than(following)}, which was next"
    best = f"{rows[lowest]['policy']} had the lowest mean bounded slowdown, {slowdown(least)}"
    if alike:
        others = [f"{rows[index]['policy']} ({_more(rows, runs, index, lowest)})" for index in alike[:NAMED]]
        others += _others(alike)
        sentence = f"{best}, but {_and(others)} cannot be told apart from it."
        if base == lowest or base in alike:
            return sentence
        return f"{sentence} The slowdown of {rows[lowest]['policy']} is {less_than(base)}."
    return f"{best}: {less_than(base)}{next_one}."


def _more(rows: Sequence[Row], runs: Sequence[RunRecord], index: int, lowest: int) -> str:
    """Return how much higher a slowdown is than the lowest, with the interval of the difference."""
    more = rows[index]["mean_bounded_slowdown"] - rows[lowest]["mean_bounded_slowdown"]
    if not more:
        return "the same"
    return f"{slowdown(more)} more{_sure(runs, index, lowest).replace(' (', ', ').removesuffix(')')}"


def _at_what_price(rows: Sequence[Row], runs: Sequence[RunRecord], base: int, lowest: int) -> list[str]:
    a, b = rows[base], rows[lowest]
    comparison = _paired(runs, base, lowest)
    longer = b["mean_wait"] - a["mean_wait"]
    mean = f"{_longer(longer)}{_bounds(comparison.wait, duration) if comparison else ''}" if longer else "as long"
    worse_off = [
        f"{group.shape} jobs, which waited {_longer(group.longer.mean)}{_bounds(group.longer, duration)}"
        for group in (groups(runs[base], runs[lowest]) if comparison else [])
        if group.surely_worse
    ]
    whom = (
        f"; it is worse for {_and(worse_off)}"
        if worse_off
        else "; no shape of job surely waited longer"
        if comparison
        else ""
    )
    users = []
    if comparison:
        later = f", and {percent(comparison.later, '.3g')} of all jobs started later" if comparison.later else ""
        users = [f"{_worst_user(runs, base, lowest, comparison)}{later}."]
    longest, shorter = duration(b["max_wait"]), duration(a["max_wait"])
    most = f"was {longest}, as under {a['policy']}" if longest == shorter else f"was {longest}, not {shorter}"
    beside = f"Compared with {a['policy']}, jobs under {b['policy']} waited {mean} on average"
    return [f"{beside}{whom}; the longest wait {most}.", *users]


def _worst_user(runs: Sequence[RunRecord], base: int, chosen: int, comparison: PairedDifferences) -> str:
    if comparison.users_worse is None:
        return f"No user has {FEW} jobs, so no user's mean wait is compared"
    worst = worst_off(runs[base].jobs, runs[chosen].jobs)
    if worst is None:
        return f"No user with {FEW} jobs or more waited longer by more than a minute on average"
    return (
        f"Of the users with {FEW} jobs or more, {percent(comparison.users_worse)} waited longer by more than a minute "
        f"on average, user {worst.user_id} most: {duration(worst.longer)} ({counted(worst.jobs, 'job')})"
    )


def _worse_than_requests(document: Row) -> str:
    """Return a sentence that names predictors that are worse than the request; empty if there are none."""
    requests = document.get("requests_as_run_times") or {"jobs": 0, "mean_absolute_error": None}
    worse = {
        row["predictor"].partition("(")[0]: row["mean_absolute_error"]
        for row in document.get("run_time_predictions", ())
        if row["predictions"] and is_worse(row, requests)
    }
    return " ".join(
        f"Predictor {name} is worse than the requests: {duration(error)} off on average, "
        f"requests {duration(requests['mean_absolute_error'])}. A policy can gain from its order of jobs all the same: "
        "the scores are with it."
        for name, error in worse.items()
    )


def _in_order(rows: Sequence[Row]) -> list[int]:
    return sorted(range(len(rows)), key=lambda index: float(rows[index]["mean_bounded_slowdown"]))


def _paired(runs: Sequence[RunRecord], base: int, other: int) -> PairedDifferences | None:
    """Return the paired differences between two policies; None without records."""
    if not runs or not all(len(runs[index].jobs) for index in (base, other)):
        return None
    plan = runs[0].plan
    return paired(runs[base].jobs, runs[other].jobs, key_of(plan.seed, plan.cluster))


def _sure(runs: Sequence[RunRecord], base: int, lowest: int) -> str:
    """Return in parentheses the 95 % interval of the slowdown difference; empty without records."""
    comparison = _paired(runs, base, lowest)
    return _bounds(comparison.slowdown, slowdown) if comparison else ""


def _bounds(more: Interval, show: Callable[[float], str]) -> str:
    """Return in parentheses the 95 % interval of an absolute difference, and whether the difference may be chance."""
    if more.low is None or more.high is None:
        return " (too few independent jobs to say how sure that is)"
    low, high = (more.low, more.high) if more.mean > 0 else (-more.high, -more.low)
    chance = "which may be chance: " if low <= 0 else ""
    return f" ({chance}95 % interval {'-' if low < 0 else ''}{show(abs(low))} to {show(high)})"


def _longer(seconds: float) -> str:
    return f"{duration(abs(seconds))} {'longer' if seconds > 0 else 'less'}"


def _and(parts: Sequence[str]) -> str:
    """Return the parts joined with commas and "and".

    >>> _and(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _of_run_times(document: Row) -> str:
    requests = document["requests_as_run_times"]
    asked = duration(requests["mean_absolute_error"])
    rows = [row for row in document["run_time_predictions"] if row["predictions"]]
    if not rows:
        if not requests["jobs"]:
            return "No job had a request, and nothing else was scored beside requests."
        return f"Requests are {asked} off the run times on average; nothing else was scored beside them."
    best = min(rows, key=lambda row: row["mean_absolute_error"])
    name, error = best["predictor"].partition("(")[0], duration(best["mean_absolute_error"])
    if requests["jobs"] >= best["jobs"] and best["mean_absolute_error"] >= requests["mean_absolute_error"]:
        return f"No predictor beat the requests, {asked} off on average: the best, {name}, was {error} off."
    predicted = f"{name} predicted run times best, {error} off on average"
    if requests["jobs"] >= best["jobs"]:
        return f"{predicted}, where requests are {asked} off."
    if not requests["jobs"]:
        return f"{predicted}; no job had a request."
    return f"{predicted}; only {requests['jobs']:,} of {best['jobs']:,} jobs had requests, which are {asked} off."


def _of_bounds(rows: Sequence[Row]) -> str:
    covered = [row for row in rows if row["queue"] == "all" and row["coverage"] is not None]
    sentences = []
    for quantile in dict.fromkeys(row["quantile"] for row in covered):  # bounds from below aim at another share
        alike = [row for row in covered if row["quantile"] == quantile]
        held = sum(row["coverage"] >= quantile for row in alike)
        least = min(row["coverage"] for row in alike)
        sentences.append(
            f"Of {len(alike)} bounds on waits {held} covered the {100 * quantile:g} % that they aim at; "
            f"the lowest coverage was {percent(least)}."
        )
    return " ".join(sentences) or "Waits were not bounded."
