"""Source for any cluster: a program writes lines of JSON to a file, or sends them over HTTP.

A line has all known facts about a job or a pool. A line with `now` says that all facts before this second have been
written. Repeated lines and lines out of order are harmless. The fields: docs/beside-your-slurm.md#other-clusters.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from shadowtime.services.follower.cluster import JobObservation, LifeKey, State
from shadowtime.services.follower.io.http_inbox import DAILY, Inbox
from shadowtime.services.follower.io.tailed import ParsedLine, Tailed
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting import LIFE, TASKS
from shadowtime.shared.bounds import MAX_NAME_LENGTH
from shadowtime.shared.errors import SettingsError, first_of
from shadowtime.shared.messages import (
    Amount,
    CapacityChanged,
    Count,
    FrozenModel,
    GpuTypes,
    Outcome,
    Processors,
    Request,
)
from shadowtime.shared.quoting import plain, quote
from shadowtime.shared.streaming import Route


def _instant(value: Any) -> Any:
    """Return a date as a Unix second. Return other values than texts unchanged.

    Raise `ValueError` if a text is not a date, or has no time zone.
    """
    if not isinstance(value, str):
        return value
    try:
        date = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("expected a Unix time in seconds, or a date such as 2026-11-22T05:31:13+01:00") from None

    if date.tzinfo is None:
        raise ValueError("a date needs a time zone, as in 2026-11-22T05:31:13+01:00")
    return int(date.timestamp())


Second = Annotated[int, Field(ge=1, le=2**38, strict=True), BeforeValidator(_instant)]
Word = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]


class JobLine(FrozenModel):
    """The known facts about a job. A job with an `end` is over, a job with only a `start` runs, other jobs wait."""

    job: Annotated[int, Field(ge=0, lt=LIFE)] = Field(description="number of the job")
    submit: Second = Field(description="time of its submission; a requeued job has a new one")
    task: Annotated[int, Field(ge=0, lt=TASKS - 1)] | None = Field(None, description="index in its job array")
    processors: Processors = Field(description="number requested; once it runs, number allocated")
    limit: Request | None = Field(None, description="in seconds; left out if there is no limit")
    eligible: Second | None = Field(None, description="time from which on it may start; by default its submission")
    held: bool = Field(False, description="whether it may not start yet; `eligible` is then ignored")
    start: Second | None = None
    end: Second | None = None
    outcome: Outcome = Field("completed", description="outcome of a job that ran and is over")
    suspended: bool = False
    blocked: bool = Field(False, description="whether it waits for a reason other than resources and priority")
    nodes: Amount | None = None
    memory: Amount | None = Field(None, description="in MiB, total of all its nodes")
    gpus: Amount | None = Field(None, description="total of all its nodes")
    gpu_type: Word = Field("", description="requested type of GPU")
    got: GpuTypes | None = Field(None, description="allocated GPUs by type, once it runs")
    whole_nodes: bool = False
    user: Word = ""
    account: Word = ""
    job_name: Word = ""
    partition: Word = ""
    qos: Word = ""
    node_list: Word = Field("", description="its nodes, the first node first")
    priority: Count | None = Field(None, description="in its queue; the largest goes first")
    expected: Second | None = Field(None, description="start that the cluster expects")
    reason: Word = Field("", description="the reason that the cluster gives for its wait")


class PoolLine(FrozenModel):
    """A line with the present usable capacity of a pool."""

    pool: Word
    processors: Count
    memory: Amount | None = Field(None, description="in MiB")
    gpus: Amount | None = None
    gpu_types: GpuTypes | None = Field(None, description="GPUs by type; types that are left out do not change")


class NowLine(FrozenModel):
    """A line that says that all facts before the second `now` have been written."""

    now: Second


KINDS: dict[str, TypeAdapter[Any]] = {
    "job": TypeAdapter(JobLine),
    "pool": TypeAdapter(PoolLine),
    "now": TypeAdapter(NowLine),
}


def read_line(text: str) -> ParsedLine:
    """Return the content of a line.

    Raise `ValueError` if the line is invalid. The message names the fault.

    >>> read_line('{"job": 7, "submit": 1795325400, "processors": 4, "partition": "batch"}').observations[0].state
    'waiting'
    >>> read_line('{"job": 7, "submit": 1795325400, "processors": 0}')
    Traceback (most recent call last):
    ValueError: processors: expected a number greater than or equal to 1
    """
    try:
        fields = _OBJECT.validate_json(text)
        kind = next((candidate for candidate in KINDS if candidate in fields), None)
        if kind is None:
            has = quote(", ".join(sorted(fields)[:5])) if fields else "nothing"
            raise ValueError(f"expected the key job, pool or now, found {has}")
        line = KINDS[kind].validate_python(fields)
    except ValidationError as error:
        raise ValueError(plain(first_of(error, "line"))) from None

    if isinstance(line, NowLine):
        return ParsedLine(time=line.now, known=True)
    if isinstance(line, PoolLine):
        return ParsedLine(pool=line.pool, room=CapacityChanged(time=0, **line.model_dump(exclude={"pool"})))
    return ParsedLine([_observation(line)], time=max(line.submit, line.start or 0, line.end or 0))


_OBJECT = TypeAdapter(dict[str, Any])


def _observation(line: JobLine) -> JobObservation:
    if line.start is not None and line.end is not None and line.end < line.start:
        raise ValueError(f"end {line.end} is before start {line.start}")
    state: State = "waiting" if line.start is None else "suspended" if line.suspended else "running"
    same = line.model_dump(exclude={"job", "task", "submit", "eligible", "held", "suspended", "got"})
    return JobObservation(
        LifeKey(line.job, -1 if line.task is None else line.task, line.submit),
        state if line.end is None else "over",
        eligible=None if line.held else line.eligible or line.submit,
        unlimited=line.limit is None,
        got=line.got,
        **same,
    )


class Lines(Tailed):
    """A cluster that reports in lines of JSON; see `Tailed`. Lines sent over HTTP go to a folder, one file a day."""

    name: ClassVar[str] = "lines"
    takes: ClassVar[frozenset[str]] = Tailed.takes | {"token"}
    files = re.compile(r".+\.jsonl")

    def __init__(self, options: FollowOptions) -> None:
        if options.token is not None:
            self.files = DAILY
        super().__init__(options)
        if options.token is not None and not self.place.is_dir():
            kind = "a file" if self.place.exists() else "nothing"
            raise SettingsError(
                f"--from {self.place}: expected a folder, because lines arrive over HTTP (--token-file); found {kind}"
            )
        self._inbox = None if options.token is None else Inbox(self.place, options.token, read_line)

    def read(self, text: str) -> ParsedLine:
        """Return the content of a line. An empty line has none."""
        return read_line(text) if text.strip() else ParsedLine()

    def routes(self) -> Sequence[Route]:
        """Return the route that receives lines. There is none without a token."""
        return () if self._inbox is None else self._inbox.routes()
