"""Options of a shadow: its run, and its configuration."""

from dataclasses import dataclass

from shadowtime.services.catalogue import DEFAULTS, canonical, configure
from shadowtime.shared.bounds import MAX_NAME_LENGTH
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.quoting import quote
from shadowtime.shared.streaming import Settings


@dataclass(frozen=True)
class ShadowOf:
    """A shadow and the real run that it accompanies."""

    cluster: str
    real: str
    run: str
    """The cluster, its real run, and the shadow's own run. The shadow gets the jobs of the real run."""
    settings: Settings
    """Settings of the connection to Kafka."""
    exact: bool | None = None
    """Whether the shadow waits for run times that are not known yet. Otherwise it uses predictions.

    None means as before for a shadow that continues, and otherwise that it waits.
    """
    from_now: bool = False
    """Whether the shadow decides from now on. Otherwise it decides from the beginning of the real run."""


@dataclass(frozen=True)
class ShadowOptions:
    """A shadow and its configuration. None means the value of the real run.

    If the real run has the default predictor, a `runtime` of None means the default predictor of the policy.
    """

    of: ShadowOf
    policy: str
    runtime: str | None = None
    adjustment: str | None = None
    wait_bound: str | None = None
    seed: int | None = None

    def opened(self, like: ClusterOpened) -> ClusterOpened:
        """Return the opening event of the shadow's run. `like` is the opening event of the real run.

        Raise `SettingsError` if a SPEC is invalid, or the real run is of another cluster.
        """
        if like.cluster != self.of.cluster:
            real = f"run {quote(self.of.real)} is of cluster {quote(like.cluster)}"
            raise SettingsError(f"{real}, not of {quote(self.of.cluster)}; correct --cluster or --of")
        theirs = None if like.runtime == DEFAULTS["runtime"] else like.runtime
        chosen = configure(self.policy, self.runtime or theirs, self.adjustment or like.adjustment)
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
