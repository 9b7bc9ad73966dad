"""Values of the fields of `sacct`."""

import re

from shadowtime.shared.accounting.instants import NOT_SET, whole_number
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION

_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)\Z")
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}

EXPECTED = {
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), "is not a time; run sacct with SLURM_TIME_FORMAT=%s"),
    **dict.fromkeys(("JobIDRaw", "ElapsedRaw", "ReqCPUS", "AllocCPUS", "NNodes"), "is not a whole number"),
    "Suspended": "is not a duration",
    "TimelimitRaw": "is neither minutes nor UNLIMITED",
}
"""End of the error message about an unreadable value, by field."""


def whole(text: str) -> int | None:
    """Return a whole number; `UNKNOWN` if the text stands for a missing value, None if it is no number."""
    number = whole_number(text)
    return UNKNOWN if number is None and text.strip().lower() in NOT_SET else number


def limit_of(text: str) -> int | None:
    """Return a time limit in seconds, from a text in minutes.

    `MAX_DURATION` if there is no limit, `UNKNOWN` if the text stands for a missing value, None if it is unreadable.

    >>> [limit_of(text) for text in ("10", "UNLIMITED", "", "1 h")]
    [600, 549755813888, -1, None]
    """
    if (minutes := whole_number(text)) is not None:
        return min(60 * minutes, MAX_DURATION)
    if text.upper() in ("UNLIMITED", "PARTITION_LIMIT"):
        return MAX_DURATION
    return UNKNOWN if text.strip().lower() in NOT_SET else None


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


def nodes_of(text: str) -> int:
    """Return the number of nodes among trackable resources (TRES); `UNKNOWN` if not listed.

    >>> nodes_of("billing=2,cpu=2,node=3"), nodes_of("cpu=1")
    (3, -1)
    """
    counts = [whole_number(part.removeprefix("node=")) for part in text.split(",") if part.startswith("node=")]
    return _bounded(counts[0]) if counts and counts[0] else UNKNOWN


def _bounded(size: float) -> int:
    return round(size) if size <= MAX_AMOUNT else UNKNOWN
