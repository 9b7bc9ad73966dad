"""The I/O of the follower: commands, REST, files, HTTP, Kafka and the clock."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.follower.io.commands import Commands
    from shadowtime.services.follower.io.follower import Follower
    from shadowtime.services.follower.io.pbs import Pbs
    from shadowtime.services.follower.io.process import FOLLOWED, follow_all, follow_source, with_store

__getattr__ = lazy_exports(__name__)
