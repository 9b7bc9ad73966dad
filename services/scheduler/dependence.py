"""What the jobs of one user tell of each other's run times, learned from those that have ended.

Each job's rank, the probability integral transform of its run time, depends on a factor that its user's jobs share, as
far as what was predicted of them was predicted alike: a job is told by those that ended since it was submitted, what
came before is in its prediction. How far ranks depend on it is learned online: of some loadings, one of which is
independence, that is taken under which the ranks of ended jobs were likeliest as seen at their start, with forgetting.

References: docs/algorithms.md#dependence.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shadowtime.services.scheduler.histograms import UNKNOWN
from shadowtime.services.scheduler.job_table import NEVER, SLOT, JobTable
from shadowtime.services.scheduler.rank_states import LOADINGS, STATES, likelihoods, outliving, tables
from shadowtime.services.scheduler.tilted import OTHER_REQUEST, told
from shadowtime.shared.arrays import Floats, FloatTable
from shadowtime.shared.events import (
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    moment,
)
from shadowtime.shared.packed_table import packed_numbers, unpacked_numbers
from shadowtime.shared.run_time_bins import mass_before
from shadowtime.shared.run_time_outcomes import outcome_masses, transformed

KEPT = 0.999
"""Share of what is known of the loadings that each ended job leaves: jobs count over the last 1,000 or so."""

EACH_USER = 256
"""Jobs of a user in the system that tell of each other; those that come beyond are independent."""

ROWS = len(LOADINGS) * STATES


@dataclass(slots=True)
class Followed:
    """A job in the system.

    There is when it was started, if it runs; its distribution, once a pass has seen it; what is `heard` of mates that
    have ended since its submission, logarithms of likelihoods by loading and state; and what was `said` of these as it
    started, their probabilities.
    """

    user: int
    request: int
    start: int | None = None
    masses: Floats | None = None
    heard: Floats = field(default_factory=lambda: np.zeros(ROWS))
    said: Floats | None = None


class Dependence:
    """Follows the jobs in the system, by user.

    An end, and a start, cost O(jobs of the user in the system), at most `EACH_USER`.

    >>> dependence = Dependence()
    >>> dependence.loading
    0.0
    """

    def __init__(self) -> None:
        self.jobs: dict[int, Followed] = {}
        self.mates: dict[int, dict[int, Followed]] = {}
        """Those of each user."""
        self.unseen: set[int] = set()
        """Those that no pass has seen."""
        self.scores: Floats = np.zeros(len(LOADINGS))
        """Of each loading the logarithm of how likely it made the ranks of ended jobs, with forgetting."""

    @property
    def loading(self) -> float:
        """The loading that is taken."""
        return LOADINGS[self.chosen]

    @property
    def chosen(self) -> int:
        """Which that is."""
        return int(self.scores.argmax())

    def rows(self) -> slice:
        """Return where `tables`, and what is heard, have the states under the loading that is taken."""
        return slice(self.chosen * STATES, (self.chosen + 1) * STATES)

    def take_in(self, *seen: JobTable) -> None:
        """Take note of what is predicted of new jobs. O(new jobs)."""
        for number in sorted(self.unseen):
            row = next((row for table in seen if (row := table.row(number)) is not None), None)
            masses = None if row is None or row[SLOT] == UNKNOWN else seen[0].histograms.masses[row[SLOT]]
            if row is not None and masses is not None and masses.sum() > 0.0:
                self.jobs[number].masses = masses / masses.sum()
            else:
                self._forget(number)
        self.unseen.clear()

    def observe(self, event: Event) -> None:
        """Take notice of what happens to jobs."""
        if isinstance(event, JobSubmitted):
            if event.user_id is not None and len(self.mates.get(event.user_id, ())) < EACH_USER:
                request = NEVER if event.requested_time is None else event.requested_time
                self._follow(event.job_number, Followed(event.user_id, request))
                self.unseen.add(event.job_number)
        elif isinstance(event, JobWithdrawn):
            self._forget(event.job_number)
        elif isinstance(event, JobStarted):
            if (job := self.jobs.get(event.job_number)) is not None:
                job.said = self._said(event.job_number, job, moment(event))
                job.start = moment(event)
        elif isinstance(event, JobSuspended | JobResumed):  # how long it has run is not known
            if (job := self.jobs.get(event.job_number)) is not None:
                job.start = None
        elif isinstance(event, JobEnded):
            self._end(event)

    def _said(self, number: int, job: Followed, now: int) -> Floats | None:
        """Return the probability of each state under each loading; None where nothing tells of the job."""
        heard, ranks = job.heard.copy(), tables()
        for other, mate in self.mates[job.user].items():
            if other != number and mate.start is not None and mate.masses is not None and mate.start < now:
                outlived = np.log(outliving(ranks, mass_before(mate.masses, float(now - mate.start))))
                heard += (1.0 if mate.request == job.request else OTHER_REQUEST) * outlived
        if job.masses is None or not heard.any():
            return None
        return np.concatenate([told(each) for each in heard.reshape(-1, STATES)])

    def _end(self, ended: JobEnded) -> None:
        """Learn from a rank, and tell it to mates; a job that is to run again has none."""
        if (job := self.jobs.get(ended.job_number)) is None:
            return
        if ended.requeued:
            job.start = job.said = None
            return
        self._forget(ended.job_number)
        if job.masses is None:
            return
        limit, run_time = float("inf") if job.request >= NEVER else float(job.request), float(ended.own_run_time)
        likely = likelihoods(tables(), *transformed(outcome_masses(job.masses, limit), run_time, limit))
        if job.said is not None:
            self.scores *= KEPT
            self.scores += np.log((job.said * likely).reshape(-1, STATES).sum(axis=1))
            self.scores -= self.scores[0]  # independence is what the others are compared with
        heard = np.log(likely)
        for mate in self.mates.get(job.user, {}).values():
            mate.heard += heard if mate.request == job.request else OTHER_REQUEST * heard

    def _follow(self, number: int, job: Followed) -> None:
        self.jobs[number] = job
        self.mates.setdefault(job.user, {})[number] = job

    def _forget(self, number: int) -> None:
        self.unseen.discard(number)
        if (job := self.jobs.pop(number, None)) is not None:
            del self.mates[job.user][number]
            if not self.mates[job.user]:
                del self.mates[job.user]

    def snapshot(self) -> Any:
        """Return what is learned, and the jobs in the system."""
        return {
            "scores": self.scores.tolist(),
            "unseen": sorted(self.unseen),
            "jobs": [
                [number, job.user, job.request, job.start, *map(_packed, (job.masses, job.heard, job.said))]
                for number, job in self.jobs.items()
            ],
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.jobs, self.mates = {}, {}
        self.scores, self.unseen = np.array(state["scores"]), set(state["unseen"])
        for number, user, request, start, masses, heard, said in state["jobs"]:
            job = Followed(user, request, start, _unpacked(masses), np.zeros(ROWS), _unpacked(said))
            job.heard += unpacked_numbers(heard)
            self._follow(number, job)


def _packed(numbers: FloatTable | Floats | None) -> Any:
    return None if numbers is None else packed_numbers(numbers)


def _unpacked(packed: Any) -> Any:
    return None if packed is None else unpacked_numbers(packed)
