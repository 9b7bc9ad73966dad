"""The result of a replay, for Python."""

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from shadowtime.replayer.api.frames import Decisions, SubmissionPredictions, jobs_frame
from shadowtime.replayer.comparison import RunPlan, RunRecord, as_json, carry_out
from shadowtime.replayer.report import PairedDifferences, page, paired
from shadowtime.services.catalogue import Configuration
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import Scores
from shadowtime.shared.output import result_file

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """The result of a replay; frames are made when they are asked for, and need the extra `frames` (pandas).

    Attributes
    ----------
    scores
        Waits, slowdowns and utilization, and how good every prediction was.
    configuration
        Policy, predictor and adjustment, each with every key spelled out.
    decisions_sha256
        SHA-256 of the decision log: the same log and settings give the same.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._predictions, self._decided = SubmissionPredictions(), Decisions()
        self.record = RunRecord(plan)
        """Record for reports."""
        self.replayed = carry_out(plan, [self.record, self._predictions, self._decided])
        """Record for comparisons."""
        self.scores: Scores = self.replayed.scores
        self.configuration: Configuration = plan.configuration
        self.decisions_sha256: str = self.record.decisions_sha256

    def __repr__(self) -> str:
        plan, scores = self.replayed.plan, self.scores.policy
        wait = "" if scores.mean_wait is None else f", mean wait {scores.mean_wait:.0f} s"
        return f"<Result of {plan.label} on {plan.cluster}: {scores.jobs} jobs{wait}>"

    @cached_property
    def jobs(self) -> "pd.DataFrame":
        """A row per job that has ended, by job number; times in seconds, of the log.

        Beside what the log says: start and end, wait, bounded slowdown and, as far as a stage said it at the job's
        submission, predicted run time, adjusted request, forecast of the wait, and a bound on it per grouping.
        """
        return jobs_frame(self.record, self._predictions)

    @cached_property
    def decisions(self) -> "pd.DataFrame":
        """A row per start and kill that was decided, in order, each with its reason."""
        return self._decided.frame()

    def compare(self, other: "Result") -> PairedDifferences:
        """Return by how much each job's wait and slowdown differ in another replay of the same jobs.

        Differences are `other` minus this one, means with 95 % intervals of a block bootstrap over time, and shares
        of jobs that started sooner and later.

        Raises
        ------
        SettingsError
            If no job ran in both, or they are replays of different jobs.

        References
        ----------
        docs/algorithms.md#block-bootstrap.
        """
        mine, theirs = self.record, other.record
        self._require_same_jobs(other)
        return paired(mine.jobs, theirs.jobs, key_of(mine.plan.seed, mine.plan.cluster))

    def report(self, path: str | PathLike[str], *others: "Result") -> None:
        """Write a page about this replay, and others of the same log beside it.

        Raises
        ------
        OutputError
            If the file cannot be written.
        SettingsError
            If no job ran in all of them, or they are replays of different jobs.
        """
        for other in others:
            self._require_same_jobs(other)
        every = (self, *others)
        names = [name for entry in every for name in ("--policy", entry.record.plan.label)]
        document = as_json([entry.replayed for entry in every])
        written = page([document], [document["trace"], *names], [[entry.record for entry in every]])
        with result_file(path) as file:
            file.write(written.encode())

    def _require_same_jobs(self, other: "Result") -> None:
        """Raise if no job ran in both replays, or one that was submitted at another time: numbers alone say little."""
        mine, theirs = self.record, other.record
        names = f"{mine.plan.cluster} and {theirs.plan.cluster}"
        common, here, there = np.intersect1d(mine.jobs.job_number, theirs.jobs.job_number, return_indices=True)
        if not len(common):
            raise SettingsError(f"{names} have no job in common")
        if (different := mine.jobs.submit_time[here] != theirs.jobs.submit_time[there]).any():
            job = common[np.argmax(different)]
            raise SettingsError(f"{names} are not of the same jobs: job {job} is submitted at another time")
