"""Comparison of policies on one workload: plans, results, records and output files."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.comparison.citation import cited
    from shadowtime.replayer.comparison.document import (
        PREFERRED,
        as_json,
        baseline_of,
        expected_rows,
        is_worse,
        plans_with,
        requests_as_run_times,
        wait_bound_rows,
    )
    from shadowtime.replayer.comparison.plan import (
        RunPlan,
        RunResult,
        carry_out,
        carry_out_paced,
        carry_out_streamed,
    )
    from shadowtime.replayer.comparison.progress import Observers, with_progress
    from shadowtime.replayer.comparison.records import DecisionLog, Schedule, as_standard
    from shadowtime.replayer.comparison.rows import result_columns, write_schedule
    from shadowtime.replayer.comparison.run_record import EndedJobs, JobTimes, RunRecord, replay_schedule
    from shadowtime.replayer.comparison.side_by_side import compiled_first, pays, replay_on_cores
    from shadowtime.replayer.comparison.wait_coverage import BoundedWaits, coverage_shortfall

__getattr__ = lazy_exports(__name__)
