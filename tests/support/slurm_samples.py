"""What a real Slurm printed, read by hand."""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from shadowtime.shared.accounting.job_numbers import number_of

SAMPLES = Path(__file__).with_name("samples")


SACCT = SAMPLES / "slurm-22.05.txt"


NODES = SAMPLES / "slurm-22.05-nodes.txt"


OUTCOMES = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "limit",
    **dict.fromkeys(("NODE_FAIL", "PREEMPTED", "REQUEUED"), "killed"),
}


class Life(NamedTuple):
    """What is known of one job, or of one of its lives; times in seconds of Unix."""

    submit: int
    eligible: int
    start: int | None
    end: int
    state: str
    limit: int | None
    processors: int
    resized: tuple[tuple[int, int], ...] = ()


def printed(text: str = SACCT.read_text()) -> dict[int, Life]:
    """Return the rows as they were printed, read plainly; those of one job in order, a resized one joined."""
    head, *lines = text.splitlines()
    names = head.split("|")
    rows: dict[tuple[int, int | None], list[dict[str, str]]] = {}
    for line in lines:
        row = dict(zip(names, line.split("|", len(names) - 1), strict=True))
        job, _, tasks = row["JobID"].partition("_")
        of_array = [None] if not tasks else [int(tasks)] if tasks.isdecimal() else spelled_out(tasks)
        for task in of_array:
            rows.setdefault((int(job) if tasks else int(row["JobIDRaw"]), task), []).append(row)
    found: dict[int, Life] = {}
    for (number, task), of_job in rows.items():
        life, parts = 0, []
        for row in sorted(of_job, key=lambda each: int(each["Submit"])):
            parts.append(row)
            if row["State"] == "RESIZING":
                continue
            found[number_of(number, task, life)] = joined(parts)
            life, parts = life + 1, []
    return found


def spelled_out(tasks: str) -> list[int]:
    """Return the tasks of an array of which sacct prints one row, as in [3,5-7%2]."""
    parts = [part.split("-") for part in tasks.strip("[]").split("%")[0].split(",")]
    return [task for part in parts for task in range(int(part[0]), int(part[-1]) + 1)]


def joined(parts: list[dict[str, str]]) -> Life:
    first, last = parts[0], parts[-1]
    never = first["NodeList"] == "None assigned" or first["Start"] == "None"
    limit = last["TimelimitRaw"]
    return Life(
        int(first["Submit"]),
        int(first["Eligible"]),
        None if never else int(first["Start"]),
        int(last["End"]),
        "cancelled" if never else OUTCOMES[last["State"].split(" ")[0]],
        None if limit == "UNLIMITED" else 60 * int(limit),
        int(first["ReqCPUS" if never else "AllocCPUS"]),
        tuple((int(before["End"]), int(after["AllocCPUS"])) for before, after in pairwise(parts)),
    )
