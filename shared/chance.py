"""Seeded random numbers: hashes of the seed, the cluster, the job and the round, so that runs can be repeated."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Floats, FloatTable, Integers


def require_seed(number: int) -> None:
    """Raise `SettingsError` if a seed is no whole number from 0 to `MAX_INTEGER`, the largest number in a message."""
    if not isinstance(number, int) or not 0 <= number <= MAX_INTEGER:
        raise SettingsError(f"seed {number}: expected a whole number from 0 to {MAX_INTEGER}")


Bits = npt.NDArray[np.uint64]


def mixed(bits: Bits) -> Bits:
    """Return a hash of each number: the finaliser of SplitMix64 (Steele 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def uniform(key: int, job_numbers: Integers, round_: int) -> Floats:
    """Return a random number in [0, 1) for each job, shape (jobs,). `key` is the result of `key_of`.

    The same key, job and round give the same number. See docs/algorithms.md#ties-and-chance.

    >>> jobs = np.array([1, 2, 3])
    >>> draws = uniform(7, jobs, 0)
    >>> draws.tolist() == uniform(7, jobs, 0).tolist(), draws.tolist() == uniform(7, jobs, 1).tolist()
    (True, False)
    """
    seed = mixed(np.array([key], dtype=np.uint64) ^ mixed(np.array([round_ & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)))
    bits = mixed(seed ^ mixed(job_numbers.astype(np.uint64)))
    draws: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def uniform_table(key: int, job_numbers: Integers, rounds: int) -> FloatTable:
    """Return the numbers of `uniform` for the rounds 0 to `rounds` - 1, shape (rounds, jobs).

    >>> jobs = np.array([1, 2, 3])
    >>> bool((uniform_table(7, jobs, 5)[4] == uniform(7, jobs, 4)).all())
    True
    """
    seeds = mixed(np.array([key], dtype=np.uint64) ^ mixed(np.arange(rounds, dtype=np.uint64)))
    bits = mixed(seeds[:, np.newaxis] ^ mixed(job_numbers.astype(np.uint64)))
    draws: FloatTable = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def key_of(seed: int, cluster: str) -> int:
    """Return the key of a run's random numbers, a 64-bit hash of the seed and of the cluster's name.

    >>> key_of(0, "kth") == key_of(0, "ctc")
    False
    """
    return int.from_bytes(blake2b(f"{seed}:{cluster}".encode(), digest_size=8).digest(), "big")
