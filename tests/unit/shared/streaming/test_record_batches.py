"""Stored batches become records: bounded in cost, and no bytes end a reader or hide the records of others."""

import gzip
import random
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.bounds import MAX_GZIP_MEMBERS, MAX_UNPACKED
from shadowtime.shared.streaming.kafka import UnreadableReason
from shadowtime.shared.streaming.kafka.record_batches import UnreadableBatch, unpacked
from tests.support.stored_batches import (
    ATTRIBUTES,
    GZIP,
    HEADER,
    LZ4,
    SNAPPY,
    ZSTD,
    batch,
    mutated,
    packed,
    records,
    with_crc,
)


def read(log: bytes, position: int = 0) -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
    """Return offset, key and value of the records, and the offset that is fetched next."""
    found, behind = records(log, position)
    return [(record.offset, record.key, record.value) for record in found], behind


@pytest.mark.parametrize("codec", [0, GZIP])
def test_what_is_packed_is_unpacked(codec: int) -> None:
    found, behind = read(batch(0, [b"a", b"b"], codec) + batch(2, [b"c"], codec))
    assert found == [(0, b"kth", b"a"), (1, b"kth", b"b"), (2, b"kth", b"c")]
    assert behind == 3


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_a_codec_that_is_not_known_holds_nobody_up(codec: int) -> None:
    found, behind = read(batch(0, [b"a"], 0) + batch(1, [b"b", b"c"], codec) + batch(3, [b"d"], 0))
    assert [(offset, key) for offset, key, _ in found] == [(0, b"kth"), (2, None), (3, b"kth")]
    assert found[1][2] is not None
    assert found[1][2].startswith(b"records 1 to 2 cannot be read: its codec, ")
    assert behind == 4


def test_a_batch_is_unpacked_no_further_than_its_bound() -> None:
    found, behind = read(batch(0, [bytes(MAX_UNPACKED)], GZIP) + batch(1, [b"d"], 0))
    assert [(offset, key) for offset, key, _ in found] == [(0, None), (1, b"kth")]
    assert behind == 2


def test_members_of_gzip_count_together() -> None:
    assert unpacked(gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    with pytest.raises(UnreadableBatch):
        unpacked(gzip.compress(bytes(MAX_UNPACKED)) + gzip.compress(b"b"))
    with pytest.raises(zlib.error):
        unpacked(b"no gzip")


def test_many_members_of_gzip_are_refused_in_linear_time() -> None:
    most = b"".join(gzip.compress(b"a") for _ in range(MAX_GZIP_MEMBERS))
    assert unpacked(most) == b"a" * MAX_GZIP_MEMBERS
    began = time.process_time()
    with pytest.raises(UnreadableBatch, match="more than 16 members"):
        unpacked(gzip.compress(b"a") * 200_000)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_header_that_is_not_utf_8_costs_its_own_record_only(codec: int) -> None:
    plain = bytearray(batch(0, [b"a", b"b", b"c"]))
    at = plain.index(b"name", plain.index(b"name") + 4)
    plain[at : at + 2] = b"\xff\xfe"
    stored = packed(bytes(plain)) if codec else with_crc(plain)
    found, behind = read(stored + batch(3, [b"d"]))
    assert [(offset, key) for offset, key, _ in found] == [(0, b"kth"), (1, None), (2, b"kth"), (3, b"kth")]
    assert b"record 1 cannot be read: " in (found[1][2] or b"")
    assert behind == 4


def test_a_record_cannot_claim_the_offset_of_another() -> None:
    plain = bytearray(batch(0, [b"a", b"b", b"c"]))
    place = plain.index(b"\x06kth", HEADER) - 1  # the offset of the first record within its batch, zigzag
    assert plain[place] == 0
    plain[place] = 126
    found, behind = read(with_crc(plain) + batch(3, [b"d"]))
    assert [(offset, key) for offset, key, _ in found] == [(0, None), (1, b"kth"), (2, b"kth"), (3, b"kth")]
    assert found[0][2] == b"record 0 cannot be read: its offset is 63; expected 0 to 2"
    assert behind == 4


def test_unreadable_neighbours_are_one_record() -> None:
    plain = bytearray(batch(0, [b"a"] * 5))
    at = HEADER
    for _ in range(3):
        at = plain.index(b"name", at + 1)
        plain[at] = 0xFF
    found, _ = read(with_crc(plain))
    assert [(offset, key) for offset, key, _ in found] == [(2, None), (3, b"kth"), (4, b"kth")]
    assert (found[0][2] or b"").startswith(b"records 0 to 2 cannot be read: ")


def test_a_damaged_batch_costs_one_offset_at_a_time() -> None:
    damaged = bytearray(batch(7, [b"a", b"b"]))
    damaged[-1] ^= 1
    log = bytes(damaged) + batch(9, [b"c"])
    assert read(log, 7) == ([(7, None, b"record 7 cannot be read: the checksum of its batch is wrong")], 8)
    assert read(log, 8) == ([(8, None, b"record 8 cannot be read: the checksum of its batch is wrong")], 9)
    assert read(batch(9, [b"c"]), 9) == ([(9, b"kth", b"c")], 10)


def test_a_batch_that_is_cut_off_is_fetched_again() -> None:
    log = batch(0, [b"a"]) + batch(1, [b"b"])
    for cut in range(1, len(batch(1, [b"b"]))):
        assert read(log[:-cut]) == ([(0, b"kth", b"a")], 1)


@given(st.randoms(use_true_random=False), st.sampled_from([0, 0, GZIP, ZSTD]))
def test_no_batch_raises_or_hides_another(chance: random.Random, codec: int) -> None:
    plain = bytearray(batch(2, [b"a", b"", None]))
    plain[ATTRIBUTES] = codec
    stored = mutated(bytes(plain), chance)
    found, behind = records(batch(0, [b"x", b"y"]) + stored + batch(5, [b"z"]))
    offsets = [record.offset for record in found]
    assert offsets == sorted(set(offsets))
    assert [record.value for record in found if record.offset in (0, 1, 5)] == [b"x", b"y", b"z"]
    middle = [record for record in found if 2 <= record.offset <= 4]
    assert behind == 6
    assert sum(isinstance(record.value, UnreadableReason) for record in middle) <= 2


@given(st.binary(max_size=200))
def test_any_bytes_are_read(stored: bytes) -> None:
    found, behind = records(stored, 3)
    assert behind >= 3
    assert all(record.offset >= 3 for record in found)
