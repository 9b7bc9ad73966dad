"""The tables of waiting and running jobs against sorted lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shadowtime.services.scheduler.tables.histograms import UNKNOWN, Histograms
from shadowtime.services.scheduler.tables.job_table import JobTable, Queue, Running, remove_row
from shadowtime.testing.examples import examples


@given(columns=st.integers(1, 6), rows=st.integers(1, 8), spare=st.integers(0, 3), data=st.data())
@examples(200)
def test_a_removed_row_is_gone(columns: int, rows: int, spare: int, data: st.DataObject) -> None:
    numbers = data.draw(st.permutations(range(rows)))
    table = np.arange(columns * (rows + spare), dtype=np.int64).reshape(columns, rows + spare) + 100
    table[0, :rows] = numbers
    number = data.draw(st.sampled_from(numbers))
    expected = np.delete(table[:, :rows], numbers.index(number), axis=1).tolist()
    remove_row(table, rows, number)
    assert table[:, : rows - 1].tolist() == expected


class TableOfJobs(RuleBasedStateMachine):
    """A table is at any time what a sorted list of the same rows is."""

    def __init__(self) -> None:
        super().__init__()
        self.table: JobTable = Queue()
        self.rows: list[tuple[int, ...]] = []
        self.next_number = 0

    @rule(submit_time=st.integers(0, 5), processors=st.integers(1, 9), count=st.integers(1, 40))
    def add(self, submit_time: int, processors: int, count: int) -> None:
        for _ in range(count):
            self.next_number = (self.next_number + 7) % 997
            if any(row[0] == self.next_number for row in self.rows):
                continue
            row = (self.next_number, submit_time, processors, 60, 50, 30, 20, UNKNOWN)
            self.table.add(row)
            self.rows.append(row)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows))
        assert self.table.remove(row[0]) == row
        self.rows.remove(row)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), predicted=st.integers(1, 60))
    def replace(self, data: st.DataObject, predicted: int) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.rows), min_size=1, unique=True))
        rows = [(*row[:5], predicted, min(predicted, row[4]), row[7]) for row in chosen]
        self.table.replace(rows)
        self.rows = [row for row in self.rows if row not in chosen] + rows

    @rule()
    def restore(self) -> None:
        again = Queue()
        again.add((1, 1, 1, 1, 1, 1, 1, UNKNOWN))
        again.restore(self.table.snapshot())
        self.table = again

    @invariant()
    def is_the_sorted_list(self) -> None:
        expected = sorted(self.rows, key=lambda row: (row[1], row[0]))
        assert self.table.snapshot() == [list(row) for row in expected]
        assert len(self.table) == len(expected)
        assert self.table.job_number.tolist() == [row[0] for row in expected]
        assert self.table.processors.tolist() == [row[2] for row in expected]
        assert not expected or self.table.least == min(row[2] for row in expected)


TestTableOfJobs = TableOfJobs.TestCase
TestTableOfJobs.settings = examples(30, stateful_step_count=15)


def test_running_jobs_have_a_start_and_corrections() -> None:
    running = Running((60, 300))
    running.add((3, 20, 4, 100, 95, 90, 90, UNKNOWN, 25))
    running.add((2, 10, 1, 200, 70, 80, 70, UNKNOWN, 15))
    assert running.start_time.tolist() == [15, 25]
    assert running.corrections.tolist() == [60, 300]
    again = Running((60, 300))
    again.restore(running.snapshot())
    assert again.start_time.tolist() == [15, 25]
    assert again.remove(3) == (3, 20, 4, 100, 95, 90, 90, UNKNOWN, 25)


@pytest.mark.parametrize("jobs", [64, 65, 1000])
def test_a_table_grows(jobs: int) -> None:
    queue = Queue()
    for number in range(jobs, 0, -1):
        queue.add((number, 0, 1, 1, 1, 1, 1, UNKNOWN))
    assert queue.job_number.tolist() == list(range(1, jobs + 1))


def test_histograms_keep_their_slots_and_give_them_back() -> None:
    histograms = Histograms()
    slots = [histograms.add((0.5, 0.5)) for _ in range(100)]
    assert slots == list(range(100))
    assert histograms.add(()) == UNKNOWN
    histograms.remove(UNKNOWN)
    for slot in (70, 3, 99):
        histograms.remove(slot)
    again = Histograms()
    again.add((1.0,))
    again.restore(histograms.snapshot())
    for each in (histograms, again):
        assert [each.add((0.0, 0.0, 1.0)) for _ in range(4)] == [3, 70, 99, 100]
        assert each.masses[70, :3].tolist() == [0.0, 0.0, 1.0]
        assert each.masses[71, :3].tolist() == [0.5, 0.5, 0.0]
    assert again.snapshot() == histograms.snapshot()
