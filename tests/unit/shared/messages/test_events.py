"""Messages: frozen, closed to unknown fields, the same after a trip through JSON."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shadowtime.shared.cluster.job import Job
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    SCHEMA_VERSION,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.testing.examples import examples
from tests.support.strategies.events import BY_TYPE, EVENT_TYPES, envelopes

EVERY_TYPE = pytest.mark.parametrize("event_type", EVENT_TYPES, ids=lambda each: each.__name__)


def test_every_event_type_is_drawn() -> None:
    assert set(BY_TYPE) == set(EVENT_TYPES)


@EVERY_TYPE
@given(data=st.data())
@examples(40)
def test_envelope_is_the_same_after_json(event_type: type[Any], data: st.DataObject) -> None:
    envelope = data.draw(envelopes(event_type))
    again = Envelope.from_bytes(envelope.to_bytes())
    assert again == envelope
    assert type(again.event) is event_type
    assert again.model_dump_json() == envelope.model_dump_json()


@EVERY_TYPE
@given(data=st.data())
@examples(20)
def test_event_is_told_by_its_kind_alone(event_type: type[Any], data: st.DataObject) -> None:
    event = data.draw(BY_TYPE[event_type])
    assert event.kind == event_type.__name__
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    assert adapter.validate_python(event.model_dump()) == event


@EVERY_TYPE
@given(data=st.data())
@examples(20)
def test_event_is_frozen(event_type: type[Any], data: st.DataObject) -> None:
    event = data.draw(BY_TYPE[event_type])
    with pytest.raises(FrozenInstanceError, match="is immutable: time cannot be set"):
        event.time = 0


@EVERY_TYPE
@given(data=st.data())
@examples(20)
def test_event_refuses_fields_that_it_does_not_have(event_type: type[Any], data: st.DataObject) -> None:
    event = data.draw(BY_TYPE[event_type])
    with pytest.raises(ValidationError, match="colour\n  Unexpected keyword argument"):
        event_type.model_validate(event.model_dump() | {"colour": "red"})


def test_envelope_refuses_fields_that_it_does_not_have() -> None:
    plain = Envelope(run="r", sequence=0, event=SchedulingPoint(time=0)).model_dump()
    with pytest.raises(ValidationError, match="colour\n  Unexpected keyword argument"):
        Envelope.model_validate(plain | {"colour": "red"})


def test_a_submission_says_nothing_that_only_the_future_knows() -> None:
    future = {"run_time", "wait_time", "status"}
    assert future <= set(Job._fields)
    assert not future & set(JobSubmitted.model_fields)
    with pytest.raises(ValidationError, match="run_time"):
        JobSubmitted.model_validate({"time": 0, "job_number": 1, "requested_processors": 1, "run_time": 5})


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1, None])
def test_envelope_of_another_schema_version_is_refused(version: int | None) -> None:
    plain = Envelope(run="r", sequence=0, event=SchedulingPoint(time=0)).model_dump()
    assert plain["schema_version"] == SCHEMA_VERSION
    with pytest.raises(ValidationError, match="schema_version"):
        Envelope.model_validate(plain | {"schema_version": version})


def test_an_unknown_kind_of_event_is_refused() -> None:
    text = b'{"schema_version":2,"run":"r","sequence":0,"event":{"kind":"JobDreamt","time":0}}'
    with pytest.raises(ValidationError, match="JobDreamt"):
        Envelope.model_validate_json(text)


@pytest.mark.parametrize(
    ("message", "values"),
    [
        (JobSubmitted, {"time": 0, "job_number": -1, "requested_processors": 1}),
        (JobSubmitted, {"time": 0, "job_number": 1, "requested_processors": 0}),
        (JobSubmitted, {"time": 0, "job_number": 1, "requested_processors": 1, "requested_time": 0}),
        (JobSubmitted, {"time": 0.5, "job_number": 1, "requested_processors": 1}),
        (JobStarted, {"time": 0, "job_number": 1, "processors": 0}),
        (JobStarted, {"time": 0, "job_number": 1, "processors": 1, "limit": 0}),
        (JobEnded, {"time": 0, "job_number": 1, "run_time": -1}),
        (JobEnded, {"time": 0, "job_number": 1, "run_time": 1, "outcome": "vanished"}),
        (Start, {"job_number": 1, "processors": 1, "limit": None, "reason": {"kind": "felt-like-it"}}),
        (Envelope, {"run": "", "sequence": 0, "event": {"kind": "SchedulingPoint", "time": 0}}),
        (Envelope, {"run": "r", "sequence": -1, "event": {"kind": "SchedulingPoint", "time": 0}}),
    ],
)
def test_values_out_of_range_are_refused(message: type[Any], values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        message.model_validate(values)


@pytest.mark.parametrize(
    ("event_type", "fields"),
    [
        (JobSubmitted, {"time": 0, "job_number": 2**63, "requested_processors": 1}),
        (JobSubmitted, {"time": 0, "job_number": 1, "requested_processors": 1, "user_id": 2**64}),
        (JobSubmitted, {"time": 0, "job_number": 1, "requested_processors": 1, "requested_time": 2**41}),
        (JobStarted, {"time": 0, "job_number": 1, "processors": 2**63}),
        (SchedulingPoint, {"time": 2**62}),
        (SchedulingPoint, {"time": -(2**62)}),
    ],
)
def test_numbers_that_no_sum_of_64_bits_holds_are_refused(event_type: type[Any], fields: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        event_type(**fields)
