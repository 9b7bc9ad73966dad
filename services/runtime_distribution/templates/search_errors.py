"""Errors of template sets on jobs that have ended, from the compiled replay of each template alone.

The estimate of a template does not depend on the other templates of its set. The set only selects one of the estimates.
So each template is replayed over the jobs once, and a set costs only the selection of the narrowest interval.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from shadowtime.services.runtime_distribution.history import UNKNOWN, RememberedJob
from shadowtime.services.runtime_distribution.templates.category_sums import (
    EMPTY,
    NONE,
    insert,
    remove,
    rules_of,
    surest,
    t_quantiles,
)
from shadowtime.services.runtime_distribution.templates.predictor import DESCRIBED, TemplatesSettings
from shadowtime.services.runtime_distribution.templates.template import CHARACTERISTICS, Template
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable, kernel

ENDED, PREDICTED = 0, 1
"""Kinds of events: a job has ended and is learned from, or a job is predicted."""


@kernel
def estimates(
    events: IntegerTable, categories: Integers, rules: IntegerTable, jobs: IntegerTable, history: int, quantiles: Floats
) -> FloatTable:
    """Return the estimate of one template for each prediction, and the half-width of its interval.

    Parameters
    ----------
    events
        Shape (events, 3), in the order in which they happened: `PREDICTED` or `ENDED`, the index of the job, and for
        how many seconds it has run.
    categories
        The category of each job, or `NONE`; shape (jobs,).
    rules
        See `category_sums`; shape (1, 6).
    jobs
        See `weighted_jobs.Jobs`.
    history
        Number of ended jobs in the window.
    quantiles
        See `t_quantiles`.

    Returns
    -------
    numpy.ndarray
        Shape (2, predictions), in seconds. The half-width is infinite if there is no estimate.
    """
    results = np.empty((2, int((events[:, 0] == PREDICTED).sum())))
    chains = np.full((1, 3, len(jobs)), NONE)
    sums = np.zeros((categories.max() + 1, len(EMPTY)), np.int64)
    sums[:, -2:] = NONE
    remembered = np.empty(len(jobs), np.int64)
    ended = predicted = 0
    for kind, job, elapsed in events:
        own = categories[job : job + 1]
        if kind == ENDED:
            if ended >= history:
                remove(remembered[ended - history], rules, jobs, chains, sums)
            remembered[ended] = job
            ended += 1
            insert(job, own, rules, jobs, chains, sums)
        else:
            _, _, value, reach = surest(own, jobs[job], elapsed, rules, jobs, chains, sums, quantiles)
            results[0, predicted], results[1, predicted] = value, reach
            predicted += 1

    return results


class TemplateErrors:
    """Mean absolute error of template sets on given predictions, as a share of the mean run time of the jobs.

    Each prediction equals the point of `Templates` with the same history and confidence. The estimates of the templates
    of the last call are cached.

    Parameters
    ----------
    jobs
        Known facts about each job; all have a request.
    events
        `PREDICTED` or `ENDED`, the number of a job, counted from 0, and for how many seconds it has run, in the order
        in which they happened.
    settings
        Its history and confidence are used.
    map_
        A function like `map`, perhaps on several threads: the kernels release the interpreter lock.

    >>> from shadowtime.services.runtime_distribution.templates.template import templates_of
    >>> jobs = [RememberedJob(run_time, 100, 1, 7, -1, -1, -1, -1) for run_time in (40, 50, 45)]
    >>> events = [(PREDICTED, 0, 0), (PREDICTED, 1, 0), (ENDED, 0, 40), (ENDED, 1, 50), (PREDICTED, 2, 0)]
    >>> errors = TemplateErrors(jobs, events, TemplatesSettings())
    >>> errors([templates_of("mean(key=user)")])  # errors of 60, 50 and 0 s; the first two by the request
    [0.8148148148148148]
    """

    def __init__(
        self,
        jobs: Sequence[RememberedJob],
        events: Sequence[tuple[int, int, int]],
        settings: TemplatesSettings,
        map_: Callable[[Callable[[Template], Floats], Iterable[Template]], Iterable[Floats]] = map,
    ) -> None:
        table = np.array(jobs, np.int64)
        self._columns = dict(zip(RememberedJob._fields, table.T, strict=True))
        self._codes = {name: np.unique(column, return_inverse=True)[1] for name, column in self._columns.items()}
        self._jobs = np.array([DESCRIBED(job) for job in jobs], np.int64)
        self._events = np.array(events, np.int64)
        _, self._predicted, self._elapsed = self._events[self._events[:, 0] == PREDICTED].T
        self._history = settings.history
        self._quantiles = t_quantiles(settings.confidence, settings.history)
        self._map = map_
        self._known: dict[Template, Floats] = {}

    @property
    def characteristics(self) -> list[str]:
        """Characteristics in which the jobs differ."""
        return [name for name, field in CHARACTERISTICS.items() if len(np.unique(self._columns[field])) > 1]

    @property
    def of_running(self) -> bool:
        """Whether running jobs are predicted, too."""
        return bool((self._elapsed > 0).any())

    def __call__(self, sets: Sequence[tuple[Template, ...]]) -> list[float]:
        """Return the error of each set."""
        every = list(dict.fromkeys(template for templates in sets for template in templates))
        new = [name for name in every if name not in self._known]
        known = self._known | dict(zip(new, self._map(self.estimates, new), strict=True))
        self._known = {name: known[name] for name in every}
        return [self._error([self._known[template] for template in templates]) for templates in sets]

    def estimates(self, template: Template) -> Floats:
        """Return the result of the function `estimates` for a template."""
        rules = rules_of([template], self._history)
        return estimates(self._events, self._categories(template), rules, self._jobs, self._history, self._quantiles)

    def points(self, estimates: Sequence[Floats]) -> Floats:
        """Return each prediction in seconds from the `estimates` of each template; without an estimate, the request."""
        values, reaches = np.array(estimates).transpose(1, 0, 2)
        narrowest = reaches.argmin(axis=0)[None]
        value, reach = (np.take_along_axis(array, narrowest, axis=0)[0] for array in (values, reaches))
        requested = self._columns["requested_time"][self._predicted]
        limit = np.where(requested == UNKNOWN, np.inf, requested)
        return np.where(np.isinf(reach), limit, np.maximum(np.minimum(value, limit), self._elapsed + 1.0))

    def _error(self, estimates: Sequence[Floats]) -> float:
        run_times = self._columns["run_time"]
        return float(np.abs(self.points(estimates) - run_times[self._predicted]).mean() / run_times.mean())

    def _categories(self, template: Template) -> IntegerTable:
        """Return the category of each job as a number, or `NONE` if the job has none; shape (jobs,)."""
        fields = [CHARACTERISTICS[characteristic] for characteristic in template.characteristics]
        numbers = np.zeros(len(self._jobs), np.int64)
        parts = [self._codes[field] for field in fields]
        if template.processors is not None:
            parts.append((self._columns["requested_processors"] - 1) // template.processors)
        for part in parts:
            numbers = np.unique(numbers * (part.max() + 1) + part, return_inverse=True)[1]
        if template.relative:
            fields.append("requested_time")
        for field in fields:
            numbers = np.where(self._columns[field] == UNKNOWN, NONE, numbers)
        return numbers
