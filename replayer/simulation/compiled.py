"""Closed replays on a compiled machine, which returns only starts, ends and scores.

The pipeline is the definition: a run that the machine does not cover exactly is left to the pipeline.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation.source import JobTraits, in_bounds, submission, unchecked
from shadowtime.services.runtime_distribution import PREDICTORS
from shadowtime.services.scheduler import (
    MAX_STARTS,
    NEVER,
    POLICIES,
    LogMachine,
    MachineJobs,
    log_machine,
)
from shadowtime.services.scoreboard import PastJobs, PredictedJobs, scores_of_log
from shadowtime.shared.bounds import MAX_DURATION, MAX_LIVE_JOBS, MAX_TIME
from shadowtime.shared.cluster import KILLED, OUTCOMES
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    JobEnded,
    JobSubmitted,
    RunTimePrediction,
    Scores,
    construct_unchecked,
)
from shadowtime.shared.spec import parse
from shadowtime.shared.stages import Passthrough, Predictor

END = MAX_TIME + 1
"""A time after all events."""


class CompiledReplay(NamedTuple):
    """The result of a replay on a compiled machine: its scores, and the start and end of each job.

    Times are in seconds of the log, in the order of the workload.
    """

    scores: Scores
    starts: Integers
    ends: Integers


class _Run(NamedTuple):
    """The parts of a run that a machine can replay."""

    workload: Workload
    opened: ClusterOpened
    capacity: Sequence[CapacityChanged]
    traits: JobTraits
    predictor: Any
    jobs: MachineJobs
    machine: LogMachine


def compiled_replay(
    opened: ClusterOpened, workload: Workload, capacity: Sequence[CapacityChanged], traits: JobTraits
) -> CompiledReplay | None:
    """Return the result of a run on a compiled machine; None if the pipeline must replay the run.

    The result equals that of `EmbeddedReplay` with the source `Machine`, to the last bit. An object for each job is
    made only if run times are predicted.
    """
    run = _covered(opened, workload, capacity, traits)
    if run is None:
        return None
    machine, predicted = run.machine, None
    if isinstance(run.predictor, Passthrough):
        machine.plan_as_requested()
    else:
        predicted = _predicted(run)
    machine.run(END)

    jobs, starts = run.jobs, machine.starts.copy()
    if not machine.exact or (starts < 0).any():  # a deadlock, which the pipeline explains
        return None
    ends = starts + jobs.run_times
    past = PastJobs(
        jobs.numbers,
        jobs.submit_times,
        starts,
        jobs.processors,
        np.where(jobs.requested_times >= NEVER, -1, jobs.requested_times),
        jobs.run_times,
        int((workload.columns["run_time"] > jobs.requested_times).sum()),
    )
    if not _within_limits(past):
        return None
    return CompiledReplay(scores_of_log(past, opened.processors, capacity, machine.chosen, predicted), starts, ends)


def _covered(
    opened: ClusterOpened, workload: Workload, capacity: Sequence[CapacityChanged], traits: JobTraits
) -> _Run | None:
    """Return the parts of a run for the machine; None if the machine does not cover the whole run."""
    if not workload.whole or opened.pools or opened.adjustment != "none" or opened.wait_bound != "none":
        return None
    if opened.mode != "closed" or opened.sample_every or parse(opened.runtime).keys.get("predict") == "anew":
        return None
    if "pool" in workload.columns or any(
        change.pool or change.memory or change.gpus or change.gpu_types for change in capacity
    ):
        return None
    times = [change.time for change in capacity]
    if times != sorted(times) or not _plain(workload, opened.processors, traits):
        return None
    predictor = PREDICTORS.build(parse(opened.runtime))
    if not _only_learns(predictor):
        return None
    columns = {name: np.array(column) for name, column in workload.columns.items()}
    requests = columns["requested_time"]
    requests[requests >= MAX_DURATION] = NEVER
    fields = [columns[name] for name in ("job_number", "submit_time", "processors")]
    jobs = MachineJobs._make([*fields, requests, np.minimum(columns["run_time"], requests), columns["user_id"]])
    sizes = [[opened.time, *times], [opened.processors, *(change.processors for change in capacity)]]
    machine = log_machine(POLICIES.build(parse(opened.policy)), opened, jobs, np.array(sizes, dtype=np.int64))
    return None if machine is None else _Run(workload, opened, capacity, traits, predictor, jobs, machine)


def _only_learns(predictor: Any) -> bool:
    """Return whether a predictor is ours, and learns from ends only. The pipeline reports failures of plug-ins."""
    kind = type(predictor)
    return kind.__module__.startswith("shadowtime.") and kind.observe in (Predictor.observe, Passthrough.observe)


def _plain(workload: Workload, processors: int, traits: JobTraits) -> bool:
    """Return whether all jobs are valid, in order, and no larger than the machine."""
    columns = workload.columns
    numbers, submits = columns["job_number"], columns["submit_time"]
    if not len(numbers) or (columns["run_time"] <= 0).any() or (columns["status"] == KILLED).any():
        return False
    in_order = (np.lexsort((numbers, submits)) == np.arange(len(numbers))).all()
    unique = len(np.unique(numbers)) == len(numbers)
    return bool(in_order and unique and columns["processors"].max() <= processors and in_bounds(columns, traits))


def _within_limits(jobs: PastJobs) -> bool:
    """Return whether no limit of the pipeline was reached: starts of a pass, jobs in the system, the latest time."""
    ends = jobs.end_times
    _, at_once = np.unique(jobs.start_times, return_counts=True)
    earlier = np.arange(len(ends)) - np.searchsorted(np.sort(ends), jobs.submit_times, "right")
    return bool(at_once.max() <= MAX_STARTS and earlier.max() < MAX_LIVE_JOBS and ends.max() <= MAX_TIME)


def _predicted(run: _Run) -> PredictedJobs:
    """Run the machine to its end, and predict each job at its submission from the jobs that have ended by then."""
    submitted: list[JobSubmitted] = [submission(job, run.traits, unchecked) for job in run.workload]
    ended: dict[int, JobEnded] = {}
    predictions: dict[int, RunTimePrediction] = {}
    statuses, run_times = run.workload.columns["status"], run.workload.columns["run_time"]
    jobs, predictor, machine = run.jobs, run.predictor, run.machine
    instants, firsts = np.unique(jobs.submit_times, return_index=True)
    in_system: Integers = np.empty(0, dtype=np.int64)

    def learn(until: int) -> None:
        """Let the predictor learn the jobs that end by an instant, in the order of a machine's events."""
        nonlocal in_system
        ends = machine.starts[in_system] + jobs.run_times[in_system]
        over = (machine.starts[in_system] >= 0) & (ends <= until)
        if not over.any():
            return
        past = in_system[over]
        for job in past[np.lexsort((jobs.numbers[past], ends[over]))].tolist():
            number, run_time = int(jobs.numbers[job]), int(jobs.run_times[job])
            cut = run_times[job] > jobs.requested_times[job]
            ended[job] = construct_unchecked(
                JobEnded,
                time=int(machine.starts[job]) + run_time,
                job_number=number,
                run_time=run_time,
                outcome="limit" if cut else OUTCOMES.get(int(statuses[job]), "completed"),
            )
            predictor.learn_one(submitted[job], run_time)
        in_system = in_system[~over]

    for instant, first, last in zip(
        instants.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(submitted)], strict=True
    ):
        machine.run(instant - 1)
        learn(instant)
        arrived = []
        for job in range(first, last):
            prediction = predictor.predict_one(submitted[job])
            if prediction is not None:
                predictions[job] = prediction = prediction.within_request(submitted[job].requested_time)
            envelope = Envelope(run="compiled", sequence=1, event=submitted[job])
            arrived.append(envelope if prediction is None else envelope.replaced(run_time=prediction))
        machine.plan(arrived)
        in_system = np.append(in_system, np.arange(first, last))

    machine.run(END)
    learn(END + MAX_DURATION)
    return PredictedJobs(submitted, ended, predictions)
