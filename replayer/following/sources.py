"""All sources that can be followed, by name."""

from shadowtime.replayer.following.lines import Lines
from shadowtime.replayer.following.live_source import LiveSource
from shadowtime.replayer.following.pbs import Pbs
from shadowtime.replayer.following.slurm import Slurm

FOLLOWED: dict[str, type[LiveSource]] = {each.name: each for each in (Slurm, Pbs, Lines)}
