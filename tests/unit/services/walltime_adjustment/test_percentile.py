"""Percentile schemes: keys, fallback, thresholds, and equality with what one would compute from the whole record."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.walltime_adjustment.cut import cut
from shadowtime.services.walltime_adjustment.handler import ADJUSTERS
from shadowtime.services.walltime_adjustment.keys import MONTH, coarser
from shadowtime.services.walltime_adjustment.percentile import Percentile, ratio
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.messages.predictions import WalltimeAdjustment
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from tests.support.memory_size import memory_size


def scheme(keys: str) -> Percentile:
    built = ADJUSTERS.build(parse(f"percentile:{keys}"))
    assert isinstance(built, Percentile)
    return built


def job(time: int = 0, requested_time: int | None = 1000, **fields: int | None) -> JobSubmitted:
    known: dict[str, Any] = {"user_id": 7, "group_id": 3, **fields}
    return JobSubmitted(time=time, job_number=1, requested_processors=1, requested_time=requested_time, **known)


def learn(adjuster: Percentile, run_times: list[int], like: JobSubmitted, time: int = 0) -> None:
    for run_time in run_times:
        ended = JobEnded(time=time, job_number=1, run_time=run_time)
        adjuster.learn_one(like, ended)
        adjuster.observe(ended)


def percentile_of(ratios: list[float], percentile: int, rank: str) -> float:
    """Return the percentile by its definition: the least value that enough are no larger than, or Cobalt's index."""
    ratios = sorted(ratios)
    if rank == "cobalt":
        return ratios[min(int(percentile / 100 * len(ratios) + 1e-9), len(ratios) - 1)]
    return next(each for each in ratios if 100 * sum(r <= each for r in ratios) >= percentile * len(ratios))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 60, MONTH // 7, MONTH]),
        st.booleans(),  # an end, or a submission
        st.integers(1, 2),  # user
        st.sampled_from([None, 5]),  # project
        st.sampled_from([600, 1000]),  # request
        st.integers(0, 1100),
    ),
    max_size=80,
)


@given(
    events=EVENTS,
    key=st.sampled_from(["user", "project", "user+project", "user+request", "project+request", "user+project+request"]),
    window=st.sampled_from(["1m", "2m", "all"]),
    percentile=st.sampled_from([50, 70, 85, 95, 100]),
    rank=st.sampled_from(["nearest", "cobalt"]),
    fallback=st.sampled_from(["none", "coarser"]),
    minimum=st.integers(1, 4),
)
@examples(300)
def test_it_equals_the_batch_at_every_prefix(
    events: list[tuple[int, bool, int, int | None, int, int]],
    key: str,
    window: str,
    percentile: int,
    rank: str,
    fallback: str,
    minimum: int,
) -> None:
    adjuster = scheme(
        f"key={key},window={window},percentile={percentile},rank={rank},fallback={fallback},minimum={minimum}"
    )
    seconds = {"1m": MONTH, "2m": 2 * MONTH, "all": float("inf")}[window]
    fields = {"user": "user_id", "project": "group_id", "request": "requested_time"}
    record: list[tuple[int, JobSubmitted, float]] = []
    now = 0
    for gap, ends, user, project, request, run_time in events:
        now += gap
        like = job(now, request, user_id=user, group_id=project)
        if ends:
            ended = JobEnded(time=now, job_number=1, run_time=run_time)
            adjuster.learn_one(like, ended)
            adjuster.observe(ended)
            record.append((now, like, min(1.0, run_time / request)))
            continue
        expected, most = None, 0
        for name in coarser(key) if fallback == "coarser" else [key]:
            asked = [getattr(like, fields[part]) for part in name.split("+")]
            ratios = [
                share
                for time, other, share in record
                if [getattr(other, fields[part]) for part in name.split("+")] == asked and time > now - seconds
            ]
            most = max(most, len(ratios))
            if len(ratios) >= minimum:
                share = max(percentile_of(ratios, percentile, rank), 0.5)
                expected = (name, len(ratios), cut(request, share, 0.5))
                break
        answer = adjuster.predict_one(like)
        assert answer is not None
        if expected is None:
            assert answer == WalltimeAdjustment(adjusted_time=request, observations=most)
        else:
            assert (answer.key, answer.observations, answer.adjusted_time) == expected


def test_too_little_history_changes_nothing() -> None:
    adjuster = scheme("key=user")
    learn(adjuster, [100] * 9, job())
    assert adjuster.predict_one(job()) == WalltimeAdjustment(adjusted_time=1000, observations=9)
    learn(adjuster, [100], job())
    answer = adjuster.predict_one(job())
    assert answer == WalltimeAdjustment(adjusted_time=500, observations=10, key="user", window="1m", percentile=85)


def test_the_key_that_answered_is_told() -> None:
    adjuster = scheme("key=user+project+request,fallback=coarser")
    learn(adjuster, [800] * 9, job(requested_time=1000))
    learn(adjuster, [900] * 9, job(requested_time=2000))
    answer = adjuster.predict_one(job(requested_time=1000))
    assert answer is not None
    assert (answer.key, answer.observations) == ("user+project", 18)
    learn(adjuster, [700], job(requested_time=1000, group_id=4))
    answer = adjuster.predict_one(job(requested_time=1000))
    assert answer is not None
    assert (answer.key, answer.observations) == ("user+request", 10)
    assert scheme("key=user+project+request").predict_one(job()) == WalltimeAdjustment(
        adjusted_time=1000, observations=0
    )


def test_a_job_without_a_request_gets_nothing_and_teaches_nothing() -> None:
    adjuster = scheme("minimum=1")
    assert adjuster.predict_one(job(requested_time=None)) is None
    learn(adjuster, [100] * 20, job(requested_time=None))
    assert adjuster.predict_one(job()) == WalltimeAdjustment(adjusted_time=1000, observations=0)


def test_a_run_beyond_the_request_counts_as_the_request() -> None:
    adjuster = scheme("minimum=1")
    learn(adjuster, [5000] * 20, job())
    answer = adjuster.predict_one(job())
    assert answer is not None
    assert answer.adjusted_time == 1000
    assert ratio(5000, 1000) == 1.0


def test_runs_of_no_time_cut_to_the_threshold() -> None:
    adjuster = scheme("threshold=0.25")
    learn(adjuster, [0] * 20, job())
    answer = adjuster.predict_one(job())
    assert answer is not None
    assert answer.adjusted_time == 250
    answer = adjuster.predict_one(job(requested_time=1))
    assert answer is not None
    assert answer.adjusted_time == 1


def test_without_a_threshold_the_percentile_is_followed() -> None:
    adjuster = scheme("threshold=0")
    learn(adjuster, [10] * 20, job())
    answer = adjuster.predict_one(job())
    assert answer is not None
    assert answer.adjusted_time == 10
    learn(adjuster, [0] * 200, job())
    answer = adjuster.predict_one(job())
    assert answer is not None
    assert answer.adjusted_time == 1


@pytest.mark.parametrize(
    ("key", "same_as"),
    [
        ("user+project+request", "user+request"),
        ("user+project", "user"),
        ("project+request", "request"),
        ("project", ""),
    ],
)
def test_a_log_without_projects_has_the_other_parts_of_the_key(key: str, same_as: str) -> None:
    """CTC and Intrepid have no groups: no request of theirs was adjusted by a key with a project."""
    adjuster, like = scheme(f"key={key}"), job(group_id=None)
    learn(adjuster, [900] * 20, like)
    for part, other in (("user", job(group_id=None, user_id=8)), ("request", job(requested_time=2000, group_id=None))):
        answer = adjuster.predict_one(other)
        assert answer is not None
        assert (answer.observations == 0) == (part in same_as.split("+"))
    answer = adjuster.predict_one(like)
    assert answer is not None
    assert (answer.observations, answer.adjusted_time) == (20, 900)


def test_a_flood_of_keys_keeps_only_its_window() -> None:
    adjuster, of_two_windows = scheme("window=1m"), 0
    for user in range(10_000):
        learn(adjuster, [500], job(user_id=user), time=user * 3600)
        if user == 2 * 30 * 24:
            of_two_windows = memory_size(adjuster)
    assert len(adjuster.snapshot()["entries"]) <= 30 * 24
    assert memory_size(adjuster) < 2 * of_two_windows


@pytest.mark.parametrize(
    "keys", ["percentile=0", "percentile=101", "threshold=-0.1", "minimum=0", "window=4m", "key=queue", "rank=linear"]
)
def test_settings_out_of_range_are_refused_by_name(keys: str) -> None:
    with pytest.raises(SettingsError, match=keys.partition("=")[0]):
        scheme(keys)
