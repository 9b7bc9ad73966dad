"""The probability of delaying the head by going through everything that the running jobs may do."""

from collections.abc import Mapping, Sequence
from itertools import product

Job = tuple[int, Mapping[float, float]]
"""Processors, and the probability of each time of termination."""


def releases(running: Sequence[Job], times: Sequence[float]) -> list[tuple[float, int]]:
    """Return (time, processors released so far) step by step, for one outcome of all jobs.

    Certain terminations of one instant are one step and come first; the others follow in order of the jobs.
    """
    certain = [len([p for p in ends.values() if p > 0]) == 1 for _, ends in running]
    steps: list[tuple[float, int]] = []
    total, last = 0, None
    for job in sorted(range(len(running)), key=lambda job: (times[job], not certain[job], job)):
        total += running[job][0]
        if certain[job] and last == times[job]:
            steps[-1] = (times[job], total)
        else:
            steps.append((times[job], total))
        last = times[job] if certain[job] else None
    return steps


def enumerated(needed: int, running: Sequence[Job], candidate: Job) -> float:
    """Return the exact probability; the number of outcomes is the product of those of the jobs."""
    size, ends = candidate
    result = 0.0
    for outcome in product(*(list(ends.items()) for _, ends in running)):
        probability = 1.0
        for _, p in outcome:
            probability *= p
        ready = next(
            ((time, total) for time, total in releases(running, [t for t, _ in outcome]) if total >= needed), None
        )
        if ready is not None and ready[1] < needed + size:
            result += probability * sum(p for time, p in ends.items() if time > ready[0])
    return result


def enumerated_bound(needed: int, running: Sequence[Job], candidate: Job) -> float:
    """Return the paper's bound: over the candidate's ends, the greatest chance before that of being in between."""
    size, ends = candidate
    instants = sorted({time for _, job in running for time in job})
    in_between = []
    for instant in instants:
        chance = 0.0
        for outcome in product(*(list(job.items()) for _, job in running)):
            released = sum(size for (size, _), (time, _) in zip(running, outcome, strict=True) if time <= instant)
            probability = 1.0
            for _, p in outcome:
                probability *= p
            chance += probability * (needed <= released < needed + size)
        in_between.append(chance)
    return sum(
        p * max((chance for instant, chance in zip(instants, in_between, strict=True) if instant < time), default=0.0)
        for time, p in ends.items()
    )
