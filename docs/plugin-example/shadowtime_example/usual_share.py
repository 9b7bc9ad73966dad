"""A predictor of run times that plugs into Shadowtime."""

from typing import Any

from pydantic import Field

from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import SpecSettings
from shadowtime.shared.stages import Predictor


class UsualShareSettings(SpecSettings):
    """Settings of `UsualShare`."""

    weight: float = Field(0.5, gt=0, le=1, description="how much the last job counts")


class UsualShare(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the share of the request that the user's jobs usually take, recent ones above all."""

    name = "usual-share"
    Settings = UsualShareSettings

    def __init__(self, settings: UsualShareSettings) -> None:
        self._weight = settings.weight
        self._shares: dict[int | None, float] = {}

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the run time in seconds; None while nothing is known of the user."""
        if x.user_id not in self._shares or x.requested_time is None:
            return None
        return RunTimePrediction(point=max(1.0, self._shares[x.user_id] * x.requested_time), observations=1)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Learn from a job that ran `y` seconds."""
        if x.requested_time is not None:
            share = min(1.0, y / x.requested_time)
            usual = self._shares.get(x.user_id, share)
            self._shares[x.user_id] = usual + self._weight * (share - usual)

    def snapshot(self) -> Any:
        """Return the share of each user."""
        return list(self._shares.items())

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._shares = dict(state)
