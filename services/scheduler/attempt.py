"""An attempt to backfill, its candidates, and what is waited for before one has an outcome."""

from dataclasses import dataclass
from typing import NamedTuple


class Candidate(NamedTuple):
    """A candidate of an attempt, one of `among` that are followed.

    There is its raw probability, what was stated instead, and whether it passed the criterion.
    """

    job_number: int
    processors: int
    probability: float
    stated: float
    passes: bool
    among: int


class Outcome(NamedTuple):
    """Whether a candidate would have delayed the head."""

    candidate: Candidate
    delayed: bool


@dataclass(slots=True)
class Attempt:
    """Candidates that were weighed together, until the head is ready.

    `running` of the jobs that it counts run still; the others have `released` processors, of `needed` ones.
    """

    id: int
    time: int
    needed: int
    running: int
    released: int
    candidates: list[Candidate]


@dataclass(slots=True)
class Pending:
    """A candidate that has started, of a head that is ready; it is told of at `due`.

    `delayed` is True until its end shows otherwise, None if it is to run again, which leaves it unknown.
    """

    due: int
    attempt: int
    candidate: Candidate
    delayed: bool | None = True

    def ranked(self) -> "Ranked":
        """Return it behind what orders it: by time, then as they were weighed; no two are alike in that."""
        return self.due, self.attempt, self.candidate.job_number, self


Ranked = tuple[int, int, int, Pending]
"""When it is due, its attempt, its job, and itself."""
