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
from shadowtime.services.follower.slurm import Load, squeue
from shadowtime.services.follower.slurm import load as slurm_load
from shadowtime.shared.accounting import FIELDS
from shadowtime.shared.errors import FollowError


class SlurmNodes(NamedTuple):
    """The nodes, and the rank of each partition's priority tier. The lowest tier has rank 0."""

    nodes: Sequence[Node]
    tiers: Mapping[str, int]


class SlurmClient(Protocol):
    """A client of Slurm. Instants are Unix seconds. Methods raise `FollowError` if an answer is missing or invalid."""

    async def load(self) -> Load | None:
        """Return the clock of slurmctld and the load of the follower on it; None if access is denied."""
        ...

    async def machine(self) -> SlurmNodes:
        """Return the nodes and the tiers of partitions."""
        ...

    async def jobs(self, tiers: Mapping[str, int]) -> list[JobObservation]:
        """Return all jobs that wait or run, and those that ended recently."""
        ...

    async def accounted(self, first: int, last: int | None = None, jobs: Iterable[int] = ()) -> list[JobObservation]:
        """Return the observations from accounting between two instants: of `jobs`, or of all jobs if none are given."""
        ...

    async def close(self) -> None:
        """Close the client."""
        ...


class ByCommands:
    """A `SlurmClient` that runs commands, one at a time.

    Parameters
    ----------
    options
        The command by which all commands are run (`via`), and the timeout. The timeout of sacct is 20 times as long.
    """

    def __init__(self, options: FollowOptions) -> None:
        self._commands = Commands(options.via, options.timeout)
        self._seconds = 20 * options.timeout
        self._user = ""

    async def load(self) -> Load | None:
        """Return the load, from sdiag; None if access is denied."""
        try:
            return slurm_load.load_of(await self._commands.text(*slurm_load.SDIAG), self._user)
        except FollowError as error:
            if "denied" not in str(error).lower():
                raise
        return None

    async def machine(self) -> SlurmNodes:
        """Return the nodes and tiers, from sinfo."""
        text = await self._commands.text(*squeue.SINFO)
        return SlurmNodes(squeue.nodes_of(text), squeue.tiers_of(text))

    async def jobs(self, tiers: Mapping[str, int]) -> list[JobObservation]:
        """Return the observations of squeue."""
        end = f"|{secrets.token_hex(8)}|"
        return squeue.observations_of(await self._commands.text(*squeue.squeue(end)), tiers, end)

    async def accounted(self, first: int, last: int | None = None, jobs: Iterable[int] = ()) -> list[JobObservation]:
        """Return the observations of sacct."""
        which = ("-j", ",".join(map(str, jobs))) if jobs else ("-a",)
        until = () if last is None else ("-E", _date(last))
        fields = ",".join(FIELDS)
        command = ("sacct", "-PXD", "--noconvert", *which, "-S", _date(first), *until, "-o", fields)
        async with self._commands.file(*command, seconds=self._seconds) as path:
            return await asyncio.to_thread(accounted.observations_in, path, "sacct")

    async def close(self) -> None:
        """Do nothing: no command outlives its answer."""


def _date(second: int) -> str:
    """Return a Unix second in the date format of Slurm, in UTC.

    >>> _date(0)
    '1970-01-01T00:00:00'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
