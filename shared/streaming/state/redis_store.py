"""State of a stage in Redis: every transaction is one Lua script.

Theory of operation
-------------------
Two rules make the outputs of a run effectively-once: the fence and the outbox.

**Fence.** A worker reads the position (`sequence`) of a run when it loads the run. Each transaction names the position
that the worker expects. Redis compares it with the stored position before it writes anything. If another worker has
committed meanwhile, the positions differ, and the script returns the stored position. The worker then raises
`FencedError` and forgets the run. No lease and no clock is involved, so a worker that was paused for an hour does no
harm.

**Outbox.** Redis and Kafka share no transaction. So the outputs of a slice are stored in Redis together with its
position. After that the worker publishes them to Kafka. The next transaction removes the published ones (`delivered`).
A worker that dies in between leaves them behind. The next owner of the run publishes them again, in the same order and
with the same bytes. Readers drop outputs whose `sequence` they have, so each arrives once.

**Snapshot and journal.** A transaction appends the inputs of its slice to the journal. Now and then it stores a
snapshot instead, and deletes the journal. Loading a run means: restore the snapshot, push the journal. Nothing is
emitted then.

**Seal.** Each transaction stores a seal (`shared/streaming/state/seals.py`) of position, snapshot, journal and outbox.
The seal is compared when a run is loaded. So state that was altered, or that lacks a part, is never used: the run is
rebuilt from Kafka.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from redis.asyncio import RedisCluster
from redis.exceptions import (
    AuthenticationError,
    NoScriptError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as Disconnected

from shadowtime.shared.errors import FencedError, StateAltered, StoreError, reason_of
from shadowtime.shared.quoting import quote
from shadowtime.shared.streaming.protocols import RunState, RunSummary, Transaction
from shadowtime.shared.streaming.state.redis_client import Client
from shadowtime.shared.streaming.state.seals import SEAL_BYTES, Contents, Sealer

log = logging.getLogger("shadowtime.store")

# The shebang makes Redis refuse the whole script when memory is full, instead of stopping it half-way.
COMMIT = """#!lua
local state, journal, outbox, read_model, attempts, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stored = redis.call('HGET', state, 'sequence') or '-1'
-- The fence: a process that began from another position was replaced, and changes nothing.
if stored ~= ARGV[1] then return stored end
redis.call('HSET', state, 'sequence', ARGV[2], 'offset', ARGV[3], 'partition', ARGV[4])
redis.call('HSET', state, 'log', ARGV[8], 'seal', ARGV[9])
-- The process that commits goes on with the next event, which counts as one attempt.
redis.call('HSET', attempts, 'count', 1)
redis.call('SADD', runs, ARGV[5])
local delivered = tonumber(ARGV[6])
if delivered > 0 then redis.call('LTRIM', outbox, delivered, -1) end
if ARGV[7] ~= '' then
  redis.call('HSET', state, 'snapshot', ARGV[7])
  redis.call('DEL', journal)
end
local at = 10
local function block(command, key)
  local count = tonumber(ARGV[at])
  at = at + 1
  for first = at, at + count - 1, 1000 do
    redis.call(command, key, unpack(ARGV, first, math.min(first + 999, at + count - 1)))
  end
  at = at + count
end
block('RPUSH', journal)
block('RPUSH', outbox)
block('HSET', read_model)
block('HDEL', read_model)
for mark, value in pairs({quarantined = ARGV[at + 1], behind = ARGV[at + 2]}) do
  if value == '' then redis.call('HDEL', state, mark) else redis.call('HSET', state, mark, value) end
end
redis.call('EXPIRE', attempts, ARGV[at + 3])
local expire = tonumber(ARGV[at])
if expire > 0 then
  for key = 1, 4 do redis.call('EXPIRE', KEYS[key], expire) end
end
return stored
"""

CLOSED_RUN_SECONDS = 86_400
"""Seconds for which the state of a closed run is kept, and for which attempts are counted."""

MAX_REQUESTS = 32
"""The maximum number of requests that are under way at once: each needs a connection of its own. Others wait."""

WAIT_SECONDS = 30.0
"""Seconds for which a request waits at most before it is sent."""

KINDS = {"state": "hash", "journal": "list", "outbox": "list", "read-model": "hash", "attempts": "hash"}
"""The parts of a stored run, and their types in Redis."""

PARTS = tuple(KINDS)

MAX_SEALED = 2_000
"""The maximum number of runs whose digests are remembered; those of other runs are computed anew from the store."""

LARGE_STATE = 1_000_000
"""Bytes of a snapshot or a journal above which their digest is computed in a thread."""

FAILURES = (RedisError, RedisClusterException, OSError, TimeoutError)
"""Errors of redis-py. The error of a cluster without a reachable node is not a `RedisError`."""

WRONG_TYPES = ("WRONGTYPE", "hash value is not an integer", "increment or decrement would overflow")
"""Redis' answers if a key or a field has a type or a number that this store never gives it."""


class RedisStore:
    """The runs of one stage. An open run expires `retention_seconds` after its last event; 0 for never.

    The braces in its keys are a hash tag: all keys of a stage are on one node of a Redis Cluster, as a transaction
    needs.

    Parameters
    ----------
    secret
        The key of the seals. All processes that write the runs of the stage have the same.
    """

    def __init__(self, client: Client, stage: str, retention_seconds: int = 0, secret: bytes = b"") -> None:
        self._client = client
        self._stage = stage
        self._retention_seconds = retention_seconds
        self._script = client.register_script(COMMIT).sha
        self._sealer = Sealer(stage, secret)
        self._sealed: OrderedDict[str, Contents] = OrderedDict()
        self._free = asyncio.Semaphore(MAX_REQUESTS)
        self.waiting_requests = 0
        """The number of requests that wait until others are answered."""
        self._waiting: list[tuple[Sequence[Any], asyncio.Future[Any]]] = []
        self._sending: asyncio.Task[None] | None = None

    def _key(self, run: str, part: str) -> str:
        return f"shadowtime:{{{self._stage}}}:{part}:{run}"

    async def runs(self, partition: int) -> Sequence[str]:
        """Return the names of the runs that have been stored for a partition, in order."""
        key = self._key(str(partition), "partition")
        try:
            members = await self._ask(self._client.smembers(key))
        except StateAltered as error:
            log.error("%s: the names of the runs of partition %d are lost: %s", self._stage, partition, error)
            await self._ask(self._client.delete(key))
            return []
        return names_in(members)

    async def summaries(self, runs: Sequence[str]) -> Sequence[RunSummary | None]:
        """Return the summary of each run, in O(1) a run; None if nothing is stored of it.

        The summary of a run whose state was altered states an output, so that the run is loaded.
        """
        try:
            answers = await self._at_once(
                *(
                    command
                    for run in runs
                    for command in (
                        ("HMGET", self._key(run, "state"), "sequence", "quarantined", "behind", "offset", "log"),
                        ("LLEN", self._key(run, "outbox")),
                    )
                )
            )
        except StateAltered:
            if len(runs) == 1:
                return [RunSummary(-1, 1, None, False)]
            return [summary for run in runs for summary in await self.summaries([run])]

        return [_summary(fields, outbox) for fields, outbox in zip(answers[::2], answers[1::2], strict=True)]

    async def log_of(self, partition: int) -> str | None:
        """Return the identity of the log whose offsets are stored for a partition; None if none is known."""
        try:
            return _text(await self._ask(self._client.hget(self._key("all", "logs"), str(partition))))
        except StateAltered:
            return None

    async def set_log(self, partition: int, identity: str) -> None:
        """Store the identity of the log of a partition."""
        await self._set_of_all("logs", partition, identity.encode())

    async def unhandled_of(self, partition: int) -> bytes | None:
        """Return what was stored of the unhandled records of a partition, in O(its bytes); None if it was altered."""
        try:
            stored = await self._ask(self._client.hget(self._key("all", "unhandled"), str(partition)))
        except StateAltered:
            return None
        seal, content = (stored or b"")[:SEAL_BYTES], (stored or b"")[SEAL_BYTES:]
        return content if seal == self._sealer.seal_of(content, "unhandled", partition) else None

    async def set_unhandled(self, partition: int, content: bytes) -> None:
        """Store the unhandled records of a partition, with a seal. O(bytes)."""
        seal = self._sealer.seal_of(content, "unhandled", partition)
        await self._set_of_all("unhandled", partition, seal + content)

    async def _set_of_all(self, part: str, partition: int, value: bytes) -> None:
        """Store a value of a partition that belongs to no single run."""
        key = self._key("all", part)
        try:
            await self._ask(self._client.hset(key, str(partition), value))
        except StateAltered:
            await self._at_once(("DEL", key), ("HSET", key, str(partition), value))

    async def load(self, run: str) -> RunState | None:
        """Return the stored state of a run, in O(its bytes); None if there is none.

        Raise `StateAltered` if the state is not as this stage has written it.
        """
        self._sealed.pop(run, None)
        state, journal, outbox = await self._stored(run)
        if not state and not journal and not outbox:
            self._remember(run, Contents())
            return None
        saved = self._state_of(run, state, journal, outbox)
        if sum(map(len, journal)) + len(saved.snapshot or b"") > LARGE_STATE:
            contents = await asyncio.to_thread(Contents, saved.snapshot, journal, outbox)
        else:
            contents = Contents(saved.snapshot, journal, outbox)
        if self._sealer.seal(run, saved, contents) != state.get(b"seal"):
            raise self._altered(run, "its seal does not match its content")
        self._remember(run, contents)
        return saved

    async def _stored(self, run: str) -> tuple[Mapping[bytes, bytes], Sequence[bytes], Sequence[bytes]]:
        """Return the fields of a run's state, its journal and its outbox."""
        try:
            state, journal, outbox = await self._at_once(
                ("HGETALL", self._key(run, "state")),
                ("LRANGE", self._key(run, "journal"), 0, -1),
                ("LRANGE", self._key(run, "outbox"), 0, -1),
            )
        except StateAltered as error:
            raise self._altered(run, str(error)) from None
        return state, journal, outbox

    def _state_of(
        self, run: str, state: Mapping[bytes, bytes], journal: Sequence[bytes], outbox: Sequence[bytes]
    ) -> RunState:
        try:
            saved = RunState(
                int(state[b"sequence"]),
                int(state[b"offset"]),
                int(state[b"partition"]),
                state.get(b"snapshot"),
                journal,
                outbox,
                _text(state.get(b"quarantined")),
                b"behind" in state,
                _text(state.get(b"log")) or "",
            )
        except (KeyError, ValueError):
            raise self._altered(run, "it has no valid position") from None
        if state[b"sequence"] != b"%d" % saved.sequence:  # the fence compares texts
            raise self._altered(run, f"its position is {quote(state[b'sequence'].decode(errors='replace'))}")
        return saved

    def _altered(self, run: str, why: str) -> StateAltered:
        return StateAltered(
            f"{self._stage}: the state of run {quote(run)} in Redis is not what this stage has stored: {why}"
        )

    def _remember(self, run: str, contents: Contents) -> None:
        self._sealed[run] = contents
        self._sealed.move_to_end(run)
        if len(self._sealed) > MAX_SEALED:
            self._sealed.popitem(last=False)

    async def attempt(self, run: str, below: int | None = None) -> int | None:
        """Count a process that begins to work on a run. Return the count since the run's last transaction.

        If `below` is given and the count has reached it, count nothing and return None.
        """
        key = self._key(run, "attempts")
        try:
            if below is not None and int(await self._ask(self._client.hget(key, "count")) or 0) >= below:
                return None
            attempts, _ = await self._at_once(("HINCRBY", key, "count", 1), ("EXPIRE", key, CLOSED_RUN_SECONDS))
        except (StateAltered, ValueError):
            await self._ask(self._client.delete(key))
            return await self.attempt(run, below)
        if attempts < 1:  # more processes stopped working on the run than had begun, or somebody else wrote the count
            await self._ask(self._client.delete(key))
            return await self.attempt(run, below)
        return int(attempts)

    async def withdraw_attempt(self, run: str) -> None:
        """Decrease the count of processes that work on a run by one."""
        with suppress(StateAltered):
            await self._ask(self._client.hincrby(self._key(run, "attempts"), "count", -1))

    async def commit(self, transaction: Transaction) -> None:
        """Apply a transaction as a whole, in O(its size). Transactions that wait at the same time are sent together.

        Raises
        ------
        FencedError
            If the run in Redis is not at the sequence that the transaction expects, or its state was altered.
        StoreError
            If Redis cannot be used.
        """
        run = transaction.run
        keys = [self._key(run, part) for part in PARTS]
        keys.append(self._key(str(transaction.partition), "partition"))
        contents = await self._contents(run, transaction.delivered)
        inputs = transaction.inputs if transaction.snapshot is None else ()
        step = (transaction.snapshot, inputs, transaction.outputs)
        if len(transaction.snapshot or b"") > LARGE_STATE:
            await asyncio.to_thread(contents.add, *step)
        else:
            contents.add(*step)
        read_model = [part for pair in transaction.read_model.items() for part in pair]
        arguments: list[Any] = [
            transaction.expected,
            transaction.sequence,
            transaction.offset,
            transaction.partition,
            run,
            transaction.delivered,
            transaction.snapshot or b"",
            transaction.log,
            self._sealer.seal(run, transaction, contents),
        ]
        for block in (inputs, transaction.outputs, read_model, transaction.forgotten):
            arguments += [len(block), *block]
        arguments.append(CLOSED_RUN_SECONDS if transaction.closed else self._retention_seconds)
        arguments += [transaction.quarantined or "", "yes" if transaction.catching_up else "", CLOSED_RUN_SECONDS]
        try:
            stored = _text(await self._evaluated([len(keys), *keys, *arguments]))
        except StateAltered as error:
            await self._delete_foreign(keys)
            raise FencedError(str(self._altered(run, str(error)))) from None
        if stored != str(transaction.expected):
            raise FencedError(
                f"{self._stage}: run {run!r} is at sequence {stored} in Redis, not at {transaction.expected}: "
                "another worker owns it, or Redis lost its last second"
            )
        self._remember(run, contents)

    async def _contents(self, run: str, delivered: int) -> Contents:
        """Return the digests of a run's contents without its delivered outputs, and drop them from memory."""
        contents = self._sealed.pop(run, None)
        if contents is not None and contents.deliver(delivered):
            return contents
        try:
            saved = await self.load(run)
        except StateAltered as error:
            raise FencedError(str(error)) from None
        self._sealed.pop(run, None)
        return Contents() if saved is None else Contents(saved.snapshot, saved.journal, saved.outbox[delivered:])

    async def _delete_foreign(self, keys: Sequence[str]) -> None:
        """Delete those of a transaction's keys whose type in Redis is not the one that this store gives them."""
        for key, kind in zip(keys, (*KINDS.values(), "set"), strict=True):
            if await self._ask(self._client.type(key)) not in (kind.encode(), b"none"):
                await self._ask(self._client.delete(key))

    async def _evaluated(self, call: Sequence[Any]) -> Any:
        """Return the script's answer to a call. All calls that wait at the same time are sent together."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        return await answer

    async def _send(self) -> None:
        while self._waiting:
            sent, self._waiting = self._waiting, []
            try:
                answers = await self._ask(self._evaluate([call for call, _ in sent]))
            except Exception as error:  # the connection failed: it is unknown which of them were applied
                answers = [error] * len(sent)

            for (_, future), answer in zip(sent, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(error_of(answer) if isinstance(answer, FAILURES) else answer)
                else:
                    future.set_result(answer)

        self._sending = None

    async def _evaluate(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the script's answer to each call, or the error with which it ended."""
        pipeline = self._client.pipeline(transaction=False)
        for call in calls:
            pipeline.execute_command("EVALSHA", self._script, *call)  # a cluster's pipeline runs no script objects
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        if any(isinstance(answer, ReadOnlyError) for answer in answers) or (
            isinstance(self._client, RedisCluster) and any(isinstance(answer, Disconnected) for answer in answers)
        ):
            await self._reconnect()
        unknown = [at for at, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:  # Redis has restarted, and has not applied these
            await self._client.script_load(COMMIT)
            for at, answer in zip(unknown, await self._evaluate([calls[at] for at in unknown]), strict=True):
                answers[at] = answer

        return answers

    async def _reconnect(self) -> None:
        """Drop idle connections, so that the next command finds the server that has the keys now.

        After a failover, a connection may last to a server that is only a replica now, and refuses all writes.
        """
        if isinstance(self._client, RedisCluster):
            await self._client.aclose()
        else:
            await self._client.connection_pool.disconnect(inuse_connections=False)

    async def _at_once(self, *commands: tuple[Any, ...]) -> Any:
        """Run commands as one transaction, and return their answers."""
        if isinstance(self._client, RedisCluster):
            await self._ask(self._client.initialize())  # else its pipeline does this, in a loop of its own
        pipeline = self._client.pipeline(transaction=True)
        for command in commands:
            pipeline.execute_command(*command)
        return await self._ask(pipeline.execute())

    async def forget(self, run: str) -> None:
        """Delete everything that is stored of a run."""
        self._sealed.pop(run, None)
        partition = None
        with suppress(StateAltered):
            partition = _text(await self._ask(self._client.hget(self._key(run, "state"), "partition")))
        await self._ask(self._client.delete(*(self._key(run, part) for part in (*PARTS, "owner"))))
        if partition is not None:
            with suppress(StateAltered):
                await self._ask(self._client.srem(self._key(partition, "partition"), run))

    async def read_model(self, run: str) -> dict[str, bytes]:
        """Return the read model of a run, by field; `job:7` has the output for the live job 7."""
        fields = await self._ask(self._client.hgetall(self._key(run, "read-model")))
        return {name.decode(): value for name, value in fields.items()}

    async def claim(self, run: str, owner: bytes, seconds: int) -> bytes:
        """Claim a run for `seconds`, and return its owner: `owner`, unless another owner has claimed it before.

        An owner that claims again extends its claim. Claims only prevent two processes from doing the same work;
        transactions are safe without them.
        """
        key = self._key(run, "owner")
        _, _, holder = await self._at_once(
            ("HSETNX", key, "process", owner), ("EXPIRE", key, seconds, "NX"), ("HGET", key, "process")
        )
        if holder == owner:
            await self._ask(self._client.expire(key, seconds))
        return bytes(holder)

    async def holder(self, run: str) -> bytes | None:
        """Return the owner that claims a run; None if nobody does."""
        holder: bytes | None = await self._ask(self._client.hget(self._key(run, "owner"), "process"))
        return holder

    async def release(self, run: str, owner: bytes) -> None:
        """Give up the claim of `owner` to a run. Another owner's claim remains."""
        key = self._key(run, "owner")
        if await self._ask(self._client.hget(key, "process")) == owner:
            await self._ask(self._client.delete(key))

    async def wait_for(self, seconds: float) -> None:
        """Raise `StoreError` unless Redis answers within `seconds`."""
        until = (loop := asyncio.get_running_loop()).time() + seconds
        while True:
            try:
                await self._ask(self._client.ping())
                return
            except StoreError as error:
                if isinstance(error.__cause__, AuthenticationError) or loop.time() + 0.5 > until:
                    raise

            await asyncio.sleep(0.5)

    async def _ask(self, pending: Any) -> Any:
        """Return the answer to a request once fewer than `MAX_REQUESTS` others are under way."""
        self.waiting_requests += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            pending.close()
            raise StoreError(f"Redis did not answer {MAX_REQUESTS} requests within {WAIT_SECONDS:g} s") from None
        finally:
            self.waiting_requests -= 1

        try:
            return await cast("Awaitable[Any]", pending)
        except FAILURES as error:
            if isinstance(error, ReadOnlyError):
                await self._reconnect()
            raise error_of(error) from error
        finally:
            self._free.release()


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode(errors="replace")


def names_in(members: Iterable[bytes]) -> list[str]:
    r"""Return the names of runs in order, without those that are not UTF-8: this store has not written them.

    >>> names_in([b"kth/easy", b"\xff", b"ctc/easy"])
    ['ctc/easy', 'kth/easy']
    """
    names = ((member.decode(errors="replace"), member) for member in members)
    return sorted(name for name, member in names if name.encode() == member)


def _summary(fields: Sequence[bytes | None], outbox: int) -> RunSummary | None:
    sequence, quarantined, behind, offset, identity = fields
    if sequence is None and not outbox:
        return None
    try:
        place = int(offset or b"-1"), _text(identity) or ""
        return RunSummary(int(sequence or b""), outbox, _text(quarantined), behind is not None, *place)
    except ValueError:  # the state was altered: loading will report it
        return RunSummary(-1, 1, None, False)


def error_of(error: Exception) -> StoreError | StateAltered:
    """Return the error to raise for an error of Redis."""
    if isinstance(error, ResponseError) and any(kind in str(error) for kind in WRONG_TYPES):
        return StateAltered(reason_of(error))
    if isinstance(error, AuthenticationError) or "HELLO" in str(error):
        return StoreError(
            "Redis cannot be used: it rejects the user and the password of the settings; run this in the folder of the "
            "stack, or set SHADOWTIME_ACCESS to its folder .stack/access. Do not set another SHADOWTIME_REDIS_URL: "
            "stored logins are only sent to the address that they are for"
        )
    return StoreError(f"Redis cannot be used: {reason_of(error)}")
