"""The policy that tunes its order while it runs, by simulated machines beside the real one."""

from shadowtime.services.scheduler.tuned.policy import Tuned
from shadowtime.services.scheduler.tuned.whole_log import log_machine
