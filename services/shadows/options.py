"""Options that say which shadow to play, and how."""

from dataclasses import dataclass

from shadowtime.services.catalogue import canonical, configure
from shadowtime.shared.bounds import MAX_NAME_LENGTH
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.quoting import quote
from shadowtime.shared.streaming import Settings


@dataclass(frozen=True)
class ShadowOf:
    """One shadow.

    Parameters
    ----------
    cluster, real, run
        The cluster, the run whose stream it is played on, and its own.
    settings
        Where Kafka is.
    exact
        Whether it waits for run times that are not known, or goes by predictions.
    from_now
        Whether it decides from now on, or from the beginning of the real run on.
    """

    cluster: str
    real: str
    run: str
    settings: Settings
    exact: bool = False
    from_now: bool = False


@dataclass(frozen=True)
class ShadowOptions:
    """A shadow, and what it is to be played under; None is as in the real run, or as it is known."""

    of: ShadowOf
    policy: str
    runtime: str | None = None
    adjustment: str | None = None
    wait_bound: str | None = None
    seed: int | None = None

    def opened(self, like: ClusterOpened) -> ClusterOpened:
        """Return how its run opens, beside one that opened so.

        Raises
        ------
        SettingsError
            If a SPEC is none, or that is the run of another cluster.
        """
        if like.cluster != self.of.cluster:
            real = f"run {quote(self.of.real)} is of cluster {quote(like.cluster)}"
            raise SettingsError(f"{real}, not of {quote(self.of.cluster)}")
        chosen = configure(self.policy, self.runtime or like.runtime, self.adjustment or like.adjustment)
        return like.model_copy(
            update={
                "mode": "closed",
                "policy": chosen.policy,
                "runtime": chosen.runtime,
                "adjustment": chosen.adjustment,
                "wait_bound": like.wait_bound if self.wait_bound is None else canonical("wait-bound", self.wait_bound),
                "seed": like.seed if self.seed is None else self.seed,
                "name": self.policy[:MAX_NAME_LENGTH],
            }
        )
