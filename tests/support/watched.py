"""Messages of runs, to be watched."""

from shadowtime.shared.messages.decisions import Evaluated, Start
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.messages.reasons import Backfilled

BACKFILLED = Backfilled(head=1, shadow_time=900, extra_processors=2, ends_by_shadow_time=True)


EVENTS: tuple[Event, ...] = (
    ClusterOpened(time=0, cluster="kth", processors=16, unix_start=1_704_067_200),
    JobSubmitted(time=10, job_number=1, requested_processors=16, requested_time=600, user_id=7),
    JobSubmitted(time=10, job_number=2, requested_processors=2, requested_time=60, user_id=8),
    SchedulingPoint(time=10),
    Decided(
        time=10,
        starts=(Start(job_number=2, processors=2, limit=60, reason=BACKFILLED),),
        evaluated=(
            Evaluated(head=1, needed=2, after=0, job_numbers=(2,), probabilities=(0.1,), bounds=(0.1,), accepted=True),
        ),
    ),
    JobStarted(time=10, job_number=2, processors=2, limit=60),
    JobEnded(time=40, job_number=2, run_time=30),
    Decided(time=40),
)


def envelopes(run: str = "kth/easy", cluster: str = "kth") -> list[Envelope]:
    told = [Envelope(run=run, cluster=cluster, sequence=place, event=event) for place, event in enumerate(EVENTS)]
    told[1] = told[1].model_copy(update={"run_time": RunTimePrediction(point=90.0, observations=2)})
    return told
