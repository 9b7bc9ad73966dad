"""Parsers that turn Slurm's answers, as text or JSON, into observations; without I/O."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.follower.slurm import json, load, sacct_text, site_text, squeue
    from shadowtime.services.follower.slurm.load import Load
    from shadowtime.services.follower.slurm.site_text import COMMANDS, Site, site_of

__getattr__ = lazy_exports(__name__)
