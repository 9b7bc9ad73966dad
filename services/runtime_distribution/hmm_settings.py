"""Settings of `Hmm`, and the slices of time that it counts in."""

from typing import Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from shadowtime.services.runtime_distribution.hmm_learning import Method
from shadowtime.shared.message import Count
from shadowtime.shared.spec import SpecSettings

SLICE: Final = 900
"""Seconds."""

DAY: Final = 96
WEEK: Final = 7 * DAY
"""Slices."""

MAX_LEARNED: Final = 20_480
"""The square of the states times the weeks of history, at most: what learning costs, within one event. 64 states learn
from 5 weeks, 16 from 80, 14 from 104."""


class HmmSettings(SpecSettings):
    """Settings of `Hmm`."""

    states: int = Field(16, ge=1, le=64, description="number of hidden states, each with a distribution of run times")
    state: Literal["posterior", "argmax"] = Field(
        "posterior",
        description="predict the mixture of all states by their probability, or the distribution of the likeliest",
    )
    learning: Method = Field(
        "baum-welch",
        description="learn the states from the sequence of slices (Baum-Welch), or as a mixture of slices (hard EM)",
    )
    evidence: Literal["unfinished", "ended"] = Field(
        "unfinished",
        description="what tells the state: ended jobs and how long unfinished ones have run, or ended alone",
    )
    open: int = Field(
        16, ge=1, le=2 * WEEK, description="slices (of 15 minutes) back to which a late end still corrects the state"
    )
    threshold: float = Field(
        3.0,
        ge=0,
        allow_inf_nan=False,
        description="learn again when the distance of the last two models times sqrt(ended jobs) reaches this",
    )
    history: int = Field(4, ge=2, le=104, description="weeks whose jobs are learned from")
    seed: Count = Field(0, description="of the random choice of the first states")

    @field_validator("history")
    @classmethod
    def _soon_learned(cls, history: int, info: ValidationInfo) -> int:
        states = info.data.get("states", 1)
        if states * states * history > MAX_LEARNED:
            raise ValueError(f"{states} states learn from at most {MAX_LEARNED // (states * states)} weeks")
        return history
