"""Settings of a site's Slurm: keys as in slurm.conf, tables with numbers instead of names."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from shadowtime.services.scheduler.settings import PolicySettings, unless_default
from shadowtime.services.scheduler.work_limits import CHARGES
from shadowtime.shared.bounds import MAX_DURATION, MAX_KEYS, MAX_PROCESSORS, MAX_TIME
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import QUOTED, among, quote, truncate
from shadowtime.shared.spec import Price, as_text, parse

# Settings of a site in a TOML file: a key of the policy `slurm` on each line, lists for the rows of tables.

MAX_SIZE = 2**20
"""Largest size of a site file, in bytes."""


def keys_of(text: str) -> dict[str, str]:
    """Return the keys of a site that is spelled out in a SPEC, with their values.

    >>> keys_of("(weight_age=1000,qos=1:0:1000)")
    {'weight_age': '1000', 'qos': '1:0:1000'}
    """
    return {} if text == "()" else dict(parse(f"site{text}").keys)


def inline(text: str) -> str:
    """Return the keys in a site file, in parentheses, as a SPEC spells them.

    `text` is the path of the file. A text that begins with a parenthesis is returned unchanged.

    Raise `SettingsError` if the file cannot be read, or does not consist of keys. The message names the file.

    >>> inline("(weight_age=1000)")
    '(weight_age=1000)'
    """
    if text.startswith("("):
        return text
    name = truncate(text, QUOTED)
    try:
        with Path(text).open("rb") as file:
            contents = file.read(MAX_SIZE + 1)
        if len(contents) > MAX_SIZE:
            raise SettingsError(f"site {name}: larger than {MAX_SIZE:,} bytes; expected one key on each line")
        return spelled(tomllib.loads(contents.decode("utf-8-sig")))
    except OSError as error:
        hint = "expected a file as `shadowtime slurm-site` writes it"
        raise SettingsError(f"site {name}: cannot be read: {error.strerror}; {hint}") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, a name that no file can have
        raise SettingsError(f"site {name}: {truncate(str(error))}") from None


def spelled(keys: dict[str, object]) -> str:
    """Return keys in parentheses, as a SPEC spells them.

    Raise `ValueError` if there are more than `MAX_KEYS` keys, or if a value is neither plain nor a list of rows, or
    cannot be spelled. For a value, the message names its key.

    >>> spelled({"weight_age": 1000, "favor_small": True, "qos": [[1, 0, 1000], [2, 10, 500]]})
    '(weight_age=1000,favor_small=yes,qos=1:0:1000;2:10:500)'
    """
    if len(keys) > MAX_KEYS:
        raise ValueError(f"{len(keys)} keys; a SPEC has at most {MAX_KEYS}")
    parts = []
    for key, value in keys.items():
        if not key.isidentifier():
            raise ValueError(f"{truncate(key, QUOTED)!r}: expected a key such as weight_age")
        if isinstance(value, list):
            rows = [row for row in value if isinstance(row, list)]
            if len(rows) < len(value):
                raise ValueError(
                    f"{key}: expected a list of rows, each of them a list, such as [[1, 0, 1000]]; "
                    f"found {quote(str(value))}"
                )
            text = ";".join(":".join(map(as_text, row)) for row in rows) or "none"
        elif isinstance(value, bool | int | float | str):
            text = as_text(value)
        else:
            raise ValueError(
                f"{key}: expected a number, a text, true, false or a list of rows; found {quote(str(value))}"
            )

        if not set(text).isdisjoint("(),= \n"):
            raise ValueError(
                f"{key}: {truncate(text, QUOTED)!r} has a parenthesis, comma, equals sign or space; rename it"
            )
        parts.append(f"{key}={text}")

    return f"({','.join(parts)})"


MAX_WEIGHT = 2**32 - 1
"""Largest weight, as in Slurm."""

NONE = "none"
"""Text of a table without rows."""

Weight = Annotated[int, Field(ge=0, le=MAX_WEIGHT)]
Seconds = Annotated[int, Field(ge=0, le=MAX_DURATION)]
Period = Annotated[int, Field(ge=1, le=MAX_DURATION)]
Number = Annotated[int, Field(ge=0, le=MAX_TIME)]


class Account(NamedTuple):
    """An account with its parent (0: the root), its shares, and its number of users."""

    number: int
    parent: int
    shares: int
    users: int


class Association(NamedTuple):
    """A user in an account, with shares and initial usage in processor seconds."""

    user: int
    account: int
    shares: int
    usage: int


class Partition(NamedTuple):
    """A partition with `PriorityJobFactor` and `PriorityTier`."""

    number: int
    factor: int
    tier: int


class Qos(NamedTuple):
    """A QOS with its priority, and its usage factor in thousandths."""

    number: int
    priority: int
    usage: int


class ReservedProcessors(NamedTuple):
    """Processors of a pool that are reserved between two Unix times."""

    pool: int
    begins: int
    ends: int
    processors: int


TABLES: dict[str, type[Any]] = {
    "accounts": Account,
    "users": Association,
    "partitions": Partition,
    "qos": Qos,
    "reservations": ReservedProcessors,
}
"""Row type of each table. In a SPEC, colons separate the numbers of a row, semicolons the rows."""


def rows_of(table: str, text: str) -> list[Any]:
    """Return the rows of a table from its text in a SPEC.

    Raise `ValueError` if a row does not have the columns of the table, or has anything but whole numbers. The message
    shows the row.

    >>> rows_of("qos", "1:0:1000;2:10:500")
    [Qos(number=1, priority=0, usage=1000), Qos(number=2, priority=10, usage=500)]
    """
    row = TABLES[table]
    if text == NONE:
        return []
    rows = []
    for part in text.split(";"):
        numbers = part.split(":")
        if len(numbers) != len(row._fields) or not all(text.isascii() and text.isdecimal() for text in numbers):
            raise ValueError(f"{quote(part)}: expected {len(row._fields)} whole numbers, {':'.join(row._fields)}")
        if max(map(int, numbers)) > MAX_TIME:
            raise ValueError(f"{quote(part)}: expected numbers of at most {MAX_TIME:,}")
        rows.append(row(*map(int, numbers)))

    return rows


class SlurmSettings(PolicySettings):
    """Settings of `Slurm`. The defaults are Slurm's own."""

    files: ClassVar[Mapping[str, Callable[[str], str]]] = {"site": inline}

    def price(self) -> Price:
        """Return the price of passes, and of the priorities that are calculated between two events."""
        return super().price().plus(Price(memory=50_000_000, steps=10 * CHARGES))

    site: str = unless_default(
        "", "a file of keys, as `shadowtime slurm-site` writes it; other keys of the SPEC override the file"
    )
    backfill: bool = Field(True, description="SchedulerType is sched/backfill, not sched/builtin")
    weight_age: Weight = Field(0, description="PriorityWeightAge")
    weight_fairshare: Weight = Field(0, description="PriorityWeightFairshare")
    weight_size: Weight = Field(0, description="PriorityWeightJobSize")
    weight_partition: Weight = Field(0, description="PriorityWeightPartition")
    weight_qos: Weight = Field(0, description="PriorityWeightQOS")
    max_age: Period = Field(604_800, description="PriorityMaxAge, seconds")
    half_life: Seconds = Field(604_800, description="PriorityDecayHalfLife, seconds; 0: usage never decays")
    calc_period: Period = Field(300, description="PriorityCalcPeriod, seconds")
    calc_at: Number = Field(
        0,
        description="a Unix time at which priorities are calculated; all other calculations are multiples of "
        "`calc_period` away from it",
    )
    fairshare: Literal["tree", "classic"] = Field("tree", description="Fair Tree (tree) or NO_FAIR_TREE (classic)")
    damping: Annotated[int, Field(ge=1, le=65_533)] = Field(1, description="FairShareDampeningFactor, for classic")
    favor_small: bool = Field(False, description="PriorityFavorSmall: small jobs first, not large ones")
    size_relative: bool = Field(
        False, description="PriorityFlags=SMALL_RELATIVE_TO_TIME: a size is divided by the limit in minutes"
    )
    processors: Annotated[int, Field(ge=0, le=MAX_PROCESSORS)] = Field(
        0, description="processors of the whole site, by which sizes are divided; 0: those of all pools"
    )
    nodes: Annotated[int, Field(ge=0, le=MAX_PROCESSORS)] = Field(
        0, description="nodes of the whole site; 0: the number of processors"
    )
    accounts: str = Field(NONE, description="number:parent:shares:users of each account, `;` between; parent 0: root")
    users: str = Field(
        NONE,
        description="user:account:shares:usage of each user, the usage in processor seconds; without a row: 1 share "
        "and no usage",
    )
    partitions: str = Field(NONE, description="number:PriorityJobFactor:PriorityTier of each partition")
    qos: str = Field(NONE, description="number:priority:usage of each QOS; usage: UsageFactor in thousandths")
    reservations: str = Field(NONE, description="pool:begins:ends:processors of each reservation, Unix times")
    sched_interval: Period = Field(60, description="sched_interval: seconds between passes over the whole queue")
    sched_delay: Seconds = Field(3, description="batch_sched_delay: least seconds between passes after events")
    sched_depth: Annotated[int, Field(ge=1, le=2**31)] = Field(
        100, description="default_queue_depth: jobs in passes after events"
    )
    bf_interval: Period = Field(30, description="bf_interval: seconds between passes of backfill")
    bf_window: Period = Field(1440, description="bf_window, minutes")
    bf_resolution: Period = Field(60, description="bf_resolution, seconds")
    bf_max_job_test: Annotated[int, Field(ge=1, le=2**31)] = Field(500, description="bf_max_job_test: jobs per pass")
    bf_max_job_user: Annotated[int, Field(ge=0, le=2**31)] = Field(
        0, description="bf_max_job_user: per user; 0: no limit"
    )
    bf_max_job_part: Annotated[int, Field(ge=0, le=2**31)] = Field(
        0, description="bf_max_job_part: per partition; 0: no limit"
    )
    bf_max_job_start: Annotated[int, Field(ge=0, le=2**31)] = Field(
        0, description="bf_max_job_start: per pass; 0: no limit"
    )
    turnaround: Annotated[float, Field(ge=0, le=MAX_DURATION, allow_inf_nan=False)] = Field(
        0.0, description="mean seconds from a job's end until its processors can be allocated again"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_site(cls, keys: Any) -> Any:
        """Merge the keys of the site with the other keys of the SPEC, which take precedence."""
        if not isinstance(keys, Mapping) or not keys.get("site"):
            return keys
        site_keys = keys_of(str(keys["site"]))
        if unknown := [key for key in site_keys if key not in cls.model_fields or key == "site"]:
            raise ValueError(f"site: unknown key {quote(unknown[0])}{among(unknown[0], list(cls.model_fields))}")
        return site_keys | {key: value for key, value in keys.items() if key != "site"}

    @field_validator(*TABLES)
    @classmethod
    def _rows(cls, text: str, info: Any) -> str:
        rows = rows_of(info.field_name, text)
        if info.field_name == "accounts":
            seen = set[int]()
            for account in rows:
                if account.number in seen:
                    raise ValueError(f"account {account.number} occurs twice; expected one row for each account")
                seen.add(account.number)
            known = seen | {0}
            parents = {association.number: association.parent for association in rows if association.number}
            for number in parents:
                above, steps = number, 0
                while above:
                    above, steps = parents.get(above, -1), steps + 1
                    if above not in known or steps > len(rows):
                        raise ValueError(f"account {number} is not below the root: expected parents that lead to 0")

        return text

    def table(self, name: str) -> list[Any]:
        """Return the rows of one of the `TABLES` in these settings."""
        return rows_of(name, getattr(self, name))
