"""Values of the fields of `sacct`."""

import re
from collections.abc import Callable

from shadowtime.shared.accounting import (
    NO_LIMIT,
    NO_VALUE,
    UNKNOWN,
    UNLIMITED,
    count_of,
    gpus_of,
    span_of,
    tasks_of,
    whole_number,
)
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION, MAX_NAME_LENGTH
from shadowtime.shared.cluster import KILLED, LIMIT, RESIZED
from shadowtime.shared.messages import MAX_GPU_TYPES, OR, GpuType
from shadowtime.shared.quoting import quote

STATES = {
    "COMPLETED": 1,
    **dict.fromkeys(("FAILED", "OUT_OF_MEMORY"), 0),
    "CANCELLED": 5,
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), LIMIT),
    **dict.fromkeys(
        (*("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUED", "REVOKED"), "LAUNCH_FAILED", "RECONFIG_FAIL"), KILLED
    ),
    "RESIZING": RESIZED,
}
"""Job status for each Slurm state that is not one of `GOING_ON`."""

GOING_ON = {
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD"),
    *("SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED"),
}
"""States of jobs that have not ended, or that will wait again."""

UNFINISHED = {"PENDING", "RUNNING", "SUSPENDED"}
"""States of jobs that have not ended. Some versions of sacct print an end for them too, as `-T` does."""

CODES = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CANCELED": "CANCELLED",
    "CD": "COMPLETED",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PR": "PREEMPTED",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "TO": "TIMEOUT",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "PD": "PENDING",
    "R": "RUNNING",
    "S": "SUSPENDED",
}
"""States by their short codes, as `squeue -o %t` and scripts print them, and by another spelling."""

CUT_OFF = re.compile(r",?(\.\.\.|\+\Z)")
"""Text in place of the rest of a list."""

OF_TYPE = "gres/gpu:"
"""Beginning of a trackable resource (TRES) that is GPUs of one type."""

_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)\Z")
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_REQUESTED_MEMORY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)([KMGTP]?)([nc]?)\s*\Z")
_IN_UNITS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,2})?)([KMG])\Z")
_CUT_SPAN = re.compile(r"([0-9]{1,4}-[0-9]{2}:[0-9]{2}):?[0-9]?\+\Z")
"""A duration in a column that is too narrow for its seconds."""

_CUT_WORD = re.compile(r"[a-z_]{4,}\+\Z")
"""A word in a column that is too narrow for it, in lower case."""

_FRACTION = re.compile(r"\s*[0-9]*[.,][0-9]*[1-9]")

_PART_OF_JOB = re.compile(r"([0-9]{1,12})\+([0-9]{1,6})\Z")

NOT_A_NUMBER = "is not a whole number"
EXPECTED = {
    **dict.fromkeys(
        ("Submit", "Eligible", "Start", "End"),
        "is not a time; run sacct with SLURM_TIME_FORMAT=%s, or state --date-format (for CET or EDT, --time-zone)",
    ),
    **dict.fromkeys(("ElapsedRaw", "ReqCPUS", "AllocCPUS", "NCPUS", "NNodes"), NOT_A_NUMBER),
    **dict.fromkeys(("JobID", "JobIDRaw"), "is not a job number"),
    **dict.fromkeys(("Suspended", "Elapsed"), "is not a duration"),
    **dict.fromkeys(("TimelimitRaw", "Timelimit"), "is neither a duration nor UNLIMITED"),
}
"""End of the reason why a row is odd, by field."""


def whole(text: str) -> int | None:
    """Return a whole number; `UNKNOWN` if the text stands for a missing value, None if it is no number.

    >>> whole("4"), whole("4.0"), whole(""), whole("many")
    (4, 4, -1, None)
    """
    number = whole_number(text)
    return count_of(text) if number is None else number


def counted(text: str) -> int | None:
    """Return a whole number, which sacct may have converted to units of 1,024; otherwise as `whole` does.

    >>> counted("2K"), counted("1.50K"), counted("3"), counted("many")
    (2048, 1536, 3, None)
    """
    if match := _IN_UNITS.match(text):
        return round(float(match[1]) * _MIB[match[2]] * 1024**2)
    return whole(text)


def job_of(text: str) -> int | None:
    """Return the number of a job. A part of a heterogeneous job has the number of the first part plus its place.

    >>> job_of("17"), job_of("17_3"), job_of("17+2"), job_of("soon")
    (17, 17, 19, None)
    """
    if match := _PART_OF_JOB.match(text):
        return int(match[1]) + int(match[2])
    return whole(text.partition("_")[0])


span = span_of()
"""Parser of durations."""


def elapsed_of(text: str) -> int | None:
    """Return a run time in seconds, as `span` does; `UNKNOWN` if its seconds are cut off."""
    return UNKNOWN if _CUT_SPAN.match(text) else span(text)


_minutes = span_of("min")


def limit_of(text: str) -> int | None:
    """Return a time limit in seconds, from minutes or from DAYS-HOURS:MINUTES:SECONDS.

    `MAX_DURATION` if there is no limit, `UNKNOWN` if the text stands for a missing value, None if it is unreadable.

    >>> [limit_of(text) for text in ("10", "10.0", "1-12:00:00", "UNLIMITED", "Partition_Limit", "", "1 h", "soon")]
    [600, 600, 129600, 549755813888, 549755813888, -1, 3600, None]
    >>> limit_of("10-00:00:+"), limit_of("Partition+"), limit_of("0.0833")  # a limit has whole minutes
    (864000, 549755813888, None)
    """
    if match := _CUT_SPAN.match(text):
        text = match[1]
    if (match := _CUT_WORD.match(text.lower())) and any(word.startswith(match[0][:-1]) for word in UNLIMITED):
        return MAX_DURATION
    if (minutes := whole_number(text)) is not None and text not in (NO_LIMIT, NO_VALUE):
        return min(60 * minutes, MAX_DURATION)
    return None if _FRACTION.match(text) else _minutes(text)


def unknown_state(field: str, state: str) -> str:
    """Return the reason why a row is odd whose `field` has a state that is neither in `STATES` nor in `GOING_ON`.

    >>> unknown_state("State", "PONDERING")
    "unknown State 'PONDERING'; expected a state of Slurm such as COMPLETED"
    """
    return f"unknown {field} {quote(state)}; expected a state of Slurm such as COMPLETED"


def state_in(text: str) -> str:
    """Return the state without the user who cancelled the job. A state that is cut off is completed if it is unique.

    >>> state_in("CANCELLED by 1001"), state_in("CANCELLED+"), state_in("OUT_OF_ME+"), state_in("TO"), state_in("")
    ('CANCELLED', 'CANCELLED', 'OUT_OF_MEMORY', 'TIMEOUT', '')
    """
    word = text.strip().partition(" ")[0].upper()
    if not word.endswith("+"):
        return CODES.get(word, word)
    begins = word.removesuffix("+")
    whole_words = [state for state in (*STATES, *GOING_ON) if state.startswith(begins)]
    return whole_words[0] if len(whole_words) == 1 else begins


def listed_tasks(text: str) -> tuple[list[int] | None, bool]:
    """Return the array tasks in the part of a JobID after `_`, and whether sacct has cut off the list.

    >>> listed_tasks("[1,3,...]"), listed_tasks("[1-3%2]"), listed_tasks("[7,9,1+"), listed_tasks("0x1")
    (([1, 3], True), ([1, 2, 3], False), ([7, 9], True), (None, False))
    """
    if not CUT_OFF.search(text):
        return tasks_of(text), False
    known = text.rpartition(",")[0] if text.endswith("+") else CUT_OFF.sub("", text)
    return tasks_of(known), True


def resources_of(text: str) -> tuple[int, int]:
    """Return the memory in MiB and the GPUs among trackable resources (TRES); `UNKNOWN` if not listed.

    >>> resources_of("billing=2,cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=1.50G,node=1"), resources_of("cpu=1")
    ((1536, 2), (-1, -1))
    """
    memory, gpus, of_kinds = UNKNOWN, UNKNOWN, 0
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name == "mem" and (match := _MEMORY.match(value)):
            memory = _bounded(float(match[1]) * _MIB[match[2]])
        elif name == "gres/gpu" and (count := whole_number(value)) is not None:
            gpus = _bounded(count)
        elif name.startswith("gres/gpu:") and (count := whole_number(value)) is not None:
            of_kinds = max(_bounded(of_kinds + count), 0)

    return memory, gpus if gpus != UNKNOWN else of_kinds or UNKNOWN


_NUMBERED = {"1": "cpu", "2": "mem", "4": "node"}
"""Trackable resources by their numbers in Slurm's database. Those of GPUs are different on each cluster."""


def named_resources(text: str) -> str:
    """Return trackable resources (TRES) by name, from a text of Slurm's database with their numbers.

    Names stay. Memory without a unit is in MiB. Numbers that each cluster gives by itself are left out.

    >>> named_resources("1=64,2=256000,4=1,5=64,1001=8"), named_resources("cpu=2,mem=1.50G")
    ('cpu=64,mem=256000M,node=1', 'cpu=2,mem=1.50G')
    """
    parts = []
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        name = _NUMBERED.get(key, "" if key.isdecimal() else key)
        if name:
            parts.append(f"{name}={value}{'M' if name == 'mem' and value.isdecimal() else ''}")
    return ",".join(parts)


def requested_memory(text: str) -> int:
    """Return the memory in ReqMem in KiB, for each node, processor or job (`memory_unit`); `UNKNOWN` if it has none.

    >>> requested_memory("4Gn"), requested_memory("2000Mc"), requested_memory("1.50G"), requested_memory("0n")
    (4194304, 2048000, 1572864, -1)
    """
    match = _REQUESTED_MEMORY.match(text)
    return _bounded(1024 * float(match[1]) * _MIB[match[2]]) or UNKNOWN if match else UNKNOWN


def memory_unit(text: str) -> int:
    """Return to what the memory in ReqMem applies: each node (1), each processor (2), or the job (0, from 21.08 on)."""
    return {"n": 1, "c": 2}.get(text.strip()[-1:], 0)


def gpus_of_nodes(text: str) -> int:
    """Return the GPUs of each node in ReqGRES; `UNKNOWN` if it lists none.

    >>> gpus_of_nodes("gpu:2"), gpus_of_nodes("PER_NODE:gpu:tesla:1"), gpus_of_nodes("gres:gpu:2"), gpus_of_nodes("0")
    (2, 1, 2, -1)
    """
    return gpus_of(text.replace("PER_NODE:", "").replace("gres:", "")) or UNKNOWN


def gpu_type_of(text: str) -> str:
    """Return the types of GPUs that trackable resources (TRES) name, joined by `OR`; an empty text if they name none.

    >>> gpu_type_of("billing=2,cpu=2,gres/gpu:a100=2,gres/gpu=2"), gpu_type_of("cpu=1,gres/gpu=2")
    ('a100', '')
    """
    return OR.join(kind.name for kind in gpus_got(text) or ())


def gpus_got(text: str) -> tuple[GpuType, ...] | None:
    """Return the GPUs of each type among trackable resources (TRES); None if no type is listed.

    >>> gpus_got("cpu=2,gres/gpu:v100=1,gres/gpu:a100=2,gres/gpu=3"), gpus_got("gres/gpu=3")
    ((GpuType(name='a100', gpus=2), GpuType(name='v100', gpus=1)), None)
    """
    listed = (part.removeprefix(OF_TYPE).partition("=") for part in text.split(",") if part.startswith(OF_TYPE))
    counts = {name[:MAX_NAME_LENGTH].lower(): _bounded(whole_number(count) or 0) for name, _, count in listed}
    kinds = [GpuType(name=name, gpus=gpus) for name, gpus in sorted(counts.items()) if gpus > 0]
    return tuple(kinds[:MAX_GPU_TYPES]) or None


def types_in(text: str) -> str:
    """Return the part of a text of trackable resources (TRES) that `gpus_got` reads.

    >>> types_in("cpu=2,gres/gpu:a100=2,gres/gpu=2")
    'gres/gpu:a100=2'
    """
    return ",".join(part for part in text.split(",") if part.startswith(OF_TYPE))


def memory_held(text: str) -> int:
    """Return the memory in MiB among trackable resources (TRES); `UNKNOWN` if it is not listed."""
    return resources_of(text)[0]


def gpus_held(text: str) -> int:
    """Return the GPUs among trackable resources (TRES); `UNKNOWN` if they are not listed."""
    return resources_of(text)[1]


def amount_of(resource: str) -> Callable[[str], int]:
    """Return a function that returns the amount of a trackable resource (TRES), `UNKNOWN` if it is not listed.

    >>> amount_of("cpu")("billing=2,cpu=2,node=3"), amount_of("node")("cpu=1")
    (2, -1)
    """
    begins = f"{resource}="

    def amount(text: str) -> int:
        counts = [whole_number(part.removeprefix(begins)) for part in text.split(",") if part.startswith(begins)]
        return _bounded(counts[0]) if counts and counts[0] else UNKNOWN

    return amount


def _bounded(size: float) -> int:
    return round(size) if size <= MAX_AMOUNT else UNKNOWN
