"""The result of a replay in the Python interface."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from shadowtime.replayer.api.frames import Decisions, SubmissionPredictions, jobs_frame
from shadowtime.replayer.api.own import OwnClasses
from shadowtime.replayer.comparison import PREFERRED, RunPlan, RunRecord, as_json, carry_out
from shadowtime.replayer.presentation import numbered
from shadowtime.replayer.report import PairedDifferences, page, paired
from shadowtime.services.catalogue import Configuration, configure
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import Scores
from shadowtime.shared.output import result_file
from shadowtime.shared.spec import parse

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """The result of a replay. Frames are built on first access and need the extra `frames` (pandas).

    Attributes
    ----------
    scores
        Waits, slowdowns, utilization and the scores of every prediction.
    configuration
        Policy, predictor and adjustment, each with every key spelled out.
    decisions_sha256
        SHA-256 of the decision log. The same log and settings give the same digest. Another seed
        or policy name gives another digest, even if the decisions are the same.
    schedule_sha256
        SHA-256 of the starts and ends of all jobs. It is the same exactly if the schedules are the same.
    """

    def __init__(self, plan: RunPlan, own: OwnClasses | None = None) -> None:
        self._own = own or OwnClasses()
        self._predictions, self._decided = SubmissionPredictions(), Decisions()
        self.record = RunRecord(plan)
        """Job times and wait bounds of the run."""
        self.replayed = carry_out(plan, [self.record, self._predictions, self._decided], own=len(self._own) > 0)
        """Plan and scores of the run."""
        self.scores: Scores = self.replayed.scores
        self.configuration: Configuration = plan.configuration
        self.decisions_sha256: str = self.record.decisions_sha256
        self.schedule_sha256: str = self.record.jobs.sha256

    def __repr__(self) -> str:
        plan, scores = self.replayed.plan, self.scores.policy
        wait = "" if scores.mean_wait is None else f", mean wait {scores.mean_wait:.0f} s"
        return f"<Result of {plan.label} on {plan.cluster}: {scores.jobs} jobs{wait}>"

    @cached_property
    def jobs(self) -> "pd.DataFrame":
        """A row per ended job, indexed by job number. Times are in seconds of the log.

        Columns are fields of the log, start, end, wait and bounded slowdown. Predictions at submission are added if
        there are any: predicted run time, adjusted request, wait forecast, and a wait bound per grouping.
        """
        return jobs_frame(self.record, self._predictions)

    @cached_property
    def decisions(self) -> "pd.DataFrame":
        """A row per decided start or kill, in order, each with its reason (docs/reference/frames.md)."""
        return self._decided.frame()

    def compare(self, other: "Result") -> PairedDifferences:
        """Return paired differences of wait and slowdown between another replay of the same jobs and this one.

        Differences are `other` minus this one: means with 95 % intervals of a block bootstrap over time, and shares
        of jobs that started sooner or later.

        Raises
        ------
        SettingsError
            If `other` is no result, no job ran in both, or a job has another submit time in the other replay.

        References
        ----------
        docs/algorithms.md#block-bootstrap.
        """
        self._require_same_jobs(other)
        mine, theirs = self.record, other.record
        return paired(mine.jobs, theirs.jobs, key_of(mine.plan.seed, mine.plan.cluster))

    def report(self, path: str | PathLike[str], *others: "Result") -> None:
        """Write a report page on this replay, compared with other replays of the same log.

        The baseline is EASY, best one that plans with requests; without EASY, it is this replay.

        Replays of the same policy are named by predictor, adjustment and seed where these differ, else numbered.

        Raises
        ------
        OutputError
            If the file cannot be written.
        SettingsError
            If another replay has no job in common with this one, a job with another submit time, or another mode.
        """
        self.report_as(path, others)

    def report_as(
        self, path: str | PathLike[str], others: Sequence["Result"], names: Sequence[str] = (), draws: str = ""
    ) -> None:
        """Write the page of `report`, with other names of the rows and an HTML table of draws.

        Raises
        ------
        SettingsError
            As `report`.
        """
        for other in others:
            self._require_same_jobs(other)
            modes = self.record.plan.mode, other.record.plan.mode
            if modes[0] != modes[1]:
                raise SettingsError(
                    f"a report compares replays in one mode, found {modes[0]} and {modes[1]}; the method `compare` has "
                    "the differences between them"
                )
        every = (self, *others)
        plans = [entry.record.plan for entry in every]
        if names:
            plans = [plan._replace(label=name) for plan, name in zip(plans, names, strict=True)]
        else:
            plans = _under_different_labels(plans)
        with ExitStack() as known:
            for entry in every:
                known.enter_context(entry._own)  # noqa: SLF001 - of another result
            results = [entry.replayed._replace(plan=plan) for entry, plan in zip(every, plans, strict=True)]
            records = [entry.record.called(plan.label) for entry, plan in zip(every, plans, strict=True)]
            written = page([as_json(results, baseline=_baseline(every, plans))], None, [records], draws)
        with result_file(path) as file:
            file.write(written.encode())

    def _require_same_jobs(self, other: "Result") -> None:
        """Raise `SettingsError` if no job ran in both replays, or a job has another submit time in the other replay."""
        if not isinstance(other, Result):
            raise SettingsError(f"expected a result of `replay` to compare with, found {other!r}")
        mine, theirs = self.record, other.record
        names = f"{mine.plan.cluster} and {theirs.plan.cluster}"
        common, here, there = np.intersect1d(mine.jobs.job_number, theirs.jobs.job_number, return_indices=True)
        if not len(common):
            raise SettingsError(f"{names} have no job in common; expected replays of the same log")
        submitted, others = mine.jobs.submit_time[here], theirs.jobs.submit_time[there]
        if (different := submitted != others).any():
            job = common[np.argmax(different)]
            at, other_at = (times[np.argmax(different)] for times in (submitted, others))
            raise SettingsError(
                f"{names} do not have the same jobs: job {job} was submitted at {at} s and at {other_at} s; expected "
                "replays of the same log"
            )


def _baseline(results: Sequence[Result], plans: Sequence[RunPlan]) -> str | None:
    """Return the label in `plans` of EASY, best the one that plans with requests; None if no result is of EASY."""
    easy = configure(PREFERRED)
    labels = [
        (result.configuration != easy, plan.label)
        for result, plan in zip(results, plans, strict=True)
        if result.configuration.policy == easy.policy
    ]
    return min(labels, default=(False, None), key=lambda label: label[0])[1]


def _under_different_labels(plans: Sequence[RunPlan]) -> list[RunPlan]:
    """Return the plans, each with a label of its own if jobs start as decided."""
    labels = []
    for plan in plans:
        alike = [_what_may_differ(other) for other in plans if other.label == plan.label]
        differ = [mine for mine, *others in zip(_what_may_differ(plan), *alike, strict=True) if len({*others}) > 1]
        name, keys, _ = plan.label.partition(":")
        labels.append(", ".join([name + "…" * bool(keys), *differ]) if differ else plan.label)
    named = numbered({str(place): label for place, label in enumerate(labels)}, " ").values()
    return [plan._replace(label=name) if plan.obeyed else plan for plan, name in zip(plans, named, strict=True)]


def _what_may_differ(plan: RunPlan) -> tuple[str, ...]:
    chosen = plan.configuration
    return *(parse(spec).name for spec in (chosen.runtime, chosen.adjustment)), f"seed {plan.seed}"
