"""Errors that a user can act on.

ShadowtimeError
├── TraceError           a trace cannot be read, or has nothing to replay
├── SettingsError        an option, a SPEC or one of its keys is not known or out of range
├── OutputError          a result file cannot be written
├── LogViolation         an event that parses but contradicts the log before it
├── SequenceGap          an event is missing from the log
├── SnapshotMismatch     a snapshot that is damaged, or of another schema or other settings
│   └── StateAltered         stored state that its stage has not written
├── BusError             Kafka cannot be used
│   └── MessageRejected      Kafka never accepts this message, however often it is sent
├── StoreError           Redis cannot be used
│   └── FencedError      another worker owns the run, or Redis lost its last second of writes
├── ServerError          a server of the local stack does not start or stop (stack/servers/server.py)
├── PinError             no registry resolves an image's tag (stack/pin.py)
├── PushError            Grafana rejects dashboards
├── FollowError          a cluster cannot be polled, or its answer cannot be read
│   └── ContradictionError   two answers of a cluster contradict each other
├── ReplayError          a replay cannot continue
└── Unanswerable         a question to a service has no answer

Each message names the culprit and the numbers. The command line prints it and exits with status 2. No other exception
that the project raises on purpose reaches a user.
"""

import re
from typing import TYPE_CHECKING, Any

from shadowtime.shared.quoting import QUOTED, quote, truncate

if TYPE_CHECKING:  # importing pydantic takes time, and a caller with such an error has loaded it
    from collections.abc import Mapping

    from pydantic import ValidationError

MAX_WRONG = 1_000
"""If a message has more errors than this, only their number is shown. Otherwise the first error is described."""


class WorkCancelled(BaseException):
    """Work is cancelled from outside. It is a `BaseException`, so that handlers of errors do not catch it."""


class ShadowtimeError(Exception):
    """Base of the errors of Shadowtime. A command prints them on one line, without a traceback."""


class TraceError(ShadowtimeError):
    """A trace cannot be read, or has nothing to replay."""


class SettingsError(ShadowtimeError):
    """An option, a SPEC or one of its keys is not known or out of range."""


class OutputError(ShadowtimeError):
    """A result file cannot be written."""


class LogViolation(ShadowtimeError):
    """An event parses but contradicts the log before it. The state of the stage is unchanged."""


class SequenceGap(ShadowtimeError):
    """An event is missing from the log of a run."""


class SnapshotMismatch(ShadowtimeError):
    """A stored state cannot be restored: it is damaged, quarantined, or of another schema or other settings."""


class StateAltered(SnapshotMismatch):
    """The state of a run in Redis is not what its stage has written there."""


class BusError(ShadowtimeError):
    """Kafka cannot be used."""


class MessageRejected(BusError):
    """Kafka never accepts this message, however often it is sent: it is too large or malformed."""


class StoreError(ShadowtimeError):
    """Redis cannot be used."""


class FencedError(StoreError):
    """Another worker owns the run, or Redis lost its last second of writes. This worker's state is out of date."""


class PushError(ShadowtimeError):
    """Grafana rejects the dashboards."""


class FollowError(ShadowtimeError):
    """A cluster cannot be polled, or its answer cannot be read."""


class ContradictionError(FollowError):
    """Two answers of a cluster contradict each other. Neither is believed."""


class ReplayError(ShadowtimeError):
    """A replay cannot continue."""


def first_of(error: "ValidationError", whole: str | None = None) -> str:
    """Return the first error of a message or a setting, on one line: its place, and its description.

    The place begins with the name of the schema, unless `whole` is given. `whole` is then the place of an error that
    concerns the whole message. With more than `MAX_WRONG` errors only their number is returned: naming one of a million
    takes seconds.

    >>> from pydantic import ValidationError
    >>> from shadowtime.shared.messages.envelope import SchedulingPoint
    >>> try:
    ...     SchedulingPoint(time=2**60)
    ... except ValidationError as error:
    ...     print(first_of(error))
    ...     print(first_of(error, "message"))
    SchedulingPoint.time: expected a number less than or equal to 2199023255552
    time: expected a number less than or equal to 2199023255552
    """
    if error.error_count() > MAX_WRONG:
        return f"{whole or error.title}: {error.error_count()} errors"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    names = (error.title, *first["loc"]) if whole is None else first["loc"] or (whole,)
    return truncate(f"{truncate('.'.join(map(str, names)), QUOTED)}: {truncate(in_plain_words(first), 300)}")


PLAIN = {
    "extra_forbidden": "there is no such key",
    "unexpected_keyword_argument": "there is no such key",
    "missing": "it is missing",
    "missing_argument": "it is missing",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "dict_type": "expected a table of keys and values",
    "mapping_type": "expected a table of keys and values",
    "model_type": "expected a table of keys and values",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
}
"""Our words for errors of pydantic, by their type."""


def in_plain_words(error: "Mapping[str, Any]") -> str:
    """Return the description of one of pydantic's errors, in words that do not name Python's types.

    >>> in_plain_words({"type": "tuple_type", "msg": "Input should be a valid tuple"})
    'expected a list'
    >>> in_plain_words({"type": "value_error", "msg": "Value error, no such log"})
    'no such log'
    >>> in_plain_words({"type": "less_than", "msg": "Input should be less than 8"})
    'expected a number less than 8'
    >>> in_plain_words({"type": "too_long", "msg": "Tuple should have at most 2 items after validation, not 3"})
    'expected at most 2 items, found 3'
    """
    text: str = error["msg"].removeprefix("Value error, ")
    text = re.sub("^Input should be (?=less|greater)", "expected a number ", text)
    text = re.sub(r"^\w+ should have (?=at (least|most) \d)", "expected ", text)
    text = text.replace(" after validation, not ", ", found ").replace(
        "String should match pattern", "expected a text of the pattern"
    )
    return PLAIN.get(error["type"], text.replace("Input should be ", "expected ", 1))


def reason_of(error: BaseException) -> str:
    """Return the message of a library's error, or the name of its class if the message is empty.

    >>> reason_of(OSError("no route")), reason_of(TimeoutError())
    ('no route', 'TimeoutError')
    """
    return str(error) or type(error).__name__


MAX_QUOTED_LENGTH = 40
"""Maximum characters of a parameter that an error quotes."""


class Unanswerable(ShadowtimeError):
    """A question has no answer. `status` is the HTTP status code, `parameter` the faulty parameter, None if none is."""

    def __init__(self, status: int, reason: str, parameter: str | None = None) -> None:
        if parameter is not None and len(parameter) > MAX_QUOTED_LENGTH:
            parameter = quote(parameter, MAX_QUOTED_LENGTH)
        super().__init__(reason if parameter is None else f"{parameter}: {reason}")
        self.status = status
        self.reason = reason
        self.parameter = parameter
