"""The number of examples that a property tries, which depends on the hypothesis profile."""

from math import ceil
from typing import Any

from hypothesis import HealthCheck, settings

USUAL = 100
"""Examples that hypothesis tries by default."""


def examples(number: int, **others: Any) -> settings:
    """Return the settings of a property whose examples are much more or much less expensive than most.

    Under the usual profile, the property tries `number` examples. Another profile scales this number as it scales
    `USUAL`. No example has a deadline, because its duration depends on the machine's load. A property of a suite may
    run in several classes, so the health check against this is suppressed.

    `others` are further settings of hypothesis. They have precedence over the settings above.
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
