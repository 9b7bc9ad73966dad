"""Figures of the jobs of a log, beside the results of a cell."""

import pytest

from shadowtime.replayer.campaign.cell_run import LEAST_OF_GROUP, workload_figures
from tests.support.small_logs import job, workload_of


def test_figures_of_a_workload_are_their_definitions() -> None:
    of_one = [job(number, run_time=time, user_id=1) for number, time in enumerate([20, 40] * LEAST_OF_GROUP)]
    of_two = [job(100 + number, run_time=999, user_id=2) for number in range(LEAST_OF_GROUP - 1)]
    figures = dict(workload_figures(workload_of(*of_one, *of_two)))
    assert (figures["workload.users"], figures["workload.projects"]) == (2, None)
    assert figures["workload.mean_requested_time"] == 100
    assert figures["workload.ratio.mean"] == pytest.approx((20 * 0.3 + 9 * 1.0) / 29)
    assert figures["workload.ratio.above_0.8"] == pytest.approx(9 / 29)
    assert (figures["workload.groups.user"], figures["workload.groups.all"]) == (1, 1)
    assert figures["workload.ratio_std.user"] == pytest.approx(0.1)


def test_without_a_large_group_there_is_no_deviation() -> None:
    figures = dict(workload_figures(workload_of(job(1))))
    assert (figures["workload.groups.user"], figures["workload.ratio_std.user"]) == (0, None)
