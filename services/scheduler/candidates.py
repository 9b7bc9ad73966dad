"""Which of the candidates of a pass may start, by the probability that it delays the head."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from services.scheduler.delay_probability import Floats, Table, delay_of, walk
from services.scheduler.expected_end import Column
from services.scheduler.terminations import ends_of, terminations
from shared.kernel import kernel

Flags = npt.NDArray[np.bool_]

UNITS = 4000
"""Processors up to which a walk counts every one; beyond it counts in larger units."""


class Tried(NamedTuple):
    """What `try_candidates` returns."""

    accepted: int
    exact: Floats
    bounds: Floats
    times: Floats
    jobs: Column
    risks: Floats
    resolution: int


@kernel(
    "Tuple((int64, float64[::1], float64[::1], float64[::1], int64[::1], float64[::1], int64))"
    "(int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], boolean[::1], float64[:, ::1], float64[::1], boolean, boolean, float64, float64)"
)
def try_candidates(
    now: int,
    needed: int,
    running_processors: Column,
    start_times: Column,
    expected: Column,
    running_requested: Column,
    running_slots: Column,
    processors: Column,
    predicted: Column,
    requested: Column,
    slots: Column,
    free_pass: Flags,
    histograms: Table,
    edges: Floats,
    censor: bool,
    by_bound: bool,
    tau: float,
    most: float,
) -> tuple[int, Floats, Floats, Floats, Column, Floats, int]:
    """Try candidates in the order given until one may start; one walk serves all.

    Parameters
    ----------
    needed
        Processors that running jobs must release for the head.
    running_processors, start_times, expected, running_requested, running_slots
        Of each running job: size, start, expected end if it has no distribution, request, slot of its distribution.
    processors, predicted, requested, slots, free_pass
        Of each candidate; one with a free pass may start at any probability.
    tau, most
        A candidate may start if its probability, rounded to six digits, is below `tau` (by the bound or exactly) and
        exactly at most `most`.

    Returns
    -------
    accepted, exact, bounds
        Row of the candidate that may start, -1 if none; both probabilities of those tried before it and of itself.
    times, jobs, risks, unit
        Terminations that make up the accepted candidate's exact probability, and the processors per unit if larger
        than what all running jobs are multiples of, else 0.
    """
    count = len(processors)
    ends, weights = np.empty((count, histograms.shape[1])), np.empty((count, histograms.shape[1]))
    events = np.empty(count, dtype=np.int64)
    horizon = 0.0
    for c in range(count):
        times, probabilities = ends_of(now, now, now + predicted[c], requested[c], slots[c], histograms, edges, censor)
        events[c] = len(times)
        ends[c, : events[c]], weights[c, : events[c]] = times, probabilities
        horizon = max(horizon, times[-1])
    unit = 0
    for size in running_processors:
        unit = np.gcd(unit, size)
    unit = max(unit, 1)
    units, resolution = -(-(needed + processors.max()) // unit), 0
    if units > UNITS:
        unit *= -(-units // UNITS)
        resolution = unit
    lacking = -(-needed // unit)
    sizes = -(-(needed + processors) // unit) - lacking
    kinds = np.unique(sizes)
    at, by, delays, bounds_at = walk(
        lacking,
        running_processors // unit,
        *terminations(now, horizon, start_times, expected, running_requested, running_slots, histograms, edges, censor),
        kinds,
    )
    exact, bounds = np.empty(count), np.empty(count)
    for c in range(count):
        kind = np.searchsorted(kinds, sizes[c])
        exactly, bound = delay_of(at, delays, bounds_at, kind, ends[c, : events[c]], weights[c, : events[c]])
        exact[c], bounds[c] = np.round(exactly, 6), np.round(bound, 6)
        if free_pass[c] or ((bounds[c] if by_bound else exact[c]) < tau and exact[c] <= most):
            risks = np.empty(len(at))
            event, left = 0, 1.0
            for row in range(len(at)):
                while event < events[c] and ends[c, event] <= at[row]:
                    left -= weights[c, event]
                    event += 1
                risks[row] = delays[row, kind] * max(left, 0.0)
            return c, exact[: c + 1], bounds[: c + 1], at, by, risks, resolution
    return -1, exact, bounds, at, by, np.empty(0), resolution
