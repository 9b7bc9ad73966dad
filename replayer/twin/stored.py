"""The comparisons of a cluster's shadows, from what their processes keep in Redis."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from shadowtime.replayer.twin.compared import Comparison
from shadowtime.replayer.twin.side_by_side import SideBySide
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.wording import quoted

STORE = "shadow"
"""Under which name shadows keep their state."""


class Shadow(NamedTuple):
    """A shadow as it is stored: the cluster it is of, the policy's name, and how it compares."""

    cluster: str
    real: str
    name: str
    unix_start: int
    compared: Comparison

    def of(self, cluster: str) -> bool:
        """Return whether it is a shadow of a cluster, named by the cluster or by the real run."""
        return cluster in (self.cluster, self.real)


def read(run: str, snapshot: bytes | None) -> Shadow:
    """Return a shadow as its snapshot has it.

    Raises
    ------
    SnapshotMismatch
        If the snapshot is damaged, or of another version.
    """
    try:
        state: Mapping[str, Any] = orjson.loads(snapshot or b"")
        opened, source = state["opened"], state["source"]
        both = SideBySide()
        both.restore(source["side_by_side"])
        real, cluster, unix_start = source["real"], opened["cluster"], opened.get("unix_start") or 0
        name = opened.get("name") or opened["policy"]
        found = both.report(both.horizon or 0, key_of(0, run))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotMismatch(
            f"what is stored of shadow {quoted(run)} is damaged, or of another version: {error!r:.200}; "
            "start it anew with shadowtime shadow"
        ) from None
    return Shadow(cluster, real, name.removeprefix("shadow/"), unix_start, found)
