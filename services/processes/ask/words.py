"""Names of a followed cluster: of users, accounts and partitions, and ids of jobs.

Messages have numbers only. The follower stores the names in Redis. A reader resolves them where it shows them.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple, NoReturn, Protocol

from shadowtime.shared.accounting import HASHED, KINDS, POOL, REQUEUED, job_of, number_of
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.errors import StateAltered, StoreError, Unanswerable
from shadowtime.shared.messages import FOLLOWED, SHADOW, ClusterOpened, FrozenModel, run_name
from shadowtime.shared.quoting import among, listed, plain, quote

log = logging.getLogger("shadowtime.ask")

NAMES_OF = "follow"
"""The prefix of the follower's keys in Redis, which have the names."""

MAX_LIVES = 1_000
"""The number of lives of a job that are searched for its id."""

KEPT_SECONDS = 5.0
"""Least number of seconds for which names are kept in memory."""

MAX_KEPT = 50
"""The number of runs whose names are kept in memory."""

MAX_LISTED = 20
"""The maximum number of names that an error lists."""

READ_SHARE = 0.02
"""Largest share of the time for reading names. If many names make the read slow, they are kept longer."""

_ID = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,7})|\[([0-9]{1,7})\])?")
"""An id of a job, as Slurm or PBS writes it."""

_NUMBERED = re.compile(r"\b(job|user|group|queue|partition) ([0-9]{1,16})\b")
"""A job, an owner or a place in a sentence (`shared/text`). There, `partition` is the number of a pool, from 1."""

SEARCHED = ("user", "account", "partition")
"""Kinds of names by which jobs are searched."""


def is_job_id(text: str) -> bool:
    """Return whether a text can be the id of a job, or its number in the log.

    >>> is_job_id("2754_12"), is_job_id("2754[12]"), is_job_id("419430500002754"), is_job_id("x")
    (True, True, True, False)
    """
    return _ID.fullmatch(text) is not None or re.fullmatch("[0-9]{1,16}", text) is not None


class JobPlace(NamedTuple):
    """The owner and the place of a job, as numbers of the log; `pool` counts from 0, None without pools."""

    user: int | None = None
    group: int | None = None
    executable: int | None = None
    queue: int | None = None
    pool: int | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of a `JobSubmitted`."""
        return {
            "user_id": self.user,
            "group_id": self.group,
            "executable_number": self.executable,
            "queue_number": self.queue,
            "pool": self.pool,
            "partition_number": None if self.pool is None else self.pool + 1,
        }


class ClusterWords:
    """The names for the numbers of a run. A number without a stored name is its own name.

    >>> words = ClusterWords({"user:eve": b"3", "partition:gpu": b"1", "pool:gpu": b"1", "requeued:100000009": b"9"})
    >>> words.name("user", 3), words.name("user", 4), words.number("user", "eve", "user"), words.pool_of(1)
    ('eve', '4', 3, 1)
    >>> words.job(500000085), words.job(100000009), min(words.lives("85_4"))
    ('85_4', '9', 500000085)
    """

    def __init__(self, stored: Mapping[str, bytes] | None = None) -> None:
        self.numbers: dict[str, dict[str, int]] = {kind: {} for kind in (*KINDS, POOL)}
        self.hashed = HASHED in (stored or {})
        """Whether there are hashes in place of names."""
        self._requeued: dict[int, int] = {}
        self._lives: dict[int, list[int]] = {}
        for entry, value in (stored or {}).items():
            kind, _, name = entry.partition(":")
            if kind == REQUEUED:
                self._requeued[int(name)] = int(value)
                self._lives.setdefault(int(value), []).append(int(name))
            elif kind in self.numbers:
                self.numbers[kind][name] = int(value)

        self.names = {kind: {number: name for name, number in of.items()} for kind, of in self.numbers.items()}

    @property
    def known(self) -> bool:
        """Whether names are stored for the run."""
        return any(self.numbers.values())

    def name(self, kind: str, number: int | None) -> str:
        """Return the name for a number; the number itself if it has no name, an empty text for None."""
        return "" if number is None else self.names[kind].get(number, str(number))

    def job(self, number: int) -> str:
        """Return the id of a job, such as `2754_12`, from its number in the log."""
        if not self.known:
            return str(number)
        if (requeued := self._requeued.get(number)) is not None:
            return str(requeued)
        job, task = job_of(number)
        return str(job) if task is None else f"{job}_{task}"

    def speak(self, text: str, pools: Sequence[str] = ()) -> str:
        """Return sentences with ids of jobs, and names of users, accounts, partitions and pools, in place of numbers.

        `pools` are the names of the pools. A number without a name stays.

        >>> words = ClusterWords({"user:eve": b"3", "partition:gpu": b"1"})
        >>> words.speak("job 500000085 by user 3 in queue 1 waits behind job 7 of user 4")
        'job 85_4 by user eve in partition gpu waits behind job 7 of user 4'
        """

        def named(match: re.Match[str]) -> str:
            kind, number = match[1], int(match[2])
            if kind == "job":
                return f"job {self.job(number)}"
            if kind == "partition":
                return f"pool {plain(pools[number - 1])}" if 0 < number <= len(pools) else match[0]
            of = {"group": "account", "queue": "partition"}.get(kind, kind)
            name = self.names[of].get(number)
            return match[0] if name is None else f"{of} {plain(name)}"

        return _NUMBERED.sub(named, text) if self.known else text

    def lives(self, text: str) -> Iterator[int]:
        """Yield the numbers that a job with this id may have in the log, its latest life first.

        In a run without names, the id is the number in the log. In other runs, a number of more than 8 digits is also
        tried as such, last.
        """
        match = _ID.fullmatch(text)
        if self.known and match is not None:
            job, task = int(match[1]), match[2] or match[3]
            wanted = str(job) if task is None else f"{job}_{int(task)}"
            stored = sorted(self._lives.get(job, ()), reverse=True) if task is None else ()
            others = (number_of(job, None if task is None else int(task), life) for life in range(MAX_LIVES, -1, -1))
            for number in dict.fromkeys((*stored, *others)):
                if number <= MAX_INTEGER and self.job(number) == wanted:
                    yield number
        if text.isdecimal() and not (self.known and len(text) <= 8):
            yield int(text)

    def number(self, kind: str, text: str | None, parameter: str) -> int | None:
        """Return the number for a name, or for a number as text; None for None. A name has precedence.

        Raise `Unanswerable` if there is no such name. The error names `parameter`, and lists some names of this kind.
        """
        if text is None:
            return None
        if (number := self.numbers[kind].get(text)) is not None:
            return number
        if re.fullmatch(r"-?[0-9]{1,15}", text):
            return int(text)
        if not self.known:
            reason = f"{quote(text)}: expected a whole number; only runs that follow a cluster have names"
            raise Unanswerable(422, reason, parameter)
        if self.hashed:
            self.refuse_hashed(text, parameter, kind)
        known = among(text, sorted(self.numbers[kind]), most=MAX_LISTED)
        raise Unanswerable(404, f"no {kind.replace('_', ' ')} {quote(text)} has had a job yet{known}", parameter)

    def refuse_hashed(self, text: str, parameter: str, kind: str = "user") -> NoReturn:
        """Raise `Unanswerable`: a name is unknown because the run has hashes in place of names."""
        reason = "the follower has --names-key, so that only hashes of names are known"
        raise Unanswerable(404, f"no {kind.replace('_', ' ')} {quote(text)}: {reason}", parameter)

    def numbered(self, kind: str, text: str, *, or_number: bool = False) -> int | None:
        """Return the number for a name, or, with `or_number`, for a number as text; None if it is neither."""
        number = self.numbers[kind].get(text)
        return int(text) if number is None and or_number and re.fullmatch("[0-9]{1,15}", text) else number

    def login(self, name: str, *, followed: bool) -> int | None:
        """Return the number of the user with a login name; None if no such user has had a job yet.

        In a run that follows a cluster, a login of digits is no number of the log: that is another user's.

        >>> words = ClusterWords({"user:eve": b"3"})
        >>> [words.login(name, followed=True) for name in ("eve", "3")], ClusterWords().login("3", followed=False)
        ([3, None], 3)
        """
        return self.numbered("user", name, or_number=not followed)

    def pool_of(self, queue: int | None) -> int | None:
        """Return the pool of a partition by its number, counted from 0; None if it is not known."""
        return self.numbers[POOL].get(self.name("partition", queue))

    def place(self, asked: FrozenModel, opened: ClusterOpened, *, one_pool: bool = False) -> JobPlace:
        """Return the owner and the place of the job in a question, as numbers of the log.

        With `one_pool`, the pool must be known, because the answer is about one pool.

        Raise `Unanswerable` if a name is not known, or if the pool must be known and is not.
        """
        of = {"user": "user", "group": "account", "queue": "partition", "executable": "job_name"}
        numbers = {name: self.number(kind, getattr(asked, name, None), name) for name, kind in of.items()}
        return JobPlace(pool=self._pool(getattr(asked, "pool", None), numbers["queue"], opened, one_pool), **numbers)

    def _pool(self, asked: str | None, queue: int | None, opened: ClusterOpened, one_pool: bool) -> int | None:
        names = [pool.name for pool in opened.pools or ()]
        if asked is not None and asked in names:
            return names.index(asked)
        if asked is not None:
            raise Unanswerable(422, f"there is no pool {quote(asked)}{among(asked, names, most=MAX_LISTED)}", "pool")
        pool = self.pool_of(queue) if names else None
        if pool is None and len(names) == 1:
            return 0
        if pool is None and names and one_pool:
            known = listed(names, MAX_LISTED)
            reason = f"the machine has {len(names)} pools, and the answer depends on the pool"
            raise Unanswerable(422, f"{reason}; name a partition whose jobs were seen, or a pool: {known}", "pool")
        return pool


NO_WORDS = ClusterWords()


class ReadsWords(Protocol):
    """The part of a reader of Redis that has the runs of followers, and the names of a run."""

    async def names(self) -> Sequence[str]:
        """Return the runs of followers."""
        ...

    async def read_words(self, run: str) -> Mapping[str, bytes]:
        """Return the stored names of a run; empty if there are none."""
        ...


class WordReader:
    """Reader of the names of runs, from the state of the follower in Redis. Without `reader`, no run has names."""

    def __init__(self, reader: ReadsWords | None = None) -> None:
        self._reader = reader
        self._kept: dict[str, tuple[float, ClusterWords]] = {}

    async def followed(self) -> frozenset[str]:
        """Return the runs that follow a cluster, or have followed it. Raise `StoreError` if Redis cannot be used."""
        return frozenset(() if self._reader is None else await self._reader.names())

    async def of(self, cluster: str, run: str) -> ClusterWords:
        """Return the names of a run. A shadow has those of the run that it shadows. None are used from altered state.

        Raise `StoreError` if Redis cannot be used.
        """
        if self._reader is None:
            return NO_WORDS
        run = self._named(cluster, run)
        until, words = self._kept.get(run, (0.0, NO_WORDS))
        began = monotonic()
        if began >= until:
            try:
                words = ClusterWords(await self._reader.read_words(run))
            except (StateAltered, ValueError) as error:
                words = NO_WORDS
                log.warning("the names of a run cannot be read: %s", quote(str(error)), extra={"run": run})
            now = monotonic()
            self._keep(run, words, now + max(KEPT_SECONDS, (now - began) / READ_SHARE))
        return words

    async def latest(self, cluster: str, run: str) -> ClusterWords:
        """Return the names of a run; while Redis cannot be used, the last ones that were read, or none."""
        try:
            return await self.of(cluster, run)
        except StoreError:
            run = self._named(cluster, run)
            words = self._kept.get(run, (0.0, NO_WORDS))[1]
            self._keep(run, words, monotonic() + KEPT_SECONDS)
            return words

    def _named(self, cluster: str, run: str) -> str:
        return run_name(cluster, FOLLOWED) if run.startswith(run_name(cluster, SHADOW, "")) else run

    def _keep(self, run: str, words: ClusterWords, until: float) -> None:
        self._kept.pop(run, None)
        self._kept[run] = until, words
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
