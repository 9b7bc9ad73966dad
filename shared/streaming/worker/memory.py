"""The memory that a worker uses, and the memory that it may use."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

SHARE = 0.6
"""The share of the memory that a worker may use beyond which it evicts the runs that it holds."""

CGROUPS = Path("/sys/fs/cgroup")
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_used() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * PAGE


def memory_limit(groups: str | None = None, mounted: Path = CGROUPS) -> int:
    """Return the bytes that this process may use: of the machine, or of the smallest control group around it.

    Parameters
    ----------
    groups
        The content of `/proc/self/cgroup`.
    mounted
        The folder of the control groups, of version 1 or 2.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * PAGE]
    for line in (Path("/proc/self/cgroup").read_text() if groups is None else groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (mounted / "memory", "memory.limit_in_bytes") if controllers else (mounted, "memory.max")
        group = root / path.lstrip("/")
        for place in (group, *group.parents):
            if place == root.parent:
                break
            with suppress(OSError, ValueError):  # no such file: the root of a container; "max": no limit
                limits.append(int((place / name).read_text()))

    return min(limits)


def give_back() -> None:
    """Give free memory back to the machine, as far as the C library can."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
