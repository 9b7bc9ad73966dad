"""Numbers and words as the fields of events have them, each anywhere within its bounds."""

from typing import Any

from hypothesis import strategies as st

from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER, MAX_TIME

TIMES = st.integers(-MAX_TIME, MAX_TIME)
COUNTS = st.integers(0, MAX_INTEGER)
SPANS = st.integers(0, MAX_DURATION)
SIZES = st.integers(1, 2**31 - 1)
LABELS = st.none() | st.integers(-MAX_INTEGER, MAX_INTEGER)
WORDS = st.text(max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.none() | NUMBERS
PROBABILITIES = st.floats(0, 1)
INNER = st.floats(0, 1, exclude_min=True, exclude_max=True)


def some(each: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return tuples of up to `most`."""
    return st.lists(each, max_size=most).map(tuple)


def as_distribution(counts: list[int]) -> tuple[float, ...]:
    """Return shares that add up to 1."""
    return tuple(count / sum(counts) for count in counts)
