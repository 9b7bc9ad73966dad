"""Alarms that predictions do not hold any more, and their ends: docs/algorithms.md#drift."""

from typing import Annotated, Final, Literal

from shadowtime.shared.bounds import MAX_EPISODES
from shadowtime.shared.messages.base import AtMost, Count, Finite, FrozenModel, Instant, Name, Whole

Predicted = Literal["run_time", "adjustment", "wait_bound", "forecast"]
"""The kinds of predictions that can drift."""

Scope = Literal["cluster", "queue", "partition", "user"]
"""The group whose jobs are concerned."""

LONGER: Final = "longer"
SHORTER: Final = "shorter"
OUTSIDE: Final = "outside"
TWICE: Final = "twice"
HALF: Final = "half"
TOO_SHORT: Final = "too short"
OFF: Final = "off"

DESCRIPTIONS: Final = {
    ("run_time", LONGER): "run times are longer than predicted",
    ("run_time", SHORTER): "run times are shorter than predicted",
    ("run_time", OUTSIDE): "run times are farther from the predicted ones than stated",
    ("run_time", TWICE): "jobs run more than twice as long as predicted",
    ("run_time", HALF): "jobs run less than half as long as predicted",
    ("adjustment", TOO_SHORT): "adjusted requests are too short by half an hour or more",
    ("forecast", OFF): "forecast waits are off",
}
"""The failures of predictions in words; for bounds on waits see `describe_drift`."""


class Drift(FrozenModel):
    """An alarm that predictions have not held since `since`; or, with `holds`, the report that they hold again.

    Parameters
    ----------
    of, what
        The kind of prediction, and how it fails: for `run_time` longer, shorter, outside, twice or half; for
        `adjustment` too short; for `wait_bound` the grouping; for `forecast` off.
    scope, number
        The jobs concerned: all of the cluster, or those of the queue, partition or user with this number.
    holds
        Whether the alarm is over.
    since
        Seconds of the log: the beginning of the day from which on the predictions most likely drift, or hold.
    share
        The share of the outcomes since then that failed, in 0 to 1; for forecasts the mean relative error.
    most
        The highest acceptable `share`.
    """

    of: Predicted
    what: Name
    scope: Scope
    number: Whole | None = None
    holds: bool = False
    since: Whole
    share: Finite
    most: Finite

    @property
    def key(self) -> tuple[str, str, str, int | None]:
        """The key of the drift, unique among the drifts at one time."""
        return self.of, self.what, self.scope, self.number


class DriftEpisode(FrozenModel):
    """A period in which predictions did not hold; the fields are those of `Drift`.

    The period most likely began at `since`. Its alarm was reported at `told`. It ended at `until`; None if it still
    lasts.
    """

    of: Predicted
    what: Name
    scope: Scope
    number: Whole | None = None
    since: Whole
    told: Instant
    until: Instant | None = None
    share: Finite
    most: Finite


class DriftScores(FrozenModel):
    """The drift of predictions in a run: the days with outcomes, and the periods in which predictions did not hold.

    `left_out` counts the episodes beyond the maximum number.
    """

    days: Count
    episodes: Annotated[tuple[DriftEpisode, ...], AtMost(MAX_EPISODES)] = ()
    left_out: Count = 0


def describe_drift(of: str, what: str) -> str:
    """Return in words how predictions fail.

    >>> describe_drift("run_time", "longer"), describe_drift("wait_bound", "plain")
    ('run times are longer than predicted', 'waits are longer than their plain bounds')
    """
    return DESCRIPTIONS.get((of, what), f"waits are longer than their {what} bounds")


def whose(scope: str, number: int | None) -> str:
    """Return in words whose jobs are concerned.

    >>> whose("cluster", None), whose("user", 7)
    ('all jobs', 'user 7')
    """
    return "all jobs" if scope == "cluster" else f"{scope} {number}"
