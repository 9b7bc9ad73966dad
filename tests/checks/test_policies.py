"""Every policy keeps what a policy keeps; a new one is tested by being listed."""

from shadowtime.testing import conformance

TestPolicies = conformance("policies")
