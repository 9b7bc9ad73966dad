"""The number of examples that a property tries, which depends on the hypothesis profile."""

from math import ceil
from typing import Any

from hypothesis import HealthCheck, settings

USUAL = 100
"""Examples that hypothesis tries by default."""


def examples(number: int, **others: Any) -> settings:
    """Return the settings of a property whose examples are much more or much less expensive than most.

    It tries `number` examples under the usual profile, and a third of `number` under a profile that has a third of
    `USUAL`. No example has a deadline: its duration depends on the machine's load. A property of a suite may run in
    several classes; the health check against this is suppressed.
    """
    profile = settings()
    return settings(
        max_examples=ceil(number * profile.max_examples / USUAL),
        **{
            "deadline": None,
            "suppress_health_check": [*profile.suppress_health_check, HealthCheck.differing_executors],
            **others,
        },
    )
