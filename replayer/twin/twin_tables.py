"""How shadows fare beside a real cluster, as tables and sentences in the terminal."""

from collections.abc import Iterator, Mapping, Sequence

from shadowtime.replayer.columns import Column, numbers, seconds, shares, times
from shadowtime.replayer.fitted_table import FittedTable
from shadowtime.replayer.twin.compared import Comparison, Fares
from shadowtime.replayer.twin.sentences import REAL_NAME, SHAPES_MEAN, notes_of, verdict

MAX_USERS_SHOWN = 20
"""Users in a table; `--json` has all that are told apart."""


def tables(
    cluster: str, shadows: Mapping[str, Comparison], unix_start: int, *, users: bool, classes: bool
) -> Iterator[FittedTable]:
    """Yield a table of each shadow beside the real cluster, on the same jobs, and what that means."""
    for name, compared in shadows.items():
        said = verdict(compared, unix_start)
        notes = [*([] if said is None else [f"{name}: {said}"]), *notes_of(name, compared)]
        if (fares := compared.all) is None:
            yield FittedTable(f"{cluster} beside {name}: no day yet", {"run": [REAL_NAME, name]}, _nothing(), notes)
            continue
        used = [compared.utilization.real, compared.utilization.shadow]
        title = f"{cluster} beside {name}: {fares.jobs:,} jobs of {compared.days:,} days"
        columns = [*_columns(fares), shares("busy", used).unmarked()]
        yield FittedTable(title, {"run": [REAL_NAME, name]}, columns, notes)
        if classes:
            yield _by_class(f"{cluster} beside {name}, by class", compared.classes)
        if users:
            yield _by_user(f"{cluster} beside {name}, by user", compared)


def _nothing() -> list[Column]:
    return [times("mean wait", [None, None])]


def _columns(fares: Fares) -> list[Column]:
    found = [times("mean wait", [fares.wait.real, fares.wait.shadow])]
    found.append(times("median", [fares.median_wait.real, fares.median_wait.shadow]))
    found.append(times("longest", [fares.longest_wait.real, fares.longest_wait.shadow]))
    return [*found, numbers("slowdown", [fares.slowdown.real, fares.slowdown.shadow])]


def _by_class(title: str, classes: Sequence[Fares]) -> FittedTable:
    columns = [
        numbers("jobs", [each.jobs for each in classes], 0),
        times("real wait", [each.wait.real for each in classes], [each.wait.shadow for each in classes]),
        times("shadow", [each.wait.shadow for each in classes], [each.wait.real for each in classes]),
        Column("change", "%", [_change(each) for each in classes]),
        shares("sooner", [each.sooner.share for each in classes]),
        shares("later", [each.later.share for each in classes]),
        times("longest", [each.longest_wait.shadow for each in classes]),
    ]
    shapes = {"class": [each.shape for each in classes]}
    return FittedTable(title, shapes, [each.unmarked() for each in columns], notes=[SHAPES_MEAN])


def _by_user(title: str, compared: Comparison) -> FittedTable:
    shown = [*compared.users[:MAX_USERS_SHOWN]]
    names = ["others" if each.others else "unknown" if each.user is None else str(each.user) for each in shown]
    columns = [
        numbers("jobs", [each.jobs for each in shown], 0),
        seconds("real wait", [each.wait.real for each in shown]),
        seconds("shadow", [each.wait.shadow for each in shown]),
        shares("sooner", [each.sooner for each in shown]),
        shares("later", [each.later for each in shown]),
        seconds("longest", [each.longest_wait.shadow for each in shown]),
    ]
    more = len(compared.users) - len(shown)
    notes = ["those with the most work first" + (f"; {more} more in --json" if more else "")]
    return FittedTable(title, {"user": names}, [each.unmarked() for each in columns], notes)


def _change(fares: Fares) -> str:
    change = fares.wait_change
    if change is None:
        return "-"
    mean = f"{100 * change.mean:+.0f}"
    return (
        mean
        if change.low is None or change.high is None
        else f"{mean} ({100 * change.low:+.0f} to {100 * change.high:+.0f})"
    )
