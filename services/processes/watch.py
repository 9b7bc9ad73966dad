"""The output of a topic: sentences for people, JSON lines for programs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, BinaryIO, NamedTuple, Protocol, get_args

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shadowtime.services.processes.ask import NO_WORDS, ClusterWords, WordReader, is_job_id
from shadowtime.shared.cli import say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages import ClusterOpened, Decided, Envelope, Event
from shadowtime.shared.quoting import json_text, plain, quote
from shadowtime.shared.stages import DEAD_LETTERS
from shadowtime.shared.streaming import Message, Settings, subscribe
from shadowtime.shared.text import UNKNOWN, RunContext, Sentence, sentences

# The selection of messages, and of the jobs in them.

TASK = re.compile(r"([0-9]+)\[([0-9]+)\]")
"""An id of a task as PBS writes it; `2754_12` is the same."""

PREDICTIONS = ("run_time", "adjustment", "wait_bounds", "forecast", "coverage", "change_points", "drifts")
"""Fields of an envelope that contain predictions, or that evaluate earlier predictions."""


class MessageFilter(NamedTuple):
    """The criteria for messages. A field that is None matches every message.

    `user` is a name or a number, `job` an id such as `2754_12` or a number of the log.
    """

    run: str | None = None
    cluster: str | None = None
    kind: str | None = None
    user: str | None = None
    job: str | None = None
    predictions: bool = False


WordsOf = Callable[[str], ClusterWords]
"""Function of a run that returns the names of its cluster."""


def no_words(run: str) -> ClusterWords:
    """Return no names, so that numbers are shown."""
    return NO_WORDS


class RunWords:
    """The names of the clusters of runs; while Redis cannot be used, the last ones that were read, or none."""

    def __init__(self, reader: WordReader | None = None) -> None:
        self._reader = reader
        self._known: dict[str, ClusterWords] = {}

    def __call__(self, run: str) -> ClusterWords:
        """Return the names of a run of the messages that `learn` was last called with."""
        return self._known.get(run, NO_WORDS)

    async def learn(self, messages: Sequence[Message]) -> None:
        """Read the names of the runs of messages."""
        if self._reader is None:
            return
        clusters: dict[str, str] = {}
        for message in messages:
            with suppress(orjson.JSONDecodeError, KeyError, TypeError):
                envelope = orjson.loads(message.value)
                if isinstance(envelope["cluster"], str):
                    clusters[str(envelope["run"])] = envelope["cluster"]

        self._known = {run: await self._reader.latest(cluster, run) for run, cluster in clusters.items()}


class SelectedMessage(NamedTuple):
    """A selected message, and the selected jobs in it. None selects the whole message."""

    message: Message
    jobs: frozenset[int] | None = None


def require_job_id(text: str | None) -> str | None:
    """Return `text` if it is the id of a job, or None. Otherwise raise `SettingsError`."""
    if text is not None and not is_job_id(text):
        raise SettingsError(f"--job: expected the id of a job, such as 2754 or 2754_12, found {quote(text)}")
    return text


class Filter:
    """Filter of messages, and of the jobs in each message.

    Only submissions name a user. So a later message about a job of a user is selected only if the job's submission was
    seen. The filter remembers the user's jobs until they end.
    """

    def __init__(self, wanted: MessageFilter, words: WordsOf = no_words) -> None:
        self._wanted = wanted._replace(job=None if wanted.job is None else TASK.sub(r"\1_\2", wanted.job))
        self._words = words
        self._jobs: set[tuple[str, int]] = set()

    def __call__(self, message: Message) -> SelectedMessage | None:
        """Return the selection from a message, or None if it does not match.

        A message that no stage could read is selected only if the filter has no criteria.
        """
        if self._wanted == MessageFilter():
            return SelectedMessage(message)
        try:
            return self._chosen(message, orjson.loads(message.value))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None  # the next stage sends this message to the dead letters

    def _chosen(self, message: Message, envelope: Mapping[str, Any]) -> SelectedMessage | None:
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
                job_id = self._words(run).job
                jobs = frozenset(number for number in jobs if wanted.job in (job_id(number), str(number)))

        predicts = any(envelope.get(name) for name in PREDICTIONS) or bool(event.get("evaluated"))
        fits = (wanted.kind or kind) == kind and (predicts or not wanted.predictions)
        return SelectedMessage(message, jobs) if fits and (jobs is None or jobs) else None

    def _of_user(self, run: str, kind: str, event: Mapping[str, Any], jobs: frozenset[int]) -> frozenset[int]:
        """Return the jobs of an event that belong to the user. Remember the user's jobs from submission to end."""
        user = self._words(run).numbered("user", self._wanted.user or "", or_number=True)
        if kind == "JobSubmitted" and event.get("user_id") == user:
            self._jobs |= {(run, number) for number in jobs}
        named = frozenset(number for number in jobs if (run, number) in self._jobs)
        if kind == "JobWithdrawn" or (kind == "JobEnded" and not event.get("requeued")):
            self._jobs.discard((run, event["job_number"]))
        return named


def _jobs(event: Mapping[str, Any]) -> frozenset[int]:
    """Return the numbers of the jobs of an event."""
    if "job_number" in event:
        return frozenset({event["job_number"]})
    return frozenset(entry["job_number"] for entry in (*event.get("starts", ()), *event.get("kills", ())))


STYLES = {
    "opened": "bold",
    "submitted": "cyan",
    "start": "bold green",
    "started": "green",
    "kill": "bold red",
    "cut short": "yellow",
    "member": "yellow",
    "capacity": "yellow",
    "rejected": "bold red",
    "closed": "bold",
}
"""Colours of sentences, by kind. Other kinds have no colour."""

WIDEST = 16
"""The maximum width, in characters, of the column with the cluster or run. It is as wide as the longest name so far.

A longer name has several lines: cut off, `mycluster/shadow/easy` would look like `mycluster/shadow/best`."""

REPEATED = 60
"""Advice on a job is shown at most once in this many seconds of the log."""

MAX_ADVISED = 10_000
"""The maximum number of jobs whose last advice is remembered."""

MAX_RUNS = 1_000
"""The maximum number of remembered runs, and of remembered clusters."""

KINDS: tuple[str, ...] = tuple(argument.model_fields["kind"].default for argument in get_args(Event))


class Printer(Protocol):
    """An output for selected messages. Messages that arrive together are printed together."""

    def note(self, message: Message) -> None:
        """Remember context from a message, whether the message is selected or not."""
        ...

    def show(self, messages: Sequence[SelectedMessage]) -> None:
        """Print messages."""
        ...


class JsonLines:
    """An output of one line per message: an envelope unchanged, a dead letter as its headers and its text.

    Unprintable characters are escaped. Otherwise, JSON of one line is not changed, and JSON of several lines is written
    as one. Any other value is written as a JSON object with its text as `value`.
    """

    def __init__(self, output: BinaryIO, topic: str) -> None:
        self._output = output
        self._of = _dead_letter if topic == DEAD_LETTERS else _as_it_came

    def note(self, message: Message) -> None:
        """Do nothing: a line needs no context."""

    def show(self, messages: Sequence[SelectedMessage]) -> None:
        """Write messages, and flush the output."""
        for message, _ in messages:
            self._output.write(json_text(self._of(message)) + b"\n")
        self._output.flush()


class Sentences:
    """An output of one line per sentence: time, name and sentence.

    Empty decisions, and jobs that are not selected, have no line. Times are dates if the beginning of the run was read,
    else days since second 0. The name is the name of the cluster. If the cluster has several runs, it is the name of
    the run, from the second run on. Jobs, users and places have the names of their cluster.
    """

    def __init__(self, console: Console, topic: str, words: WordsOf = no_words) -> None:
        self._console = console
        self._words = words
        self._of = self._dead if topic == DEAD_LETTERS else self._living
        self._logs: dict[str, RunContext] = {}
        self._only: dict[str, str | None] = {}
        self._advised: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._widest = 0

    def note(self, message: Message) -> None:
        """Remember the beginning of a run."""
        if b'"ClusterOpened"' not in message.value:
            return
        envelope = Envelope.read(message.value)
        if envelope is not None and isinstance(envelope.event, ClusterOpened):
            self._remember(envelope.run, RunContext.of(envelope.event))

    def _remember(self, run: str, log: RunContext) -> None:
        self._logs[run] = log
        if len(self._logs) > MAX_RUNS:
            del self._logs[next(iter(self._logs))]

    def show(self, messages: Sequence[SelectedMessage]) -> None:
        """Print the lines of messages."""
        lines = [line for message in messages for line in self._of(message)]
        self._widest = max(self._widest, *(min(cell_len(where), WIDEST) for _, where, _ in lines), 0)
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=15, no_wrap=True, justify="right", style="dim")
        table.add_column(width=self._widest, overflow="fold", style="dim")
        table.add_column(ratio=1, overflow="fold")
        for when, where, entry in lines:
            table.add_row(when, Text(where), entry)
        if lines:
            self._console.print(table)

    def _dead(self, chosen: SelectedMessage) -> Iterator[tuple[str, str, Text]]:
        headers = chosen.message.headers
        where = " ".join(headers.get(name, "") for name in ("topic", "partition", "offset"))
        yield "", plain(headers.get("stage", "")), Text(plain(f"{where}: {headers.get('reason', '')}"))

    def _living(self, chosen: SelectedMessage) -> Iterator[tuple[str, str, Text]]:
        envelope = Envelope.read(chosen.message.value)
        if envelope is None:
            yield "", "", Text("not an envelope of this schema", STYLES["rejected"])
            return
        log = self._logs.get(envelope.run, UNKNOWN)
        when, where = clock(envelope.event.time, log.unix_start), plain(self._place(envelope))
        for sentence in sentences(envelope, log):
            if (chosen.jobs is None or sentence.job in chosen.jobs) and (text := self._news(envelope, sentence)):
                spoken = self._words(envelope.run).speak(text, log.pools)
                yield when, where, Text(spoken, STYLES.get(sentence.kind, ""))
        if isinstance(envelope.event, Decided) and (then := log.after(envelope.event)) != log:
            self._remember(envelope.run, then)

    def _news(self, envelope: Envelope, sentence: Sentence) -> str | None:
        """Return the text of a sentence; None if it repeats advice on a job within a minute.

        Advice is repeated at each decision, for as long as the job waits.
        """
        if sentence.kind != "start":
            return str(sentence)
        key = envelope.run, sentence.job
        time, left_out = self._advised.get(key, (-REPEATED, 0))
        if time <= envelope.event.time < time + REPEATED:
            self._advised[key] = time, left_out + 1
            return None
        if len(self._advised) >= MAX_ADVISED:
            self._advised.clear()
        self._advised[key] = envelope.event.time, 0
        times = "once" if left_out == 1 else f"{left_out} times"
        return f"{sentence} (also {times} in the minute before)" if left_out else str(sentence)

    def _place(self, envelope: Envelope) -> str:
        cluster = envelope.cluster or envelope.run
        if len(self._only) > MAX_RUNS:
            self._only.clear()
        if self._only.setdefault(cluster, envelope.run) == envelope.run:
            return cluster
        self._only[cluster] = None
        return envelope.run


def _as_it_came(message: Message) -> bytes:
    try:
        document = orjson.loads(message.value)
    except orjson.JSONDecodeError:
        return orjson.dumps({"value": message.value.decode(errors="replace")})
    return orjson.dumps(document) if b"\n" in message.value or b"\r" in message.value else message.value


def _dead_letter(message: Message) -> bytes:
    return orjson.dumps({**message.headers, "value": message.value.decode(errors="replace")})


PATIENCE = 10
"""Seconds without a message after which a reminder is printed: the name of the run, user or job may be mistyped."""


@asynccontextmanager
async def reminding(wanted: MessageFilter) -> AsyncIterator[Callable[[], object]]:
    """Yield a function to call when a wanted message has arrived. Print a reminder if `PATIENCE` passes before that.

    There is no reminder if `wanted` names no run, user or job.
    """
    named = (("run", wanted.run), ("user", wanted.user), ("job", wanted.job))
    whose = " of ".join(f"{kind} {quote(name)}" for kind, name in named if name is not None)
    text = f"no message of {whose} so far; still waiting; `shadowtime live` lists all runs"
    timer = asyncio.get_running_loop().call_later(PATIENCE, say, text) if whose else None
    try:
        yield (lambda: None) if timer is None else timer.cancel
    finally:
        if timer is not None:
            timer.cancel()


async def watch_topic(
    settings: Settings,
    topic: str,
    wanted: MessageFilter,
    printer: Printer,
    words: RunWords,
    *,
    beginning: bool,
    count: int | None,
) -> None:
    """Show the messages of a topic until `count` of them were shown; for ever if `count` is None.

    Raise `BusError` if Kafka cannot be reached, or the topic does not exist.
    """
    choose = Filter(wanted, words)
    shown = 0
    async with aclosing(subscribe(settings, topic, beginning=beginning)) as batches, reminding(wanted) as arrived:
        async for batch in batches:
            await words.learn(batch)
            for record in batch:
                printer.note(record)
            records = [chosen for record in batch if (chosen := choose(record)) is not None]
            if count is not None:
                records = records[: count - shown]
            if records:
                arrived()
                printer.show(records)
            shown += len(records)
            if shown == count:
                return
