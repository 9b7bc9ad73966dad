"""Watch a topic: a table for people, JSON lines for programs."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, BinaryIO, NamedTuple, Protocol

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.in_words import clock, lines
from shared.command_line import plain
from shared.events import Envelope, JobSubmitted
from shared.settings import Settings
from shared.subscribe import Message, subscribe
from shared.topics import DEAD_LETTERS

PREDICTIONS = ("run_time", "adjustment", "wait_bounds", "forecast", "coverage", "change_points")
"""Fields of an envelope that stages fill with what they predict, or with how earlier predictions fared."""


class Wanted(NamedTuple):
    """Which messages are to be shown; None where any is."""

    run: str | None = None
    cluster: str | None = None
    kind: str | None = None
    user: int | None = None
    job: int | None = None
    predictions: bool = False


class Filter:
    """Lets through the messages that are wanted.

    Only submissions name a user: of what comes later, that is let through which is about a job that was seen to be
    submitted. The jobs of the user that have not ended are all that is kept.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._jobs: set[tuple[str, int]] = set()

    def __call__(self, line: bytes) -> bool:
        """Return whether a message is wanted; one that no stage could read is not, unless all are."""
        wanted = self._wanted
        if wanted == Wanted():
            return True
        try:
            return self._is_wanted(orjson.loads(line))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return False  # it is a dead letter of the next stage

    def _is_wanted(self, message: Mapping[str, Any]) -> bool:
        wanted, event = self._wanted, message["event"]
        kind, run = event["kind"], message["run"]
        if (wanted.run or run) != run or (wanted.cluster or message.get("cluster")) != message.get("cluster"):
            return False
        of_user = wanted.user is None or self._is_of_user(run, kind, event)
        of_job = wanted.job is None or wanted.job in _jobs(event)
        predicts = any(message.get(name) for name in PREDICTIONS) or bool(event.get("evaluated"))
        return of_user and of_job and (wanted.kind or kind) == kind and (predicts or not wanted.predictions)

    def _is_of_user(self, run: str, kind: str, event: Mapping[str, Any]) -> bool:
        if kind == "JobSubmitted":
            if event.get("user_id") != self._wanted.user:
                return False
            self._jobs.add((run, event["job_number"]))
            return True
        found = any((run, number) in self._jobs for number in _jobs(event))
        if kind == "JobEnded" and not event.get("requeued"):
            self._jobs.discard((run, event["job_number"]))
        return found


def _jobs(event: Mapping[str, Any]) -> list[int]:
    """Return the jobs that an event is about."""
    if "job_number" in event:
        return [event["job_number"]]
    return [each["job_number"] for each in (*event.get("starts", ()), *event.get("kills", ()))]


class Printer(Protocol):
    """Where wanted messages go, those that come together at once."""

    def show(self, messages: Sequence[Message]) -> None:
        """Print messages."""
        ...


class JsonLines:
    """One line for each message: an envelope as it came, a dead letter as its headers and its text.

    What came is passed on as it is if it is one line of JSON; JSON of several lines as one, anything else as its text.
    """

    def __init__(self, output: BinaryIO, topic: str) -> None:
        self._output = output
        self._of = _dead_letter if topic == DEAD_LETTERS else _as_it_came

    def show(self, messages: Sequence[Message]) -> None:
        """Write messages, and let them be seen at once."""
        for message in messages:
            self._output.write(self._of(message) + b"\n")
        self._output.flush()


class Rows:
    """A table that grows; empty decisions and the like have no row."""

    def __init__(self, console: Console, topic: str, job: int | None = None) -> None:
        self._console = console
        self._rows = self._dead if topic == DEAD_LETTERS else self._living
        self._job = job
        self._begun = False

    def show(self, messages: Sequence[Message]) -> None:
        """Print the rows of messages, beneath the heads of the columns if they are the first."""
        table = Table(box=None, show_header=not self._begun, pad_edge=False, expand=True)
        for head, width in (("time", 14), ("cluster", 16), ("event", 9), ("job", 8), ("user", 6)):
            table.add_column(head, width=width, no_wrap=True, justify="right" if head in ("job", "user") else "left")
        table.add_column("", ratio=1, overflow="fold")
        for message in messages:
            for row in self._rows(message):
                table.add_row(*map(Text, row))
        if table.row_count:
            self._begun = True
            self._console.print(table)

    def _dead(self, message: Message) -> list[tuple[str, ...]]:
        told = message.headers
        where = " ".join(told.get(name, "") for name in ("topic", "partition", "offset"))
        return [("", "", "dead", "", "", plain(f"{told.get('stage', '')}, {where}: {told.get('reason', '')}"))]

    def _living(self, message: Message) -> list[tuple[str, ...]]:
        envelope = Envelope.read(message.value)
        if envelope is None:
            return [("", "", "unknown", "", "", "not an envelope of this schema")]
        event = envelope.event
        user = event.user_id if isinstance(event, JobSubmitted) else None
        cluster = plain(envelope.cluster or envelope.run)
        return [
            (clock(event.time), cluster, line.event, _text(line.job), _text(user), line.words)
            for line in lines(envelope)
            if self._job is None or line.job == self._job
        ]


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _as_it_came(message: Message) -> bytes:
    try:
        found = orjson.loads(message.value)
    except orjson.JSONDecodeError:
        return orjson.dumps({"value": message.value.decode(errors="replace")})
    return orjson.dumps(found) if b"\n" in message.value or b"\r" in message.value else message.value


def _dead_letter(message: Message) -> bytes:
    return orjson.dumps({**message.headers, "value": message.value.decode(errors="replace")})


async def watch(
    settings: Settings, topic: str, wanted: Wanted, printer: Printer, *, beginning: bool, count: int | None
) -> None:
    """Show the messages of a topic, for ever or up to `count`.

    Raises
    ------
    BusError
        If Kafka cannot be reached, or the topic does not exist.
    """
    is_wanted = Filter(wanted)
    shown = 0
    async with aclosing(subscribe(settings, topic, beginning=beginning)) as batches:
        async for batch in batches:
            found = [each for each in batch if topic == DEAD_LETTERS or is_wanted(each.value)]
            if count is not None:
                found = found[: count - shown]
            if found:
                printer.show(found)
            shown += len(found)
            if shown == count:
                return
