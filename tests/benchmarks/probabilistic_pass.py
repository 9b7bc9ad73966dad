"""Cost of a pass that weighs probabilities, against running jobs, processors and candidates; and of its walk alone."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.release_walk import UNBOUNDED, walk
from shadowtime.services.scheduler.kernels.terminations import Distributions, RunningEnds, refined_edges, terminations
from shadowtime.services.scheduler.probabilistic.policy import Probabilistic
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
from shadowtime.services.scheduler.tables.histograms import Histograms
from shadowtime.services.scheduler.tables.job_table import Queue, Running, planned_times
from tests.benchmarks.scheduling_pass import NOW, median_microseconds

DAY = 86_400
HORIZON = NOW + 7.0 * DAY


class Size(NamedTuple):
    """How large a pass is."""

    running: int = 64
    processors: int = 1_024
    candidates: int = 64


VARIED: dict[str, tuple[int, ...]] = {
    "running": (8, 32, 64, 256, 1_000),
    "processors": (64, 256, 1_024, 4_096, 16_384, 81_920),
    "candidates": (1, 8, 64, 512, 4_096),
}
SIZES = [Size()._replace(**{name: value}) for name, values in VARIED.items() for value in values]


def histogram(rng: np.random.Generator, first: int, last: int) -> tuple[float, ...]:
    """Return a distribution over the bins from `first` to before `last`."""
    return (*[0.0] * first, *rng.dirichlet(np.ones(last - first)).round(6).tolist())


def tables(size: Size) -> tuple[Queue, Running, int]:
    """Return a head that needs most of the machine, candidates that would delay it, running jobs, and what is free."""
    rng = np.random.default_rng(size)
    free = size.processors // 16
    busy = size.processors - free
    head = size.processors - busy // 8
    histograms = Histograms()
    queue, running = Queue(histograms), Running(histograms=histograms)
    queue.add((1, 1, head, *planned_times(DAY, None, None), histograms.add(histogram(rng, 10, 18))))
    for number in range(2, size.candidates + 2):  # longer than running jobs, so that none may start and all are tried
        processors = int(rng.integers(free // 2, free)) + 1
        queue.add(
            (number, number, processors, *planned_times(2 * DAY, None, None), histograms.add(histogram(rng, 18, 22)))
        )
    cuts = np.sort(rng.choice(np.arange(1, busy), min(size.running, busy) - 1, replace=False))
    for number, processors in enumerate(np.diff(cuts, prepend=0, append=busy).tolist(), size.candidates + 2):
        slot = histograms.add(histogram(rng, 8, 18))
        times = planned_times(DAY, None, None)
        running.add((number, number, processors, *times, slot, NOW - int(rng.integers(1, 600))))
    return queue, running, free


def probabilistic_pass() -> dict[str, Any]:
    """Time passes of each size, and of each the walk, with the terminations that it goes over already in order."""
    policy = Probabilistic(ProbabilisticSettings(tau=1e-9))
    rows = []
    for size in SIZES:
        queue, running, free = tables(size)
        if [each for each in policy.schedule(NOW, queue, running, free) if hasattr(each, "limit")]:
            raise AssertionError(f"a candidate started: {size}")
        steps = terminations(
            NOW,
            HORIZON,
            RunningEnds(
                running.processors,
                running.start_time,
                running.start_time + running.predicted_time,
                running.requested_time,
                running.slot,
            ),
            Distributions(queue.histograms.masses, refined_edges(1), censor=False),
        )
        kinds = np.unique(queue.processors[1:])
        timed: dict[str, Callable[[], object]] = {
            "pass": partial(policy.schedule, NOW, queue, running, free),
            "walk_in_single_processors": partial(
                walk, int(queue.processors[0]) - free, running.processors.copy(), *steps, kinds, UNBOUNDED
            ),
        }
        rows.append(
            size._asdict()
            | {"running": len(running), "sizes_of_candidates": len(kinds), "terminations": len(steps[0])}
            | {name: median_microseconds(each, clock=time.process_time) for name, each in timed.items()}
        )
    return {"unit": "cpu microseconds", "passes": rows}
