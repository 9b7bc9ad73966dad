"""Fixtures of all tests."""

import signal

pytest_plugins = ["tests.real_servers"]

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
