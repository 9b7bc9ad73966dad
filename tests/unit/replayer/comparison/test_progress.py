"""A bar for each run, and only where there is a terminal."""

import sys
from collections.abc import Sequence

import pytest
from rich.progress import Progress

from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out
from shadowtime.replayer.comparison.progress import Observers, ProgressBar, with_progress
from tests.support.small_logs import generated, plan_of


@pytest.mark.parametrize(("jobs", "exact", "shown"), [(300, True, 300), (300, False, 300), (20, False, 20)])
def test_a_bar_counts_the_jobs_that_have_ended(jobs: int, exact: bool, shown: int) -> None:
    progress = Progress(disable=True)
    plan = plan_of(generated(jobs=jobs))
    bar = ProgressBar(progress, plan, exact=exact)
    assert progress.tasks == []
    carry_out(plan, [bar])
    (task,) = progress.tasks
    assert (task.description, task.total, task.completed) == ("generated easy", jobs, shown)


@pytest.mark.parametrize(("terminal", "more"), [(False, 0), (True, 1)])
def test_bars_are_added_where_there_is_a_terminal(terminal: bool, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    plans = [plan_of(generated(jobs=20)), plan_of(generated(jobs=20), "fcfs")]
    seen: list[int] = []

    def count(plans: Sequence[RunPlan], observers: Observers) -> list[RunResult]:
        seen.extend(len(those) for those in observers)
        return [carry_out(plan, those) for plan, those in zip(plans, observers, strict=True)]

    results = with_progress(plans, [[], []], count, exact=True)
    assert [each.plan for each in results] == plans
    assert seen == [more, more]
