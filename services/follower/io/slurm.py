"""Source for Slurm. It reads the past from accounting, and then takes snapshots: polls of sdiag, sinfo and squeue.

Its rules:

1. The source only reads, by one command or one request to slurmrestd at a time. Its user must be allowed to see all
   jobs. Nothing is ever written to Slurm.
2. A snapshot has all jobs that wait or run. slurmctld's clock is read first, so everything before that second is known.
3. Accounting has the facts that no snapshot shows: the past, and jobs that came and went between two snapshots. While
   accounting or slurmctld is down, unknown facts are not published. The follower polls again after increasing pauses.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

from aiokafka.errors import KafkaError

from shadowtime.services.follower.cluster import KEEP, LAG, JobObservation, LifeKey, Opening, shifted
from shadowtime.services.follower.io.mirrored import Mirrored
from shadowtime.services.follower.io.slurm_commands import ByCommands, SlurmClient, SlurmNodes
from shadowtime.services.follower.io.slurm_rest import ByRest
from shadowtime.services.follower.options import FollowOptions
from shadowtime.services.follower.slurm import Load
from shadowtime.shared.accounting import hosts_of, parts_of_nodes
from shadowtime.shared.backoff import Backoff
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.errors import BusError, ContradictionError, FollowError, SettingsError
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.streaming import clients as bus
from shadowtime.shared.streaming import settings_of_other_kafka

# Messages of the cluster that wake a follower before its next poll is due.


class Waker:
    """Listener on Kafka topics, such as those of Slurm's jobcomp/kafka.

    The listener only signals that a message arrived. The follower then polls. A message may be lost or arrive twice.
    Slurm sends no message for a submission.

    `place` is HOST:PORT/TOPIC. Several topics have commas between them. `access` is a settings file with the login of
    that Kafka; without it, there is no login. Raise `SettingsError` for another place, or a file that cannot be read.
    """

    def __init__(self, place: str, access: Path | None = None) -> None:
        host, slash, topics = place.partition("/")
        if not slash or ":" not in host or not all(topics.split(",")):
            raise SettingsError(
                f"--jobcomp {quote(place)}: expected HOST:PORT/TOPIC, such as kafka:9092/slurm-start,slurm-end"
            )
        self._topics = topics.split(",")
        self._settings = settings_of_other_kafka(host, access)
        self._came = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until a message has arrived since the last call."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._came.wait()
        self._came.clear()

    async def close(self) -> None:
        """Stop listening."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        backoff = Backoff(1.0, 60.0)
        while True:
            consumer = bus.reader(self._settings, begin="latest")
            try:
                consumer.subscribe(self._topics)
                await consumer.start()
                backoff.reset()
                while True:
                    if await consumer.getmany(timeout_ms=60_000, max_records=1_000):
                        self._came.set()
            except (KafkaError, BusError, OSError) as error:
                pause = backoff.pause()
                log.warning("jobcomp: %s; retrying in %.0f s", truncate(str(error)), pause)
                await asyncio.sleep(pause)
            finally:
                await consumer.stop()


log = logging.getLogger("shadowtime.follow.slurm")
log.addFilter(FewAMinute())

WINDOW = 7 * 86_400
"""Seconds of the past in one query of accounting. A query of a year with 200,000 jobs would need 1 GB."""

AWAY = 120
"""If the log lags by more than `AWAY` + `LAG` seconds, accounting is queried first, because slurmctld forgets an ended
job after 300 s."""

WITHOUT_CLOCK = 5
"""Assumed lag, in seconds, of slurmctld's clock behind ours, if slurmctld does not report its clock."""

MOST = 0.02
"""Share of slurmctld's time that the follower may take. Above it, snapshots are taken less often."""

LEAST = 5.0
"""Least number of seconds between two snapshots, also after a wake-up."""

LONGEST_PAUSE = 300.0

_key = attrgetter("key")


def _held(machine: SlurmNodes) -> set[str]:
    """Return the nodes with allocated processors."""
    return {node.name for node in machine.nodes if node.held}


class SlurmSource(Mirrored):
    """One Slurm cluster.

    Parameters
    ----------
    options
        Access to the cluster, and the extent of its log.
    client
        The client of Slurm; by default the client that the options name.
    """

    name: ClassVar[str] = "slurm"
    takes: ClassVar[frozenset[str]] = frozenset(
        {
            "timeout",
            "patience",
            "via",
            "slurm_cluster",
            "jobcomp",
            "jobcomp_access",
            "rest",
            "rest_token_file",
            "rest_user",
        }
    )

    def __init__(self, options: FollowOptions, client: SlurmClient | None = None) -> None:
        super().__init__(options)
        self.every = options.every
        self._asked = client or (ByCommands(options) if options.rest is None else ByRest(options))
        self._backoff = Backoff(options.every, LONGEST_PAUSE)
        self._seen: Load | None = None
        self._waker = None if options.jobcomp is None else Waker(options.jobcomp, options.jobcomp_access)
        self._next = self._soonest = 0.0
        self._past_was_read = False
        self._manages_memory: bool | None = None

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return the opening of the run. If its stored state is lost, `opened` is its first event, otherwise None."""
        machine = await self._asked.machine()
        await self._believed_jobs(machine)
        nodes = sorted(node for node in machine.nodes if node.partitions)
        unmanaged = {"memory": 0} if self._manages_memory is False else {}
        parts = parts_of_nodes(
            (node.name, sorted(node.partitions), node.has | unmanaged, node.gpu_types) for node in nodes
        )
        return self._begin(parts, await self._clock()) if opened is None else self._begin_again(parts, opened)

    async def listen(self) -> None:
        """Wait until the next poll is due. Apply a window of the past if the log lags far, else a snapshot."""
        await asyncio.sleep(max(0.0, self._soonest - time.monotonic()))
        if self._waker is not None:
            await self._waker.wait(self._next - time.monotonic())
        began = time.monotonic()
        try:
            if self._ahead is None:  # after a restart
                await self._clock()
            if self._behind() > AWAY + LAG:
                await self._emit_past()
            else:
                self._next = began + self.every
                self._soonest = (
                    self._next if self._waker is None else began + max(LEAST, self.every - self._options.every)
                )
                await self._emit_snapshot()

            self._backoff.reset()
            self.load.succeeded()
        except FollowError as error:
            self.load.failed(error)
            pause = self._backoff.pause()
            self._next = self._soonest = time.monotonic() + pause
            log.warning("%s; retrying in %.0f s", truncate(str(error)), pause)

        self.load.refused = self._asked.refused
        self._note_poll(began)

    async def close(self) -> None:
        """Close the client and the listener."""
        await self._asked.close()
        if self._waker is not None:
            await self._waker.close()

    async def _emit_past(self) -> None:
        """Apply the next window of the past. Raise `FollowError` if accounting lacks messages of slurmctld."""
        mirror, zero, now = self.mirror, self._zero, await self._clock()
        if self._seen is not None and self._seen.unaccounted:
            raise FollowError(f"{self._seen.unaccounted} messages of slurmctld have not reached accounting yet")
        last = min(zero + mirror.until + WINDOW, now)
        past = self._with_managed(await self._asked.accounted(zero + mirror.until - LAG, last))
        mirror.take(shifted(past, zero), last - zero)
        mirror.release(min(last - 1, now - LAG) - zero, beat=False)
        self._past_was_read = True

    def _compare_with_past(self, observations: Iterable[JobObservation]) -> None:
        """Warn if the past, as accounting reported it, has none of the jobs that ran for long before its end."""
        if not self._past_was_read:
            return
        self._past_was_read = False
        before, lives = self.mirror.until - LAG, self.mirror.lives
        ran = [seen for seen in observations if seen.state == "running" and (seen.start or before) < before]
        if ran and not any(lives.of_job(seen.key) for seen in ran):
            log.warning(
                "accounting has none of the %d jobs that squeue shows as running, such as %s: the past is missing; if "
                "slurmdbd.conf has PrivateData=jobs, give the follower's user the right to see all jobs, and follow "
                "the cluster as a new run: --run NAME",
                len(ran),
                ran[0].key.job_id,
            )

    async def _emit_snapshot(self) -> None:
        """Take and apply a snapshot, and query accounting for the jobs in doubt."""
        mirror, zero, now = self.mirror, self._zero, await self._clock()
        machine = await self._asked.machine()
        observations = await self._believed_jobs(machine)
        mirror.capacity.see(machine.nodes)
        seen = shifted(observations, zero)
        self._compare_with_past(seen)
        mirror.take(seen, now - zero, whole=True)
        if mirror.doubts:
            try:
                recent = shifted(await self._accounted_of_doubts(), zero)
                mirror.take(recent, now - zero)
                if self._seen is not None and not self._seen.unaccounted:
                    self._require_gone(mirror.answered(recent, now - 1 - zero), machine, observations)
            except ContradictionError:
                raise
            except FollowError as error:
                log.warning("accounting: %s", truncate(str(error)))

            if mirror.doubts:
                log.warning(
                    "publishing pauses until accounting reports the state of jobs %s",
                    ", ".join(key.job_id for key in sorted(mirror.doubts)[:5]),
                )

        mirror.release(now - 1 - zero)

    async def _believed_jobs(self, machine: SlurmNodes) -> Sequence[JobObservation]:
        """Return the jobs of squeue.

        Raise `ContradictionError` if squeue shows no job on nodes on which sinfo has allocated processors, both before
        and after squeue. If Slurm hides no jobs, such nodes have lost count of their processors, as after a fault of
        slurmctld. Then squeue is right.
        """
        jobs = await self._asked.jobs(machine)
        bare = _held(machine) - {node for nodes in jobs.node_lists for node in hosts_of(nodes)}
        if bare:
            bare &= _held(await self._asked.machine())
        if bare and not await self._asked.may_hide_jobs():
            log.warning("sinfo has processors in use on %s, but no job is there", truncate(", ".join(sorted(bare))))
        elif bare:
            raise ContradictionError(
                f"sinfo has jobs on {truncate(', '.join(sorted(bare)))}, but squeue shows none there: "
                "the follower may no longer see all jobs; compare squeue -a with PrivateData in slurm.conf, "
                "and give the follower's user the right to see all jobs"
            )
        if self._manages_memory is None:
            self._manages_memory = await self._asked.manages_memory(machine)
        return self._with_managed(jobs.observations)

    def _with_managed(self, observations: Sequence[JobObservation]) -> Sequence[JobObservation]:
        """Return observations, without memory if Slurm does not allocate it: there, waiting jobs seem to need nodes."""
        if self._manages_memory is not False:
            return observations
        return [replace(observation, memory=None) for observation in observations]

    def _require_gone(
        self, running: Iterable[LifeKey], machine: SlurmNodes, observations: Iterable[JobObservation]
    ) -> None:
        """Raise `ContradictionError` if squeue hides a job that runs.

        `running` are lives that run according to accounting, but are not in squeue. One of them is hidden if sinfo has
        more allocated processors on one of its nodes than the observed jobs hold.
        """
        spare: Counter[str] = Counter({node.name: node.held for node in machine.nodes})
        running = list(running)
        for observation in observations if running else ():
            hosts = hosts_of(observation.node_list) if observation.state == "running" else []
            spare.subtract({host: -(-observation.processors // len(hosts)) for host in hosts})
        for key in running:
            hosts = hosts_of(self.mirror.nodes_of(key))
            if any(spare[host] > 0 for host in hosts):
                raise ContradictionError(
                    f"squeue does not show job {key.job_id}, but accounting says that it runs, and sinfo has "
                    f"processors in use on {truncate(', '.join(hosts))}; give the follower's user the right to see all "
                    "jobs"
                )

    async def _clock(self) -> int:
        """Return the clock of slurmctld in Unix seconds, or an estimate if slurmctld does not report it.

        Record the clock and the load on slurmctld, and adapt the interval of snapshots to the load.
        """
        load = await self._asked.load()
        if load is None:
            self._ahead = 0.0
            return int(time.time()) - WITHOUT_CLOCK
        before, self._seen = self._seen, load
        self._ahead = time.time() - load.time
        if load.seconds is None:
            self.load.share = None
        elif (
            before is not None and before.seconds is not None and before.since == load.since and load.time > before.time
        ):
            self.load.share = (load.seconds - before.seconds) / (load.time - before.time)
            if self.load.share < MOST / 4:
                self.every = max(self.every / 2, self._options.every)
            if self.load.share > MOST:
                self.every = min(2 * self.every, LONGEST_PAUSE)
                log.warning(
                    "the follower used %.1f %% of slurmctld's time, the limit is %.0f %%; "
                    "polling every %.0f s from now on",
                    100 * self.load.share,
                    100 * MOST,
                    self.every,
                )

        return load.time

    async def _accounted_of_doubts(self) -> Sequence[JobObservation]:
        """Return the observations of the jobs in doubt from accounting, in Unix seconds."""
        mirror = self.mirror
        first = min(other.submit for key in mirror.doubts for other in (key, *map(_key, mirror.lives.of_job(key))))
        jobs = sorted({key.job for key in mirror.doubts})
        return self._with_managed(await self._asked.accounted(self._zero + min(first, mirror.now - KEEP), jobs=jobs))
