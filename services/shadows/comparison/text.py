"""Sentences and tables that compare a shadow with the real cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor

from shadowtime.services.shadows.comparison.schema import ClassResult, Comparison, ConfidenceInterval, Real
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import clock, counted, duration, percent
from shadowtime.shared.text import TableColumn, numbers, seconds, shares, times

REAL_NAME = "real"
SHAPES_MEAN = "long: more than 1 h requested; wide: more than 8 processors; change: with its 95 % confidence interval"


def verdict(compared: Comparison, unix_start: int) -> str | None:
    """Return in words how waits differ in the shadow, and since when the difference is real; None if unknown."""
    if compared.all is None or compared.all.wait_change is None:
        return None
    change, facts = compared.all.wait_change, compared.wait_real
    conclusion = f"{_waits(change)}; {real(facts, unix_start)}"
    if facts.shorter is None or facts.shorter == (change.mean < 0):
        return conclusion
    return f"{conclusion} that they are {'shorter' if facts.shorter else 'longer'}"  # the mean has changed its sign


def notes_of(name: str, compared: Comparison) -> Iterator[str]:
    """Yield further sentences on a comparison. `name` is the shadow's name."""
    if compared.by_predictions:
        yield (
            "the shadow predicts unknown run times: its waits may be half or double the true ones; begin an exact one "
            "with shadowtime shadow --exact --name"
        )
    result = compared.all
    if result is not None:
        for word, moved in (("sooner", result.sooner), ("later", result.later)):
            if moved.mean is not None and moved.quantiles is not None:
                half, mean = duration(moved.quantiles[1]), duration(moved.mean)
                yield f"{percent(moved.share)} start {word}, by {mean} on average, half of them by {half} or less"

    for which, waiting in ((REAL_NAME, compared.real_waiting), (name, compared.shadow_waiting)):
        if waiting.longest is not None:
            yield f"{which}: {_jobs(waiting.jobs)} waiting, the longest for {duration(waiting.longest)} so far"
    if compared.open_jobs:
        yield f"{_jobs(compared.open_jobs)} not compared yet: their days are not over, or have jobs that have not ended"
    if compared.withdrawn:
        yield f"{_jobs(compared.withdrawn)} not compared because of withdrawal"


def _jobs(count: int) -> str:
    return f"{counted(count, 'job')} {'is' if count == 1 else 'are'}"


def _waits(change: ConfidenceInterval) -> str:
    size, word = percent(abs(change.mean), ".0f"), "shorter" if change.mean < 0 else "longer"
    bounds = [100 * end for end in (change.low, change.high) if end is not None]
    within = f" ({bounds[0]:+.0f} to {bounds[1]:+.0f} %)" if len(bounds) == 2 else ""  # signed as in the table
    return f"waits {'about as long' if size == percent(0, '.0f') else f'{size} {word}'}{within}"


def real(facts: Real, unix_start: int) -> str:
    """Return a phrase: whether a difference is known to be real, and since when.

    >>> real(Real(since=86_400, shorter=True, evidence=31.0), 843_436_800)
    'real since 24 Sep'
    >>> real(Real(since=None, shorter=None, evidence=19.97), 0)
    'not known to be real yet (evidence 19.9 of 20)'
    """
    if facts.since is None:
        return f"not known to be real yet (evidence {floor(10 * facts.evidence) / 10:.1f} of 20)"
    day = clock(facts.since, unix_start).rsplit(" ", 1)[0]
    return f"real since {day}" if unix_start else f"real since day {day.split()[0]}"


# Tables and sentences for the terminal.

MAX_USERS_SHOWN = 20
"""Maximum number of users in a table. `--json` has up to `MAX_USERS`, and the others together."""


def known_up_to(compared: Comparison, unix_start: int, now: float | None) -> Iterator[str]:
    """Yield up to when a comparison is known, and how long before the Unix time `now` that was.

    Yield nothing if `now` or the comparison's horizon is None. A shadow that lags is known only up to an earlier time
    than the cluster.
    """
    if compared.horizon is not None and now is not None:
        ago = max(0.0, now - unix_start - compared.horizon)
        yield f"known up to {clock(compared.horizon, unix_start)}, {duration(ago)} ago"


def tables(
    cluster: str,
    shadows: Mapping[str, Comparison],
    unix_start: int,
    *,
    name_of: Callable[[int], str] | None = None,
    classes: bool = False,
    now: float | None = None,
) -> Iterator[FittedTable]:
    """Yield a table for each shadow beside the real cluster, on the same jobs, with the verdict as notes.

    `name_of` returns the name of a user from the number. With it, each shadow also has a table of users. With
    `classes`, each shadow also has a table of the shapes of jobs. `now` is the Unix time for a followed cluster; None
    for any other.
    """
    for name, compared in shadows.items():
        conclusion = verdict(compared, unix_start)
        notes = [*([] if conclusion is None else [f"{name}: {conclusion}"]), *known_up_to(compared, unix_start, now)]
        notes += notes_of(name, compared)
        if (result := compared.all) is None:
            yield FittedTable(
                f"{cluster} beside {name}: no day is compared yet", {"run": [REAL_NAME, name]}, _nothing(), notes
            )
            continue
        used = [compared.utilization.real, compared.utilization.shadow]
        counts = f"{counted(result.jobs, 'job')} of {counted(compared.days, 'day')}"
        title = f"{cluster} beside {name}: {counts}"
        columns = [*_columns(result), shares("busy", used).unmarked()]
        yield FittedTable(title, {"run": [REAL_NAME, name]}, columns, notes)
        if classes:
            yield _by_class(f"{cluster} beside {name}, by class", compared.classes)
        if name_of is not None:
            yield _by_user(f"{cluster} beside {name}, by user", compared, name_of)


def _nothing() -> list[TableColumn]:
    return [times("mean wait", [None, None])]


def _columns(result: ClassResult) -> list[TableColumn]:
    columns = [times("mean wait", [result.wait.real, result.wait.shadow])]
    columns.append(times("median", [result.median_wait.real, result.median_wait.shadow]))
    columns.append(times("longest", [result.longest_wait.real, result.longest_wait.shadow]))
    return [*columns, numbers("slowdown", [result.slowdown.real, result.slowdown.shadow])]


def _by_class(title: str, classes: Sequence[ClassResult]) -> FittedTable:
    columns = [
        numbers("jobs", [group.jobs for group in classes], 0),
        times("real wait", [group.wait.real for group in classes], [group.wait.shadow for group in classes]),
        times("shadow", [group.wait.shadow for group in classes], [group.wait.real for group in classes]),
        TableColumn("change", "%", [_change(group) for group in classes]),
        shares("sooner", [group.sooner.share for group in classes]),
        shares("later", [group.later.share for group in classes]),
        times("longest", [group.longest_wait.shadow for group in classes]),
    ]
    shapes = {"class": [group.shape for group in classes]}
    return FittedTable(title, shapes, [column.unmarked() for column in columns], notes=[SHAPES_MEAN])


def _by_user(title: str, compared: Comparison, name_of: Callable[[int], str]) -> FittedTable:
    shown = [*compared.users[:MAX_USERS_SHOWN]]
    names = ["others" if user.others else "unknown" if user.user is None else name_of(user.user) for user in shown]
    columns = [
        numbers("jobs", [user.jobs for user in shown], 0),
        seconds("real wait", [user.wait.real for user in shown]),
        seconds("shadow", [user.wait.shadow for user in shown]),
        shares("sooner", [user.sooner for user in shown]),
        shares("later", [user.later for user in shown]),
        seconds("longest", [user.longest_wait.shadow for user in shown]),
    ]
    more = len(compared.users) - len(shown)
    notes = ["those with the most work first" + (f"; {more} more in --json" if more else "")]
    return FittedTable(title, {"user": names}, [column.unmarked() for column in columns], notes)


def _change(result: ClassResult) -> str:
    change = result.wait_change
    if change is None:
        return "-"
    mean = f"{100 * change.mean:+.0f}"
    return (
        mean
        if change.low is None or change.high is None
        else f"{mean} ({100 * change.low:+.0f} to {100 * change.high:+.0f})"
    )
