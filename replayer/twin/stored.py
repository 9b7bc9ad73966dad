"""The comparisons of a cluster's shadows, from what their processes keep in Redis."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from shadowtime.replayer.twin.compared import Comparison
from shadowtime.replayer.twin.side_by_side import SideBySide
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.wording import quoted, shortened

STORE = "shadow"
"""Under which name shadows keep their state."""


class Shadow(NamedTuple):
    """A shadow as it is stored: its run, the cluster and the run it is of, the policy's name, and how it compares."""

    run: str
    cluster: str
    real: str
    name: str
    unix_start: int
    compared: Comparison

    def of(self, cluster: str) -> bool:
        """Return whether it is a shadow of a cluster, named by the cluster or by the real run."""
        return cluster in (self.cluster, self.real)


def none_of(cluster: str, every: Sequence[Shadow]) -> str:
    """Return that a cluster has no shadow, and which have."""
    known = shortened(", ".join(sorted({each.cluster for each in every}))) if every else "none"
    return f"cluster {quoted(cluster)} has no shadow; clusters that have: {known}. shadowtime shadow starts one"


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
    return Shadow(run, cluster, real, name.removeprefix("shadow/"), unix_start, found)
