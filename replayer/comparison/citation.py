"""What a result document says of its origin, so that one file can be cited: version, logs, digests, arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

from shadowtime._version import __version__
from shadowtime.replayer.comparison.run_record import RunRecord


def cited(
    document: Mapping[str, Any], log_sha256: str | None, arguments: Mapping[str, Any], records: Sequence[RunRecord]
) -> dict[str, Any]:
    """Return a `--json` document of one log with its origin.

    Parameters
    ----------
    log_sha256
        SHA-256 of the bytes of the log's file; None if the log is no file.
    arguments
        Options of `shadowtime replay` that give the same document, without the files to write.
    records
        Records of the runs, in order; none if the runs were not recorded.
    """
    digests: list[dict[str, Any]] = [
        {"decisions_sha256": record.decisions_sha256, "schedule_sha256": record.jobs.sha256} for record in records
    ]
    rows = document["policies"]
    return {
        "shadowtime": __version__,
        "log_sha256": log_sha256,
        "arguments": dict(arguments),
        **document,
        "policies": [row | digest for row, digest in zip(rows, digests or [{}] * len(rows), strict=False)],
    }
