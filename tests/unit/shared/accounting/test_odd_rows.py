"""Odd rows are counted and quoted. Too many of them refuse a file."""

from pathlib import Path

import pytest

from shadowtime.shared.accounting.odd_rows import OddRows
from shadowtime.shared.accounting.reading import AccountingRows
from shadowtime.shared.errors import TraceError


def test_a_tenth_is_accepted_and_more_is_refused() -> None:
    odd = OddRows()
    odd.add(3, "cut off")
    odd.require_few(Path("log"), read=9)
    with pytest.raises(
        TraceError, match=r"log: 1 of 9 rows cannot be read, more than a tenth: line 3: cut off; .*--lenient"
    ):
        odd.require_few(Path("log"), read=8)
    odd.require_few(Path("log"), read=0, lenient=True)


def test_the_first_three_are_quoted() -> None:
    odd = OddRows()
    for line in range(2, 7):
        odd.add(line, f"reason {line}")
    assert odd.note(read=1_000) == (
        "5 of 1,005 rows cannot be read and are left out: line 2: reason 2; line 3: reason 3; line 4: reason 4"
    )


def test_they_are_counted_among_the_rows_left_out_and_noted_first() -> None:
    rows = AccountingRows()
    rows.extend(range(2, 20), {"job_number": range(18)}, {})
    rows.notes.append("another")
    rows.require_few_odd(Path("log"), lenient=False)
    assert (rows.notes, rows.left_out) == (["another"], {})
    rows.odd.add(20, "cut off")
    rows.require_few_odd(Path("log"), lenient=False)
    assert rows.notes == ["1 of 19 rows cannot be read and is left out: line 20: cut off", "another"]
    assert rows.left_out == {"unreadable": (1, "line 20: cut off")}
