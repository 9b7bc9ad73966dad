"""Scheduling as Slurm does it: multifactor priority, fair share, periodic passes."""

from shadowtime.services.scheduler.slurm.policy import Slurm
from shadowtime.services.scheduler.slurm.settings import spelled
