"""Client of Slurm by its own commands: `sdiag`, `sinfo`, `squeue` and `sacct`, in their parsable form."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from shadowtime.services.follower.cluster import JobObservation, Node
from shadowtime.services.follower.cluster import accounted_lives as accounted
from shadowtime.services.follower.io.commands import Commands
from shadowtime.services.follower.options import FollowOptions
from shadowtime.services.follower.slurm import Load, sacct_text, site_text, squeue
from shadowtime.services.follower.slurm import load as slurm_load
from shadowtime.shared.accounting import whole_number
from shadowtime.shared.errors import FollowError

MAX_JOBS = 5_000
"""Number of jobs about which sacct is asked at a time. Linux allows 128 KiB in one argument of a command."""


REREAD = 3600
"""Seconds after which nodes are asked again for their settings, which sinfo does not print."""


class SlurmNodes(NamedTuple):
    """The nodes, and the rank of each partition's priority tier. The lowest tier has rank 0."""

    nodes: Sequence[Node]
    tiers: Mapping[str, int]


class SlurmJobs(NamedTuple):
    """All jobs that wait, run or ended recently. `node_lists` also has the nodes of jobs in an uncertain state."""

    observations: Sequence[JobObservation]
    node_lists: set[str]


class SlurmClient(Protocol):
    """A client of Slurm. Instants are Unix seconds. Methods raise `FollowError` if an answer is missing or invalid.

    `refused` counts the rows of accounting that could not be read.
    """

    refused: int

    async def load(self) -> Load | None:
        """Return the clock of slurmctld and the follower's load on it; None if access is denied or there is no time."""
        ...

    async def machine(self) -> SlurmNodes:
        """Return the nodes and the tiers of partitions."""
        ...

    async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
        """Return the jobs. Their priorities depend on the tiers of `machine`."""
        ...

    async def accounted(self, first: int, last: int | None = None, jobs: Iterable[int] = ()) -> list[JobObservation]:
        """Return the observations from accounting between two instants: of `jobs`, or of all jobs if there are none.

        If `last` is None, the time is not limited.
        """
        ...

    async def may_hide_jobs(self) -> bool:
        """Return whether slurmctld may hide jobs of other users, as with `PrivateData=jobs`; True if unknown."""
        ...

    async def manages_memory(self, machine: SlurmNodes) -> bool | None:
        """Return whether Slurm allocates memory to jobs, as with `CR_Core_Memory`; None if unknown.

        If it does not, a waiting job seems to request all memory of a node, and a running job has none.
        """
        ...

    async def close(self) -> None:
        """Close the client."""
        ...


class ByCommands:
    """A `SlurmClient` that runs commands, one at a time.

    The options give the command by which all commands are run (`via`), and the timeout. The timeout of sacct is 20
    times as long.
    """

    def __init__(self, options: FollowOptions) -> None:
        self.refused = 0
        self._commands = Commands(options.via, options.timeout)
        self._seconds = 20 * options.timeout
        self._other_cluster = () if options.slurm_cluster is None else ("-M", options.slurm_cluster)
        self._cluster = self._other_cluster or squeue.LOCAL
        self._user: int | None = None
        self._daemons: dict[str, int] = {}
        self._settings_of: tuple[set[str], float] = set(), 0.0  # the nodes whose settings are known, and until when

    async def load(self) -> Load | None:
        """Return the load, from sdiag; None if access is denied or sdiag prints no time."""
        if self._user is None:
            self._user = whole_number((await self._commands.text("id", "-u")).strip()) or 0
        try:
            text = await self._commands.text(*slurm_load.SDIAG, *self._other_cluster)
            return slurm_load.load_of(text, self._user)
        except FollowError as error:
            if "denied" not in str(error).lower():
                raise
        return None

    async def machine(self) -> SlurmNodes:
        """Return the nodes and tiers, from sinfo. Settings that it does not print are read again hourly."""
        rows = squeue.node_rows(await self._commands.text(*squeue.SINFO, *self._cluster))
        names, (known, until) = {name for name, *_ in rows}, self._settings_of
        if names != known or time.monotonic() >= until:
            text = await self._commands.text(*site_text.COMMANDS["nodes"], *self._other_cluster)
            self._daemons = site_text.memory_of_daemons(text)
            self._settings_of = names, time.monotonic() + REREAD
        return SlurmNodes(squeue.nodes_of(rows, self._daemons), squeue.tiers_of(rows))

    async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
        """Return the observations of squeue."""
        end = _secret()
        text = await self._commands.text(*squeue.squeue(end), *self._cluster)
        return jobs_of(squeue.rows_of(text, end), machine)

    async def accounted(self, first: int, last: int | None = None, jobs: Iterable[int] = ()) -> list[JobObservation]:
        """Return the observations of sacct. One command asks about at most `MAX_JOBS` jobs."""
        numbers = list(jobs)
        observations: list[JobObservation] = []
        for at in range(0, max(len(numbers), 1), MAX_JOBS):
            listed = ",".join(map(str, numbers[at : at + MAX_JOBS]))
            observations += await self._accounted(first, last, ("-a", "-j", listed) if listed else ("-a",))
        return observations

    async def _accounted(self, first: int, last: int | None, which: Sequence[str]) -> list[JobObservation]:
        end = _secret()
        until = () if last is None else ("-E", _date(last))
        command = sacct_text.command(end, *self._cluster, *which, "-S", _date(first), *until)
        async with self._commands.file(*command, seconds=self._seconds) as path:
            rows = sacct_text.rows_in(path, end)
            observations, refused = await asyncio.to_thread(accounted.observations_of_rows, rows, "sacct")
        self.refused += refused
        return observations

    async def may_hide_jobs(self) -> bool:
        """Return whether `PrivateData` of the configuration has `jobs` or is not shown."""
        return "jobs" in (await self._config()).get("PrivateData", "jobs").split(",")

    async def manages_memory(self, machine: SlurmNodes) -> bool:
        """Return whether `SelectTypeParameters` of the configuration has memory, or is not shown."""
        return "MEMORY" in (await self._config()).get("SelectTypeParameters", "CR_MEMORY").upper()

    async def _config(self) -> dict[str, str]:
        text = await self._commands.text("scontrol", *self._other_cluster, "show", "config")
        return site_text.config_of(text)

    async def close(self) -> None:
        """Do nothing: no command outlives its answer."""


def jobs_of(rows: Iterable[Mapping[str, str]], machine: SlurmNodes) -> SlurmJobs:
    """Return the jobs in the rows of squeue."""
    rows = list(rows)
    observations = squeue.observations_of(rows, machine.tiers)
    return SlurmJobs(observations, {row["NodeList"] for row in rows})


def _secret() -> str:
    """Return a random text that ends fields. No user knows it, so no job name contains it."""
    return f"|{secrets.token_hex(8)}|"


def _date(second: int) -> str:
    """Return a Unix second in the date format of Slurm, in UTC.

    >>> _date(0)
    '1970-01-01T00:00:00'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
