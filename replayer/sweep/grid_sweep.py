"""Sweeps: a grid of policies, machine sizes and loads on one log, and the best of each machine under constraints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from rich.console import Console

from shadowtime.replayer.arguments import size_twice, split_size
from shadowtime.replayer.campaign import Campaign, Column, Figure, Figures, Replayed, figure_of
from shadowtime.replayer.logs import MAX_LOAD, MIN_LOAD
from shadowtime.replayer.options import Oversized, Requests
from shadowtime.replayer.sweep.ranges import MAX_VALUES, specs_of, values_of
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.formatting import counted
from shadowtime.shared.quoting import quote
from shadowtime.shared.text import TableColumn

BASELINE = "easy"
"""Policy of each machine with which the others are compared."""

COLUMNS = (
    Column(key="mean_bounded_slowdown", name="slowdown"),
    Column(key="mean_wait", name="mean wait", unit="h"),
    Column(key="tail_mean_wait", name="tail", unit="h", digits=1),
    Column(key="users.longest_mean_wait", name="worst user", unit="h", digits=1),
    Column(key="max_wait", name="longest", unit="h", digits=1),
    Column(key="utilization", name="used", unit="%", digits=1),
)


@dataclass(frozen=True)
class Grid:
    """The options of a sweep: SPECs with braces, ranges of sizes and loads, and the preparation of the log.

    `copies` is the number of perturbed copies beside the log itself.
    """

    log: str
    policies: Sequence[str]
    processors: str | None = None
    load: str | None = None
    copies: int = 0
    jobs: int | None = None
    filter: Oversized = "drop"
    requests: Requests = "as-logged"


def campaign_of(grid: Grid) -> Campaign:
    """Return the campaign of a sweep, whose cells run on the compiled machine where it covers them.

    `easy` is the first policy, because constraints are shares of its figures. A repetition of a SPEC, size or load is
    left out.

    Raise `SettingsError` if a grid is malformed, has an unknown name or key, or is too large.
    """
    policies: dict[object, str] = {}
    for spec in [BASELINE, *(spec for typed in grid.policies for spec in specs_of(typed))]:
        policies.setdefault(configure(spec.replace("{seed}", "0")), spec)

    path, size = split_size(grid.log)
    if size is not None and grid.processors is not None:
        raise SettingsError(size_twice(grid.log))
    sizes: Sequence[int | None] = [size] if grid.processors is None else _sizes(grid.processors)
    loads = [1.0] if grid.load is None else _loads(grid.load)
    sizes, loads = list(dict.fromkeys(sizes)), list(dict.fromkeys(loads))
    count = len(policies) * len(sizes) * len(loads) * (grid.copies + 1)
    if count > MAX_CELLS:
        raise SettingsError(f"the sweep has {count:,} replays; at most {MAX_CELLS:,} are allowed: take larger steps")
    name = Path(path).name.replace(".gz", "").replace(".swf", "")
    logs = [
        {
            "log": path if processors is None else f"{path}@{processors}",
            "label": _label(name, processors, load),
            "load": load,
        }
        for processors in sizes
        for load in loads
    ]
    return Campaign.model_validate(
        {
            "name": f"sweep-{''.join(letter if letter.isalnum() else '-' for letter in name)}"[:100],
            "title": f"Sweep of {name}",
            "logs": logs,
            "policies": list(policies.values()),
            "copies": grid.copies,
            "jobs": grid.jobs,
            "filter": grid.filter,
            "requests": grid.requests,
            "compiled": True,
            "columns": COLUMNS,
        }
    )


MAX_CELLS = 10 * MAX_VALUES
"""Maximum number of replays of a sweep."""


def _label(name: str, processors: int | None, load: float) -> str:
    """Return the label of a machine: `KTH`, `KTH@80`, `KTH@80, load 1.2`.

    >>> _label("KTH", 80, 1.2)
    'KTH@80, load 1.2'
    """
    return f"{name}{'' if processors is None else f'@{processors}'}{'' if load == 1 else f', load {load:g}'}"


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(value) for value in values_of(text)]
    except ValueError:
        raise SettingsError(
            f"--processors {quote(text)}: expected whole numbers, such as 80,96 or 80..160 step 8"
        ) from None
    if not sizes or min(sizes) < 1:
        raise SettingsError(f"--processors {quote(text)}: a machine has at least 1 processor")
    return sizes


def _loads(text: str) -> list[float]:
    try:
        loads = [float(value) for value in values_of(text)]
    except ValueError:
        raise SettingsError(f"--load {quote(text)}: expected numbers, such as 0.9,1.1 or 0.8..1.2 step 0.1") from None
    if not all(MIN_LOAD <= load <= MAX_LOAD for load in loads):
        raise SettingsError(f"--load {quote(text)}: expected factors of {MIN_LOAD:g} to {MAX_LOAD:g}")
    return loads


class Point(NamedTuple):
    """A policy on one machine: a figure for each of `COLUMNS`, and its tail and worst user as shares of the baseline's.

    The shares are means over the draws, each of which is compared with the baseline on the same draw.
    """

    policy: str
    figures: tuple[Figure, ...]
    tail: float
    worst_user: float

    @property
    def slowdown(self) -> float:
        """Mean bounded slowdown; infinity if unknown."""
        mean = self.figures[0].mean
        return inf if mean is None else mean


class Constraint(NamedTuple):
    """Limits of a winner, as shares of the baseline's figures (docs/choosing-best.md)."""

    tail: float
    worst_user: float


def points_of(done: Replayed) -> dict[str, list[Point]]:
    """Return the policies of each machine, by its label, in ascending order of slowdown."""
    machines: dict[str, dict[str, list[Figures]]] = {}
    for cell, row in zip(done.cells, done.rows, strict=True):
        machines.setdefault(cell.log.label, {}).setdefault(cell.label, []).append(row)
    return {
        label: sorted(
            (
                Point(
                    policy,
                    tuple(figure_of(column, rows, "", {}) for column in COLUMNS),
                    _share("tail_mean_wait", rows, policies[BASELINE]),
                    _share("users.longest_mean_wait", rows, policies[BASELINE]),
                )
                for policy, rows in policies.items()
            ),
            key=lambda point: point.slowdown,
        )
        for label, policies in machines.items()
    }


def _share(key: str, rows: Sequence[Figures], baseline: Sequence[Figures]) -> float:
    """Return the mean over draws of a figure as a share of the baseline's.

    The share is 1 if both are 0 or unknown, and infinite if only the baseline's is.
    """
    of = {row["copy"]: row[key] or 0.0 for row in baseline}
    pairs = [(row[key] or 0.0, of[row["copy"]]) for row in rows]
    return fmean([own / of_easy if of_easy else inf if own else 1.0 for own, of_easy in pairs])


def winners(points: Sequence[Point], limits: Constraint) -> Iterator[tuple[str, Point]]:
    """Yield each constraint in words, with the first policy that keeps it. `points` are in ascending order of slowdown.

    A constraint that no policy keeps is left out. This needs a limit below 1, because the baseline's share is 1.
    """
    rules = (
        ("no constraint", Constraint(inf, inf)),
        (f"tail at most {limits.tail:g} of {BASELINE}'s", limits._replace(worst_user=inf)),
        (f"also worst user at most {limits.worst_user:g} of {BASELINE}'s", limits),
    )
    for words, rule in rules:
        kept = [point for point in points if point.tail <= rule.tail and point.worst_user <= rule.worst_user]
        if kept:
            yield words, kept[0]


def print_sweep(done: Replayed, limits: Constraint, most: int) -> None:
    """Print, for each machine, the `most` best policies and the winner under each constraint."""
    console = Console(highlight=False, emoji=False)
    first = {cell.log.label: row for cell, row in reversed(list(zip(done.cells, done.rows, strict=True)))}
    for place, (label, points) in enumerate(points_of(done).items()):
        shown = points[:most]
        if place:
            console.print()
        columns = [
            TableColumn(column.heading, column.unit, [point.figures[at].text(column.digits) for point in shown])
            for at, column in enumerate(COLUMNS)
        ]
        best = [f"{words}: {point.policy}" for words, point in winners(points, limits)]
        more = [f"and {len(points) - most:,} more; --csv has all"] if len(points) > most else []
        row = first[label]
        title = f"{label}: {counted(row['jobs'], 'job')} on {row['processors']:,} processors, by mean bounded slowdown"
        console.print(FittedTable(title, {"policy": [point.policy for point in shown]}, columns, [*more, *best]))
