"""How large anything that comes from outside may be, in one place; `docs/bounds.md` has the reasons.

The schema of messages and every reader of logs refuse what is beyond, so that nothing behind them has to ask: whatever
follows from numbers within these bounds fits 64 bits, or is a whole number of any size that never leaves the process.
"""

from collections.abc import Mapping
from typing import Any

MAX_INTEGER = 2**53
"""No number in a message is larger: every reader of JSON, and every sum of 64 bits, takes them exactly."""

MAX_DURATION = 2**39
"""Seconds (17,000 years); no job requests or runs longer."""

MAX_TIME = 2**41
"""Seconds from second 0 of a cluster's time line, before and after (70,000 years); what follows from a time and some
of the `MAX_DURATION` is below `MAX_INTEGER`, and a Unix time in milliseconds too."""

MAX_PROCESSORS = 2**31 - 1
"""Of a machine, and of a job."""

MAX_AMOUNT = 2**40
"""MiB of memory, GPUs or nodes, of a pool and of a job; those of all live jobs add up to less than 2^57."""

MAX_POOLS = 100
"""Parts of a machine, each with a policy of its own."""

MAX_LIVE_JOBS = 100_000
"""Jobs of a run that wait or run at one time; its state is bounded by them."""

MAX_NAME_LENGTH = 200
"""Characters of the name of a run or a cluster, of a grouping, a label or a key."""

MAX_REASON_LENGTH = 2_000
"""Characters of a reason; a longer one is cut where it is made."""

MAX_SPEC_LENGTH = 8_192
"""Characters of a SPEC, what is inside its parentheses included; the largest set of templates has some 1,200."""

MAX_SPEC_DEPTH = 8
"""Parentheses of a SPEC that may be open at a time."""

MAX_KEYS = 64
"""Settings of one SPEC."""

MAX_BOUNDS = 32
"""Bounds on the wait of one job; shares of covered waits and change points told at one event."""

MAX_QUANTILES = 16
"""Quantiles within which the start of one job is told."""

MAX_RISKS = 8
"""Terminations that a decision names as its risks."""

MAX_MEMBERS = 200
"""Configurations of the portfolio of a policy that tunes itself."""

MAX_MEMBER_CHANGES = 1_000
"""Changes of the member that decides of which a run tells; later ones are only counted."""

MAX_DRIFTS = 32
"""Alarms that begin or end, told at one event; more are told at the next ones."""

MAX_EPISODES = 500
"""Alarms of a run of which its scores tell, the first ones; later ones are only counted."""

MAX_KINDS = 500
"""Kinds of bounds, by grouping, queue, quantile and confidence, that a run has scores of; later ones are left out."""

MAX_EXPECTED_QUEUES = 100
"""Queues of which a run has scores of what the site's own scheduler expected; later ones count only in the whole."""

MAX_SAMPLES = 8
"""Samples that one event brings: two before it, and one at the end of a run."""

MAX_FIGURES = 20_000
"""Figures of one sample; later ones are left out."""

MAX_LABELS = 8
"""Labels of one figure."""

MAX_JOBS_SHOWN = 200_000
"""Jobs that wait, run or are remembered in all runs of the live page; with more, runs are forgotten, but for the one
told of last."""

MAX_UNPACKED = 2**25
"""Bytes of a batch of records that came packed, once unpacked."""

MAX_LOG_SIZE = 2**30
"""Bytes of a log, once unpacked."""

MAX_LINES = 2**24
"""Lines of a log, empty ones and remarks among them."""

MAX_LINE_LENGTH = 2**16
"""Bytes of a line of a log."""

MAX_HEADER_SIZE = 2**20
"""Bytes of the header of a log, in keys and values."""

MAX_TEMPLATE_FILE_SIZE = 2**22
"""Bytes of a file of templates."""

SIXTY_FOUR_BITS = 2**63
"""Upper limit of whole numbers of 64 bits, exclusive."""


def storable(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return sums as a snapshot takes them: whole numbers that 64 bits do not hold are text.

    >>> storable({"jobs": 2, "wait": 2**70, "mean": 0.5})
    {'jobs': 2, 'wait': '1180591620717411303424', 'mean': 0.5}
    """
    return {
        name: str(value) if type(value) is int and abs(value) >= SIXTY_FOUR_BITS else value
        for name, value in sums.items()
    }


def restored(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of which `storable` made this.

    >>> restored(storable({"wait": -(2**70)})) == {"wait": -(2**70)}
    True
    """
    return {name: int(value) if isinstance(value, str) else value for name, value in sums.items()}


def saturated(number: int, most: int = MAX_INTEGER) -> int:
    """Return a whole number as a message has it: one beyond `most` to either side as that.

    >>> saturated(7), saturated(2**70) == MAX_INTEGER, saturated(-(2**70)) == -MAX_INTEGER
    (7, True, True)
    """
    return max(-most, min(number, most))
