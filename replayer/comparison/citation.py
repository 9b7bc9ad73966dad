"""The origin of a result document, so that one file can be cited: version, logs, digests, arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

from shadowtime.replayer.comparison.run_record import RunRecord


def cited(
    document: Mapping[str, Any],
    origin: Mapping[str, str | None],
    arguments: Mapping[str, Any],
    files: Mapping[str, str],
    records: Sequence[RunRecord],
) -> dict[str, Any]:
    """Return a `--json` document of one log with its origin.

    Parameters
    ----------
    origin
        Version, and digest of the log (`replayer.arguments.origin_of`).
    arguments
        Options of `shadowtime replay` that give the same document, without the files to write.
    files
        Contents of the files that SPECs name, by name.
    records
        Records of the runs, in order; none if the runs were not recorded.
    """
    digests: list[dict[str, Any]] = [
        {"decisions_sha256": record.decisions_sha256, "schedule_sha256": record.jobs.sha256} for record in records
    ]
    rows = document["policies"]
    return {
        **origin,
        "arguments": dict(arguments),
        **({"files": dict(files)} if files else {}),
        **document,
        "policies": [row | digest for row, digest in zip(rows, digests or [{}] * len(rows), strict=False)],
    }
