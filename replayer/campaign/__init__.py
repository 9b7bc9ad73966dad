"""Campaigns: grids of replays, run on all cores or on a cluster, and their result tables."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.campaign.cell_run import Figures
    from shadowtime.replayer.campaign.columns import Column
    from shadowtime.replayer.campaign.file import Campaign
    from shadowtime.replayer.campaign.logs import find_logs
    from shadowtime.replayer.campaign.run import HERE, How, Replayed, replayed, write_files
    from shadowtime.replayer.campaign.tables import Figure, figure_of

__getattr__ = lazy_exports(__name__)
