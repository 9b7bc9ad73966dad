"""The paired logs of a cluster and a shadow that takes over later: which jobs and which time count."""

from shadowtime.services.shadows.comparison.paired_logs import PairedLogs
from shadowtime.services.shadows.comparison.schema import Pair
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, Event, JobEnded, JobStarted, JobSubmitted

TAKEOVER = 10 * DAY


def submitted(number: int, time: int) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=4, requested_time=DAY)


def run(number: int, start: int) -> tuple[Event, Event]:
    """Return the start and the end of a job that holds the whole machine for a day."""
    return (
        JobStarted(time=start, job_number=number, processors=4),
        JobEnded(time=start + DAY, job_number=number, run_time=DAY, outcome="completed"),
    )


def test_the_machine_is_busy_from_the_takeover_on() -> None:
    """The days before count for neither machine. A job that waited at the takeover is busy, but not compared."""
    paired = PairedLogs(ClusterOpened(time=0, cluster="c", processors=8), TAKEOVER)
    paired.real(CapacityChanged(time=DAY, processors=4))
    paired.real(submitted(1, TAKEOVER - 60))
    for event in run(1, TAKEOVER):
        paired.real(event)
        paired.shadow(event)
    paired.real(submitted(2, TAKEOVER + DAY))
    for event in run(2, TAKEOVER + DAY):
        paired.real(event)
    for event in run(2, TAKEOVER + 2 * DAY):
        paired.shadow(event)
    paired.at(TAKEOVER + 4 * DAY)
    result = paired.compared()
    assert result.utilization == Pair(real=0.5, shadow=0.5)
    assert result.all is not None
    assert (result.all.jobs, result.all.wait) == (1, Pair(real=0, shadow=DAY))
