"""Everything that can go wrong in a way a user can act on.

ShadowtimeError
├── TraceError           a trace cannot be read, or holds nothing to replay
├── SettingsError        an option, a SPEC or one of its keys is not known or out of range
├── OutputError          a result file cannot be written
├── LogViolation         an event that parses but contradicts the log before it
├── SequenceGap          an event is missing from the log
├── SnapshotMismatch     a snapshot of another schema or of other settings
├── BusError             Kafka cannot be used
│   └── MessageRejected      Kafka never takes this message, however often it is sent
├── StoreError           Redis cannot be used
│   └── FencedError      another worker owns the run, or Redis lost its last second
├── ServerError          a server of the local stack does not start or stop (stack/servers/server.py)
├── PinError             no registry says what an image's tag stands for (stack/registry.py)
├── PushError            Grafana does not take dashboards
├── FollowError          what tells of a cluster cannot be read, now or ever
└── ReplayError          a replay cannot go on

Each message names the culprit and the numbers. The command line prints it and exits with status 2; nothing else
that the project raises on purpose reaches a user.
"""

from typing import TYPE_CHECKING

from shadowtime.shared.quoting import QUOTED, quote, truncate

if TYPE_CHECKING:  # whoever has one to tell of has loaded it
    from pydantic import ValidationError

MAX_WRONG = 1_000
"""Things that may be wrong with a message, up to which the first is named."""


class WorkCancelled(BaseException):
    """Work is ended from outside, and nobody who handles errors on its way is to take it for one of them."""


class ShadowtimeError(Exception):
    """Base of every error that Shadowtime raises on purpose."""


class TraceError(ShadowtimeError):
    """A trace cannot be read, or holds nothing to replay."""


class SettingsError(ShadowtimeError):
    """An option, a SPEC or one of its keys is not known or out of range."""


class OutputError(ShadowtimeError):
    """A result file cannot be written."""


class LogViolation(ShadowtimeError):
    """An event parses but contradicts the log before it; the state of the stage is as it was."""


class SequenceGap(ShadowtimeError):
    """An event is missing from the log of a run."""


class SnapshotMismatch(ShadowtimeError):
    """A snapshot was taken under another schema or other settings."""


class BusError(ShadowtimeError):
    """Kafka cannot be used."""


class MessageRejected(BusError):
    """Kafka never takes this message, however often it is sent: it is too large, or not one at all."""


class StoreError(ShadowtimeError):
    """Redis cannot be used."""


class FencedError(StoreError):
    """Another worker owns the run, or Redis lost its last second: what this worker knows of it is out of date."""


class PushError(ShadowtimeError):
    """A Grafana does not take the dashboards."""


class FollowError(ShadowtimeError):
    """A cluster cannot be asked, or its answer cannot be understood."""


class ReplayError(ShadowtimeError):
    """A replay cannot go on."""


def first_of(error: "ValidationError", whole: str | None = None) -> str:
    """Return the first thing that is wrong with a message or a setting, on one line: where, and what.

    `whole` is what the message as a whole is called; without it the place begins with the name of its schema. Of a
    million things it would take seconds to name the first: there are just many.

    >>> from pydantic import ValidationError
    >>> from shadowtime.shared.messages.envelope import SchedulingPoint
    >>> try:
    ...     SchedulingPoint(time=2**60)
    ... except ValidationError as error:
    ...     print(first_of(error))
    ...     print(first_of(error, "message"))
    SchedulingPoint.time: Input should be less than or equal to 2199023255552
    time: Input should be less than or equal to 2199023255552
    """
    if error.error_count() > MAX_WRONG:
        return f"{whole or error.title}: {error.error_count()} things are wrong with it"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    names = (error.title, *first["loc"]) if whole is None else first["loc"] or (whole,)
    what = "Extra inputs are not permitted" if first["type"] == "unexpected_keyword_argument" else first["msg"]
    return truncate(f"{truncate('.'.join(map(str, names)), QUOTED)}: {truncate(what, 300)}")


def reason_of(error: BaseException) -> str:
    """Return what an error of a library says; its name where it says nothing.

    >>> reason_of(OSError("no route")), reason_of(TimeoutError())
    ('no route', 'TimeoutError')
    """
    return str(error) or type(error).__name__


MAX_QUOTED_LENGTH = 40
"""Characters that an error quotes of what was given."""


class Unanswerable(ShadowtimeError):
    """A question that has no answer; `status` is HTTP's word for the reason."""

    def __init__(self, status: int, reason: str, parameter: str | None = None) -> None:
        if parameter is not None and len(parameter) > MAX_QUOTED_LENGTH:
            parameter = quote(parameter, MAX_QUOTED_LENGTH)
        super().__init__(reason if parameter is None else f"{parameter}: {reason}")
        self.status = status
        self.reason = reason
        self.parameter = parameter
