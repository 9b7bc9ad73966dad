"""The slowest single message of each stage under the greatest values of every key, and what memory and snapshot take.

`python -m tests.benchmarks.worst_messages [PART OF A NAME…]` prints one JSON line for each, with the declared price.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.runtime_distribution.history import MAX_OWNERS
from shadowtime.services.runtime_distribution.weighted_jobs import MAX_JOBS
from shadowtime.shared.distributions.histogram import BINS
from shadowtime.shared.kernels.decorator import load_all
from shadowtime.shared.messages.base import MAX_INTEGER
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitBound
from shadowtime.shared.spec import Price
from shadowtime.shared.stages.stage import StageRun

JOBS = 49_000
"""That run, and that wait: nearly as many as a run may have alive."""

ENDED = {
    "gibbons": 110_000,
    "downey": 110_000,
    "class": 110_000,
    "templates": 110_000,
    "percentile": 130_000,
    "hmm": 10_000,
    "experts": 10_000,
    "boosted": 26_000,
    "mixture": 10_000,
    "futures": 4_000,
}
"""Half of the jobs that predictors learn from: more than the greatest `history`, or as many as do not take minutes."""

PROCESSORS = 1_000_000
DAY = 86_400
WEEK = 7 * DAY

HISTOGRAM = (0.0, *[round(1 / (BINS - 1), 6)] * (BINS - 1))
"""A job may end anywhere."""

POLICIES = (
    *("fcfs", "lwf", "easy", "easy:candidates=R/L,weight=1000000", "easy-sjbf", "wfp", "all-reserve"),
    *("conservative", "conservative:guarantees=no", "conservative:queue=R/L,weight=1000000"),
    "conservative:shape=greedy,widen=yes,test_runs=yes,speculate=expected",
    "conservative:guarantees=no,shape=greedy-narrow,widen=yes,test_runs=yes,speculate=0.01",
    *("guarded", "tuned", "slurm:calc_period=1"),
    *(
        "probabilistic",
        "probabilistic:points=16",
        "probabilistic:points=16,mass=censor,criterion=gain,tau=1",
        "cautious",
    ),
)
FORECASTS = (
    *(f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")),
    *("easy:forecast=sampled", "all-reserve:forecast=calibrated"),
)

RUN_TIMES = (
    *("requested", "last-two", "queue-maximum", "empirical:window=1000", "empirical-request:window=1000"),
    *("hmm:states=64,history=10,open=1344,threshold=0", "hmm:states=16,history=160,open=1344,threshold=0"),
    *("hmm:states=64,history=10,open=1344,threshold=0,learning=em", "experts:window=1000,hmm=yes"),
    *("templates:history=200000", "gibbons:history=200000", "downey-mean:history=200000"),
    *("downey-median:history=200000", "class-p90:history=200000", "class-mean-sigma:history=200000"),
    *("boosted:history=50000", "mixture"),
)
REMADE = tuple(f"{name}:predict=anew" for name in ("templates", "gibbons", "downey-median", "last-two", "hmm"))
"""Also the templates' `running`, which goes through a category for each job."""
REMADE += ("templates:predict=anew,history=200000,set=mean(key=queue,running=64);mean(running=64)",)
ADJUSTMENTS = ("none", "auto", "percentile:key=user+project+request,window=12m,fallback=coarser")
WAIT_BOUNDS = ("bmbp", "bmbp:history=50000", "futures:history=50000", "futures:history=50000,trees=yes", "none")

LIVE_JOB, SHAPED_JOB = 9_000, 13_000
"""Bytes of a job that waits or runs, in any stage, while the run is restored; no price has them. With shapes or trials
a job takes more."""

QUEUES = 70
"""More queues than have bounds of their own."""

TOGETHER = 60
"""Jobs that wait together before their waits are known."""


class Slowest:
    """One stage of one run, and the message that took it longest, in seconds of this process."""

    def __init__(self, stage: str, **settings: Any) -> None:
        self.run = StageRun(next(each for each in STAGES if each.name == stage))
        self.price = Price()
        self.live = self.most_live = self.stored = 0
        self.seconds = 0.0
        self.kind = ""
        self.bytes = 0
        self.cut: set[str] = set()
        opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS, **settings)
        self.price = self.run.stage.price(opened)
        self.tell(opened)

    def tell(self, event: Event, **told: Any) -> Envelope:
        """Push the next event, with what earlier stages told of it."""
        envelope = Envelope(run="r", sequence=self.run.sequence + 1, event=event, **told)
        began = time.process_time()
        answer = self.run.push(envelope)
        assert answer is not None
        written = len(answer.to_bytes())
        seconds = time.process_time() - began
        if isinstance(answer.event, Rejected):
            raise AssertionError(answer.event.reason)
        if isinstance(answer.event, Decided) and answer.event.cut_short:
            self.cut |= {each.by for each in answer.event.cut_short}
        if seconds > self.seconds:
            self.seconds, self.kind = seconds, event.kind
        self.bytes = max(self.bytes, written)
        self.live += isinstance(event, JobSubmitted) - isinstance(event, JobEnded)
        self.most_live = max(self.most_live, self.live)
        return answer

    def store(self) -> None:
        """Store the run, and restore it, as another worker does."""
        snapshot = self.run.snapshot()
        self.stored = max(self.stored, len(snapshot))
        self.run = StageRun(self.run.stage)
        self.run.restore(snapshot)


def job(number: int, at: int, processors: int = 1, requested_time: int = 3600, **others: Any) -> JobSubmitted:
    """Return a job."""
    return JobSubmitted(
        time=at, job_number=number, requested_processors=processors, requested_time=requested_time, **others
    )


def crowded(policy: str, jobs: int) -> Slowest:
    """Tell of as many running as waiting jobs, of all sizes and with distributions; then of passes."""
    spec = configure(policy)
    slowest = Slowest("scheduler", policy=spec.policy, runtime=spec.runtime, adjustment=spec.adjustment)
    foretold = RunTimePrediction(point=5000, observations=9, histogram=HISTOGRAM)
    if "forecast" in policy:  # each submission costs a forecast, so that telling of them all would take a day
        jobs, waiting = min(jobs, 4000), 200
    else:
        waiting = jobs
    for number in range(jobs):
        slowest.tell(job(number, 0, requested_time=10**6 + 7 * number), run_time=foretold)
        slowest.tell(JobStarted(time=0, job_number=number, processors=1))
    slowest.tell(job(MAX_INTEGER, 0, PROCESSORS, 10**6), run_time=foretold)
    for number in range(jobs, jobs + waiting):
        wide = 1 + number % 997 if number % 3 else PROCESSORS - number % (2 * jobs)
        slowest.tell(job(number, 1, max(wide, 1), 3600 + number * 7 % 900_000), run_time=foretold)
    for number in range(3):
        slowest.tell(JobEnded(time=2 + number, job_number=number, run_time=1))
        slowest.tell(SchedulingPoint(time=2 + number))
    return slowest


def learned(setting: str, stage: str, spec: str, jobs: int) -> Slowest:
    """Tell of jobs that end, of few users and then of one each; then of silences of all lengths."""
    slowest = Slowest(stage, **{setting: canonical(setting.replace("_", "-"), spec)})
    if spec.startswith(("empirical", "experts", "mixture")):
        fill(slowest, spec)
        slowest.store()
    for number in range(2 * jobs):
        at = number * 8
        user = number if number > jobs else number % 3
        slowest.tell(
            job(
                number,
                at,
                1 + number % 64,
                60 + number % 7000,
                user_id=user,
                group_id=user,
                executable_number=user,
                queue_number=user,
            )
        )
        slowest.tell(JobStarted(time=at, job_number=number, processors=1 + number % 64))
        slowest.tell(JobEnded(time=at + number % 8, job_number=number, run_time=number % 8))
    slowest.store()
    at = 16 * jobs
    for number, silence in enumerate((DAY, DAY, WEEK, 31 * DAY, 80 * WEEK, 104 * WEEK, 2**40), 2 * jobs):
        at += silence
        slowest.tell(job(number, at, user_id=1, group_id=1, queue_number=1))
        slowest.tell(JobStarted(time=at, job_number=number, processors=1))
        slowest.tell(JobEnded(time=at, job_number=number, run_time=0))
    return slowest


def remade(spec: str, jobs: int) -> Slowest:
    """Tell of jobs that run and wait while others end, so that predictions are made anew at every event."""
    slowest = Slowest("runtime_distribution", runtime=canonical("runtime", spec))
    handler: Any = slowest.run.handler
    for number in range(20_000):
        handler.predictor.learn_one(job(number, 0, 1 + number % 64, user_id=1, queue_number=1), number * 7 % 90_000)
    for number in range(2 * jobs):
        slowest.tell(job(number, 0, 1 + number % 64, 60 + number * 7 % 900_000, user_id=1, queue_number=1))
        if number < jobs:
            slowest.tell(JobStarted(time=0, job_number=number, processors=1))
    for number in range(20):
        slowest.tell(JobEnded(time=60 * number, job_number=number, run_time=60 * number))
        slowest.tell(SchedulingPoint(time=60 * number))
    return slowest


def fill(slowest: Slowest, spec: str) -> None:
    """Let a predictor know as many users as it keeps, each with as many jobs as it remembers of them."""
    handler: Any = slowest.run.handler
    window = 1_000 if "window=1000" in spec else 60
    for number in range(MAX_JOBS):
        user = number % min(MAX_OWNERS, MAX_JOBS // window)
        handler.predictor.learn_one(
            job(number, 0, 1 + number % 64, 60 + number % 7000, user_id=user, executable_number=number % 9),
            number * 7 % 9000,
        )


def bounded(spec: str, jobs: int) -> Slowest:
    """Tell of jobs of many queues that start and end; of as many that wait; then of a time when all waited enough."""
    slowest = Slowest("wait_bound", wait_bound=canonical("wait-bound", spec))
    known = 8 * jobs if spec.startswith("bmbp") else jobs
    for first in range(0, known, TOGETHER):
        together, at = range(first, first + TOGETHER), 100 * (first + TOGETHER)
        for number in together:
            queue = number % QUEUES
            slowest.tell(job(number, 100 * number, 1 + number % 997, 60 + number * 7 % 9000, queue_number=queue))
        for number in together:
            slowest.tell(JobStarted(time=at, job_number=number, processors=1))
            slowest.tell(JobEnded(time=at, job_number=number, run_time=0))
    for number in range(at, at + jobs):
        slowest.tell(job(number, at, 1 + number % 997, queue_number=number if number % 2 else 0))
    for at in (2**40, 2**41):
        slowest.tell(job(at, at, queue_number=0))
    return slowest


def scored(_: str, jobs: int) -> Slowest:
    """Tell of jobs with bounds of many queues that run and wait, sampled each second, and of a jump in time."""
    slowest = Slowest("scoreboard", sample_every=1)
    foretold = RunTimePrediction(point=5000, observations=9, histogram=HISTOGRAM)
    for number in range(2 * jobs):
        bounds = tuple(WaitBound(grouping=f"g{k}", queue=number, quantile=0.5, confidence=0.5) for k in range(14))
        slowest.tell(job(number, 0, queue_number=number), run_time=foretold, wait_bounds=bounds)
        if number < jobs:
            slowest.tell(JobStarted(time=0, job_number=number, processors=1))
    slowest.tell(JobEnded(time=2**40, job_number=0, run_time=1))
    slowest.tell(ClusterClosed(time=2**41))
    return slowest


def cases() -> Iterator[tuple[str, Callable[[], Slowest]]]:
    """Yield a name, and what tells a stage of many jobs."""
    for spec in (*POLICIES, *FORECASTS):
        yield f"scheduler {spec}", partial(crowded, spec, JOBS)
    for spec in RUN_TIMES:
        yield f"runtime_distribution {spec}", partial(learned, "runtime", "runtime_distribution", spec, ended(spec))
    for spec in REMADE:
        yield f"runtime_distribution {spec}", partial(remade, spec, JOBS)
    for spec in ADJUSTMENTS:
        yield f"walltime_adjustment {spec}", partial(learned, "adjustment", "walltime_adjustment", spec, ended(spec))
    for spec in WAIT_BOUNDS:
        yield f"wait_bound {spec}", partial(bounded, spec, ended(spec))
    yield "scoreboard", partial(scored, "", JOBS)


def ended(spec: str) -> int:
    """Return half of the number of jobs that a choice learns from."""
    return next((jobs for name, jobs in ENDED.items() if spec.startswith(name)), JOBS)


def measured(name: str, tell: Callable[[], Slowest]) -> dict[str, Any]:
    """Return the figures of one case, in a process of its own: the peak of memory is its own too."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        slowest = tell()
        slowest.store()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        figures = {
            "slowest_seconds": round(slowest.seconds, 3),
            "kind": slowest.kind,
            "largest_answer_bytes": slowest.bytes,
            "priced_seconds": round(slowest.price.steps / 1e9, 3),
            "peak_megabytes": round(peak * 1024 / 1e6),
            "priced_megabytes": round(sum(slowest.price[:2]) / 1e6),
            "live_megabytes": round((SHAPED_JOB if "shape=" in name else LIVE_JOB) * slowest.most_live / 1e6),
            "snapshot_megabytes": round(slowest.stored / 1e6, 1),
            "cut_short": sorted(slowest.cut),
        }
        os.write(writes, json.dumps(figures).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return {"case": name} | (json.loads(told) if told else {"failed": True})


def worst_messages() -> list[dict[str, Any]]:
    """Measure all cases."""
    load_all()  # as every worker does when it starts
    return [measured(name, tell) for name, tell in cases()]


def main(wanted: list[str]) -> None:
    """Print the cases whose names hold one of the texts, or all, as they are found."""
    load_all()
    for name, tell in cases():
        if not wanted or any(each in name for each in wanted):
            print(json.dumps(measured(name, tell)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
