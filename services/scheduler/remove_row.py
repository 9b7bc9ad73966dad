"""How a row leaves a table of jobs."""

from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.kernel import kernel


@kernel
def remove_row(table: IntegerTable, size: int, job_number: int) -> None:
    """Close the gap that a job leaves in the first `size` rows of a table, shape (columns, rows), job numbers first."""
    at = 0
    while table[0, at] != job_number:
        at += 1
    for column in range(len(table)):
        gap, after = table[column, at : size - 1], table[column, at + 1 : size]
        for row in range(len(gap)):  # over slices from 0 on, which compiles to a memory move
            gap[row] = after[row]
