"""The user's last run times, as they were."""

from pydantic import Field

from shadowtime.services.runtime_distribution.similar_jobs import BEYOND, SimilarJobs, Weighting
from shadowtime.shared.spec import SpecSettings


class EmpiricalSettings(SpecSettings):
    """Settings of `Empirical`."""

    window: int = Field(60, ge=1, le=1000, description="ended jobs that are remembered of each user")
    prior: float = Field(
        2.0, ge=1e-9, le=1e6, description="pseudo-counts of the histogram of all jobs in that of the user"
    )
    forgetting: float = Field(
        0.0, ge=0, lt=1, description="share of the weight of all jobs so far that is forgotten with each that ends"
    )
    beyond: float = Field(0.5, ge=0, le=1, description=BEYOND)


class Empirical(SimilarJobs):
    """Predict the histogram of the user's last ended run times, and a little of everybody's.

    A user of whom no job has ended gets the histogram of all jobs; before any job has ended, nobody gets a prediction.
    Memory is bounded by users times window. A prediction is O(window + bins), an end O(window).

    Examples
    --------
    >>> from shadowtime.shared.events import JobSubmitted
    >>> from shadowtime.shared.run_time_bins import bin_of
    >>> predictor = Empirical(EmpiricalSettings(prior=0.5))
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in (5, 5, 500):
    ...     predictor.learn_one(job, run_time)
    >>> prediction = predictor.predict_one(job)
    >>> [round(prediction.histogram[bin_of(each)], 2) for each in (5, 500)], prediction.observations
    ([0.65, 0.32], 3)

    References
    ----------
    docs/algorithms.md#similar-jobs-of-a-user (Nissimov 2007, section 6, which names such distributions as future work).
    """

    name = "empirical"
    Settings = EmpiricalSettings

    def __init__(self, settings: EmpiricalSettings) -> None:
        super().__init__(settings.window, [Weighting(settings.prior)], settings.forgetting, 1, settings.beyond)
