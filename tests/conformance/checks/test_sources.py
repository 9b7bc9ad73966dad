"""Every source keeps what a source keeps; a new one is tested by being listed."""

from shadowtime.testing import conformance

TestSources = conformance("sources")
