"""Pace: real time is injected."""

from itertools import pairwise

import pytest

from shadowtime.replayer.comparison.plan import carry_out, carry_out_paced
from shadowtime.replayer.io.timing import Pace
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import Envelope
from tests.support.small_logs import generated, plan_of


class Clock:
    """A clock that moves only when slept on, or pushed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def pace_on(clock: Clock, factor: float) -> Pace:
    return Pace(factor, clock=clock.read, sleep=clock.sleep)


def test_waits_until_each_instant_is_due() -> None:
    clock = Clock()
    pace = pace_on(clock, 10)
    for elapsed in (0, 30, 30, 100):
        pace.wait_for(elapsed)
    assert clock.slept == pytest.approx([3.0, 7.0])


def test_what_is_late_is_not_waited_for_and_not_made_up_twice() -> None:
    clock = Clock()
    pace = pace_on(clock, 1)
    pace.wait_for(0)
    clock.now += 50  # the pipeline took its time
    pace.wait_for(20)
    pace.wait_for(60)
    assert clock.slept == pytest.approx([10.0])


def test_a_resumed_run_does_not_wait_for_its_past() -> None:
    clock = Clock()
    pace = pace_on(clock, 2)
    pace.wait_for(5000)
    pace.wait_for(5010)
    assert clock.slept == pytest.approx([5.0])


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), float("-inf")])
def test_factors_that_make_no_sense(factor: float) -> None:
    with pytest.raises(SettingsError, match=r"expected `max` or a finite factor of at least 0\.001"):
        Pace(factor)


def test_paced_runs_go_side_by_side_and_decide_as_unpaced_ones() -> None:
    plans = [plan_of(generated(jobs=30, seed=seed))._replace(cluster=f"c{seed}") for seed in (1, 2)]
    clock = Clock()
    told: list[tuple[str, int, int]] = []

    def note(envelope: Envelope) -> None:
        told.append((envelope.run, envelope.sequence, envelope.event.time))

    done = carry_out_paced(plans, pace_on(clock, 1e6), [[note], [note]])
    assert [each.plan for each in done] == plans
    results = {each.plan.cluster: each for each in done}
    assert {name: each.scores for name, each in results.items()} == {
        plan.cluster: carry_out(plan).scores for plan in plans
    }
    # Trace time, counted from each run's own first instant, never goes back: so the runs interleave.
    began = {run: time for run, sequence, time in reversed(told) if sequence == 0}
    elapsed = [time - began[run] for run, _, time in told]
    assert elapsed == sorted(elapsed)
    runs = [run for run, _, _ in told]
    assert sum(before != after for before, after in pairwise(runs)) > 5
    longest = max(elapsed)
    assert sum(clock.slept) == pytest.approx(longest / 1e6)
