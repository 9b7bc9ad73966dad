"""The mean of the user's last two run times, against the whole log at every prefix."""

from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.simple import LastTwo, OwnersSettings
from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.spec import parse


def job(user_id: int | None, requested_time: int | None = 1000) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=requested_time, user_id=user_id)


def batch(log: list[tuple[int | None, int]], asked: JobSubmitted) -> RunTimePrediction | None:
    """Return the prediction from the whole log of (user, run time)."""
    own = [run_time for user, run_time in log if user is not None and user == asked.user_id]
    if len(own) < 2:
        return None
    mean = max((own[-1] + own[-2]) / 2, 1.0)
    return RunTimePrediction(point=min(mean, asked.requested_time or mean), observations=2)


@given(
    st.lists(st.tuples(st.none() | st.integers(1, 3), st.integers(0, 2000))),
    st.none() | st.integers(1, 1500),
)
def test_online_is_batch_at_every_prefix(log: list[tuple[int | None, int]], requested_time: int | None) -> None:
    predictor = LastTwo(OwnersSettings())
    for prefix, (user, run_time) in enumerate(log):
        for asking in (None, 1, 2, 3):
            asked = job(asking, requested_time)
            assert predictor.predict_one(asked) == batch(log[:prefix], asked)
        predictor.learn_one(job(user), run_time)


def test_one_job_is_not_enough() -> None:
    predictor = LastTwo(OwnersSettings())
    predictor.learn_one(job(1), 60)
    assert predictor.predict_one(job(1)) is None


def test_requested_says_nothing() -> None:
    predictor = PREDICTORS.build(parse("requested"))
    predictor.learn_one(job(1), 10)
    predictor.learn_one(job(1), 10)
    assert predictor.predict_one(job(1)) is None
