"""What is decided, at random: starts with their reasons, evaluated candidates, kills."""

from hypothesis import strategies as st

from shadowtime.shared.messages.decisions import Evaluated, Kill, Start
from shadowtime.shared.messages.reasons import Backfilled, FitsNow, ProbablyHarmless, Risk
from tests.support.strategies.numbers import COUNTS, PROBABILITIES, SIZES, TIMES, WORDS, some

STARTS = st.builds(
    Start,
    job_number=COUNTS,
    processors=SIZES,
    limit=st.none() | SIZES,
    reason=st.builds(FitsNow)
    | st.builds(
        Backfilled,
        head=COUNTS,
        shadow_time=st.none() | TIMES,
        extra_processors=TIMES,
        ends_by_shadow_time=st.booleans(),
    )
    | st.builds(
        ProbablyHarmless,
        head=COUNTS,
        criterion=st.sampled_from(["exact", "paper", "gain"]),
        probability=PROBABILITIES,
        bound=PROBABILITIES,
        tau=PROBABILITIES,
        cost_of_gain=st.none() | PROBABILITIES,
        budget_left=PROBABILITIES,
        riskiest=some(st.builds(Risk, job_number=COUNTS, time=TIMES, probability=PROBABILITIES)),
        resolution=st.none() | COUNTS,
    ),
)
EVALUATED = st.lists(st.tuples(COUNTS, PROBABILITIES, PROBABILITIES), min_size=1, max_size=3).flatmap(
    lambda rows: st.builds(
        Evaluated,
        head=COUNTS,
        needed=COUNTS,
        after=COUNTS,
        job_numbers=st.just(tuple(row[0] for row in rows)),
        probabilities=st.just(tuple(row[1] for row in rows)),
        bounds=st.just(tuple(row[2] for row in rows)),
        recalibrated=st.none() | st.just(tuple(row[1] for row in rows)),
        accepted=st.booleans(),
    )
)
KILLS = st.builds(Kill, job_number=COUNTS, requeue=st.booleans(), reason=WORDS)
