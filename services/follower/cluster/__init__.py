"""The known state of a followed cluster, without I/O: job lives, queue order, capacity, names."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.follower.cluster import accounted_lives
    from shadowtime.services.follower.cluster.accounted_lives import observation_of
    from shadowtime.services.follower.cluster.exporter_names import exporter_figures
    from shadowtime.services.follower.cluster.live_source import LiveSource, Opening, SourceLoad, as_opened
    from shadowtime.services.follower.cluster.mirror import KEEP, LAG, Mirror
    from shadowtime.services.follower.cluster.name_table import NameTable
    from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey, Node, State, shifted

__getattr__ = lazy_exports(__name__)
