"""The policy that tunes its order while it runs, by simulating the machine under other orders."""

from shadowtime.services.scheduler.tuned.policy import Tuned
from shadowtime.services.scheduler.tuned.whole_log import log_machine
