"""The times that a job is planned with, and which of them an adjusted request shortens."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from shadowtime.shared.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.shared.spec import parse, wrong_key
from shadowtime.shared.wording import quoted


class AdjustmentUse(BaseModel):
    """What the scheduler makes of adjusted requests; nothing, where a SPEC does not say.

    The regular scheme of Tang et al. (P4, section 4.4) has all three switches on, the selective one all but `running`.

    Parameters
    ----------
    queue
        Whether they order queue and candidates, where run times do.
    candidates
        Whether a waiting job is planned to run for its adjusted request at most; so is one that starts, until the
        next pass.
    running
        Whether a running one is; past it, see `expected_end`.
    distribution
        To a policy that weighs distributions they are nothing, the upper end of distributions in the place of the
        request (where the switch for such a job is on), or what reweighs distributions (`adjusted_prior`).
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    queue: bool = False
    candidates: bool = False
    running: bool = False
    distribution: Literal["ignore", "limit", "prior"] = "ignore"

    @classmethod
    def of(cls, adjustment: str) -> "AdjustmentUse":
        """Return what the SPEC of a walltime adjustment says.

        >>> AdjustmentUse.of("percentile(key=user,queue=yes,candidates=yes,running=no,distribution=limit)").distribution
        'limit'
        >>> AdjustmentUse.of("none") == AdjustmentUse()
        True
        """
        try:
            return cls.model_validate(parse(adjustment).keys)
        except ValidationError as error:
            raise wrong_key(f"walltime adjustment {quoted(adjustment)}", error) from None


class PlannedTimes(NamedTuple):
    """Whole seconds that a job may be planned with, each once as it is and once at most its adjusted request."""

    requested_time: int
    adjusted_time: int
    predicted_time: int
    adjusted_prediction: int


def planned_times(
    requested_time: int, prediction: RunTimePrediction | None, adjustment: WalltimeAdjustment | None
) -> PlannedTimes:
    """Return the times of a job with this request, what is predicted of it, and its adjusted request.

    A prediction counts as at least a second and at most the request, which stands for one that is not there.

    >>> adjustment = WalltimeAdjustment(adjusted_time=60, observations=12)
    >>> tuple(planned_times(100, RunTimePrediction(point=80.5, observations=2), adjustment))
    (100, 60, 80, 60)
    >>> tuple(planned_times(100, None, None))
    (100, 100, 100, 100)
    """
    adjusted_time = requested_time if adjustment is None else min(adjustment.adjusted_time, requested_time)
    predicted_time = requested_time if prediction is None else min(max(int(prediction.point), 1), requested_time)
    return PlannedTimes(requested_time, adjusted_time, predicted_time, min(predicted_time, adjusted_time))
