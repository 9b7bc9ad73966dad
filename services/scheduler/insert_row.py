"""How a row enters a table of jobs."""

from shadowtime.shared.arrays import Integers, IntegerTable
from shadowtime.shared.kernel import kernel


@kernel
def insert_row(table: IntegerTable, size: int, row: Integers) -> None:
    """Put a job where it belongs among the first `size` rows of a table, shape (columns, more rows than that).

    Job numbers come first, then times of submission; rows are in order of (submit time, job number). O(size).

    >>> import numpy as np
    >>> table = np.array([[3, 1, 0], [10, 20, 0]])
    >>> insert_row(table, 2, np.array([4, 10]))
    >>> table.tolist()
    [[3, 4, 1], [10, 10, 20]]
    """
    at = size
    while at > 0 and (table[1, at - 1], table[0, at - 1]) > (row[1], row[0]):
        at -= 1
    for column in range(len(table)):
        for each in range(size, at, -1):
            table[column, each] = table[column, each - 1]
        table[column, at] = row[column]
