"""SHA-256 of the decision log that each policy leaves on the bundled trace."""

from hashlib import sha256
from io import BytesIO
from pathlib import Path

from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.records import DecisionLog
from shadowtime.replayer.swf import BUNDLED, read_swf
from shadowtime.replayer.workload import prepare
from shadowtime.services.catalogue import configure

FILE = Path(__file__).with_name("decision_logs.sha256")
POLICIES = ("easy", "easy-sjbf", "fcfs", "best")


def digest(policy: str) -> str:
    """Replay the bundled trace and return the digest of its decision log."""
    workload, log = prepare(read_swf(BUNDLED)), BytesIO()
    carry_out(Plan(policy, workload.name, workload, configure(policy)), [DecisionLog(log)])
    return sha256(log.getvalue()).hexdigest()


def recorded_digests() -> dict[str, str]:
    """Return the digests in the file, by policy."""
    pairs = (line.split() for line in FILE.read_text().splitlines())
    return {policy: recorded for recorded, policy in pairs}
