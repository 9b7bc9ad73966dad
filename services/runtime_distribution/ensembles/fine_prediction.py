"""Predictions from distributions that are finer than the bins."""

from shadowtime.services.runtime_distribution.ensembles.experts import limit
from shadowtime.services.runtime_distribution.ensembles.outcomes import bin_masses
from shadowtime.services.runtime_distribution.ensembles.within_bins import gathered, quantiles_of
from shadowtime.services.runtime_distribution.revisable import as_predicted
from shadowtime.shared.distributions import LEVELS
from shadowtime.shared.kernels import Floats
from shadowtime.shared.messages import DIGITS, JobSubmitted, RunTimePrediction, published

MEDIAN = len(LEVELS) // 2


def fine_prediction(fine: Floats, x: JobSubmitted, observations: int, point: float | None = None) -> RunTimePrediction:
    """Return the prediction for a job from fine masses (`within_bins`); O(parts).

    `observations` is the number of jobs behind the prediction. `point` is in seconds; None stands for the median. The
    histogram is the closest one that bins can express. `at_request` and `quantiles` have what bins cannot express.

    >>> import numpy as np
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=2)
    >>> example = fine_prediction(np.array([0.1, *[0.1] * 8, 0.0, *[0.0] * 7, 0.1]), job, 5)
    >>> round(example.point, 2), example.at_request, len(example.quantiles)
    (1.34, 0.1, 19)
    """
    outcomes, quantiles = gathered(fine), quantiles_of(fine, limit(x), LEVELS)
    return RunTimePrediction(
        point=as_predicted(float(quantiles[MEDIAN]) if point is None else point, x),
        observations=observations,
        histogram=published(bin_masses(outcomes, limit(x))),
        at_request=None if x.requested_time is None else round(float(outcomes[-1]), DIGITS),
        quantiles=tuple(quantiles.round(3).tolist()),
    )
