"""Decisions of the scheduler at a scheduling point, with their reasons."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from shadowtime.shared.bounds import MAX_LIVE_JOBS, MAX_MEMBERS
from shadowtime.shared.messages.base import AtMost, Count, FrozenModel, Instant, Name, Processors, Reasons, Request
from shadowtime.shared.messages.predictions import Probability
from shadowtime.shared.messages.reasons import Reason

JobNumber = Count

OfJobs = AtMost(MAX_LIVE_JOBS)


class Start(FrozenModel):
    """Start a waiting job now on `processors`, for `limit` seconds at most."""

    job_number: JobNumber
    processors: Processors
    limit: Request | None = None
    reason: Reason


class Kill(FrozenModel):
    """End a running job now; with `requeue` it waits again."""

    job_number: JobNumber
    requeue: bool
    reason: Reasons


class Evaluated(FrozenModel):
    """Candidates tried one after another for one blocked head, until one was started (`accepted`) or none was left.

    Each candidate has the exact probability of delaying the head, and the paper's bound on it. The head lacks `needed`
    processors, which running jobs must release. The first `after` starts of the same pass count as running jobs.
    `recalibrated` has the exact probabilities, corrected by earlier outcomes, if the policy recalibrates.
    """

    head: JobNumber
    needed: Count
    after: Count
    job_numbers: Annotated[tuple[Annotated[JobNumber, Field(strict=True)], ...], OfJobs]
    probabilities: Annotated[tuple[Probability, ...], OfJobs]
    bounds: Annotated[tuple[Probability, ...], OfJobs]
    recalibrated: Annotated[tuple[Probability, ...], OfJobs] | None = None
    accepted: bool

    @model_validator(mode="after")
    def _one_of_each(self) -> "Evaluated":
        count = len(self.job_numbers)
        for name in ("probabilities", "bounds", "recalibrated"):
            values = getattr(self, name)
            if values is not None and len(values) != count:
                raise ValueError(
                    f"head {self.head}: expected {count} {name}, one for each candidate; found {len(values)}"
                )
        if self.accepted and not count:
            raise ValueError(f"head {self.head}: expected at least one candidate, because one was accepted; found none")
        return self


class CutShort(FrozenModel):
    """The part of a pass that was skipped, because the work of a pass is bounded (`docs/cost.md`).

    `by` is the limit that was reached. If it is `walks`, `left` candidates were not evaluated: plain EASY decided on
    them by their requests. If it is `depth`, `left` waiting jobs were not planned, moved or tried. If it is `starts`,
    the pass started the maximum number of jobs, and `left` jobs still wait. The next pass continues.
    """

    by: Literal["walks", "depth", "starts"]
    left: Count


Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Standing(FrozenModel):
    """The result of one member of a portfolio, over the jobs that have ended on the simulated machines of all members.

    Mean bounded slowdown, mean wait, longest wait and the mean wait of the user who is worst off are ratios to those of
    the first member, EASY. The policy minimises `loss`. `weight` is the member's share under exponential weights.
    """

    member: Name
    slowdown: Share
    wait: Share
    longest_wait: Share
    worst_user: Share
    loss: Annotated[float, Field(allow_inf_nan=False)]
    weight: Probability


class Chosen(FrozenModel):
    """The member of a portfolio that decides.

    If the member was chosen at this decision, `standings` has the results of all members over `jobs` jobs. Otherwise
    both are None.
    """

    member: Name
    jobs: Count | None = None
    standings: Annotated[tuple[Standing, ...], AtMost(MAX_MEMBERS)] | None = None


class Again(FrozenModel):
    """A request for a scheduling point at `time`, in seconds, if nothing happens before. A later answer replaces it.

    A source that obeys the decisions adds a scheduling point then. In a recorded log the request has no effect.
    """

    time: Instant


Decision = Start | Kill
