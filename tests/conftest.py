"""Fixtures of all tests."""

import logging
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from pydantic.dataclasses import rebuild_dataclass

import shadowtime.shared.messages.envelope  # noqa: F401 - every message, to be completed below
from shadowtime.shared.messages.base import FrozenModel
from shadowtime.stack.servers import ports
from tests.support.watcher import watch

pytest_plugins = ["tests.support.real_servers"]
collect_ignore = ["support/loaded.py"]  # whoever imports it loads every kernel

watch()

# Processes of `make test` share the machine's ports out: what one found free, another could take before it is used.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    first, last = ports.allowed()
    share = (last + 1 - first) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    first += share * int(worker.removeprefix("gw"))
    os.environ[ports.PORTS] = f"{first}-{first + share - 1}"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start.
# Whoever ends `make test` or `make gates` otherwise is obeyed in the same way: servers are stopped first.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)

# An example's duration depends on the machine's load, so neither profile has a deadline; tests/benchmarks measure time.
# `ci` tries the same examples in every run: a red build means that the code is wrong, not that it had bad luck.
# `--hypothesis-profile nightly` chooses the other; `shadowtime/testing/examples.py` scales the numbers of single tests.
settings.register_profile("ci", max_examples=33, derandomize=True, print_blob=True, deadline=None)
settings.register_profile("nightly", max_examples=100, print_blob=True, deadline=None)
settings.load_profile("ci")


def complete(message: Any) -> None:
    """Build what a message is checked by, which its first use does otherwise: hypothesis reads the signature before."""
    for each in message.__subclasses__():
        rebuild_dataclass(each)
        complete(each)


complete(FrozenModel)

LONGEST = (
    "tests/integration/slurm/",
    "tests/integration/parity/test_chaos.py",
    "tests/unit/shared/streaming/test_stage_worker.py",
    "tests/integration/dashboards/test_queries.py",
    "tests/integration/faults/test_servers_away.py",
    "tests/integration/faults/",
    "tests/integration/parity/test_parity.py",
    "tests/integration/ask/test_ask_live.py",
    "tests/integration/metrics/",
    "tests/conformance/checks/",
    "tests/integration/stack/test_supervisor.py",
    "tests/integration/live/",
)
"""What takes longest begins first, so that no process of `make test` is left alone with it at the end.

What waits for servers and what computes take turns, so that the processors have something to do all the time.
"""


SEEDS = 2
"""Of a test that is repeated under other seeds, so many are tried in `make test`; `make nightly` tries all."""


collected: Counter[str] = Counter()
"""Parameters so far of each test that is marked `few`."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave to nightly all but the first seeds of a test, and of one marked `few(count)` all but so many parameters."""
    indices = item.callspec.indices if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    few = item.get_closest_marker("few")
    further = indices.get("seed", 0) >= SEEDS
    if few:
        test = item.nodeid.partition("[")[0]
        collected[test] += 1
        further |= collected[test] > few.args[0]
    if further:
        item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests only where there is one: to look at each test for them takes seconds."""
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text():
        return [each for each in found if not isinstance(each, DoctestModule)]
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the order within each stays."""

    def rank(item: pytest.Item) -> int:
        return next((at for at, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))

    items.sort(key=rank)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Take back what a command that a test runs in this process has set for all of it: log, umask."""
    root = logging.getLogger()
    handlers, level, umask = list(root.handlers), root.level, os.umask(0o022)
    os.umask(umask)
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(level)
    os.umask(umask)
