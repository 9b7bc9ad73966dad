"""Probabilistic backfilling: the policy and its measures of candidates."""

from shadowtime.services.scheduler.probabilistic.delay_probability import delay_bound, delay_probability
from shadowtime.services.scheduler.probabilistic.pass_state import PassState
from shadowtime.services.scheduler.probabilistic.policy import Probabilistic
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
