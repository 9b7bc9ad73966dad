"""How many examples a property tries: the hypothesis profile decides."""

from math import ceil
from typing import Any

from hypothesis import HealthCheck, settings

USUAL = 100
"""Examples that hypothesis tries where no profile says otherwise."""


def examples(number: int, **others: Any) -> settings:
    """Return the settings of a property whose examples are much dearer or much cheaper than most.

    It tries `number` examples under the usual profile, and a third of `number` under a profile that has a third of
    `USUAL`. No example has a deadline: its duration depends on the machine's load. A property of a suite may run in
    several classes, which hypothesis would otherwise warn of.
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
