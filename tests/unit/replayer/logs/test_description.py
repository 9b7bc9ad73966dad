"""The figures by which papers describe a log."""

import numpy as np

from shadowtime.replayer.logs.description import SHAPES, described
from shadowtime.replayer.logs.quality import columns_of
from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.replayer.logs.trace import BUNDLED


def test_shapes_divide_all_jobs_at_the_medians() -> None:
    figures = described(columns_of(read_swf(BUNDLED)))
    assert sum(figures[f"jobs_of_shape.{shape}"] or 0 for shape in SHAPES) == figures["jobs"] == 5000
    assert figures["mean_run_time_of_waiting"] != figures["mean_run_time"]


def test_jobs_that_did_not_run_or_wait_are_left_out_where_a_paper_leaves_them_out() -> None:
    columns = {name: np.full(4, -1) for name in FIELDS}
    columns["submit_time"] = np.arange(4)
    columns["requested_processors"], columns["requested_time"] = np.array([1, 1, 9, 9]), np.array([60, 60, 900, 900])
    columns["run_time"], columns["wait_time"] = np.array([30, 0, 90, 300]), np.array([0, 7, 10, 20])
    figures = described(columns)
    assert (figures["mean_wait"], figures["mean_wait_of_waiting"]) == (9.25, 15.0)
    assert (figures["mean_run_time"], figures["mean_run_time_of_waiting"]) == (105.0, 195.0)
    assert (figures["mean_overestimation"], figures["overestimation.SN"], figures["overestimation.LW"]) == (
        5.0,
        2.0,
        6.5,
    )
    assert (figures["not_run.SN"], figures["jobs_of_shape.LN"], figures["overestimation.LN"]) == (1, 0, None)


def test_an_empty_log_has_no_figures() -> None:
    figures = described({name: np.zeros(0, dtype=np.int64) for name in FIELDS})
    assert (figures["jobs"], figures["days"], figures["mean_wait"], figures["median_processors"]) == (
        0,
        None,
        None,
        None,
    )
