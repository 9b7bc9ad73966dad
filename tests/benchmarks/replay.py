"""Speed of the whole pipeline, embedded, under EASY, and the share of it that is not the policy."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self
from unittest.mock import patch

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.policy import Output, Policy
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event
from shadowtime.shared.stages.stage import StageRun
from tests.benchmarks.logs import log


class TimedPolicy(Policy):
    """Another policy, with a stop watch around its passes."""

    name = "timed"
    Settings = PolicySettings

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.settings = policy.settings
        self.seconds = 0.0
        self.passes = 0

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> Sequence[Output]:
        """Let the other policy decide."""
        began = time.perf_counter()
        decisions = self.policy.schedule(now, queue, running, free)
        self.seconds += time.perf_counter() - began
        self.passes += 1
        return decisions

    def observe(self, event: Event) -> None:
        """Let the other policy see the event."""
        self.policy.observe(event)

    def snapshot(self) -> Any:
        """Return the state of the other policy."""
        return self.policy.snapshot()

    def restore(self, state: Any) -> None:
        """Give the other policy its state back."""
        self.policy.restore(state)


def replay(trace: str) -> dict[str, Any]:
    """Replay a log twice: once as it is, once with the stop watch."""
    name, workload = log(trace)
    plan = RunPlan("easy", name, workload, configure("easy"))
    result = carry_out(plan)

    watches: list[TimedPolicy] = []

    def timed(opened: ClusterOpened) -> Scheduler:
        scheduler = Scheduler(opened)
        scheduler.pools[0].policy = watch = TimedPolicy(scheduler.pools[0].policy)
        watches.append(watch)
        return scheduler

    stages = [replace(each, open=timed) if each.open is Scheduler else each for each in STAGES]
    watched = EmbeddedReplay(plan.opened(), plan.source(), stages=stages)
    began = time.perf_counter()
    last = watched.run_to_end()
    elapsed = time.perf_counter() - began
    if last.scores != result.scores:
        raise AssertionError("the stop watch changed a decision")
    return {
        "trace": name,
        "processors": workload.processors,
        "policy": "easy",
        "jobs": len(workload),
        "events": last.sequence + 1,
        "cpu_seconds": round(result.cpu_seconds, 3),
        "jobs_per_cpu_second": round(len(workload) / result.cpu_seconds),
        "passes": watches[0].passes,
        "microseconds_per_pass": round(1e6 * watches[0].seconds / watches[0].passes, 1),
        "share_outside_policy": round(1 - watches[0].seconds / elapsed, 3),
    }


class TimedStage:
    """A stop watch around each stage of embedded replays while it is entered, in cpu seconds by the stage's name."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def __enter__(self) -> Self:
        push, seconds = StageRun.push, self.seconds

        def timed(run: StageRun, envelope: Envelope) -> Envelope | None:
            began = time.process_time()
            output = push(run, envelope)
            seconds[run.stage.name] += time.process_time() - began
            return output

        self.patched = patch.object(StageRun, "push", timed)
        self.patched.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.patched.stop()


def stages(trace: str, policy: str, jobs: int | None = None) -> dict[str, Any]:
    """Replay a log twice: as it is, and with a stop watch around each stage, whose reading is counted for the stages.

    To pair two checkouts, let each print its line in turn, as `farm-bench` does.
    """
    name, workload = log(trace, jobs)
    plan = RunPlan(policy, name, workload, configure(policy))
    result = carry_out(plan)
    with TimedStage() as watch:
        watched = carry_out(plan)
    if watched.scores != result.scores:
        raise AssertionError("the stop watch changed a decision")
    spent = watched.cpu_seconds
    return {
        "trace": name,
        "policy": policy,
        "jobs": len(workload),
        "cpu_seconds": round(result.cpu_seconds, 3),
        "shares": {stage: round(seconds / spent, 3) for stage, seconds in watch.seconds.items()},
    }
