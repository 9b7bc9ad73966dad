"""The mirror of a cluster: its known state and the events still to emit. It does no I/O, and serves every source.

Its rules:

1. An instant is emitted as soon as all its events are known. The events are in the order of
   `shared/cluster/event_order.py`, then by job number.
2. Observations are compared with the emitted state, and the difference is emitted. So each life is emitted exactly
   once, even if observations are missed, repeated or out of order. The events determine the whole state: a mirror that
   applies the events of the log (`published`) gets the state of the mirror that emitted them.
3. Facts that are found late are emitted at the next instant, with their true times.
4. A whole snapshot, or picture, is an observation of all jobs that wait or run. A life is in doubt if it has not
   ended and is missing from a whole snapshot. A later life of a job is also in doubt if the previous life is unknown.
   While a life is in doubt, nothing is emitted, because earlier events may still be unknown. After `patience`, the
   doubt is resolved by a guess.
5. A requeued job that is completing shows the number of its next life, and an end in the future. So its true end is
   unknown, and the life counts as missing.
6. No two lives of a job run at once, and the jobs of a pool never hold more processors than its nodes have. If an event
   would break this, all events wait until accounting resolves it, at most about `LAG` seconds (`held_back`).
"""

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shadowtime.services.follower.cluster.invariants import first_broken
from shadowtime.services.follower.cluster.job_life import JobLife, as_before, published_observation
from shadowtime.services.follower.cluster.known_lives import MAX_LIVES, KnownLives
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.new_events import new_events
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.services.follower.cluster.pool_sizes import ObservedCapacity
from shadowtime.services.follower.cluster.queue_order import as_queued
from shadowtime.shared.accounting import MachineParts
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.cluster import PLACE
from shadowtime.shared.messages import CapacityChanged, Event, JobSubmitted, OfJob, SchedulingPoint, moment
from shadowtime.shared.quoting import quote

log = logging.getLogger("shadowtime.follow.mirror")
log.addFilter(FewAMinute())

LAG = 60
"""Seconds that accounting may need to store a message."""

KEEP = 7_200
"""Seconds for which a life that is over is remembered. Observations of lives that ended earlier are ignored."""


COUNTS = ("now", "until", "late", "guessed", "held_back")

NAMED = 5
"""Maximum number of left-out jobs that are named for each reason: the last ones."""


class Mirror:
    """The mirror of one cluster. All times are in seconds on the cluster's own time line.

    Parameters
    ----------
    parts
        Pools of the cluster. The set of pools does not change.
    names
        Numbers of users, accounts, …
    begin
        The time at which the log begins. Lives that were over by then are not in the log.
    patience
        Seconds after which a doubt is resolved by a guess.
    """

    def __init__(self, parts: MachineParts, names: NameTable, begin: int, patience: int = 600) -> None:
        self.names = names
        self.begin = self.now = begin
        self.until = begin
        """Instant up to which everything is known. `now` is the last instant with an emitted event."""
        self.patience = patience
        self.left_out: Counter[str] = Counter()
        """Number of lives that were left out so far, by reason."""
        self.named: dict[str, list[str]] = {}
        """The last jobs that were left out, by reason."""
        self.late = self.guessed = self.held_back = 0
        self._held_back: dict[LifeKey, int] = {}
        self._oversubscribed: set[int] = set()
        self._renewed: dict[LifeKey, int] = {}
        """Times since which jobs wait again with their old submission time. Slurm soon gives most of them a new one."""
        self._missing: dict[LifeKey, int] = {}
        self._after_unknown: dict[LifeKey, int] = {}
        self._excess: set[LifeKey] = set()
        """Lives that are not remembered, because their jobs have too many."""
        self.lives = KnownLives()
        self.capacity = ObservedCapacity(parts)
        self._observations: dict[LifeKey, JobObservation] = {}
        self._shown: set[LifeKey] = set()
        self.picture: list[JobObservation] | None = None
        """All jobs of the last picture, for metrics; None before the first picture of this process."""
        self._due: deque[tuple[int, list[Event]]] = deque()

    @property
    def parts(self) -> MachineParts:
        """Pools of the cluster, and the known partitions and nodes of each."""
        return self.capacity.parts

    def take(self, observations: Iterable[JobObservation], at: int, *, whole: bool = False) -> None:
        """Apply observations of time `at`. A `whole` snapshot has every job that waits or runs.

        O(observations), and for a whole snapshot also O(known lives).
        """
        self.lives.forget(self.now - KEEP)
        self._excess = {key for key in self._excess if key.submit >= self.now - KEEP}
        observations = list(observations) if whole else sorted(observations, key=self.lives.order)
        if whole:
            self.picture = observations
            pictured = [self.lives.in_picture(observation, at) for observation in observations]
            self._renewed = {
                observation.key: self._renewed.get(observation.key, at)
                for observation, _ in pictured
                if observation.key.again and observation.state == "waiting" and observation.key not in self.lives.by_key
            }
            observations = [
                observation
                for observation, certain in pictured
                if certain and at - self._renewed.get(observation.key, -LAG) >= LAG
            ]
            for observation, certain in pictured:
                if not certain and observation.key not in self.lives.by_key:
                    self._after_unknown.setdefault(observation.key, at)

        for observation in observations:
            self._see(observation, at if whole else None)
        known = self.lives.by_key
        self._missing = {key: since for key, since in self._missing.items() if key in known}  # `new` changes keys
        if whole:
            self._shown = {other.key for other in observations}
            over = {key for key, observation in self._observations.items() if observation.state == "over"}
            for life in self.lives:
                if life.open and life.key not in self._shown and life.key not in over:
                    self._missing.setdefault(life.key, at)
                if life.reported == "left out" and life.over is None and life.key not in self._shown:
                    life.over = self.now

    @property
    def doubts(self) -> set[LifeKey]:
        """Keys of the lives in doubt."""
        return {*self._missing, *self._after_unknown, *self._held_back}

    def answered(self, observations: Iterable[JobObservation], at: int) -> set[LifeKey]:
        """Resolve doubts about missing lives by the complete answer of accounting. Call `take` with the answer before.

        A life that waits according to the answer does wait: squeue omits the last task of an array with a step. A life
        that has not started and is not in the answer was cancelled. A life that pictures have shown, and that runs
        according to the answer, remains in doubt for all of `patience`. Return the keys of the lives of this last kind.
        All other doubts are resolved by a guess after at most `LAG` seconds.
        """
        answers = (self.lives.in_accounting(observation, self._observations) for observation in observations)
        states = {observation.key: observation.state for observation in answers}
        for key in [key for key in self._missing if self.lives.by_key[key].started is None]:
            if states.get(key) == "waiting":
                del self._missing[key]
            elif key not in states:
                self._let_go(key, at)

        going_on = ("running", "suspended")
        kept = {
            key for key in self._missing if self.lives.by_key[key].restarts is not None and states.get(key) in going_on
        }
        self._guess(at, min(LAG, self.patience), kept)
        return kept

    def nodes_of(self, key: LifeKey) -> str:
        """Return the nodes on which this process last saw a life, as Slurm lists them; "" if it saw none."""
        seen = self._observations.get(key)
        return "" if seen is None else seen.node_list

    def release(self, until: int, *, beat: bool = True) -> None:
        """Make all known events up to an instant ready to emit. With `beat`, the instant always has a scheduling point.

        Nothing becomes ready while lives are in doubt, or while earlier instants are not emitted yet. O(lives that were
        observed and are not over).
        """
        self._guess(until, self.patience)
        if self._missing or self._after_unknown or self._due:
            return
        present = self.now + 1
        self.until = until = max(until, present)
        due: list[tuple[int, int, int, Event]] = []
        order = as_queued(self._observations, self.lives)
        for key, observation in list(self._observations.items()):
            life = self.lives.by_key[key]
            pool = self.capacity.pool_of(observation)
            if not life.in_system and (pool is None or not self.capacity.fits(observation, pool)):
                continue  # the job waits here until the growth of its pool is published
            self.names.note_life(life.number, key)
            asked = self.names.asked(observation, pool) | {"priority": order.get((key.submit, life.number))}
            if (earliest := self._earliest(life)) is None:
                continue
            seen = self.capacity.with_types(observation, pool)
            events = list(new_events(life, seen, asked, earliest, present, until))
            if not events and observation.state == "over" and not life.in_system and (observation.end or 0) <= until:
                life.reported, life.over = (
                    "left out",
                    observation.end,
                )  # the job never waited in the queue, or was held at its end
                del self._observations[key]

            due += [(event.time, PLACE[type(event)], life.number, event) for event in events]

        due += [(until, PLACE[CapacityChanged], change.pool or 0, change) for change in self.capacity.changes(until)]
        for time in {time for time, *_ in due} | ({until} if beat else set()):
            due.append((time, PLACE[SchedulingPoint], 0, SchedulingPoint(time=time)))
        due.sort(key=lambda row: row[:3])
        if self._holds_back([event for *_, event in due], until):
            return
        for time, _, _, event in due:
            if not self._due or self._due[-1][0] != time:
                self._due.append((time, []))
            self._due[-1][1].append(event)

    def _earliest(self, life: JobLife) -> int | None:
        """Return the earliest time at which the wait of a life may have begun: the end of the previous life.

        Return None if that end is not known yet, and both lives have the same submission time.
        """
        if life.key.again and life.reported == "nothing":
            before = self.lives.by_key.get(life.key._replace(again=life.key.again - 1))
            if before is not None and before.open:
                seen = self._observations.get(before.key)
                return seen.end if seen is not None and seen.state == "over" else None
        return self.lives.end_before(life)

    def _holds_back(self, events: Sequence[Event], until: int) -> bool:
        """Return whether an event would break an invariant, and must wait for accounting.

        After `LAG` seconds, a pool without enough processors is assumed to be oversubscribed, and another life that
        still runs is assumed to have ended.
        """
        broken = first_broken(events, self.lives, self._observations, self.capacity, self._oversubscribed)
        if broken is None:
            self._held_back.clear()
            return False
        if broken.life.key not in self._held_back:
            self._held_back[broken.life.key] = until
            self.held_back += 1
            log.warning("events wait for accounting because of job %s: %s", broken.life.key.job_id, broken.reason)
        if until - min(self._held_back.values()) <= min(LAG, self.patience):
            return True
        self._held_back.clear()
        if broken.pool is not None:
            self._oversubscribed.add(broken.pool)
            return self._holds_back(events, until)
        if broken.other is not None:
            self.guessed += 1
            self._let_go(broken.other.key, broken.time)
        return True

    def next_time(self) -> int | None:
        """Return the time of the next instant that is ready; None if there is none yet."""
        return self._due[0][0] if self._due else None

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant. They count as published from now on."""
        _, events = self._due.popleft()
        for event in events:
            self.published(event)
        return events

    def published(self, event: Event) -> None:
        """Apply a published event."""
        self.now = max(self.now, event.time)
        if isinstance(event, CapacityChanged):
            self.capacity.published(event)
        elif isinstance(event, JobSubmitted | OfJob):
            life = self.lives.by_number.get(event.job_number)
            if isinstance(event, JobSubmitted):
                life = life or self.lives.found_again(event)
                self.names.reserve(event)
                happened = event.since
            else:
                happened = moment(event)

            if life is not None:
                self.late += event.time - happened > 1  # an end in the second of the start is always published 1 s late
                life.take(event)
                if not life.open:
                    self._observations.pop(life.key, None)

    def _see(self, observation: JobObservation, at: int | None) -> None:
        """Apply an observation. `at` is the time of a whole snapshot, None for any other observation."""
        if at is None:
            observation = self.lives.in_accounting(observation, self._observations)
            if observation.state != "over" and observation.key in self._shown:
                return  # the picture is right, because Slurm moves the start of a job while its nodes power up
        life = self.lives.by_key.get(observation.key)
        if life is None:
            if observation.state == "over" and (
                observation.end is None or observation.end <= max(self.begin, self.now - KEEP)
            ):
                return

            if self.lives.too_many(observation.key):
                if observation.key not in self._excess:
                    self._excess.add(observation.key)
                    self._count_left_out(observation, f"beyond {MAX_LIVES:,} lives of a job")
                return
            life = self.lives.new(observation)
            self._after_unknown.pop(life.key, None)
            if life.reported == "nothing":
                self._judge(life, observation, at)
            for after in self.lives.of_job(life.key):
                if after.index == life.index + 1:
                    self._after_unknown.pop(after.key, None)
        elif life.reported == "left out":
            self._reconsider(life, observation, at)
        elif life.open and self.capacity.unusable(observation) is not None:  # keep the earlier resources of the life
            observation = as_before(
                observation, self._observations.get(observation.key) or published_observation(life, self.parts)
            )

        self.names.bind(observation, life.asked)
        if at is not None:
            life.restarts = observation.life
        if life.open:
            before = self._observations.get(observation.key)
            if before is None or before.state != "over" or observation.state == "over":
                self._observations[observation.key] = observation

        if observation.state == "over" or at is not None:
            self._missing.pop(observation.key, None)

    def _reconsider(self, life: JobLife, observation: JobObservation, at: int | None) -> None:
        """Update a left-out life: record its end, or include it if a picture shows that it fits now."""
        if observation.state == "over":
            life.over = self.now if observation.end is None else observation.end
        elif at is not None and self._unusable(life, observation) is None:
            life.reported, life.over = "nothing", None

    def _unusable(self, life: JobLife, observation: JobObservation) -> str | None:
        """Return the reason why a life cannot be published; None if it can."""
        return "with too large a number" if life.number > MAX_INTEGER else self.capacity.unusable(observation)

    def _judge(self, life: JobLife, observation: JobObservation, at: int | None) -> None:
        """Leave out a new life that cannot be emitted. Put a new life in doubt if the previous life is unknown."""
        reason = self._unusable(life, observation)
        if at is None and self.lives.is_part(life, observation.start, self._observations, self._shown):
            reason = "recorded as a part of a known run"
        if reason is not None:
            self._count_left_out(observation, reason)
            life.reported, life.over = "left out", self.now if observation.state == "over" else None
        recent = life.key.submit > max(self.begin, self.now - KEEP)
        if at is not None and life.index and recent and not self.lives.has_before(life):
            self._after_unknown[life.key] = at

    def _count_left_out(self, observation: JobObservation, reason: str) -> None:
        self.left_out.update([reason])
        named = f"{observation.key.job_id} in {quote(observation.partition)}"
        self.named[reason] = [*self.named.get(reason, ()), named][-NAMED:]

    def _guess(self, until: int, patience: int, kept: Collection[LifeKey] = ()) -> None:
        """Resolve doubts that are older than `patience`, except missing lives in `kept`.

        A missing life is assumed to have ended at the submission of the next life of its job, or at the start of the
        next life if both have the same submission time. Without a next life, it is assumed to have ended at `until`.
        """
        for key in [key for key, since in self._after_unknown.items() if until - since > patience]:
            del self._after_unknown[key]
        for key in [key for key, since in self._missing.items() if until - since > patience and key not in kept]:
            after = [
                time for other in self.lives.of_job(key) if other.key > key and (time := self._begin_of(other, key))
            ]
            self.guessed += self.lives.by_key[key].in_system
            self._let_go(key, min(after, default=until))

    def _begin_of(self, life: JobLife, before: LifeKey) -> int | None:
        """Return the latest possible end of the life with key `before`, given a later `life`; None if unknown."""
        if life.key.submit > before.submit:
            return life.key.submit
        seen = self._observations.get(life.key)
        return life.started if seen is None else seen.start

    def _let_go(self, key: LifeKey, end: int) -> None:
        life = self.lives.by_key[key]
        if life.in_system:
            seen = self._observations.get(key) or published_observation(life, self.parts)
            over = replace(seen, state="over", end=end, run_time=None, outcome="killed")
            self._observations[key] = replace(over, start=life.started)
            self._missing.pop(key, None)
        else:
            self.lives.drop(life)
            for known in (self._observations, self._missing, self._after_unknown):
                known.pop(key, None)

    def snapshot(self, *, seen: bool = False) -> dict[str, Any]:
        """Return the published state as plain values. With `seen`, also the observations that are not published yet."""
        state = {
            **{name: getattr(self, name) for name in COUNTS},
            "lives": [life.snapshot() for life in self.lives if life.reported != "nothing" or (seen and life.open)],
            "rooms": self.capacity.snapshot(),
            "left_out": dict(self.left_out),
        }
        if seen:
            state["seen"] = [observation.plain() for observation in self._observations.values()]
            state["rooms_seen"] = self.capacity.snapshot(seen=True)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        for values in state["lives"]:
            self.lives.add(JobLife.restored(values))
        for name in COUNTS:
            setattr(self, name, state.get(name, 0))
        self.left_out = Counter(state["left_out"])
        self.capacity.restore(state["rooms"], state.get("rooms_seen"))
        self._observations = {
            observation.key: observation for observation in map(JobObservation.of_plain, state.get("seen", ()))
        }
