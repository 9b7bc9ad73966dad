"""Client of Slurm by slurmrestd, of 22.05 (v0.0.38) and of 23.11 to 25.11 (v0.0.40 to v0.0.44).

slurmrestd reports the same facts as the commands, with one exception. It cuts off the task list of a waiting array
after 64 characters, unless it runs with SLURM_BITSTR_LEN=0. An answer with a cut-off list is refused.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

from shadowtime.services.follower.cluster import JobObservation
from shadowtime.services.follower.cluster import accounted_lives as accounted
from shadowtime.services.follower.io.rest_client import NotThere, Slurmrestd
from shadowtime.services.follower.io.slurm_commands import SlurmJobs, SlurmNodes, jobs_of
from shadowtime.services.follower.options import FollowOptions
from shadowtime.services.follower.slurm import Load, squeue
from shadowtime.services.follower.slurm import json as slurm_json
from shadowtime.shared.accounting import end_of, sacct_rows
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote

KNOWN = {38, *range(40, 45)}
"""Numbers N of the supported versions v0.0.N."""

LISTING = "/openapi/v3"
"""Path that lists the versions of the server."""

SINCE_40 = {"show_duplicates": "true", "disable_truncate_usage_time": "true"}
"""Parameters that v0.0.40 and later need. Earlier versions refuse them, and do the same without them."""

EARLIEST = 1_000_000
"""The earliest time that Slurm accepts as a Unix second."""


class ByRest:
    """A `SlurmClient` that asks slurmrestd, one request at a time.

    The options give address, user and timeout. The timeout of a request of accounting is 20 times as long.
    """

    def __init__(self, options: FollowOptions) -> None:
        self._server = Slurmrestd(options)
        self._seconds = 20 * options.timeout
        self._version: int | None = None
        self.refused = 0

    async def load(self) -> Load | None:
        """Return the load, from `diag`; None if access is denied or the answer has no time.

        Raise `FollowError` if there is no valid answer.
        """
        try:
            path, statistics = await self._get("slurm", "diag", "statistics")
        except FollowError as error:
            if "denied" not in str(error).lower():
                raise
            return None

        if not isinstance(statistics, dict):
            raise FollowError(f"{path}: statistics: expected an object, found {quote(repr(statistics))}")
        return slurm_json.load_of(statistics, self._server.user)

    async def machine(self) -> SlurmNodes:
        """Return the nodes and tiers, from `nodes` and `partitions`.

        Raise `FollowError` if there is no valid answer.
        """
        _, partitions = await self._rows("slurm", "partitions")
        path, nodes = await self._rows("slurm", "nodes")
        rows = slurm_json.sinfo_rows(nodes, partitions)
        try:
            return SlurmNodes(squeue.nodes_of(rows, slurm_json.memory_of_daemons(nodes)), squeue.tiers_of(rows))
        except FollowError as error:
            raise _with_path(path, error) from None

    async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
        """Return the observations of `jobs`. Raise `FollowError` if there is no valid answer."""
        path, jobs = await self._rows("slurm", "jobs")
        try:
            return jobs_of(slurm_json.squeue_rows(jobs), machine)
        except FollowError as error:
            raise _with_path(path, error) from None

    async def accounted(self, first: int, last: int | None = None, jobs: Iterable[int] = ()) -> list[JobObservation]:
        """Return the observations of slurmdb. `jobs` are queried one by one, because 22.05 accepts no list.

        Raise `FollowError` if there is no valid answer.
        """
        rows: list[dict[str, Any]] = []
        path = ""
        if numbers := list(jobs):
            for number in numbers:
                path, answers = await self._rows("slurmdb", f"job/{number}")
                rows += (row for row in answers if not 0 < end_of(row) < first)
        else:
            query = {"skip_steps": "true", "start_time": f"uts{max(first, EARLIEST)}"}
            query |= {} if last is None else {"end_time": f"uts{max(last, EARLIEST)}"}
            query |= SINCE_40 if await self._newest() >= 40 else {}
            path, rows = await self._rows("slurmdb", "jobs", query)

        observations, refused = await asyncio.to_thread(accounted.observations_of_rows, sacct_rows(rows), path)
        self.refused += refused
        return observations

    async def may_hide_jobs(self) -> bool:
        """Return True: slurmrestd does not show the configuration."""
        return True

    async def manages_memory(self, machine: SlurmNodes) -> bool | None:
        """Return whether memory is allocated on a node with running jobs; None if no job runs."""
        if not any(node.held for node in machine.nodes):
            return None
        return any(node.held_memory for node in machine.nodes)

    async def close(self) -> None:
        """Close the connection."""
        await self._server.close()

    async def _newest(self) -> int:
        """Return N of the newest supported version v0.0.N of the server. It is cached."""
        if self._version is None:
            paths = await self._server.get(LISTING, "paths")
            if not isinstance(paths, dict):
                raise FollowError(f"{LISTING}: paths: expected an object, found {quote(repr(paths))}")
            versions = {int(match[1]) for path in paths if (match := re.match(r"/slurm/v0\.0\.(\d{1,4})/", path))}
            if not versions & KNOWN:
                has, known = (", ".join(f"v0.0.{version}" for version in sorted(some)) for some in (versions, KNOWN))
                raise FollowError(f"{LISTING}: expected one of {known}, found {has or 'no version'}")
            self._version = max(versions & KNOWN)

        return self._version

    async def _get(self, of: str, what: str, part: str, query: Mapping[str, str] | None = None) -> tuple[str, Any]:
        """Request a resource from the server. Return its path and the member `part` of the answer."""
        path = f"/{of}/v0.0.{await self._newest()}/{what}"
        try:
            return path, await self._server.get(path, part, query, self._seconds if of == "slurmdb" else None)
        except NotThere:
            self._version = None  # the server may have another version now
            raise

    async def _rows(
        self, of: str, what: str, query: Mapping[str, str] | None = None
    ) -> tuple[str, list[dict[str, Any]]]:
        """Return the requested path, and the list in its answer."""
        part = "jobs" if what.startswith("job") else what
        path, rows = await self._get(of, what, part, query)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise FollowError(f"{path}: {part}: expected a list of objects, found {quote(repr(rows))}")
        return path, rows


def _with_path(path: str, error: FollowError) -> FollowError:
    return FollowError(f"{path}: {str(error).removeprefix('squeue: ').removeprefix('sinfo: ')}")
