"""The log of a small run, as it leaves the last stage."""

from collections.abc import Mapping
from typing import Any

import orjson

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.processes.live.page import ROWS, changes
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import Envelope
from tests.support.small_logs import generated

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>\n\x1b[2J{{1}}"


def log_of(cluster: str = "kth", jobs: int = 300, run: str = "kth/easy", policy: str = "easy") -> list[Envelope]:
    """Return every envelope of a closed run under so much load that jobs wait, waits bounded."""
    bound = canonical("wait-bound", "bmbp:publish=plain,history=100")
    plan = RunPlan("easy", cluster, generated(jobs), configure(policy), wait_bound=bound)
    found: list[Envelope] = []
    replay = plan.replay([found.append])
    replay.run = run
    replay.run_to_end()
    return found


def taken(state: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a visitor sees who saw `state` and is told this, as stream.js works it out."""
    after = {} if told.get("anew") else dict(state)
    for name, part in told.items():
        if name in ROWS and part is not None:
            rows = {key: row for key, row in after.get(name, {}).items() if key not in part["drop"]}
            after[name] = rows | dict(part["set"])
        elif part is None:
            after.pop(name, None)
        elif name != "anew":
            after[name] = part
    return after


def as_sent(log: list[Envelope], run: str | None = None) -> dict[str, Any]:
    """Return what a visitor sees after a log who comes only then."""
    runs = LiveRuns()
    for envelope in log:
        runs.push(envelope)
    return taken({}, orjson.loads(orjson.dumps(changes(None, runs.state(run)))))
