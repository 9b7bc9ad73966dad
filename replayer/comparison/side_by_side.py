"""Replays of several plans at the same time, each in its own process."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out, carry_out_compiled, rehearsed
from shadowtime.replayer.comparison.progress import EVERY, Observers, ProgressBar
from shadowtime.replayer.comparison.run_record import RunRecord
from shadowtime.replayer.io import Counters, Interruption, count, in_processes
from shadowtime.shared.cores import usable_cores
from shadowtime.shared.messages import Envelope, JobEnded

LEAST_JOBS = 20_000
"""Minimum jobs of all plans together for which separate processes pay, because each takes about a second to start."""


class _Task(NamedTuple):
    place: int
    plan: RunPlan
    recorded: bool


class _Done(NamedTuple):
    result: RunResult
    record: RunRecord | None


def pays(plans: Sequence[RunPlan]) -> bool:
    """Return whether several plans are done sooner in separate processes."""
    jobs = sum(len(plan.workload) for plan in plans)
    return len(plans) > 1 and usable_cores() > 1 and jobs >= LEAST_JOBS


def compiled_first(
    plans: Sequence[RunPlan],
    observers: Observers,
    carry_out_others: Callable[[Sequence[RunPlan], Observers], list[RunResult]],
    interruption: Interruption,
) -> list[RunResult]:
    """Replay plans on the compiled machine if it covers them, then the others. Return the results in order of plans.

    Observers are records of runs, progress bars, and others that need no envelope of a run on the machine.
    """
    results: dict[int, RunResult] = {}
    with rehearsed(carry_out_compiled, plans):
        for place, (plan, those) in enumerate(zip(plans, observers, strict=True)):
            interruption()
            if (result := carry_out_compiled(plan)) is None or result.compiled is None:
                continue
            interruption()
            results[place] = result
            for observer in those:
                if isinstance(observer, RunRecord):
                    observer.take_schedule(result.compiled)
                elif isinstance(observer, ProgressBar):
                    observer.show(len(plan.workload))

    others = [place for place in range(len(plans)) if place not in results]
    if others:
        done = carry_out_others([plans[place] for place in others], [observers[place] for place in others])
        results.update(zip(others, done, strict=True))
    return [results[place] for place in range(len(plans))]


def replay_on_cores(plans: Sequence[RunPlan], observers: Observers, interruption: Interruption) -> list[RunResult]:
    """Replay all plans on all cores, and return the results in order of plans.

    Observers are records of runs and progress bars, at most one of each per plan. They are updated.

    Raise `ReplayError` if a process dies. The error names the policy.
    """
    records = [next((those for those in all_ if isinstance(those, RunRecord)), None) for all_ in observers]
    bars = [next((those for those in all_ if isinstance(those, ProgressBar)), None) for all_ in observers]
    counters = Counters(len(plans))

    def tick() -> None:
        interruption()
        for place, bar in enumerate(bars):
            if bar is not None:
                bar.show(counters[place])

    tasks = [_Task(place, plan, records[place] is not None) for place, plan in enumerate(plans)]
    results: dict[int, RunResult] = {}
    for task, done in in_processes(_replay, tasks, usable_cores(), lambda task: task.plan.label, tick, counters):
        results[task.place] = done.result._replace(plan=task.plan)
        if (record := records[task.place]) is not None and done.record is not None:
            record.adopt(done.record)
    return [results[place] for place in range(len(plans))]


def _replay(task: _Task) -> _Done:
    record = RunRecord(task.plan) if task.recorded else None
    ended = 0

    def counted(envelope: Envelope) -> None:
        nonlocal ended
        if isinstance(envelope.event, JobEnded) and not envelope.event.requeued:
            ended += 1
            if ended % EVERY == 0:
                count(task.place, ended)

    result = carry_out(task.plan, [counted] if record is None else [record, counted])
    count(task.place, ended)
    return _Done(result, record)
