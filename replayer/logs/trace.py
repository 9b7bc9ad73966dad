"""A log of jobs as it was read, from a file of whatever format."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shadowtime.shared.kernels import Integers, IntegerTable
from shadowtime.shared.messages import Pool

BUNDLED = Path(__file__).parents[1] / "bundled.swf.gz"
"""The trace that comes with the project, made by `shadowtime generate`."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A log as it was read: all of its jobs, nothing filtered, -1 where unknown.

    `header` has the first value of each `; Key: value`; `table` is (n, 18), sorted by submit time and job
    number, columns as in `FIELDS`; `notes` are remarks on the file for its reader. Of an accounting file, `more` has
    columns (n,) of its own, as `OF_ACCOUNTING` names them, `pools` the parts of the machine where they are known, and
    `left_out` how many rows could not be used, by reason, with the first of them; `resized`, of shape (3, changes), the
    job number, time and processors of each new size of a running job.
    """

    name: str
    header: Mapping[str, str]
    table: Integers
    notes: tuple[str, ...] = ()
    more: Mapping[str, Integers] = field(default_factory=dict)
    pools: tuple[Pool, ...] | None = None
    left_out: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    resized: IntegerTable | None = None

    @property
    def unix_start_time(self) -> int | None:
        """Time of second 0 in seconds of Unix, where the header tells of one that a calendar has."""
        number = re.match(r"[0-9]{1,11}\Z", self.header.get("UnixStartTime", ""))
        return int(number[0]) if number and int(number[0]) > 0 else None

    @property
    def processors(self) -> int | None:
        """Size of the machine: of its pools, or else the number that `MaxProcs`, or else `MaxNodes`, begins with.

        >>> import numpy as np
        >>> sizes = ("338 (batch partition; 512 total)", "1,024", "1e3", "-1")
        >>> [Trace("log", {"MaxProcs": size, "MaxNodes": "64"}, np.empty((0, 18))).processors for size in sizes]
        [338, None, None, 64]
        """
        if self.pools:
            return sum(pool.processors for pool in self.pools)
        for key in ("MaxProcs", "MaxNodes"):
            text = self.header.get(key, "")
            number = re.match(r"[0-9]{1,15}(?![.,']?\w)", text)
            if number is None and re.match(r"[0-9]", text):  # nobody should guess what it means
                return None
            if number and int(number[0]) > 0:
                return int(number[0])

        return None


def trace_name(path: Path) -> str:
    """Return what the log of a file is called; results are text, whatever a file is called."""
    name = os.fsencode(path.name).decode(errors="replace")
    return name.removesuffix(".gz").removesuffix(".swf")
