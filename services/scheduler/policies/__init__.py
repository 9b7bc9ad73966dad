"""Policies that plan with one number as the run time of each job."""

from shadowtime.services.scheduler.policies.all_reserve import AllReserve
from shadowtime.services.scheduler.policies.conservative import Conservative, ConservativeSettings
from shadowtime.services.scheduler.policies.easy import Easy, EasySjbf, Wfp
from shadowtime.services.scheduler.policies.fcfs import Fcfs
from shadowtime.services.scheduler.policies.guarded import Guarded, GuardedPass, GuardedSettings
from shadowtime.services.scheduler.policies.lwf import Lwf
from shadowtime.services.scheduler.policies.shapes import shape_of
