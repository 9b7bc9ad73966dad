"""What adjusted requests are to a policy that weighs run-time distributions."""

import math

import pytest

from shadowtime.services.scheduler.tables.histograms import UNKNOWN
from shadowtime.shared.distributions.histogram import EDGES, bin_of
from shadowtime.shared.messages.envelope import Decided, SchedulingPoint
from tests.support.told_scheduler import REGULAR, SELECTIVE, Told, uses

EITHER = (0.0,) * 5 + (0.5, 0.5)
"""Ends after 18.9 or 34 seconds, as likely."""


def weighed(distribution: str, time: int = 0, **switches: str) -> float:
    """Return the probability that job 3, of 4 processors, delays the head, of 8 on a machine of 10.

    Job 1 holds 6. It and job 3 end after either time, adjusted to 15 s.
    """
    told = Told(policy="probabilistic:tau=1", keys=uses(distribution=distribution, **switches))
    told.submit(1, 6, 1000, point=25.0, adjusted=15, histogram=EITHER)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, 600, point=25.0, adjusted=15, histogram=EITHER)
    decided = told.tell(SchedulingPoint(time=time))
    assert isinstance(decided, Decided)
    (evaluated,) = decided.evaluated
    assert evaluated.job_numbers == (3,)
    return evaluated.probabilities[0]


@pytest.mark.parametrize(
    ("distribution", "candidates", "running", "expected"),
    [
        ("ignore", "yes", "yes", 0.25),  # job 1 early, job 3 late
        ("limit", "no", "no", 0.25),
        ("limit", "yes", "no", 0.0),  # job 3 ends by 15 s
        ("limit", "no", "yes", 1.0),  # job 1 does
        ("limit", "yes", "yes", 0.0),  # both at once
    ],
)
def test_adjusted_requests_limit_distributions(
    distribution: str, candidates: str, running: str, expected: float
) -> None:
    assert weighed(distribution, adjust_candidates=candidates, running=running) == expected


def test_past_its_adjusted_end_a_distribution_has_five_minutes_more() -> None:
    """At 17 s job 1 may still end at 18.9 or 34 s; job 3, which ends by 32 s, delays the head in the first case."""
    share = math.log(EDGES[6] / 17) / math.log(1.8)
    found = weighed("limit", time=17, adjust_candidates="yes", running="yes")
    assert found == pytest.approx(share / (1 + share), abs=2e-6)


LONG = (0.0,) * 12 + (1.0,)
"""Ends after 643 to 1157 seconds."""


@pytest.mark.parametrize("histogram", [(), LONG], ids=["no-distribution", "distribution"])
@pytest.mark.parametrize(("seconds", "expected"), [(300, [3]), (301, [])])
def test_candidates_end_within_the_grace_of_a_running_job(
    histogram: tuple[float, ...], seconds: int, expected: list[int]
) -> None:
    told = Told(policy="probabilistic", keys=REGULAR)
    told.submit(1, 6, 1000, point=1000.0, adjusted=500, histogram=histogram)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, seconds)
    assert told.numbers(500) == expected


@pytest.mark.parametrize("histogram", [(), LONG], ids=["no-distribution", "distribution"])
@pytest.mark.parametrize(("seconds", "expected"), [(500, [1, 3]), (501, [1])])
def test_what_a_pass_starts_ends_by_its_adjusted_request(
    histogram: tuple[float, ...], seconds: int, expected: list[int]
) -> None:
    told = Told(policy="probabilistic", keys=SELECTIVE)
    told.submit(1, 6, 1000, point=1000.0, adjusted=500, histogram=histogram)
    told.submit(2, 8, 50)
    told.submit(3, 4, seconds)
    assert told.numbers(0) == expected


@pytest.mark.parametrize("switch", ["no", "yes"])
def test_adjusted_requests_reweigh_distributions(switch: str) -> None:
    """With 80 % by 15 s, which lies in the earlier bin: what is left of that bin, and the later one, share 20 %."""
    below = math.log(15 / EDGES[5]) / math.log(1.8)
    late = 0.2 / (2 - below)
    expected = round((1 - late) * late, 6)
    assert weighed("prior", adjust_candidates=switch, running=switch) == pytest.approx(expected, abs=2e-6)


def test_a_prior_is_weighed_once_and_kept_until_the_job_ends() -> None:
    told = Told(policy="probabilistic", keys=uses(distribution="prior"))
    told.submit(1, 4, 1000, adjusted=500)
    told.submit(2, 4, 1000, adjusted=1000)
    told.submit(3, 4, 1000)
    scheduler = told.scheduler
    assert scheduler.queue.slot.tolist() == [0, UNKNOWN, UNKNOWN]
    assert scheduler.histograms.masses[0, [bin_of(500.0), bin_of(1000.0)]] == pytest.approx([0.8, 0.2])
    told.start(1, 4)
    told.end(1, 9, requeued=True)
    assert scheduler.queue.slot.tolist() == [0, UNKNOWN, UNKNOWN]
    told.start(1, 4, time=9)
    told.end(1, 20)
    assert scheduler.histograms.snapshot() == []
