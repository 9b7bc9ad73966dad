"""Classes of a notebook are compared, also in a child process that begins with an empty interpreter."""

import multiprocessing
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import shadowtime
from shadowtime.shared.errors import ShadowtimeError

CELL = """
import shadowtime

class Mine:
    def schedule(self, now, queue, running, free):
        from shadowtime.services.scheduler import start
        from shadowtime.services.scheduler.policy import FITS_NOW
        fits = queue.processors.cumsum() <= free
        return [start(queue, row, FITS_NOW) for row in range(len(queue)) if fits[row]]

compared = shadowtime.compare(shadowtime.read_log(jobs=100), [Mine, Mine2(), "fcfs"])
found = compared.rows["mean_wait"].tolist()
"""


def _notebook(results: Any) -> None:
    """Run cells as a notebook does: their classes belong to a module that has no file."""
    cell = ModuleType("__main__").__dict__
    exec("class Base:\n    pass\n", cell)
    exec(CELL.replace("Mine2()", "type('Mine2', (Mine, Base), {})()"), cell)
    results.put(cell["found"])


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_classes_of_a_notebook_work_in_a_child_process(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=_notebook, args=(results,))
    child.start()
    waits = results.get(timeout=120)
    child.join()
    assert waits[0] == waits[1] == waits[2]


class Rows:
    """It returns rows of the queue, which only a function may."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> Any:
        return self.returned


class Seconds:
    def predict_one(self, x: Any) -> Any:
        return 10.0

    def learn_one(self, x: Any, y: int) -> None:
        pass


@pytest.mark.parametrize("returned", [np.array([0, 1]), [0], None, {}], ids=["array", "rows", "None", "dict"])
def test_a_policy_that_returns_no_decisions_is_told_what_was_expected(returned: Any) -> None:
    policy = Rows(returned)
    with pytest.raises(
        ShadowtimeError, match=r"schedule: expected a list of decisions, as start\(queue, row, FITS_NOW\)"
    ):
        shadowtime.replay(shadowtime.read_log(jobs=20), policy=policy)


def test_a_predictor_that_returns_seconds_is_told_what_was_expected() -> None:
    log = shadowtime.read_log(jobs=20)
    with pytest.raises(
        ShadowtimeError, match=r"Seconds\.predict_one: expected RunTimePrediction or None; found '10\.0'"
    ):
        shadowtime.replay(log, policy="easy", runtime=Seconds())
