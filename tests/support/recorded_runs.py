"""Replays of small logs, with all that the report is made from."""

from typing import Any

from shadowtime.replayer.comparison.document import as_json
from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.comparison.run_record import RunRecord
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import canonical, configure
from tests.support.small_logs import generated, plan_of

POLICIES = ("fcfs", "easy", "best")


def replayed(plans: list[RunPlan]) -> tuple[dict[str, Any], list[RunRecord]]:
    """Return what `--json` gives of these runs, and their records."""
    records = [RunRecord(plan) for plan in plans]
    return as_json([carry_out(record.plan, [record]) for record in records]), records


def compared(workload: Workload | None = None, cluster: str = "kth") -> tuple[dict[str, Any], list[RunRecord]]:
    """Return a comparison of policies."""
    chosen = generated(300) if workload is None else workload
    return replayed([plan_of(chosen, policy)._replace(cluster=cluster) for policy in POLICIES])


def recorded(workload: Workload) -> tuple[dict[str, Any], list[RunRecord]]:
    """Return a recorded log, scored under two predictors, an adjustment and all bounds."""
    bound = canonical("wait-bound", "bmbp")
    plans = [
        RunPlan("recorded", "kth", workload, configure("easy", runtime, "percentile"), "recorded", bound)
        for runtime in ("empirical", "last-two")
    ]
    return replayed(plans)
