"""Jobs put back into a cleaned log: which, when, and how long they run."""

import numpy as np
import pytest

from shadowtime.replayer.logs.removed_jobs import parse_put_back, put_back
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.bounds import MAX_LINES
from shadowtime.shared.errors import SettingsError, TraceError

KEYS = "first=3,last=4002,user=7,request=21600,run_time=50,spread=1.2"


def cleaned() -> Trace:
    """Return a log of the jobs 1, 2, 4003 and 4004, submitted a day apart."""
    row = dict.fromkeys(FIELDS, 1)
    rows = [row | {"job_number": n, "submit_time": 86_400 * day} for day, n in enumerate((1, 2, 4003, 4004))]
    return Trace("log", {"MaxProcs": "8"}, np.array([list(each.values()) for each in rows]))


def test_jobs_put_back_have_the_missing_numbers_and_the_times_between_their_neighbours() -> None:
    whole = put_back(cleaned(), parse_put_back(KEYS))
    columns = dict(zip(FIELDS, whole.table.T, strict=True))
    assert columns["job_number"].tolist() == list(range(1, 4005))
    assert (np.diff(columns["submit_time"]) >= 0).all()
    made = columns["user_id"] == 7
    assert made.sum() == 4000
    assert columns["submit_time"][made].min() > 86_400
    assert columns["submit_time"][made].max() < 2 * 86_400
    assert np.median(columns["run_time"][made]) == pytest.approx(50, rel=0.1)
    assert np.log(columns["run_time"][made]).std() == pytest.approx(1.2, rel=0.1)
    assert columns["run_time"][made].max() <= 21_600
    assert whole.name == "log with 4,000 generated jobs"


def test_the_same_seed_makes_the_same_jobs_and_a_share_of_them_ran() -> None:
    one, same, other = (put_back(cleaned(), parse_put_back(f"{KEYS},ran=0.9,seed={seed}")).table for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert len(one) - 4 == pytest.approx(3600, abs=100)
    assert not np.array_equal(one[: len(other)], other[: len(one)])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (KEYS.replace("first=3", "first=0"), "put-back: first=0: expected a number greater than or equal to 1"),
        (KEYS.replace("last=4002", "last=2"), f"put-back: last=2: expected 3 (the first) to {MAX_LINES + 2}"),
        (KEYS.replace("last=4002", f"last={MAX_LINES + 3}"), f"put-back: last={MAX_LINES + 3}: expected 3 (the first)"),
        (f"{KEYS},users=3", "put-back: users=3: there is no such key"),
        ("first=3", "put-back: last: it is missing"),
    ],
)
def test_a_wrong_description_is_named(keys: str, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_put_back(keys)
    assert str(raised.value).startswith(message)


def test_the_largest_range_is_accepted() -> None:
    assert parse_put_back(KEYS.replace("last=4002", f"last={MAX_LINES + 2}")).last == MAX_LINES + 2


def test_a_log_that_lacks_no_job_is_refused() -> None:
    with pytest.raises(TraceError, match="log: no job can be put back: it has all jobs from 1 to 2"):
        put_back(cleaned(), parse_put_back(KEYS.replace("first=3", "first=1").replace("last=4002", "last=2")))
