"""Slurm's own way of scheduling: multifactor priority, fair share, cycles."""

from shadowtime.services.scheduler.slurm.policy import Slurm
from shadowtime.services.scheduler.slurm.settings import spelled
