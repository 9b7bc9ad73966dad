"""Watch a topic: a table for people, JSON lines for programs."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, BinaryIO, NamedTuple, Protocol, get_args

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shadowtime.shared.command_line import plain
from shadowtime.shared.events import Envelope, Event, JobSubmitted
from shadowtime.shared.formatting import clock, lines
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.subscribe import Message, subscribe
from shadowtime.shared.topics import DEAD_LETTERS

PREDICTIONS = ("run_time", "adjustment", "wait_bounds", "forecast", "coverage", "change_points")
"""Fields of an envelope that stages fill with what they predict, or with how earlier predictions fared."""

KINDS: tuple[str, ...] = tuple(each.model_fields["kind"].default for each in get_args(Event))


class Wanted(NamedTuple):
    """Which messages are to be shown; None where any is."""

    run: str | None = None
    cluster: str | None = None
    kind: str | None = None
    user: int | None = None
    job: int | None = None
    predictions: bool = False


class Chosen(NamedTuple):
    """A message that is wanted, and the jobs about which it is; None for all that it tells."""

    message: Message
    jobs: frozenset[int] | None = None


class Filter:
    """Chooses the messages that are wanted, and of each what is.

    Only submissions name a user: of what comes later, that is let through which is about a job that was seen to be
    submitted. The jobs of the user that have not ended are all that is kept.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._jobs: set[tuple[str, int]] = set()

    def __call__(self, message: Message) -> Chosen | None:
        """Return what is wanted of a message, or None; one that no stage could read is not, unless all are."""
        if self._wanted == Wanted():
            return Chosen(message)
        try:
            return self._chosen(message, orjson.loads(message.value))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None  # it is a dead letter of the next stage

    def _chosen(self, message: Message, envelope: Mapping[str, Any]) -> Chosen | None:
        wanted, event = self._wanted, envelope["event"]
        kind, run = event["kind"], envelope["run"]
        if (wanted.run or run) != run or (wanted.cluster or envelope.get("cluster")) != envelope.get("cluster"):
            return None
        jobs = None
        if wanted.user is not None or wanted.job is not None:
            jobs = _jobs(event)
            if wanted.user is not None:
                jobs = self._of_user(run, kind, event, jobs)
            if wanted.job is not None:
                jobs &= {wanted.job}
        predicts = any(envelope.get(name) for name in PREDICTIONS) or bool(event.get("evaluated"))
        fits = (wanted.kind or kind) == kind and (predicts or not wanted.predictions)
        return Chosen(message, jobs) if fits and (jobs is None or jobs) else None

    def _of_user(self, run: str, kind: str, event: Mapping[str, Any], jobs: frozenset[int]) -> frozenset[int]:
        """Return which of the jobs of an event are the user's."""
        if kind == "JobSubmitted" and event.get("user_id") == self._wanted.user:
            self._jobs |= {(run, number) for number in jobs}
        found = frozenset(number for number in jobs if (run, number) in self._jobs)
        if kind == "JobEnded" and not event.get("requeued"):
            self._jobs.discard((run, event["job_number"]))
        return found


def _jobs(event: Mapping[str, Any]) -> frozenset[int]:
    """Return the jobs that an event is about."""
    if "job_number" in event:
        return frozenset({event["job_number"]})
    return frozenset(each["job_number"] for each in (*event.get("starts", ()), *event.get("kills", ())))


class Printer(Protocol):
    """Where wanted messages go, those that come together at once."""

    def show(self, messages: Sequence[Chosen]) -> None:
        """Print messages."""
        ...


class JsonLines:
    """One line for each message: an envelope as it came, a dead letter as its headers and its text.

    What came is passed on as it is if it is one line of JSON; JSON of several lines as one, anything else as its text.
    """

    def __init__(self, output: BinaryIO, topic: str) -> None:
        self._output = output
        self._of = _dead_letter if topic == DEAD_LETTERS else _as_it_came

    def show(self, messages: Sequence[Chosen]) -> None:
        """Write messages, and let them be seen at once."""
        for message, _ in messages:
            self._output.write(self._of(message) + b"\n")
        self._output.flush()


class Rows:
    """A table that grows; empty decisions and the like have no row, nor has what is about other jobs."""

    def __init__(self, console: Console, topic: str) -> None:
        self._console = console
        self._rows = self._dead if topic == DEAD_LETTERS else self._living
        self._begun = False

    def show(self, messages: Sequence[Chosen]) -> None:
        """Print the rows of messages, beneath the heads of the columns if they are the first."""
        table = Table(box=None, show_header=not self._begun, pad_edge=False, expand=True)
        for head, width in (("time", 14), ("cluster", 16), ("event", 9), ("job", 8), ("user", 6)):
            table.add_column(head, width=width, no_wrap=True, justify="right" if head in ("job", "user") else "left")
        table.add_column("", ratio=1, overflow="fold")
        for each in messages:
            for row in self._rows(each):
                table.add_row(*map(Text, row))
        if table.row_count:
            self._begun = True
            self._console.print(table)

    def _dead(self, chosen: Chosen) -> list[tuple[str, ...]]:
        told = chosen.message.headers
        where = " ".join(told.get(name, "") for name in ("topic", "partition", "offset"))
        return [("", "", "dead", "", "", plain(f"{told.get('stage', '')}, {where}: {told.get('reason', '')}"))]

    def _living(self, chosen: Chosen) -> list[tuple[str, ...]]:
        envelope = Envelope.read(chosen.message.value)
        if envelope is None:
            return [("", "", "unknown", "", "", "not an envelope of this schema")]
        event = envelope.event
        user = event.user_id if isinstance(event, JobSubmitted) else None
        cluster = plain(envelope.cluster or envelope.run)
        return [
            (clock(event.time), cluster, line.event, _text(line.job), _text(user), line.words)
            for line in lines(envelope)
            if chosen.jobs is None or line.job in chosen.jobs
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
    choose = Filter(wanted)
    shown = 0
    async with aclosing(subscribe(settings, topic, beginning=beginning)) as batches:
        async for batch in batches:
            found = [chosen for each in batch if (chosen := choose(each)) is not None]
            if count is not None:
                found = found[: count - shown]
            if found:
                printer.show(found)
            shown += len(found)
            if shown == count:
                return
