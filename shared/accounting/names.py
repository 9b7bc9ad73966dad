"""Whole numbers in place of the names of users, accounts, jobs, partitions and QOS. Only a mapping has the names."""

import hmac
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson

from shadowtime.shared.errors import TraceError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.output import result_file

KINDS = {
    "user": "user_id",
    "account": "group_id",
    "job_name": "executable_number",
    "partition": "queue_number",
    "qos": "qos_number",
}
"""Kinds of names, with the field of a job that holds the number."""

POOL, REQUEUED, HASHED = "pool", "requeued", "hashed"
"""Further entries that a follower stores: the pool of each partition, the job of each life's number, and, if
names are hashes, the check of their key."""

DIGITS = 16
"""Hexadecimal digits of a hidden name."""

HASH = re.compile(f"[0-9a-f]{{{DIGITS}}}")
"""A hidden name."""

SMALLEST_KEY = 16
"""Minimum length of a key, in bytes."""

CHECK = "key"
"""Entry of a mapping that identifies the key of its hashes."""

MAX_SIZE = 2**28
"""Maximum size of a mapping, in bytes."""


class Names:
    """Numbers of names, by kind, counted from 1 in order of appearance. A stored mapping keeps them across logs.

    Parameters
    ----------
    key
        Hides the names: only their keyed hashes are kept. None keeps the names themselves.

    Examples
    --------
    >>> names = Names()
    >>> names.numbers("user", ["eve", "bob", "eve"]).tolist(), names.of["user"]
    ([1, 2, 1], {'eve': 1, 'bob': 2})
    >>> hidden = Names(b"0123456789abcdef")
    >>> hidden.numbers("user", ["eve"]).tolist(), list(hidden.of["user"])
    ([1], ['51cd5408967c74a4'])
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.of: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}

    def numbers(self, kind: str, names: Sequence[str]) -> Integers:
        """Return the number of each name of a kind in `KINDS`; -1 for an empty one. A new name gets the next number."""
        known = self.of[kind]
        return np.array(
            [known.setdefault(self.shown(kind, name), len(known) + 1) if name else -1 for name in names],
            dtype=np.int64,
        )

    def shown(self, kind: str, name: str) -> str:
        """Return a name as the mapping stores it: hashed if there is a key."""
        name = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
        return name if self._key is None else _hashed(self._key, f"{kind}:{name}")

    @property
    def key_check(self) -> str | None:
        """A hash that identifies the key; None without a key."""
        return None if self._key is None else _hashed(self._key, CHECK)

    def write(self, path: Path) -> None:
        """Write the mapping as JSON. Raise `OutputError` if it cannot be written."""
        with result_file(path) as file:
            entries = {CHECK: self.key_check, **self.of}
            file.write(orjson.dumps(entries, option=orjson.OPT_INDENT_2) + b"\n")


def read_names(path: Path | None, key_file: Path | None) -> Names:
    """Return the names of a stored mapping; no names if `path` is None or does not exist. More names can be added.

    Raise `TraceError` if the mapping is invalid or has another key, or the key cannot be read or is too short. The
    message names the file.
    """
    names = Names(None if key_file is None else read_key(key_file))
    if path is None:
        return names
    try:
        if not path.exists():
            return names
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
        if len(content) > MAX_SIZE:
            raise TraceError(f"{path}: a mapping of names has at most {MAX_SIZE:,} bytes; this file is larger")
        stored = orjson.loads(content)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise TraceError(f"{path}: not a mapping of names: {error}") from error

    check = stored.pop(CHECK, None) if isinstance(stored, dict) else None
    if not _is_mapping(stored):
        raise TraceError(f"{path}: not a mapping of names: expected names and numbers for {', '.join(KINDS)}")
    if check != names.key_check and any(stored.values()):
        other = "without a key" if check is None else "with a key" if key_file is None else "with another key"
        raise TraceError(f"{path} was written {other}; use it in the same way, or name another file with --names")
    names.of |= stored
    return names


def _is_mapping(stored: object) -> bool:
    """Return whether the names of each kind are numbered uniquely, from 1 on without gaps."""
    return isinstance(stored, dict) and all(
        kind in KINDS
        and isinstance(of, dict)
        and all(type(number) is int for number in of.values())
        and sorted(of.values()) == list(range(1, len(of) + 1))
        for kind, of in stored.items()
    )


def _hashed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), "sha256").hexdigest()[:DIGITS]


def read_key(path: Path) -> bytes:
    """Return the key in a file. Raise `TraceError` if the file cannot be read or the key is too short."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if len(key) < SMALLEST_KEY:
        raise TraceError(f"{path}: a key has at least {SMALLEST_KEY} bytes; this one has {len(key)}")
    return key
