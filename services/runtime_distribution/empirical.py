"""Predictors from histograms of the user's last run times."""

from pydantic import Field

from shadowtime.services.runtime_distribution.revisable import RunTimeSettings
from shadowtime.services.runtime_distribution.weighted_jobs import BEYOND, SimilarJobs, Weighting, price_of_users
from shadowtime.shared.spec import Price


class WindowSettings(RunTimeSettings):
    """Settings of predictors from each user's last jobs."""

    window: int = Field(60, ge=1, le=1000, description="number of last ended jobs remembered of each user")

    def price(self) -> Price:
        """Return the price of the users' last jobs."""
        return price_of_users(self.window)


class EmpiricalSettings(WindowSettings):
    """Settings of `Empirical`."""

    prior: float = Field(
        2.0, ge=1e-9, le=1e6, description="weight of the histogram of all jobs beside the user's, in pseudo-counts"
    )
    forgetting: float = Field(
        0.0, ge=0, lt=1, description="share by which each ended job reduces the weight of earlier jobs of all users"
    )
    beyond: float = Field(0.5, ge=0, le=1, description=BEYOND)


class Empirical(SimilarJobs):
    """Predict the histogram of the user's last run times, mixed with the histogram of all users' jobs.

    A user without an ended job gets the histogram of all jobs. Before any job has ended, there is no prediction. Memory
    is bounded by users times window. A prediction is O(window + bins), an end O(window).

    >>> from shadowtime.shared.messages.envelope import JobSubmitted
    >>> from shadowtime.shared.distributions.histogram import bin_of
    >>> predictor = Empirical(EmpiricalSettings(prior=0.5))
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in (5, 5, 500):
    ...     predictor.learn_one(job, run_time)
    >>> prediction = predictor.predict_one(job)
    >>> [round(prediction.histogram[bin_of(value)], 2) for value in (5, 500)], prediction.observations
    ([0.65, 0.32], 3)

    References: docs/algorithms.md#similar-jobs-of-a-user (Nissimov 2007, section 6, which names such distributions as
    future work).
    """

    name = "empirical"
    Settings = EmpiricalSettings

    def __init__(self, settings: EmpiricalSettings) -> None:
        super().__init__(settings.window, [Weighting(settings.prior)], settings.forgetting, 1, settings.beyond)


# The user's last run times, with more weight on jobs that are similar to the new one.

LIKE = "weight of a job with another {0}; a job with the same {0} has weight 1"


class EmpiricalRequestSettings(WindowSettings):
    """Settings of `EmpiricalRequest`."""

    prior: float = Field(
        2.0,
        ge=1e-9,
        le=1e6,
        description="weight of the histogram of all jobs with similar request and size, in pseudo-counts",
    )
    recency: float = Field(0.95, gt=0, le=1, description="factor on a job's weight for each later job of the user")
    request: float = Field(0.1, ge=0, le=1, description=LIKE.format("request"))
    processors: float = Field(0.3, ge=0, le=1, description=LIKE.format("number of processors"))
    executable: float = Field(0.1, ge=0, le=1, description=LIKE.format("executable"))
    spread: float = Field(0.05, ge=0, le=0.5, description="share of a job's weight in each neighbouring bin")
    scaled: bool = Field(
        True, description="whether run times of jobs with another request are scaled by the ratio of the requests"
    )
    forgetting: float = Field(
        0.005, ge=0, lt=1, description="share of the weight of earlier jobs of a class that each ended job removes"
    )
    beyond: float = Field(0.5, ge=0, le=1, description=BEYOND)


class EmpiricalRequest(SimilarJobs):
    """Predict from the user's last jobs, weighted by request, size, executable and age, and from classes of all jobs.

    The user's jobs with another request have a small weight, but not zero. For a user without jobs, the class of
    similar request and size decides. That class is mixed with the class of similar request, which is mixed with all
    jobs. Memory is bounded by users times window and by the classes. A prediction is O(window + bins), an end
    O(window).

    >>> from shadowtime.shared.messages.envelope import JobSubmitted
    >>> predictor = EmpiricalRequest(EmpiricalRequestSettings())
    >>> short = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=600, user_id=7)
    >>> long = short.model_copy(update={"requested_time": 36000})
    >>> for _ in range(20):
    ...     predictor.learn_one(short, 60)
    ...     predictor.learn_one(long, 30000)
    >>> [round(predictor.predict_one(job).point) for job in (short, long)]
    [94, 26672]

    References: docs/algorithms.md#similar-jobs-of-a-user (Nadaraya 1964, for weights by likeness; Tsafrir 2007, section
    3: recent jobs of the same user are the most informative).
    """

    name = "empirical-request"
    Settings = EmpiricalRequestSettings

    def __init__(self, settings: EmpiricalRequestSettings) -> None:
        weighting = Weighting(*(getattr(settings, name) for name in Weighting._fields))
        super().__init__(settings.window, [weighting], settings.forgetting, 3, settings.beyond)
