"""Generated logs: the users behind them, the same for the same seed, and the command that writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.replayer.synthetic.users import POPULAR_REQUESTS
from shadowtime.shared.errors import SettingsError
from shadowtime.testing.examples import examples
from tests.support.generated_log import column
from tests.unit.replayer.synthetic.sizes import is_power_of_two

DAY = 86_400


def test_marginals_survive_the_repetition_by_users() -> None:
    _, table = generate(200_000, 128, seed=5)
    sizes, run_times = column(table, "requested_processors"), column(table, "run_time")
    assert np.mean(sizes == 1) == pytest.approx(0.244, abs=0.05)
    assert np.mean(is_power_of_two(sizes)) == pytest.approx(0.87, abs=0.05)
    # 5.49 by the model; jobs that fail early take a little away.
    assert np.log(run_times).mean() == pytest.approx(5.3, abs=0.3)


@examples(60)
@given(
    jobs=st.integers(1, 400),
    processors=st.sampled_from([1, 2, 3, 100, 128, 80_000]),
    seed=st.integers(0, 2**64 - 1),
    load=st.floats(0.01, 100),
)
def test_every_trace_is_valid(jobs: int, processors: int, seed: int, load: float) -> None:
    header, table = generate(jobs, processors, seed, load)
    size, submit_time = column(table, "requested_processors"), column(table, "submit_time")
    run_time, requested_time = column(table, "run_time"), column(table, "requested_time")
    assert header["MaxProcs"] == str(processors)
    assert column(table, "job_number").tolist() == list(range(1, jobs + 1))
    assert submit_time[0] >= 0
    assert np.all(np.diff(submit_time) >= 0)
    assert size.min() >= 1
    assert size.max() <= processors
    assert run_time.min() >= 1
    assert np.all(run_time <= requested_time)
    assert np.isin(requested_time, POPULAR_REQUESTS).all()
    assert np.isin(column(table, "status"), [0, 1, 5]).all()
    assert submit_time[-1] == pytest.approx(np.dot(run_time, size) / (load * processors), abs=0.51)
    for name in ("wait_time", "average_cpu_time", "used_memory", "requested_memory", "think_time"):
        assert np.all(column(table, name) == -1)


def test_users_repeat_themselves() -> None:
    _, table = generate(20_000, 128, seed=3)
    user, executable = column(table, "user_id"), column(table, "executable_number")
    size, requested_time = column(table, "requested_processors"), column(table, "requested_time")
    assert 50 < len(table) / len(np.unique(user)) < 100
    assert np.bincount(user).max() > 5 * len(table) / len(np.unique(user))
    assert len(np.unique(np.stack([user, column(table, "group_id")]), axis=1).T) == len(np.unique(user))
    for once_per_application in (user, size):
        pairs = np.unique(np.stack([executable, once_per_application]), axis=1)
        assert pairs.shape[1] == len(np.unique(executable))
    previous: dict[int, int] = {}
    same = 0
    for application, request in zip(executable.tolist(), requested_time.tolist(), strict=True):
        same += previous.get(application) == request
        previous[application] = request
    assert same / len(table) > 0.6


def test_requests_overestimate_and_some_jobs_are_killed_or_fail() -> None:
    _, table = generate(20_000, 128, seed=3)
    run_time, requested_time, status = (column(table, name) for name in ("run_time", "requested_time", "status"))
    assert np.mean(run_time / requested_time) < 0.5
    killed = run_time == requested_time
    assert 0.02 < killed.mean() < 0.10
    assert set(status[killed].tolist()) == {0, 5}
    assert set(status[~killed].tolist()) == {0, 1}
    assert 0.05 < np.mean((status == 0) & ~killed) < 0.11
    queue = column(table, "queue_number")
    ranges = [(requested_time[queue == n].min(), requested_time[queue == n].max()) for n in (1, 2, 3)]
    assert ranges == [(300, 3600), (7200, 12 * 3600), (18 * 3600, 48 * 3600)]


def test_same_seed_same_trace() -> None:
    header, table = generate(500, 64, seed=1, load=0.5)
    again, same = generate(500, 64, seed=1, load=0.5)
    assert again == header
    assert np.array_equal(same, table)
    assert not np.array_equal(generate(500, 64, seed=2, load=0.5)[1], table)


def test_load_moves_the_arrivals_only() -> None:
    (_, light), (_, heavy) = generate(500, 64, seed=1, load=0.4), generate(500, 64, seed=1, load=0.8)
    rest = np.arange(len(FIELDS)) != FIELDS.index("submit_time")
    assert np.array_equal(light[:, rest], heavy[:, rest])
    assert light[-1, 1] == pytest.approx(2 * heavy[-1, 1], abs=2)


@pytest.mark.parametrize(
    ("jobs", "processors", "seed", "load", "complaint"),
    [
        (0, 128, 1, 0.6, "jobs 0: expected a value from 1 to 10000000"),
        (-5, 128, 1, 0.6, "jobs -5: "),
        (10**9, 128, 1, 0.6, "jobs 1000000000: "),
        (10, 0, 1, 0.6, "processors 0: expected a value from 1 to 10000000"),
        (10, 128, -1, 0.6, "seed -1: "),
        (10, 128, 1, 0.0, r"load 0\.0: expected a value from 0\.01 to 100\.0"),
        (10, 128, 1, -1.0, "load -1"),
        (10, 128, 1, float("nan"), "load nan"),
        (10, 128, 1, float("inf"), "load inf"),
    ],
)
def test_arguments_out_of_range(jobs: int, processors: int, seed: int, load: float, complaint: str) -> None:
    with pytest.raises(SettingsError, match=f"^{complaint}"):
        generate(jobs, processors, seed, load)


# The command line
