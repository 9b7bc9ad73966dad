"""Fixtures of all tests."""

pytest_plugins = ["tests.real_servers"]
