"""Rows in the output of sacct. A secret text ends each field, so that no job name can look like a row."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from shadowtime.shared.accounting import FIELDS
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote

CHUNK = 2**20
"""Bytes that are read at a time."""


def command(end: str, *which: str) -> tuple[str, ...]:
    """Return the command line of sacct. `end` is printed after each field; it is secret, as in `squeue`."""
    return ("sacct", "-pXD", "--noconvert", f"--delimiter={end}", *which, "-o", ",".join(FIELDS))


def rows_in(path: Path, end: str) -> Iterator[list[str]]:
    """Yield the rows in a file with the output of `command`, in the order of `FIELDS`, without the head.

    A job name may contain any text; only its first line counts. Memory is O(the longest row).

    Raise `FollowError` if the output is cut off, or has other fields than requested.
    """
    rows = _framed(path, end)
    if (head := next(rows, None)) is not None and tuple(head) != FIELDS:
        raise FollowError(f"sacct: expected the fields {','.join(FIELDS)}, found {quote(','.join(head))}")
    for row in rows:
        yield [*(value.replace("|", " ").replace("\n", " ") for value in row[:-1]), _first_line(row[-1])]


def _framed(path: Path, end: str) -> Iterator[list[str]]:
    count, rest = len(FIELDS), ""
    fields: list[str] = []
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        while chunk := file.read(CHUNK):
            *whole, rest = (rest + chunk).split(end)
            fields += whole
            at = 0
            while len(fields) - at >= count:
                yield _row(fields[at : at + count])
                at += count
            del fields[:at]
    if fields or rest not in ("", "\n"):
        raise FollowError(
            f"sacct: expected {count} fields in each row, then a line break; found {len(fields)} fields at the end, "
            f"then {quote(rest)}; its output is cut off"
        )


def _row(fields: Sequence[str]) -> list[str]:
    """Return the fields of a row. The line break that ends the row before is part of the first field."""
    return [fields[0].removeprefix("\n"), *fields[1:]]


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")
