"""A predictor from similar jobs by templates. Of all estimates, the one with the narrowest interval is used."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Annotated, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from shadowtime.services.runtime_distribution.history import (
    UNKNOWN,
    RememberedJob,
    RememberingSettings,
    WindowedPredictor,
    remembered,
)
from shadowtime.services.runtime_distribution.revisable import Group, PointOutlook, as_predicted
from shadowtime.services.runtime_distribution.templates.category_sums import (
    COUNT,
    EMPTY,
    MAX_SAMPLES,
    NONE,
    RELATIVE,
    RUNNING,
    insert,
    last_jobs,
    remove,
    rules_of,
    surest,
    t_quantiles,
)
from shadowtime.services.runtime_distribution.templates.template import (
    CHARACTERISTICS,
    DEFAULT,
    Template,
    spelled,
    spelled_out,
    templates_of,
)
from shadowtime.services.runtime_distribution.weighted_jobs import BEYOND, Weighting, weighted_masses
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import BINS, bin_of
from shadowtime.shared.kernels import Integers, IntegerTable
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction, published
from shadowtime.shared.spec import Price

Key = tuple[int, ...]

SHOWN = 60
"""Maximum number of a category's last jobs that are counted in its histogram."""


class TemplatesSettings(RememberingSettings):
    """Settings of `Templates`."""

    files: ClassVar[Mapping[str, Callable[[str], str]]] = {"set": spelled_out}

    set: Annotated[str, AfterValidator(spelled)] = Field(
        DEFAULT, description="templates, separated by semicolons, or the name of a file with one template on each line"
    )
    confidence: float = Field(
        0.9,
        gt=0,
        lt=1,
        description="confidence of the prediction intervals; the estimate with the narrowest interval is used",
    )
    prior: float = Field(
        2.0, ge=1e-9, le=1e6, description="weight of the histogram of all jobs beside a category's, in pseudo-counts"
    )
    beyond: float = Field(0.5, ge=0, le=1, description=BEYOND)

    def price(self) -> Price:
        """Return the price of the remembered jobs in the category of each template."""
        templates = len(templates_of(self.set))
        return Price(
            (500 + 160 * templates) * self.history,
            400 * self.history,
            steps=10_000_000 * templates + 1_000 * self.history,
        )


DESCRIBED = itemgetter(
    *map(RememberedJob._fields.index, ("run_time", "requested_time", "requested_processors", "executable_number"))
)
"""Getter of the columns of `weighted_jobs.Jobs` from a `RememberedJob`."""


def key_of(template: Template) -> Callable[[RememberedJob], Key | None]:
    """Return a function from a job to the key of its category.

    The function returns None if the job lacks a characteristic of the template, or the request of a relative template.

    >>> key = key_of(templates_of("mean(key=user,processors=4)")[0])
    >>> key(RememberedJob(60, -1, 4, 7, -1, -1, -1, -1)), key(RememberedJob(60, -1, 5, -1, -1, -1, -1, -1))
    ((7, 0), None)
    """
    fields = [CHARACTERISTICS[characteristic] for characteristic in template.characteristics]
    columns = [RememberedJob._fields.index(field) for field in fields]
    size, relative = template.processors, template.relative

    of = itemgetter(*columns) if len(columns) > 1 else lambda job: tuple(job[column] for column in columns)

    def key(job: RememberedJob) -> Key | None:
        values: Key = of(job)
        if UNKNOWN in values or (relative and job.requested_time == UNKNOWN):
            return None
        return values if size is None else (*values, (job.requested_processors - 1) // size)

    return key


def _span(seconds: float) -> float:
    """Return a time in seconds, limited to possible run times."""
    return min(max(seconds, 0.0), float(MAX_DURATION))


class Templates(WindowedPredictor):
    """Predict from the category of similar jobs that has the estimate with the narrowest prediction interval.

    A template names characteristics. Jobs for which these are equal form a category. The estimate of a category is the
    mean of its run times, or a regression on the number of processors. Run times may count as shares of their requests.
    A template gives no estimate for a job that lacks one of its characteristics. The histogram is that of the
    last jobs of the chosen category, mixed with the histogram of all users' jobs.

    Memory is bounded by `history`. With k templates, a prediction at submission is O(k + SHOWN + bins), an end O(k).
    The prediction of a running job adds O(jobs of the category) for each template with `running`.

    >>> predictor = Templates(TemplatesSettings(set="mean(key=user);mean"))
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for user, run_time in ((7, 100), (7, 110), (8, 3000), (7, 120), (7, 130)):
    ...     predictor.learn_one(job.model_copy(update={"user_id": user}), run_time)
    >>> prediction = predictor.predict_one(job)
    >>> prediction.point, [round(value) for value in prediction.interval], prediction.observations
    (115.0, [81, 149], 4)

    References: docs/algorithms.md#templates (Smith 1999, sections 2.1.1 and 2.1.2).
    """

    name = "templates"
    Settings = TemplatesSettings

    def __init__(self, settings: TemplatesSettings) -> None:
        super().__init__(settings.history)
        templates = templates_of(settings.set)
        self._settings = [key_of(template) for template in templates]
        self._categories: list[dict[Key | None, int]] = [{} for _ in templates]
        self._free: list[int] = []  # rows of `sums` without a category
        self._rules = rules_of(templates, settings.history)
        self._slots = settings.history
        self._jobs = np.zeros((0, 4), np.int64)  # grows with `_chains`, up to `_slots`
        self._chains = np.empty((len(templates), 3, 0), np.int64)
        self._sums = np.empty((0, len(EMPTY)), np.int64)
        self._confidence = settings.confidence
        self._quantiles = t_quantiles(settings.confidence, 0)  # extended as the number of jobs grows
        self._weightings = [np.array([Weighting(settings.prior, scaled=scaled)]) for scaled in (0.0, 1.0)]
        self._beyond = settings.beyond
        self._everybody = np.zeros(BINS)
        self._next = 0  # slot of the next job

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the estimate with the narrowest interval for a job that has run for `elapsed` seconds.

        Return None if no category has an estimate.

        The histogram is not conditioned on `elapsed`: its readers do that.
        """
        estimates, like, (best, behind, value, reach) = self._surest(remembered(x), elapsed)
        if best == NONE:
            return None
        last = last_jobs(estimates[best], SHOWN, self._jobs, self._chains[best], self._sums)
        weighting = self._weightings[self._rules[best, RELATIVE]]
        masses = weighted_masses(last, like, weighting, self._everybody / len(self.jobs), self._beyond)[0]
        return RunTimePrediction(
            point=as_predicted(value, x, elapsed),
            observations=behind,
            histogram=published(masses),
            interval=(_span(value - reach), _span(max(value + reach, elapsed + 1.0))),
        )

    @property
    def steps(self) -> int:
        """Upper limit of the work of one `outlook`: a template with `running` goes through the jobs of a category."""
        return super().steps + 10 * int((self._rules[self._rules[:, RUNNING] > 0, MAX_SAMPLES]).sum())

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the estimate. It depends on the job's categories, and changes when a range of `running` has passed."""
        job = remembered(x)
        _, _, (best, _, value, _) = self._surest(job, elapsed)
        point = None if best == NONE else as_predicted(value, x, elapsed)
        ranges = self._rules[:, RUNNING]
        until = int(min((elapsed // size + 1) * size for size in ranges[ranges > 0].tolist())) if ranges.any() else None
        return PointOutlook(point, self.groups_of(job), until)

    def groups_of(self, job: RememberedJob) -> tuple[Group, ...]:
        """Return the job's category of each template that has one, as the template's number and the key."""
        keys = enumerate(key(job) for key in self._settings)
        return tuple((number, *key) for number, key in keys if key is not None)

    def point(self, x: JobSubmitted, job: RememberedJob) -> float | None:
        """Return the point of `predict_one` alone, or None if there is no estimate; `job` is `remembered(x)`."""
        _, _, (best, _, value, _) = self._surest(job, 0)
        return None if best == NONE else as_predicted(value, x)

    def _surest(self, job: RememberedJob, elapsed: int) -> tuple[Integers, Integers, tuple[int, int, float, float]]:
        """Return the job's category by template, the job as a row of `Jobs`, and the result of `surest`."""
        if len(self._quantiles) <= len(self.jobs):
            self._quantiles = t_quantiles(self._confidence, min(2 * len(self.jobs), self._slots))
        categories = np.array(
            [category.get(key(job), NONE) for category, key in zip(self._categories, self._settings, strict=True)]
        )
        like = np.array(DESCRIBED(job))
        best = surest(categories, like, elapsed, self._rules, self._jobs, self._chains, self._sums, self._quantiles)
        return categories, like, best

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
        slot = self._next
        self._next = (slot + 1) % self._slots
        if slot == len(self._jobs):
            more = min(max(slot, 64), self._slots - slot)
            self._jobs = np.concatenate((self._jobs, np.zeros((more, 4), np.int64)))
            self._chains = np.concatenate((self._chains, np.empty((*self._chains.shape[:2], more), np.int64)), axis=2)
        self._jobs[slot] = DESCRIBED(job)
        self._everybody[bin_of(job.run_time)] += 1.0
        insert(slot, self._own(job), self._rules, self._jobs, self._chains, self._sums)

    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""
        slot = (self._next - 1 - len(self.jobs)) % self._slots
        self._everybody[bin_of(job.run_time)] -= 1.0
        if not remove(slot, self._rules, self._jobs, self._chains, self._sums):
            return
        for categories, key in zip(self._categories, self._settings, strict=True):
            category = categories.get(key(job), NONE)
            if category != NONE and self._sums[category, COUNT] == 0:
                del categories[key(job)]
                self._free.append(category)

    def _own(self, job: RememberedJob) -> IntegerTable:
        """Return the job's category by template, or `NONE` without a key. Create the categories that are missing."""
        estimates = []
        for categories, key_of_job in zip(self._categories, self._settings, strict=True):
            key = key_of_job(job)
            if key is None:
                estimates.append(NONE)
                continue
            if key not in categories:
                categories[key] = self._new()
            estimates.append(categories[key])

        return np.array(estimates)

    def _new(self) -> int:
        """Return the row of a new category."""
        if not self._free:
            size = len(self._sums)
            self._sums = np.concatenate((self._sums, np.zeros((max(size, 64), len(EMPTY)), np.int64)))
            self._free.extend(range(size, len(self._sums)))

        category = self._free.pop()
        self._sums[category] = EMPTY
        return category
