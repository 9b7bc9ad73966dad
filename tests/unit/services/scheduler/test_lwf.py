"""Least work first against a list that is sorted."""

from hypothesis import given

from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.messages.reasons import FitsNow
from shadowtime.shared.spec import Spec
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, instances, times_of

LWF = POLICIES.build(Spec("lwf"))


@given(instance=instances())
@examples(500)
def test_the_least_work_goes_first_and_blocks_the_rest(instance: Instance) -> None:
    times = "adjusted_prediction" if instance.uses.adjust_queue else "predicted_time"
    expected, free = [], instance.free
    for job in sorted(instance.queue, key=lambda each: each.processors * getattr(times_of(each), times)):
        if job.processors > free:
            break
        free -= job.processors
        expected.append(job.job_number)
    found = list(LWF.schedule(instance.now, *instance.tables(), instance.free))
    assert [each.job_number for each in found if isinstance(each, Start) and each.reason == FitsNow()] == expected
    assert len(found) == len(expected)


def test_work_beyond_all_whole_numbers() -> None:
    """Two billion processors for 30,000 years are more than 64 bits hold."""
    instance = Instance(0, 2**31, [], [], ())
    queue, running = instance.tables()
    never = 1 << 40
    queue.add((1, 0, 2**31 - 1, never, never, never, never, -1))
    queue.add((2, 0, 1, 60, 60, 60, 60, -1))
    assert [each.job_number for each in LWF.schedule(0, queue, running, 2**31) if isinstance(each, Start)] == [2, 1]


def test_explanations_name_its_order() -> None:
    """A policy that serves its queue in an order of its own says which; the others serve in order of submission."""
    for policy, order in (("lwf", "least work"), ("fcfs", "fcfs"), ("easy:queue=spf", "spf")):
        (pool,) = Scheduler(ClusterOpened(time=0, cluster="c", processors=4, policy=policy)).pools
        assert pool.policy.named_order() == order
