"""Scores of a whole replay, from the times of all its jobs. They equal the scores of the stage, to the last bit."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.services.scoreboard.all_scores import Tally
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import CapacityChanged, Decided, JobEnded, JobSubmitted, RunTimePrediction, Scores


class PastJobs(NamedTuple):
    """The jobs of a replay that have all ended, in order of submission, as arrays of shape (jobs,).

    Times are in seconds. `requested_times` is -1 for a job without a request, `run_times` has the actual run times.
    `cut` counts the jobs that were ended at their requests.
    """

    numbers: Integers
    submit_times: Integers
    start_times: Integers
    processors: Integers
    requested_times: Integers
    run_times: Integers
    cut: int

    @property
    def end_times(self) -> Integers:
        """The end of each job."""
        ends: Integers = self.start_times + self.run_times
        return ends

    @property
    def by_end(self) -> Integers:
        """Indices of the jobs in the order in which a machine reports their ends: by (end, job number)."""
        return np.lexsort((self.numbers, self.end_times))


class PredictedJobs(NamedTuple):
    """The submissions and ends of jobs with predictions, by index of the job, and the prediction of each, if any."""

    submitted: Sequence[JobSubmitted]
    ended: Mapping[int, JobEnded]
    predictions: Mapping[int, RunTimePrediction]


def scores_of_log(
    jobs: PastJobs,
    processors: int,
    capacity: Sequence[CapacityChanged],
    chosen: Sequence[Decided] = (),
    predicted: PredictedJobs | None = None,
) -> Scores:
    """Return the scores of a closed replay in which no job was killed, requeued or withdrawn.

    O(jobs log jobs) over arrays; with predictions also O(1) objects for each job.

    Parameters
    ----------
    jobs
        At least one job.
    processors, capacity
        Processors of the machine at the beginning, and the changes in order of time.
    chosen
        Decisions in which a portfolio chose its deciding member.
    predicted
        The jobs as messages, if run times were predicted.

    >>> times = np.array([0, 5]), np.array([0, 60]), np.array([4, 1]), np.array([60, 90]), np.array([60, 60])
    >>> scores_of_log(PastJobs(np.array([1, 2]), *times, cut=0), 4, ()).policy.mean_wait
    27.5
    """
    tally, order, ends = Tally(), jobs.by_end, jobs.end_times
    first = int(jobs.submit_times[0])
    for change in capacity:
        if change.time <= first:
            processors = change.processors
    tally.capacity.begin(first, processors)
    for change in capacity:
        if change.time > first:
            tally.capacity.change(change.time, change.processors)

    requests = jobs.requested_times
    wanted = np.where(requests > 0, requests, np.maximum(jobs.run_times, 1))
    zeros = np.zeros(len(order), dtype=np.int64)
    columns = jobs.submit_times, jobs.start_times, ends, jobs.processors, wanted, jobs.run_times, zeros
    tally.waits.add_all([column[order] for column in columns])
    for decided in chosen:
        tally.members.decide(decided)
    instants = np.unique(np.concatenate([jobs.submit_times, ends, [change.time for change in capacity]]))
    tally.scheduling_points, tally.ended_at_limit = len(instants), jobs.cut
    if predicted is None:
        rows = order[requests[order] > 0]
        tally.run_times.add_all([requests[rows], jobs.run_times[rows]])
        tally.accuracy.add_all([jobs.run_times[rows], requests[rows], requests[rows]])
        points = requests.astype(np.float64)
    else:
        points = _score_predictions(tally, jobs, predicted)

    _count_uses(tally, jobs, instants.astype(np.int64), np.where(points > 0, points, np.nan))
    return tally.scores()


def _score_predictions(tally: Tally, jobs: PastJobs, predicted: PredictedJobs) -> Floats:
    """Score the predicted run times in the order of the events. Return the assumed run time of each job; 0 if none."""
    order = jobs.by_end
    times = np.concatenate((jobs.end_times[order], jobs.start_times))
    places = np.concatenate((order, np.full(len(order), -1)))
    for place in np.lexsort((places < 0, times)).tolist():  # ends come before the starts of their instant
        job = int(places[place])
        tally.enter(int(times[place]), {})
        if job >= 0:
            submitted = predicted.submitted[job]
            tally.end(submitted, predicted.ended[job], predicted.predictions.get(job), submitted.requested_time)
    points = jobs.requested_times.astype(np.float64)
    for job, prediction in predicted.predictions.items():
        points[job] = prediction.point
    return points


def _count_uses(tally: Tally, jobs: PastJobs, instants: Integers, points: Floats) -> None:
    """Count the uses of each run time, as `PredictionWorkload` does. `points` are NaN where nothing is assumed."""
    submits, starts, ends = jobs.submit_times, jobs.start_times, jobs.end_times
    until_start = np.searchsorted(submits, starts, "right")
    at_submissions = until_start - np.arange(len(submits)), np.searchsorted(submits, ends, "left") - until_start
    passes = np.searchsorted(instants, starts, "right")
    waiting = passes - np.searchsorted(instants, submits, "left")
    running = np.searchsorted(instants, ends, "left") - passes
    order = jobs.by_end
    order = order[~np.isnan(points[order])]
    errors = np.abs(points - jobs.run_times)
    tally.workload.errors = [
        _uses([part[order] for part in parts], errors[order]) for parts in (at_submissions, (waiting,), (running,))
    ]


def _uses(parts: Sequence[Integers], errors: Floats) -> tuple[int, float]:
    """Return the number of uses and the sum of their errors, added job by job and part by part."""
    uses = np.stack(parts, axis=1)
    terms = (uses * errors[:, np.newaxis]).ravel()
    return int(uses.sum()), float(np.add.accumulate(terms)[-1]) if len(terms) else 0.0
