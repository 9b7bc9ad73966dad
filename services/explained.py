"""Stage `scheduler` with handlers that explain why jobs wait. Readers of its state use them; no worker runs them.

Its imports are a part of the pipeline's, so that `shadowtime queue` need not load the other stages.
"""

from shadowtime.services.scheduler import Explaining, Following
from shadowtime.shared.messages import ClusterOpened, Explains
from shadowtime.shared.stages import Stage, topics

EXPLAINED = Stage("scheduler", topics.WAIT_BOUNDS, topics.DECISIONS, Explaining)


def following(opened: ClusterOpened) -> Explains:
    """Return a handler that explains waits from the envelopes that the scheduler or the scoreboard writes."""
    return Following(opened)
