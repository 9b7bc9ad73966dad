"""Speculation by expected gain, against the sum that it stands for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.policies.trial_runs import worthwhile
from shadowtime.shared.distributions.histogram import BINS, EDGES
from shadowtime.shared.messages.envelope import Decided, Envelope, JobEnded
from shadowtime.shared.messages.reasons import Speculated
from shadowtime.testing.workloads import TraceRow, workload
from tests.support.plain_formulas import conditional

MASSES = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=20).filter(any)


@given(
    masses=MASSES,
    hole=st.integers(1, 100_000),
    saved=st.integers(0, 100_000),
    ran=st.integers(0, 5000),
    request=st.integers(2, 100_000),
)
def test_the_limit_gains_most(masses: list[float], hole: int, saved: int, ran: int, request: int) -> None:
    padded = np.array(masses + [0.0] * (BINS - len(masses)))
    found = worthwhile(hole, saved, ran, request, padded, EDGES)
    times, probabilities = conditional(padded, float(ran), float(request))
    gains = {0: 0.0}
    for k, end in enumerate(times.tolist()):
        limit, ends = math.ceil(end), float(probabilities[: k + 1].sum())
        if ran < limit <= hole:
            gains[limit] = ends * saved - (1 - ends) * limit
    assert found in gains
    assert gains[found] >= max(gains.values()) - 1e-6
    assert not found or ran < found <= hole


def test_who_is_known_to_fail_early_is_tried_early() -> None:
    """User 1's jobs end within a minute of ten hours; user 2's run to their requests."""
    run_times = {1: 50, 2: 36_000}
    rows = [TraceRow(n, 40_000 * n, 2, 36_000, run_times[user], user) for n, user in enumerate([1, 2] * 8, 1)]
    late = 40_000 * 20
    rows += [
        TraceRow(90, late, 3, 7200, 7200, 3),  # one processor is left for two hours
        TraceRow(91, late, 4, 7200, 7200, 3),
        TraceRow(92, late + 1, 1, 36_000, 50, 1),
        TraceRow(93, late + 2, 1, 36_000, 36_000, 2),
    ]
    policy = "conservative:speculate=expected,plan=requested,runtime=empirical"
    trials: list[tuple[int, int | None]] = []
    ends: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, Decided):
            trials.extend((each.job_number, each.limit) for each in event.starts if isinstance(each.reason, Speculated))
        elif isinstance(event, JobEnded):
            ends[event.job_number] = event.time

    RunPlan(policy, "c", workload(4, rows), configure(policy)).replay([note]).run_to_end()
    number, limit = trials[0]
    assert (number, ends[92]) == (92, late + 1 + 50)
    assert limit is not None
    assert 50 <= limit <= 7200
    assert all(limit is not None and limit < 120 for number, limit in trials[1:])  # a hint of others' jobs is little


def on_test(policy: str, jobs: Workload) -> list[tuple[int, int | None]]:
    """Return job and limit of each test run."""
    found: list[tuple[int, int | None]] = []

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, Decided):
            reasons = [(each, each.reason) for each in envelope.event.starts]
            found.extend((e.job_number, e.limit) for e, why in reasons if isinstance(why, Speculated) and why.test_run)

    RunPlan(policy, "c", jobs, configure(policy)).replay([note]).run_to_end()
    return found


@pytest.mark.parametrize(("requested_time", "tests"), [(7200, []), (10_800, []), (10_801, [(5, 900)])])
def test_on_half_the_processors_a_request_is_no_longer(requested_time: int, tests: list[tuple[int, int]]) -> None:
    rows = [TraceRow(n, 0, size, 700, 700) for n, size in enumerate((8, 6, 8, 8), 1)]
    rows.append(TraceRow(5, 0, 2, requested_time, requested_time))
    assert on_test("conservative:test_runs=yes,shape=half", workload(8, rows)) == tests


@pytest.mark.parametrize("runtime", ["requested", "last-two"])
def test_a_long_request_is_tested_whatever_is_predicted(runtime: str) -> None:
    """User 1 asks for ten hours, and took 50 minutes each time."""
    rows = [TraceRow(n, 40_000 * n, 1, 36_000, 3000, 1) for n in (1, 2, 3)]
    late = 40_000 * 9
    rows += [
        TraceRow(90, late, 3, 2000, 2000, 3),  # one processor is left for 2000 s
        TraceRow(91, late, 4, 7200, 7200, 3),
        TraceRow(92, late + 1, 1, 36_000, 30_000, 1),
    ]
    assert on_test(f"conservative:test_runs=yes,runtime={runtime}", workload(4, rows)) == [(92, 900)]
