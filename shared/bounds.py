"""Limits of the values in messages, SPECs and files, for all modules. `docs/bounds.md` has the reasons.

Each `MAX_…` is the largest allowed value. The largest message in bytes is a setting: `max_message_bytes` in
`shared/streaming/settings.py`.

The schema of messages and every reader of logs reject larger input, so no later code has to check. A sum that may not
fit 64 bits is a Python integer. `storable` prepares such sums for a snapshot, and `saturated` for a message.
"""

from collections.abc import Mapping
from typing import Any

MAX_INTEGER = 2**53
"""Largest whole number in a message. Every JSON reader represents it exactly. The sum of 1,000 of them fits 64 bits."""

MAX_DURATION = 2**39
"""Largest requested time or run time of a job, in seconds (17,000 years)."""

MAX_TIME = 2**41
"""Largest distance of a time from second 0 of a cluster's time line, in seconds (70,000 years). A time plus a few times
`MAX_DURATION` stays below `MAX_INTEGER`, and so does a Unix time in milliseconds."""

MAX_PROCESSORS = 2**31 - 1
"""Processors of a machine and of a job."""

MAX_AMOUNT = 2**40
"""MiB of memory, GPUs or nodes, of a pool and of a job. The sum over all live jobs is less than 2^57."""

MAX_POOLS = 100
"""Pools of a machine, each with a policy of its own."""

MAX_LIVE_JOBS = 100_000
"""Jobs of a run that wait or run at one time. This bounds the run's state."""

MAX_NAME_LENGTH = 200
"""Characters of the name of a run or a cluster, of a grouping, a label or a key."""

MAX_REASON_LENGTH = 2_000
"""Characters of a reason. A longer reason is truncated where it is written."""

MAX_SPEC_LENGTH = 8_192
"""Characters of a SPEC, including nested parentheses. The largest set of templates has about 1,200."""

MAX_SPEC_DEPTH = 8
"""Levels of nested SPECs with keys; the outermost SPEC counts."""

MAX_KEYS = 64
"""Settings of one SPEC."""

MAX_REVISIONS = 1_000
"""Revised predictions of run times in one event. Further revisions follow in the next events."""

MAX_BOUNDS = 32
"""Bounds on the wait of one job. One event also has at most this many shares of covered waits, and change points."""

MAX_QUANTILES = 16
"""Quantiles of the predicted start of one job."""

MAX_RISKS = 8
"""Job ends that a decision names as its risks."""

MAX_MEMBERS = 200
"""Configurations in the portfolio of a self-tuning policy."""

MAX_MEMBER_CHANGES = 1_000
"""Changes of the deciding portfolio member that a run lists. Later changes are only counted."""

MAX_DRIFTS = 32
"""Beginnings and ends of alarms in one event. Further alarms follow in the next events."""

MAX_EPISODES = 500
"""Alarms that the scores of a run list. Later alarms are only counted."""

MAX_KINDS = 500
"""Kinds of bounds with scores in a run, by grouping, queue, quantile and confidence. Later kinds are left out."""

MAX_EXPECTED_QUEUES = 100
"""Queues with scores for the starts that the site's own scheduler expected. Later queues count only in the total."""

MAX_SAMPLES = 8
"""Samples published with one event: up to two from before it, and one at the end of a run."""

MAX_FIGURES = 20_000
"""Figures of one sample; later ones are left out."""

MAX_LABELS = 8
"""Labels of one figure."""

MAX_JOBS_SHOWN = 200_000
"""Jobs that wait, run or are remembered, of all runs of the live page together. Beyond this number, runs are evicted,
but never the run that was updated last."""

MAX_UNPACKED = 2**25
"""Bytes of a compressed batch of records, once unpacked."""

MAX_GZIP_MEMBERS = 16
"""Members of the gzip data of a batch. To unpack a member, all bytes behind it are copied."""

MAX_LOG_SIZE = 2**30
"""Bytes of a log, once unpacked."""

MAX_JSON = 2**29
"""Bytes of JSON that is one object, once unpacked: a table, or the output of `sacct --json`. It takes several times
this memory."""

MAX_STREAMS = 2**16
"""Streams of gzip, xz or bzip2 data, one after the other, in a packed log. Each takes time, even an empty one."""

MAX_DICTIONARY = 2**28
"""Bytes of memory that unpacking may take. `xz -9` takes 65 MiB."""

MAX_LINES = 2**24
"""Lines of a log, including empty lines and comments."""

MAX_LINE_LENGTH = 2**20
"""Bytes of a line of a log. A record of PBS lists the hosts of a job twice: 10,000 nodes may take 0.5 MB."""

MAX_HEADER_SIZE = 2**20
"""Bytes of the header of a log, in keys and values."""

MAX_TEMPLATE_FILE_SIZE = 2**22
"""Bytes of a file of templates."""

SIXTY_FOUR_BITS = 2**63
"""Upper limit of signed 64-bit integers, exclusive."""


def storable(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return sums as a snapshot stores them. Whole numbers that do not fit 64 bits become text.

    >>> storable({"jobs": 2, "wait": 2**70, "mean": 0.5})
    {'jobs': 2, 'wait': '1180591620717411303424', 'mean': 0.5}
    """
    return {
        name: str(value) if type(value) is int and abs(value) >= SIXTY_FOUR_BITS else value
        for name, value in sums.items()
    }


def restored(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return the original sums from the result of `storable`.

    >>> restored(storable({"wait": -(2**70)})) == {"wait": -(2**70)}
    True
    """
    return {name: int(value) if isinstance(value, str) else value for name, value in sums.items()}


def saturated(number: int, most: int = MAX_INTEGER) -> int:
    """Return a whole number clamped to the range from -`most` to `most`, for a message.

    >>> saturated(7), saturated(2**70) == MAX_INTEGER, saturated(-(2**70)) == -MAX_INTEGER
    (7, True, True)
    """
    return max(-most, min(number, most))
