"""The head of every snapshot of a stage: schema, stage and settings."""

from hashlib import sha256
from typing import Any

import orjson

from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.messages import ClusterOpened

SNAPSHOT_SCHEMA = 27
"""The version of snapshots. A snapshot of another version is refused; the stage must be rebuilt from its topic."""


def fingerprint(opened: ClusterOpened) -> str:
    """Return a digest of all settings of a run."""
    return sha256(opened.as_json(exclude_none=True)).hexdigest()[:16]


def read_snapshot(snapshot: bytes, of: str) -> dict[str, Any]:
    """Return the content of a snapshot of the stage `of`. Raise `SnapshotMismatch` if it is damaged."""
    try:
        saved = orjson.loads(snapshot)
    except orjson.JSONDecodeError as error:
        raise SnapshotMismatch(f"{of}: the snapshot is damaged: {error}") from error
    if not isinstance(saved, dict):
        raise SnapshotMismatch(f"{of}: the snapshot is damaged: it is not an object")
    return saved
