"""WFP against the textbook, and by hand."""

import pytest
from hypothesis import given

from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures
from shadowtime.services.scheduler.ordering.ordering import Ordering
from shadowtime.services.scheduler.ordering.orders import wfp3
from shadowtime.services.scheduler.ordering.settings import OrderedSettings
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from shadowtime.shared.spec import Spec
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import UNUSED, Instance, StartedJob, WaitingJob, instances
from tests.support.textbook_easy import easy, wfp

WFP = POLICIES.build(Spec("wfp"))


def decide(instance: Instance) -> list[Start]:
    decisions = WFP.schedule(instance.now, *instance.tables(), instance.free)
    return [each for each in decisions if isinstance(each, Start)]


@given(instance=instances())
@examples(800)
def test_wfp_is_the_textbook_over_a_sorted_queue(instance: Instance) -> None:
    assert decide(instance) == wfp(instance)


@given(instance=instances())
@examples(200)
def test_where_nobody_has_waited_it_is_easy(instance: Instance) -> None:
    waiting = sorted(instance.queue, key=lambda job: job.job_number)
    fresh = instance._replace(queue=[job._replace(submit_time=instance.now) for job in waiting])
    assert decide(fresh) == easy(fresh)


def order(now: int, *queue: WaitingJob, uses: PolicySettings | None = None) -> list[int]:
    table, _ = Instance(now, 0, list(queue), [], (), uses or UNUSED).tables()
    numbers: list[int] = table.job_number[Ordering(OrderedSettings(queue="wfp3")).rows(now, table)].tolist()
    return numbers


def test_long_waits_short_requests_and_large_sizes_go_first() -> None:
    plain, other = WaitingJob(1, 50, 2, 100, 100), WaitingJob(2, 50, 2, 100, 100)
    assert order(80, plain, other) == [1, 2]
    assert order(80, plain, other._replace(processors=3)) == [2, 1]
    assert order(80, plain, other._replace(requested_time=90, predicted_time=90)) == [2, 1]
    assert order(80, plain, other._replace(predicted_time=90)) == [2, 1]
    assert order(80, plain._replace(submit_time=40), other) == [1, 2]


def test_a_score_grows_with_the_cube_of_the_wait() -> None:
    """Twice the wait weighs as much as eight times the processors, and then the earlier submission decides."""
    small, large = WaitingJob(1, 20, 1, 100, 100), WaitingJob(2, 60, 8, 100, 100)
    assert order(100, small, large) == [1, 2]
    assert order(100, small, large._replace(processors=9)) == [2, 1]


def test_who_has_not_waited_or_requests_nothing_comes_last() -> None:
    fresh, endless, waiting = (
        WaitingJob(3, 100, 512, 1, 1),
        WaitingJob(1, 0, 512, NEVER, NEVER),
        WaitingJob(2, 99, 1, 10**6, 10**6),
    )
    assert order(100, endless, waiting, fresh) == [2, 1, 3]


def test_long_waits_do_not_overflow() -> None:
    queue, _ = Instance(2**39, 0, [WaitingJob(1, 0, 2**20, 1, 1), WaitingJob(2, 1, 2**20, 1, 1)], [], ()).tables()
    first, second = (-wfp3(WaitingColumns(2**39, queue, "plan", RunTimeMeasures()))).tolist()
    assert first == float(2**39) ** 3 * 2**20 > second > 0


@pytest.mark.parametrize(("on", "expected"), [(False, [1, 2]), (True, [2, 1])])
def test_adjusted_requests_count_where_they_order_the_queue(on: bool, expected: list[int]) -> None:
    jobs = WaitingJob(1, 0, 2, 100, 100), WaitingJob(2, 0, 2, 120, 120, adjusted_time=60)
    assert order(50, *jobs, uses=PolicySettings(adjust_queue=on)) == expected


def test_the_head_and_the_candidates_are_those_by_score() -> None:
    """Job 3 waits for 8 of 10 and must not be delayed by job 2, which came first; job 4 ends in time."""
    queue = [WaitingJob(2, 10, 4, 1000, 1000), WaitingJob(3, 20, 8, 20, 20), WaitingJob(4, 30, 4, 150, 150)]
    (start,) = decide(Instance(50, 4, queue, [StartedJob(1, 0, 6, 200, 200, 0)], ()))
    assert start.job_number == 4
    assert start.reason == Backfilled(
        head=3, shadow_time=200, extra_processors=2, expected_end=200, ends_by_shadow_time=True
    )


def test_heads_start_in_order_of_score() -> None:
    queue = [WaitingJob(2, 10, 4, 1000, 1000), WaitingJob(3, 20, 5, 20, 20), WaitingJob(4, 30, 1, 150, 150)]
    starts = decide(Instance(50, 10, queue, [], ()))
    assert [(each.job_number, each.reason) for each in starts] == [(3, FitsNow()), (4, FitsNow()), (2, FitsNow())]
