"""Jobs that have ended, at random, for the predictors that learn from them."""

from typing import NamedTuple

from hypothesis import strategies as st

from shadowtime.shared.messages.envelope import JobSubmitted


class WorkCancelled(NamedTuple):
    """What a predictor may know of a job, and its run time; times in seconds."""

    user_id: int | None
    requested_time: int | None
    processors: int
    executable_number: int | None
    run_time: int

    def submitted(self, job_number: int = 1) -> JobSubmitted:
        return JobSubmitted(
            time=0,
            job_number=job_number,
            requested_processors=self.processors,
            requested_time=self.requested_time,
            user_id=self.user_id,
            executable_number=self.executable_number,
        )

    @property
    def at_request(self) -> bool:
        return self.requested_time is not None and self.run_time >= self.requested_time


ENDED = st.builds(
    WorkCancelled,
    user_id=st.none() | st.integers(1, 3),
    requested_time=st.none() | st.sampled_from([60, 600, 660, 36_000]),
    processors=st.sampled_from([1, 2, 3, 16]),
    executable_number=st.none() | st.integers(1, 2),
    run_time=st.sampled_from([0, 1, 2, 59, 60, 599, 600]) | st.integers(0, 50_000),
)
