"""All-reserve backfilling against conservative backfilling that plans anew at each pass."""

from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.reasons import FitsNow, Reserved
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, instances


def starts(spec: str, instance: Instance) -> list[Start]:
    decided = POLICIES.build(parse(spec)).schedule(instance.now, *instance.tables(), instance.free)
    return [each for each in decided if isinstance(each, Start)]


@given(instance=instances())
@examples(800)
def test_it_is_conservative_backfilling_without_guarantees(instance: Instance) -> None:
    found = starts("all-reserve", instance)
    expected = starts("conservative:guarantees=no", instance)
    assert [each.job_number for each in found] == [each.job_number for each in expected]
    waiting = [job.job_number for job in instance.queue]
    for at, each in enumerate(found):  # nobody who came before still waits, or its place has come
        assert each.reason == (FitsNow() if each.job_number == waiting[at] else Reserved())


@given(instance=instances(), name=st.sampled_from(["lwf", "easy", "easy-sjbf", "all-reserve"]))
@examples(300)
def test_decisions_on_requests_leave_predictions_aside(instance: Instance, name: str) -> None:
    assert starts(f"{name}:plan=requested", instance) == starts(
        f"{name}:plan=requested", instance.on_requests()._replace(uses=instance.uses)
    )


@given(instance=instances(), name=st.sampled_from(["lwf", "easy", "all-reserve"]))
def test_without_predictions_both_are_the_same(instance: Instance, name: str) -> None:
    bare = instance.on_requests()
    assert starts(name, bare) == starts(f"{name}:plan=requested", bare)
