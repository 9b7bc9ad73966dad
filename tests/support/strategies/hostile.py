"""Streams of events that keep the rules more or less, with every number at one of its bounds or near it."""

from collections.abc import Iterator
from typing import Any, get_args

from hypothesis import strategies as st

from shadowtime.services.catalogue import REGISTRIES, canonical
from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER, MAX_PROCESSORS, MAX_TIME
from shadowtime.shared.distributions.histogram import BINS
from shadowtime.shared.messages import Outcome
from shadowtime.testing.listed import specs

COSTLY = {"hmm", "history", "window"}
"""Predictors and keys whose greatest values take seconds: what they may cost is bounded elsewhere."""

Json = dict[str, Any]


BESIDE = {"ge": 0.0, "le": 0.0, "gt": 5e-324, "lt": -(2.0**-53)}
"""What is added to each kind of bound for a value that it admits."""


def extremes(option: str) -> list[str]:
    """Return a SPEC for the least and for the greatest value of each key that has them.

    >>> [each for each in extremes("policy") if each.startswith("easy(")]
    ['easy(threshold=0.0)', 'easy(weight=1000000.0)']
    """
    found = []
    for name, listed in sorted(REGISTRIES[option].classes.items()):
        for key, field in listed.Settings.model_fields.items() if name not in COSTLY else ():
            for rule in field.metadata if key not in COSTLY else ():
                for side, off in BESIDE.items():
                    bound = getattr(rule, side, None)
                    if bound is not None:
                        found.append(canonical(option, f"{name}:{key}={bound + off if off else bound}"))
    return found


OPENINGS = st.fixed_dictionaries(
    {
        "kind": st.just("ClusterOpened"),
        "time": st.sampled_from([-MAX_TIME, -5, 0]),
        "cluster": st.sampled_from(["", "c", "c" * 200]),
        "processors": st.sampled_from([1, 100, 2**20 + 1, MAX_PROCESSORS]),
        "mode": st.sampled_from(["closed", "recorded"]),
        "policy": st.sampled_from(
            [
                *specs("policy"),
                *extremes("policy"),
                "wfp:running=yes,adjust_queue=no,adjust_candidates=no,distribution=prior",
                "probabilistic:running=yes,distribution=limit",
                *(f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")),
                "conservative:guarantees=no,shape=greedy,widen=yes,speculate=expected,test_runs=yes",
                "conservative:shape=quarter,speculate=0.1,widen=yes",
                "probabilistic:criterion=gain,tau=1,candidates=P/L,points=16,mass=censor,patience=0",
            ]
        ).map(lambda spec: canonical("policy", spec)),
        "runtime": st.sampled_from([*specs("runtime"), *extremes("runtime")]),
        "adjustment": st.sampled_from(
            [
                *specs("adjustment"),
                *extremes("adjustment"),
                "percentile:minimum=1",
            ]
        ).map(lambda spec: canonical("adjustment", spec)),
        "wait_bound": st.sampled_from([*specs("wait-bound"), *extremes("wait-bound")]),
        "seed": st.sampled_from([0, MAX_INTEGER]),
        "unix_start": st.sampled_from([0, MAX_TIME]),
        "sample_every": st.sampled_from([None, 1, 3_600, MAX_DURATION]),
    }
)

STEPS = st.sampled_from([0, 0, 0, 1, 60, 10**6, 2**31, MAX_DURATION, MAX_TIME])
SIZES = st.sampled_from([1, 2, 99, 2**20, MAX_PROCESSORS])
TIMES = st.sampled_from([None, 1, 60, 3_600, 2**31, MAX_DURATION])
LABELS = st.sampled_from([None, -MAX_INTEGER, -1, 0, 5, MAX_INTEGER])
HISTOGRAMS = st.sampled_from(
    [[], [0.0] * BINS, [1.0], [0.0] * (BINS - 1) + [1.0], [1 / BINS] * BINS, [0.5, 5e-324, 0.5]]
)

BROUGHT = st.fixed_dictionaries(
    {},
    optional={
        "run_time": st.fixed_dictionaries(
            {
                "point": st.sampled_from([0, 0.5, 60, MAX_DURATION]),
                "observations": st.sampled_from([0, MAX_INTEGER]),
                "histogram": HISTOGRAMS,
                "interval": st.sampled_from([None, [0, MAX_DURATION], [MAX_DURATION, 0]]),
                "state": st.sampled_from([None, MAX_INTEGER]),
            }
        ),
        "adjustment": st.fixed_dictionaries(
            {
                "adjusted_time": st.sampled_from([1, MAX_DURATION]),
                "observations": st.just(0),
                "percentile": st.sampled_from([None, 1, 100]),
            }
        ),
        "wait_bounds": st.lists(
            st.fixed_dictionaries(
                {
                    "grouping": st.sampled_from(["plain", "", "x" * 200]),
                    "queue": LABELS,
                    "quantile": st.sampled_from([1e-300, 0.5, 1 - 1e-16]),
                    "confidence": st.just(0.5),
                    "bound": st.sampled_from([None, 0, MAX_DURATION]),
                }
            ),
            max_size=3,
        ),
        "forecast": st.fixed_dictionaries({"wait": st.sampled_from([None, 0, MAX_DURATION])}),
    },
)

SUBMISSIONS = st.fixed_dictionaries(
    {
        "requested_processors": SIZES,
        "requested_time": TIMES,
        **dict.fromkeys(("user_id", "group_id", "executable_number", "queue_number", "partition_number"), LABELS),
        "restartable": st.booleans(),
        "moldable": st.booleans(),
        "speedup": st.sampled_from(
            [
                None,
                {"kind": "amdahl", "serial": 0},
                {"kind": "amdahl", "serial": 1},
                {"kind": "downey", "parallelism": 5e-324, "sigma": 1e6},
                {"kind": "downey", "parallelism": 1e6, "sigma": 0},
                {"kind": "downey", "parallelism": 1e-9, "sigma": 1},
            ]
        ),
    }
)

MOVES = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from([0, MAX_INTEGER]), SUBMISSIONS, BROUGHT),
    st.tuples(st.just("start"), st.integers(0, 9), st.none() | SIZES, TIMES, st.sampled_from([None, True])),
    st.tuples(st.just("end"), st.integers(0, 9), TIMES, st.sampled_from(get_args(Outcome)), st.booleans(), TIMES),
    st.tuples(st.just("capacity"), st.sampled_from([0, 1, 100, MAX_PROCESSORS])),
    st.tuples(st.just("pass")),
    st.tuples(st.just("decide"), st.floats(0, 1)),
)
STREAMS = st.lists(st.tuples(STEPS, MOVES), min_size=5, max_size=60)


def events(opening: Json, stream: list[tuple[int, Any]]) -> Iterator[Json]:
    """Yield messages without their envelopes: the event, and what it brings along."""
    yield {"event": opening}
    time, submitted, waiting, running = opening["time"], 0, list[tuple[int, Json]](), dict[int, tuple[int, int]]()
    for step, (kind, *rest) in stream:
        time = min(time + step, MAX_TIME)
        if kind == "submit":
            start, job, brought = rest
            submitted += 1
            number = abs(start - submitted)
            size = min(job["requested_processors"], opening["processors"])
            waiting.append((number, {**job, "requested_processors": size}))
            event = {"kind": "JobSubmitted", "job_number": number, **waiting[-1][1]}
            yield {"event": _at(time, event), **brought}
        elif kind == "start" and waiting:
            place, size, limit, trial = rest
            number, job = waiting.pop(place % len(waiting))
            size = min(size or job["requested_processors"], opening["processors"])
            running[number] = time, job["requested_processors"]
            event = {"kind": "JobStarted", "job_number": number, "processors": size, "limit": limit, "trial": trial}
            yield {"event": _at(time, event)}
        elif kind == "end" and running:
            place, ran, outcome, requeued, original = rest
            number = list(running)[place % len(running)]
            begin, size = running.pop(number)
            run_time = min(ran or 0, time - begin, MAX_DURATION)
            event = {"kind": "JobEnded", "job_number": number, "run_time": run_time, "outcome": outcome}
            yield {"event": _at(time, {**event, "requeued": requeued, "original_run_time": original})}
            if requeued:
                waiting.append((number, {"requested_processors": size}))
        elif kind == "capacity":
            yield {"event": _at(time, {"kind": "CapacityChanged", "processors": rest[0]})}
        elif kind == "pass":
            yield {"event": {"kind": "SchedulingPoint", "time": time}}
        elif kind == "decide" and waiting:
            yield {"event": _decision(time, [number for number, _ in waiting], rest[0])}
    yield {"event": {"kind": "ClusterClosed", "time": time}}


def _at(time: int, event: Json) -> Json:
    return {name: each for name, each in event.items() if each is not None} | {"time": time}


def _decision(time: int, numbers: list[int], probability: float) -> Json:
    """Return what a scheduler might have decided, with every number that it tells at its bound."""
    reason = {"kind": "backfilled", "head": MAX_INTEGER, "extra_processors": -MAX_INTEGER, "ends_by_shadow_time": True}
    weighed = {"head": MAX_INTEGER, "needed": MAX_INTEGER, "after": 0, "accepted": False, "job_numbers": numbers}
    return {
        "kind": "Decided",
        "time": time,
        "starts": [{"job_number": numbers[0], "processors": 1, "limit": MAX_DURATION, "reason": reason}],
        "kills": [{"job_number": MAX_INTEGER, "requeue": True, "reason": "\x1b[2J" * 400}],
        "evaluated": [{**weighed, "probabilities": [probability] * len(numbers), "bounds": [0] * len(numbers)}],
    }
