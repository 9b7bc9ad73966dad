"""Classes of a notebook are compared, also in a child process that begins with an empty interpreter."""

import multiprocessing
from types import ModuleType
from typing import Any

import pytest

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
