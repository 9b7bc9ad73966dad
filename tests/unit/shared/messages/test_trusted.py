"""Messages that our own code makes unchecked are what checked ones would be."""

import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pydantic import ValidationError

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, in_bounds, submission, unchecked
from shadowtime.services.catalogue import configure
from shadowtime.shared.cluster.job import UNKNOWN
from shadowtime.shared.messages.base import MAX_INTEGER, FrozenModel, construct_unchecked
from shadowtime.shared.messages.envelope import Decided, Envelope, JobSubmitted, SchedulingPoint

JOBS = 120
POLICIES = (
    *("easy", "easy-sjbf:runtime=last-two", "best", "cautious:forecast=yes"),
    *("conservative", "lwf", "tuned", "guarded"),
)
WORKLOAD = prepare(read_swf(BUNDLED), limit=JOBS)


def messages(message: object) -> Iterator[FrozenModel]:
    """Yield all messages within one, and itself."""
    if isinstance(message, FrozenModel):
        yield message
        for value in vars(message).values():
            yield from messages(value)
    elif isinstance(message, tuple):
        for value in message:
            yield from messages(value)


def require_checked(envelope: Envelope) -> None:
    """Fail unless an envelope is what a checked one is: to the byte, in types, and in the order of fields."""
    again = Envelope.model_validate(envelope.model_dump())
    assert envelope == again == Envelope.from_bytes(envelope.to_bytes())
    assert envelope.to_bytes() == again.to_bytes()
    for made, checked in zip(messages(envelope), messages(again), strict=True):
        assert type(made) is type(checked)
        assert list(made.__dict__) == list(checked.__dict__) == list(type(made).model_fields)
        assert [type(value) for value in made.__dict__.values()] == [type(each) for each in checked.__dict__.values()]


@pytest.mark.parametrize("mode", ["closed", "recorded"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_envelope_of_a_replay_is_as_a_checked_one(policy: str, mode: str) -> None:
    seen: list[Envelope] = []
    carry_out(RunPlan(policy, "bundled", WORKLOAD, configure(policy), mode, sample_every=86_400), [seen.append])
    assert len(seen) > 3 * JOBS
    for envelope in seen:
        require_checked(envelope)


def test_a_message_is_the_same_unchecked() -> None:
    point = SchedulingPoint(time=60)
    assert construct_unchecked(SchedulingPoint, time=60) == point
    assert construct_unchecked(Decided, time=60).model_dump_json() == Decided(time=60).model_dump_json()
    told = Envelope(run="r", sequence=3, event=point)
    later = told.replaced(sequence=4, event=Decided(time=60))
    assert later == Envelope(run="r", sequence=4, event=Decided(time=60))
    assert told == Envelope(run="r", sequence=3, event=point)
    assert later.model_copy(update={"sequence": 5}).sequence == 5
    with pytest.raises(FrozenInstanceError, match="Envelope is immutable: sequence cannot be set"):
        later.sequence = 6  # type: ignore[misc]


def test_a_field_of_one_kind_is_none_of_another() -> None:
    class Other(FrozenModel):
        name: str = "x"

    assert set(Other.blank__) == {"name"}
    assert "name" not in SchedulingPoint.blank__


def with_column(name: str, value: int) -> Workload:
    """Return the workload, of which one job has another value of a field."""
    columns: dict[str, Any] = {each: column.copy() for each, column in WORKLOAD.columns.items()}
    columns[name][7] = value
    return Workload("odd", WORKLOAD.processors, columns, {}, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_id", MAX_INTEGER + 1),
        ("processors", 0),
        ("processors", UNKNOWN),
        ("job_number", UNKNOWN),
        ("requested_time", 0),
    ],
)
def test_a_log_with_one_value_out_of_bounds_is_checked_job_by_job(name: str, value: int) -> None:
    assert in_bounds(WORKLOAD.columns, DEFAULT_TRAITS)
    odd = with_column(name, value)
    assert not in_bounds(odd.columns, DEFAULT_TRAITS)
    with pytest.raises(ValidationError):
        submission(odd[7])


def test_what_a_log_does_not_say_is_in_bounds() -> None:
    assert in_bounds(with_column("user_id", UNKNOWN).columns, DEFAULT_TRAITS)
    assert [submission(job, make=unchecked) for job in WORKLOAD] == [submission(job) for job in WORKLOAD]
    assert type(submission(WORKLOAD[0], make=unchecked)) is JobSubmitted


def test_a_message_is_read_as_any_object_and_can_be_copied_and_sent() -> None:
    """With a `__getattr__`, as models have, reading a field takes four times as long."""
    assert not any("__getattr__" in vars(each) or "__getattribute__" in vars(each) for each in Envelope.__mro__[:-1])
    told = Envelope(run="r", sequence=3, event=Decided(time=60))
    for same in (pickle.loads(pickle.dumps(told)), copy.copy(told), copy.deepcopy(told)):
        assert same == told
        assert hash(same) == hash(told)
    assert told != told.event
    assert repr(told.event).startswith("Decided(kind='Decided', time=60, starts=(), ")
    with pytest.raises(FrozenInstanceError, match="sequence cannot be deleted"):
        del told.sequence
