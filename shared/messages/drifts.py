"""That predictions do not hold any more, or hold again: docs/algorithms.md#drift."""

from typing import Annotated, Final, Literal

from shadowtime.shared.bounds import MAX_EPISODES
from shadowtime.shared.messages.base import AtMost, Count, Finite, FrozenModel, Instant, Name, Whole

Predicted = Literal["run_time", "adjustment", "wait_bound", "forecast"]
"""The kinds of predictions that can drift."""

Scope = Literal["cluster", "queue", "partition", "user"]
"""Of whose jobs."""

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
    ("run_time", OUTSIDE): "run times are farther from the predicted ones than is said",
    ("run_time", TWICE): "jobs run more than twice as long as predicted",
    ("run_time", HALF): "jobs run less than half as long as predicted",
    ("adjustment", TOO_SHORT): "adjusted requests are too short by half an hour or more",
    ("forecast", OFF): "forecast waits are off",
}
"""In words; of bounds on waits see `said`."""


class Drift(FrozenModel):
    """Predictions do not hold any more since `since`, or, with `holds`, hold again.

    Parameters
    ----------
    of, what
        What was predicted, and how it fails: of `run_time` longer, shorter, outside, twice or half; of `adjustment` too
        short; of `wait_bound` the grouping; of `forecast` off.
    scope, number
        Of whose jobs: all of the cluster, or a queue's, partition's or user's of this number.
    holds
        Whether it is over.
    since
        Seconds of the log: the beginning of the day from which on it most likely drifts or holds.
    share
        Of the outcomes since then: how many failed, in 0 to 1; of forecasts the mean relative error.
    most
        What that share may be.
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
        """The key that no other drift at the same time has."""
        return self.of, self.what, self.scope, self.number


class DriftEpisode(FrozenModel):
    """For how long predictions did not hold: the fields are those of `Drift`.

    It began at `since` as far as is known, was told at `told`, and has lasted until `until`, None if it lasts.
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
    """Whether predictions held: the days of outcomes of the cluster, and when they did not.

    `left_out` counts the episodes that came after so many.
    """

    days: Count
    episodes: Annotated[tuple[DriftEpisode, ...], AtMost(MAX_EPISODES)] = ()
    left_out: Count = 0


def describe_drift(of: str, what: str) -> str:
    """Return in words what does not hold.

    >>> describe_drift("run_time", "longer"), describe_drift("wait_bound", "plain")
    ('run times are longer than predicted', 'waits are longer than their plain bounds')
    """
    return DESCRIPTIONS.get((of, what), f"waits are longer than their {what} bounds")


def whose(scope: str, number: int | None) -> str:
    """Return of whose jobs.

    >>> whose("cluster", None), whose("user", 7)
    ('all jobs', 'user 7')
    """
    return "all jobs" if scope == "cluster" else f"{scope} {number}"
