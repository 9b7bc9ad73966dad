"""Input rows of boosted trees: a job's features at its submission, including the predictions of other predictors."""

import math
from typing import Any, Final, NamedTuple

import numpy as np

from shadowtime.services.runtime_distribution.ensembles.experts import Experts, ExpertsSettings, limit
from shadowtime.services.runtime_distribution.ensembles.features import FEATURES, JobGroups
from shadowtime.services.runtime_distribution.ensembles.outcomes import (
    OUTCOME_FEATURES,
    outcome_features,
    outcomes_of,
    scale,
)
from shadowtime.services.runtime_distribution.ensembles.within_bins import NearRequest, parts_of
from shadowtime.services.runtime_distribution.history import UNKNOWN, remembered
from shadowtime.services.runtime_distribution.templates import Templates, TemplatesSettings
from shadowtime.shared.distributions import BINS, Rows
from shadowtime.shared.kernels import FloatTable
from shadowtime.shared.messages import Event, JobSubmitted
from shadowtime.shared.stages import LastValue

ASKED: Final = FEATURES + OUTCOME_FEATURES + 2
"""Number of columns that trees use: features, the experts' distribution, and the templates' point.

The point has two columns: its logarithm, and its share of the request.
"""

WIDTH: Final = ASKED + BINS + 1
"""Number of columns of a row. The last BINS + 1 are the experts' probabilities of outcomes, from which trees start."""


class KnownAtSubmission(NamedTuple):
    """The known facts about a job at its submission."""

    row: Rows
    """Input row of the trees, shape (WIDTH,)."""
    limit: float
    """Request in seconds, or infinity without one."""
    similar: float | None
    """Point of the templates in seconds, or None without one."""
    parts: FloatTable
    """Distribution of run times within each bin, see `within_bins`."""


class JobRows:
    """Builder of the rows of jobs, from groups of similar jobs, experts and templates.

    `history` is the number of ended jobs that templates store, and the maximum number of groups.

    >>> rows = JobRows(history=100)
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> rows.known(job) is None
    True
    >>> for run_time in (60, 60, 60):
    ...     rows.learn(job, run_time)
    >>> known = rows.known(job)
    >>> known.row.shape == (WIDTH,), known.similar, round(float(known.row[ASKED:].sum()), 6)
    (True, 60.0, 1.0)
    """

    def __init__(self, history: int) -> None:
        self.groups = JobGroups(history)
        self.experts = Experts(ExpertsSettings())
        self._templates = Templates(TemplatesSettings(history=history))
        self._near = NearRequest()
        self.known = LastValue(self._known)
        """`KnownAtSubmission` of a job now, or None before any job has ended."""

    def _known(self, x: JobSubmitted) -> KnownAtSubmission | None:
        mixture = self.experts.mixture(x)
        if mixture is None:
            return None
        job, outcomes, size = remembered(x), outcomes_of(mixture, limit(x)), scale(x.requested_time)
        point = self._templates.point(x, job)
        row = np.empty(WIDTH, np.float32)
        row[:FEATURES] = self.groups.features(job, x.time)
        row[FEATURES : FEATURES + OUTCOME_FEATURES] = outcome_features(outcomes, limit(x), size)
        row[ASKED - 2 : ASKED] = (UNKNOWN, UNKNOWN) if point is None else (math.log(point), point / size)
        row[ASKED:] = outcomes
        return KnownAtSubmission(row, limit(x), point, parts_of(self.experts.last_jobs(x), self._near.counts, limit(x)))

    def observe(self, event: Event) -> None:
        """Let the experts observe an event. Call this after `groups` was updated, because it drops the cached facts."""
        self.experts.observe(event)
        self.known.forget()

    def learn(self, x: JobSubmitted, run_time: int) -> None:
        """Learn a run time in seconds."""
        for learner in (self.experts, self._templates):
            learner.learn_one(x, run_time)
        self.groups.learn(remembered(x), run_time)
        self._near.learn(run_time, limit(x))
        self.known.forget()

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the groups, experts and templates, and the counts of ends near the request."""
        return {
            "groups": self.groups.snapshot(),
            "experts": self.experts.snapshot(),
            "templates": self._templates.snapshot(),
            "near": self._near.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.groups.restore(state["groups"])
        self.experts.restore(state["experts"])
        self._templates.restore(state["templates"])
        self._near.restore(state["near"])
        self.known.forget()
