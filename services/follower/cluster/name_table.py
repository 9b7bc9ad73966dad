"""Numbers of users, accounts, …, assigned in the order of first use. A commit stores only new numbers."""

from collections.abc import Mapping
from typing import Any

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import HASH, HASHED, KINDS, POOL, REQUEUED, Names, job_of
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import FollowError

ASSIGNED = "\0"
"""First character of a placeholder. A placeholder replaces the unknown name of a number in the log."""


class NameTable:
    """Names and their numbers. `fresh` has the entries that are not stored yet.

    Readers of the log also need two facts that the numbers lack: the pool of a partition, and the job of a later life
    whose number looks like that of an array task.

    >>> table = NameTable(Names())
    >>> table.number("user", "eve"), table.number("user", "bob"), table.number("user", ""), table.fresh
    (1, 2, None, {'user:eve': b'1', 'user:bob': b'2'})
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self._key = None if names.key_check is None else b"%d" % int(names.key_check, 16)
        self.fresh: dict[str, bytes] = {} if self._key is None else {HASHED: self._key}
        self._unbound = 0
        self._pools: dict[str, int] = {}
        self._requeued: set[int] = set()

    def number(self, kind: str, name: str) -> int | None:
        """Return the number of a name. A new name gets the next number. An empty name has no number: return None."""
        if not name:
            return None
        known, shown = self.names.of[kind], self.names.shown(kind, name)
        if (number := known.get(shown)) is None:
            number = known[shown] = len(known) + 1
            self.fresh[f"{kind}:{shown}"] = b"%d" % number
        return number

    def of(self, observation: JobObservation) -> dict[str, int | None]:
        """Return the numbers of a job's user, account and other names, as fields of an event."""
        return {field: self.number(kind, getattr(observation, kind)) for kind, field in KINDS.items()}

    def note_life(self, number: int, key: LifeKey) -> None:
        """Add the job of a life to `fresh` if `job_of` derives another job from the number of the life.

        >>> table = NameTable(Names())
        >>> table.note_life(100_004_711, LifeKey(4711, -1, 0)), table.note_life(500_000_085, LifeKey(85, 4, 0))
        (None, None)
        >>> table.fresh
        {'requeued:100004711': b'4711'}
        """
        if key.task == -1 and number not in self._requeued and job_of(number) != (key.job, None):
            self._requeued.add(number)
            self.fresh[f"{REQUEUED}:{number}"] = b"%d" % key.job

    def _note_pool(self, partition: str, pool: int) -> None:
        """Store the pool of a partition. Jobs of a list of partitions may have several pools: the first one counts."""
        shown = self.names.shown("partition", partition)
        if self._pools.get(shown) != pool and ("," not in partition or shown not in self._pools):
            self._pools[shown] = pool
            self.fresh[f"{POOL}:{shown}"] = b"%d" % pool

    def asked(self, observation: JobObservation, pool: int | None) -> dict[str, Any]:
        """Return the request and the owner of a job, as fields of `JobSubmitted`. Store the pool of its partition."""
        if pool is not None and observation.partition:
            self._note_pool(observation.partition, pool)
        return {
            "requested_processors": observation.processors,
            "requested_time": None
            if observation.unlimited or not observation.limit
            else min(observation.limit, MAX_DURATION),
            **self.of(observation),
            "partition_number": None if pool is None else pool + 1,
            "pool": pool,
            "nodes": observation.nodes,
            "memory": observation.memory,
            "gpus": observation.gpus,
            "gpu_type": observation.gpu_type or None,
            "blocked": observation.blocked or None,
            "site_reason": observation.reason or None,
        }

    def take_fresh(self) -> dict[str, bytes]:
        """Return the entries that are not stored yet. They count as stored from now on."""
        fresh, self.fresh = self.fresh, {}
        return fresh

    def restore(self, stored: Mapping[str, bytes]) -> None:
        """Restore stored entries, which have the form of `fresh`. Raise `FollowError` if they have another key."""
        self._require_key(stored)
        for text, number in sorted(stored.items(), key=lambda entry: int(entry[1])):
            kind, _, shown = text.partition(":")
            if kind in KINDS:
                self._fill(kind, int(number) - 1)
                self.names.of[kind][shown] = int(number)
            elif kind == POOL:
                self._pools[shown] = int(number)
            elif kind == REQUEUED:
                self._requeued.add(int(shown))
            elif kind == HASHED:
                self.fresh.pop(HASHED, None)

    def _require_key(self, stored: Mapping[str, bytes]) -> None:
        key, names = stored.get(HASHED), (entry.partition(":") for entry in stored)
        if key is None:  # there is no key, or an older version has not stored it
            same = self._key is None or all(HASH.fullmatch(name) for kind, _, name in names if kind in KINDS)
        else:
            same = key == self._key
        if not same:
            raise FollowError(
                "the names of the run were stored with another --names-key, or without one, so that each user would "
                "count as two; give the same key, or follow the cluster as a new run: --run NAME"
            )

    def reserve(self, event: Any) -> None:
        """Reserve the numbers in a submission of the log, so that other names do not get them."""
        for kind, field in KINDS.items():
            self._fill(kind, getattr(event, field) or 0)

    def bind(self, observation: JobObservation, asked: Mapping[str, Any]) -> None:
        """Bind the names of an observed job to reserved numbers in `asked`, the published request of the job."""
        for kind, field in KINDS.items() if self._unbound else ():
            known, number, name = self.names.of[kind], asked.get(field), getattr(observation, kind)
            if name and number and known.get(f"{ASSIGNED}{number}") == number:
                shown = self.names.shown(kind, name)
                if shown not in known:
                    del known[f"{ASSIGNED}{number}"]
                    known[shown] = number
                    self.fresh[f"{kind}:{shown}"] = b"%d" % number
                    self._unbound -= 1

    def _fill(self, kind: str, last: int) -> None:
        known = self.names.of[kind]
        for number in range(len(known) + 1, last + 1):
            known[f"{ASSIGNED}{number}"] = number
            self._unbound += 1
