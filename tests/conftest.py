"""Fixtures of all tests."""

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.watcher import watch

pytest_plugins = ["tests.real_servers"]

watch()

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start.
# Whoever ends `make test` or `make gates` otherwise is obeyed in the same way: servers are stopped first.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)

# How long an example takes says how busy the machine is; time is measured in tests/benchmarks.
settings.register_profile("shadowtime", deadline=None)
settings.load_profile("shadowtime")


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
