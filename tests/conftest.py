"""Fixtures of all tests."""

import signal

from hypothesis import settings

pytest_plugins = ["tests.real_servers"]

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is; time is measured in tests/benchmarks.
settings.register_profile("shadowtime", deadline=None)
settings.load_profile("shadowtime")
