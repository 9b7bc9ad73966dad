"""Without predictions, backfilling by probability is EASY: requests happen for certain (Nissimov 2007, section 4)."""

from functools import lru_cache

import pytest

from tests.gates.archive import needs_archive, plan, schedule

pytestmark = [pytest.mark.archive, needs_archive]

KEYS = [(criterion, tau) for criterion in ("exact", "paper") for tau in (0.01, 0.05, 0.5, 1)]


@lru_cache(maxsize=2)
def easy(trace: str, processors: int) -> bytes:
    """Return the schedule file under EASY."""
    return schedule(plan(trace, processors, "easy"))


@pytest.mark.parametrize(("trace", "processors"), [("KTH", 100), ("SDSC-SP2", 128)])
@pytest.mark.parametrize(("criterion", "tau"), KEYS)
def test_the_schedule_is_that_of_easy_byte_for_byte(trace: str, processors: int, criterion: str, tau: float) -> None:
    """Whole logs hold what made-up machines do not: jobs at their request, ties of any kind, queues of hundreds."""
    policy = f"probabilistic:criterion={criterion},tau={tau},runtime=requested"
    assert schedule(plan(trace, processors, policy)) == easy(trace, processors)
