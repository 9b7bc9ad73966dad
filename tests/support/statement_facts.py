"""Facts of statements, made by hand."""

from shadowtime.replayer.statement.month import MonthOfStarts
from shadowtime.replayer.statement.page import StatementFacts
from shadowtime.services.shadows.comparison import read
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import Envelope, JobExpected, JobStarted, JobSubmitted, WaitForecast
from tests.support.stored_shadows import stored

UNIX_START = 1_790_000_000
FORECAST = WaitForecast(wait=600, starts_within=((0.5, 600), (0.9, 1_200), (0.95, 1_500)))


def facts(*, partitions: int = 2, jobs: int = 100, shadows: int = 0, first: int = 0) -> StatementFacts:
    """Return a month in which every tenth job of the first partition starts too late."""
    month, sequence = MonthOfStarts(first), 0
    for number in range(jobs):
        time = first + number * 20_000
        start = time + (3_000 if number % (10 * partitions) == 0 else 900)
        job = JobSubmitted(
            time=time, job_number=number, requested_processors=1, requested_time=60, queue_number=number % partitions
        )
        word = JobExpected(time=time + 1, job_number=number, start=start + 3_600)
        for event in (job, word, JobStarted(time=start, job_number=number, processors=1)):
            forecast = FORECAST if event is job else None
            month.push(Envelope(run="mine/live", sequence=sequence, event=event, forecast=forecast))
            sequence += 1
    shown = [read(f"mine/live/shadow/{number}", stored(100)) for number in range(shadows)]
    now = first + 30 * DAY
    return StatementFacts("mine", "mine/live", UNIX_START, now, month, lambda queue: f"part{queue}", shown)
