"""What stages predict, at random."""

from hypothesis import strategies as st

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions.histogram import BINS
from shadowtime.shared.messages.drifts import Drift
from shadowtime.shared.messages.predictions import (
    ChangePoint,
    Coverage,
    RunTimePrediction,
    WaitBound,
    WalltimeAdjustment,
)
from tests.support.strategies.numbers import (
    COUNTS,
    INNER,
    LABELS,
    PROBABILITIES,
    SIZES,
    SPANS,
    WORDS,
    as_distribution,
    some,
)

PREDICTIONS = st.builds(
    RunTimePrediction,
    point=st.floats(0, MAX_DURATION),
    observations=COUNTS,
    histogram=st.just(()) | st.lists(st.integers(1, 1000), min_size=1, max_size=BINS).map(as_distribution),
)
ADJUSTMENTS = st.builds(WalltimeAdjustment, adjusted_time=SIZES, observations=COUNTS)
BOUNDS = st.builds(
    WaitBound,
    grouping=WORDS,
    queue=LABELS,
    quantile=INNER,
    confidence=INNER,
    bound=st.none() | SPANS,
    observations=COUNTS,
    reason=st.none() | WORDS,
    starts_within=some(st.tuples(PROBABILITIES, SPANS)),
)
COVERAGES = st.builds(
    Coverage,
    grouping=WORDS,
    queue=LABELS,
    quantile=PROBABILITIES,
    revealed=COUNTS,
    covered=PROBABILITIES,
    low=PROBABILITIES,
    high=PROBABILITIES,
)
CHANGE_POINTS = st.builds(
    ChangePoint, grouping=WORDS, queue=LABELS, lowest=LABELS, highest=LABELS, misses=COUNTS, kept=COUNTS
)
DRIFTS = st.builds(
    Drift,
    what=WORDS,
    number=LABELS,
    since=st.integers(-(2**41), 2**41),
    share=PROBABILITIES,
    most=PROBABILITIES,
)
