"""Facts and remarks of `shadowtime check` about a log."""

from shadowtime.replayer.logs.quality import columns_of, lacks_of
from shadowtime.services.walltime_adjustment.handler import ADJUSTERS
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.spec import parse
from tests.support.small_logs import job, trace_of


def test_without_groups_all_jobs_are_one_projects_as_it_says() -> None:
    told = {lack.what: lack.therefore for lack in lacks_of(columns_of(trace_of(job(1))))}
    assert "treat all jobs as of one project" in told["accounts or groups"]
    assert "users" not in told
    adjuster = ADJUSTERS.build(parse("percentile:key=project,minimum=1"))
    one, other = (
        JobSubmitted(time=0, job_number=user, requested_processors=1, requested_time=1000, user_id=user)
        for user in (1, 2)
    )
    adjuster.learn_one(one, JobEnded(time=0, job_number=1, run_time=700))
    answer = adjuster.predict_one(other)
    assert answer is not None
    assert answer.adjusted_time == 700
