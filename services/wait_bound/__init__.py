"""Upper bounds on the waits of jobs, each with a stated confidence."""

from shadowtime.services.wait_bound.binomial_ranks import lower_rank, upper_rank
from shadowtime.services.wait_bound.bounder import Bounder
from shadowtime.services.wait_bound.groups import cut
from shadowtime.services.wait_bound.handler import BOUNDERS, WaitBounds
from shadowtime.services.wait_bound.settings import BoundSettings
