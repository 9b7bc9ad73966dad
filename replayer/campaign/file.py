"""Campaign files: the definition of a grid and of the tables that show its results."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from shadowtime.replayer.arguments import parse_speedup
from shadowtime.replayer.campaign.columns import BY_EVENTS, DEFAULT_COLUMNS, Column
from shadowtime.replayer.logs import MAX_LOAD, MIN_LOAD, parse_put_back
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.replayer.simulation import SOURCES
from shadowtime.services.catalogue import canonical, configure
from shadowtime.shared.bounds import MAX_INTEGER, MAX_LINES
from shadowtime.shared.errors import SettingsError, ShadowtimeError, in_plain_words
from shadowtime.shared.quoting import among, quote


def _checked(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator that rejects a text if `check` raises `ShadowtimeError`."""

    def checked(text: str) -> str:
        try:
            check(text)
        except ShadowtimeError as error:
            raise ValueError(str(error)) from None
        return text

    return AfterValidator(checked)


def _known_mode(text: str) -> str:
    if text not in SOURCES:
        raise ValueError(f"expected one of {', '.join(SOURCES)}")
    return text


def _named_by(field: str) -> BeforeValidator:
    """Return a validator that reads a plain text as a table with the text in `field`."""
    return BeforeValidator(lambda value: {field: value} if isinstance(value, str) else value)


def _plain_name(text: str) -> str:
    if not re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", text):
        raise ValueError("expected letters, digits, '.', '_' and '-', and a letter or digit first")
    return text


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


MAX_MONTHS = 1_000
"""Highest number of a month that a campaign can select."""

Load = Annotated[float, Field(ge=MIN_LOAD, le=MAX_LOAD)]


class LogEntry(_Table):
    """A log of the grid, by its archive name or its file. Fields that the campaign also has default to the campaign's.

    An `optional` log is left out where its file is missing, with a message. `months` are numbers from 1 of months of 30
    days since the first submission: each of these months is replayed by itself, from an empty machine. `put_back`
    describes jobs to generate that the log lacks. `completed` keeps only the jobs that completed (status 1) and ran for
    a time between two limits in seconds, both included: the part of a log that a paper had. `skip` leaves out that many
    jobs from the beginning, after `jobs` has cut the end: the rest is replayed from an empty machine.
    """

    log: str
    optional: bool = False
    label: str | None = None
    jobs: Annotated[int, Field(ge=1, le=MAX_LINES)] | None = None
    skip: Annotated[int, Field(ge=0, le=MAX_LINES)] = 0
    filter: Oversized | None = None
    requests: Requests | None = None
    sizes: Sizes | None = None
    months: tuple[Annotated[int, Field(ge=1, le=MAX_MONTHS)], ...] = ()
    put_back: Annotated[str, _checked(parse_put_back)] | None = None
    load: Load | None = None
    completed: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1, le=MAX_INTEGER)]] | None = None

    @property
    def name(self) -> str:
        """Archive name of the log, or the name of its file without `.swf` and `.gz`."""
        return Path(self.log).name.replace(".gz", "").replace(".swf", "")

    @property
    def called(self) -> str:
        """Heading of the log's table; by default its name with the `requests`, `sizes` and `load` that it sets."""
        chosen = {"requests": self.requests, "sizes": self.sizes, "load": self.load}
        return self.label or ", ".join([self.name, *(f"{key} {value}" for key, value in chosen.items() if value)])


def of_seed(spec: str, seed: int) -> str:
    """Return the SPEC of a policy with a seed of the grid.

    >>> of_seed("easy:runtime=hmm(seed={seed})", 7)
    'easy:runtime=hmm(seed=7)'
    """
    return spec.replace("{seed}", str(seed))


class PolicyEntry(_Table):
    """A policy of the grid.

    Each seed of the grid replaces `{seed}` in the SPEC, for components with their own seed. `seeds` replace the
    campaign's seeds, because a policy without random draws needs only one. `requests` replace the log's setting: with
    `actual`, a policy that knows exact run times shows the best possible result.
    """

    spec: Annotated[str, _checked(lambda text: configure(of_seed(text, 0)))]
    label: str | None = None
    requests: Requests | None = None
    seeds: tuple[Annotated[int, Field(ge=0, le=MAX_INTEGER)], ...] | None = None

    @property
    def called(self) -> str:
        """Label of the policy's row."""
        return self.label or self.spec


class Campaign(_Table):
    """A grid: every log under every policy, with every predictor, adjustment and bound, for every seed and copy.

    `copies` counts perturbed copies in addition to the log itself. With `keep_jobs`, the job times of the log itself
    are kept for each row, to compare jobs. With `compiled`, cells that the compiled machine covers are replayed on it:
    rows have digests of schedules, not of decisions. With `total`, one more table has the geometric means of shares and
    changes over all logs. `paper` has published figures to print next to ours, by log, row and column. `bold` names, by
    log and row, the columns that the paper prints in bold. `labels` replace the names of rows, by log and row.
    `reasons` explain, by log and row, why our figures of a row differ from the paper's. `notes` are footnotes of logs,
    `remarks` of all tables.
    """

    name: Annotated[str, Field(max_length=100), AfterValidator(_plain_name)]
    title: str
    logs: Annotated[tuple[Annotated[LogEntry, _named_by("log")], ...], Field(min_length=1)]
    policies: Annotated[tuple[Annotated[PolicyEntry, _named_by("spec")], ...], Field(min_length=1)] = (
        PolicyEntry(spec="easy"),
    )
    runtime: tuple[Annotated[str, _checked(lambda text: canonical("runtime", text))], ...] = ()
    adjustment: tuple[Annotated[str, _checked(lambda text: canonical("adjustment", text))], ...] = ()
    wait_bound: tuple[Annotated[str, _checked(lambda text: canonical("wait-bound", text))], ...] = ()
    mode: Annotated[str, AfterValidator(_known_mode)] = "closed"
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, le=MAX_INTEGER)], ...], Field(min_length=1)] = (0,)
    copies: Annotated[int, Field(ge=0, le=1_000)] = 0
    jobs: Annotated[int, Field(ge=1, le=MAX_LINES)] | None = None
    filter: Oversized = "drop"
    requests: Requests = "as-logged"
    sizes: Sizes = "requested"
    load: Load = 1.0
    restartable: bool = True
    moldable: bool = True
    speedup: Annotated[str, _checked(parse_speedup)] = "constant"
    keep_jobs: bool = False
    compiled: bool = False
    total: bool = False
    columns: Annotated[tuple[Annotated[Column, _named_by("key")], ...], Field(min_length=1)] = DEFAULT_COLUMNS
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = {}
    bold: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    labels: Mapping[str, Mapping[str, str]] = {}
    reasons: Mapping[str, Mapping[str, str]] = {}
    notes: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_what_there_is(self) -> "Campaign":
        for what, names in (
            ("logs", [trace.called for trace in self.logs]),
            ("policies", [policy.called for policy in self.policies]),
            ("columns", [column.heading for column in self.columns]),
        ):
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{what}: the name {quote(min(twice))} is used twice; give each a unique name")

        if self.compiled and (others := [column.key for column in self.columns if column.key.startswith(BY_EVENTS)]):
            raise ValueError(
                f"compiled: the column {others[0]} needs the events of a run, which compiled cells lack; "
                "leave out compiled or this column"
            )
        if not SOURCES[self.mode].closed_loop and any((trace.load or self.load) != 1 for trace in self.logs):
            raise ValueError(
                f"load: jobs start as recorded in {self.mode} mode, so submissions cannot move; leave it out"
            )
        known = {trace.called for trace in self.logs}
        of_rows = {"reasons": self.reasons, "bold": self.bold, "labels": self.labels}
        for key, by_log in {"paper": self.paper, "notes": self.notes, **of_rows}.items():
            if strange := by_log.keys() - known:
                raise ValueError(f"{key}.{min(strange)}: unknown log{among(min(strange), sorted(known))}")
        for key, of_row in of_rows.items():
            for log, rows in of_row.items():
                if strange := rows.keys() - self.paper.get(log, {}).keys():
                    known_rows = among(min(strange), self.paper.get(log, {}))
                    raise ValueError(
                        f"{key}.{log}.{min(strange)}: the row has no figures under paper.{log}{known_rows}"
                    )

        headings = {column.heading for column in self.columns}
        for key, by_column in (("paper", self.paper), ("bold", self.bold)):
            for log, row, columns in ((log, *item) for log, rows in by_column.items() for item in rows.items()):
                if strange := set(columns) - headings:
                    known_columns = among(min(strange), sorted(headings))
                    raise ValueError(f"{key}.{log}.{row}.{min(strange)}: unknown column{known_columns}")

        return self


def read_campaign(path: Path) -> Campaign:
    """Return the campaign of a file.

    Raise `SettingsError` if the file cannot be read or is not a campaign. The error names the file, the key and the
    value.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also for thousands of digits, or a thousand brackets
        raise SettingsError(f"{path}: {error}") from None

    try:
        return Campaign.model_validate(document)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_first_of(error)}") from None


def _first_of(error: ValidationError) -> str:
    """Return the first error of a file. An unknown key comes before a missing key, because it is often the cause."""
    errors: Any = error.errors(include_url=False, include_context=False)
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    place, message = ".".join(map(str, first["loc"])), in_plain_words(first)
    if not place:
        return message
    if first["type"] == "extra_forbidden":
        known = LogEntry if place.startswith("logs.") else PolicyEntry if place.startswith("policies.") else Campaign
        keys = Column if place.startswith("columns.") else known
        return f"{place}: {message}{among(str(first['loc'][-1]), keys.model_fields)}"
    found_text = "" if first["type"] == "missing" else f"; found {quote(str(first['input']))}"
    return f"{place}: {message}{found_text}"
