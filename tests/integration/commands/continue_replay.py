"""Continue a replay in a process of its own: takes the paths of a plan (JSON), a trace, a snapshot and a log."""

import json
import sys
from pathlib import Path

from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.workload import prepare
from tests.support.small_logs import plan_of


def main(plan_path: str, trace_path: str, snapshot_path: str, log_path: str) -> None:
    """Restore the snapshot, replay the rest and write the decisions of that."""
    settings = json.loads(Path(plan_path).read_text())
    plan = plan_of(prepare(read_swf(trace_path)), **settings)
    with Path(log_path).open("wb") as file:
        replay = plan.replay([DecisionLog(file)])
        replay.restore(Path(snapshot_path).read_bytes())
        replay.run_to_end()


if __name__ == "__main__":
    main(*sys.argv[1:])
