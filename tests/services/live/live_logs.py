"""The log of a small run, as it leaves the last stage."""

from shadowtime.replayer.comparison import Plan
from shadowtime.services.catalogue import canonical, configure
from shadowtime.shared.events import Envelope
from tests.replayer.small_logs import generated

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>\n\x1b[2J{{1}}"


def log_of(cluster: str = "kth", jobs: int = 300, run: str = "kth/easy", policy: str = "easy") -> list[Envelope]:
    """Return every envelope of a closed run under so much load that jobs wait, waits bounded."""
    bound = canonical("wait-bound", "plain:history=100")
    plan = Plan("easy", cluster, generated(jobs), configure(policy), wait_bound=bound)
    found: list[Envelope] = []
    replay = plan.replay([found.append])
    replay.run = run
    replay.run_to_end()
    return found
