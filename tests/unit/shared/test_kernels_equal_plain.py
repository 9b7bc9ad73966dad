"""Every kernel says compiled what it says as plain Python, to the last few digits, and leaves the same in its arrays.

Arguments are those that `DRAWN` has for a kernel. All other kernels take those of calls in `RUNS`, `COMPILED` and
`FOLLOWED`.
"""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowtime.services.pipeline  # noqa: F401 - every kernel of the stages
from shadowtime.replayer.analysis.template_search import events_of
from shadowtime.replayer.comparison.plan import RunPlan, carry_out, carry_out_compiled
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.source import submission
from shadowtime.services.catalogue import configure
from shadowtime.services.runtime_distribution.history import remembered
from shadowtime.services.runtime_distribution.hmm.filter import forward, idled, log_likelihoods, propagate
from shadowtime.services.runtime_distribution.hmm.learning import jobs_of_states, smooth
from shadowtime.services.runtime_distribution.templates.category_sums import estimate
from shadowtime.services.runtime_distribution.templates.predictor import TemplatesSettings
from shadowtime.services.runtime_distribution.templates.search_errors import TemplateErrors
from shadowtime.services.runtime_distribution.templates.template import DEFAULT, templates_of
from shadowtime.services.scheduler.kernels.conservative_plan import plan
from shadowtime.services.scheduler.kernels.terminations import condition
from shadowtime.services.scheduler.ordering.distribution_measures import outlasted
from shadowtime.services.scheduler.policies.trial_runs import worthwhile
from shadowtime.services.scheduler.tables.expected_end import expected_ends
from shadowtime.services.scheduler.tables.job_table import remove_row
from shadowtime.services.wait_bound.binomial_ranks import covering_ranks
from shadowtime.services.wait_bound.groups.change_point import LEVELS, autocorrelation, replay
from shadowtime.services.wait_bound.groups.change_point import RUNS as MISSES
from shadowtime.services.wait_bound.groups.clustering import log_likelihood, merge_order
from shadowtime.services.wait_bound.groups.group_bound import ranks
from shadowtime.shared.distributions.histogram import BINS, EDGES, mass_before
from shadowtime.shared.distributions.outcomes import limit_outcomes
from shadowtime.shared.kernels.decorator import MADE, Kernel
from shadowtime.shared.kernels.easy_backfill import backfilled_rows
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, instances
from tests.unit.services.runtime_distribution.followed import Followed, happenings
from tests.unit.services.runtime_distribution.hmm_cases import cases

Arguments = tuple[Any, ...]

KERNELS = [each for each in MADE if each.__module__.startswith("shadowtime.")]
JOBS = 150

RUNS = [
    ("fcfs:forecast=yes", "last-two", "none", "futures:trees=yes"),
    ("easy:forecast=sampled", "empirical", "auto", "bmbp"),
    ("easy:forecast=calibrated", "templates", "percentile", "futures:arrivals=yes"),
    ("easy:queue=gittins,candidates=R,by=expected", "empirical-request", "none", "none"),
    ("all-reserve:forecast=yes", "experts", "none", "none"),
    ("conservative:speculate=0.2,test_runs=yes", "mixture", "none", "none"),
    ("guarded", "empirical", "none", "none"),
    ("probabilistic:patience=1", "empirical", "none", "none"),
    ("probabilistic:tau=1,criterion=gain,mass=censor,points=4,recalibrate=yes", "empirical", "none", "none"),
    ("tuned:least=1,every=3600", "downey-mean", "none", "none"),
    ("slurm", "gibbons", "none", "none"),
    ("easy:forecast=yes", "gibbons:predict=anew", "none", "none"),
]
"""Policies with their companions: what the first jobs of the log are replayed under."""

COMPILED = ["guarded", "conservative", "fcfs", "easy:queue=srf,candidates=saf", "tuned:least=1,every=3600"]
"""Policies that the compiled machine replays, with the requests as run times."""

FOLLOWED = [
    ("hmm", 1200),
    ("boosted:history=500,days=1,trees=15,rounds=4", 700),
]
"""Predictors that learn late, and how many jobs they are told of."""

UNDEFINED: dict[Any, Any] = {
    plan: lambda said: (*said[:2], said[2][: said[4]], said[3][:, : said[4]], *said[4:]),
}
"""What a kernel says without the parts of arrays that it has left as they were allocated."""


class Calls:
    """Arguments of some calls of each kernel: the first ones, then ever fewer."""

    MOST = 60

    def __init__(self) -> None:
        self.counts: defaultdict[Kernel, int] = defaultdict(int)
        self.kept: defaultdict[Kernel, list[Arguments]] = defaultdict(list)

    def call(self, made: Kernel, arguments: Arguments) -> Any:
        """Return what the kernel says; as plain Python where it is kept, so that kernels it calls are kept too."""
        self.counts[made] += 1
        count = self.counts[made]
        if count & (count - 1) or len(self.kept[made]) >= self.MOST:
            return made.load()(*arguments)
        self.kept[made].append(copied(arguments))
        return made.py_func(*arguments)


def copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple):
        parts = [copied(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def require_same(mine: Any, plain: Any) -> None:
    if isinstance(plain, tuple):
        assert len(mine) == len(plain)
        for one, other in zip(mine, plain, strict=True):
            require_same(one, other)
    elif plain is None:
        assert mine is None
    else:
        np.testing.assert_allclose(mine, plain, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def calls() -> Calls:
    """Return what kernels are called with in all runs."""
    found = Calls()
    jobs = prepare(read_swf(BUNDLED), limit=JOBS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", lambda made, *arguments: found.call(made, arguments))
        for policy in COMPILED:
            found.counts.clear()  # the loop calls the pass of each policy
            assert carry_out_compiled(RunPlan("r", "c", jobs, configure(policy, "requested")))
        for policy, runtime, adjustment, wait_bound in RUNS:
            carry_out(RunPlan("r", "c", jobs, configure(policy, runtime, adjustment), wait_bound=wait_bound), [])
        for spec, count in FOLLOWED:
            Followed(spec).follow(happenings(count))
        ended = [remembered(submission(job), job.run_time) for job in jobs]
        TemplateErrors(ended, list(events_of(jobs)), TemplatesSettings(history=50)).estimates(templates_of(DEFAULT)[0])
    return found


SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)
LIMITS = st.floats(1, 1e6) | st.sampled_from(EDGES[1:20].tolist())


def of_states(chance: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return filtered states, a transition between them, and counts of jobs; of few slices."""
    states, slices = chance.integers(1, 5), chance.integers(1, 31)
    counts = chance.poisson(1, (slices, chance.integers(1, 7))).astype(np.uint16)
    return chance.dirichlet(np.ones(states), slices), chance.dirichlet(np.ones(states), states), counts


def of_candidates(chance: np.random.Generator) -> Arguments:
    """Return a machine of two resources, and jobs of which few fit."""
    sizes, times = chance.integers(0, 6, (9, 2)), chance.integers(1, 99, 9)
    free = chance.integers(0, 12, 2)
    return 7, free, int(chance.integers(8, 99)), free - 3, sizes, times, chance.permutation(9)[:6]


def running_of(instance: Instance) -> Any:
    return instance.tables()[1].jobs(on_requests=False)


def of_values(chance: np.random.Generator) -> Arguments:
    x, y = chance.integers(0, 10, 9).astype(float), chance.integers(0, 100_000, 9).astype(float)
    sums = [float(each) for each in (y.sum(), y @ y, x.sum(), x @ x, x @ y)]
    return bool(chance.integers(2)), len(x), *sums, 3.0, 2.0


def of_table(chance: np.random.Generator) -> Arguments:
    rows, spare = int(chance.integers(1, 9)), int(chance.integers(4))
    table = chance.integers(100, 200, (chance.integers(1, 7), rows + spare))
    table[0, :rows] = chance.permutation(rows)
    return table, rows, int(chance.integers(rows))


def of_bins(chance: np.random.Generator) -> Any:
    return chance.dirichlet(np.full(BINS, 0.4))


def of_waits(chance: np.random.Generator) -> Any:
    return chance.choice([0, 1, 60, 3600, 86_400], chance.integers(2, 300)) + chance.integers(0, 9)


DRAWN: dict[Any, st.SearchStrategy[Arguments]] = {
    autocorrelation: SEEDS.map(lambda chance: (np.log1p(of_waits(chance)),)),
    backfilled_rows: SEEDS.map(of_candidates),
    covering_ranks: st.tuples(st.integers(0, 5000), st.integers(1, 64), st.floats(0.5, 0.99), st.floats(0.5, 0.99)),
    condition: st.tuples(
        SEEDS.map(of_bins), st.just(EDGES), st.floats(0, 1e6), LIMITS | st.just(np.inf), st.booleans()
    ),
    estimate: SEEDS.map(of_values),
    expected_ends: st.tuples(st.integers(60, 500), instances(max_running=10).map(running_of)),
    forward: cases().map(lambda case: (log_likelihoods(case.counts, case.model[0]), case.model[1], case.prior)),
    idled: st.tuples(SEEDS, st.integers(0, 9)).map(
        lambda case: (case[0].dirichlet(np.ones(4)), case[0].dirichlet(np.ones(4), 4), case[1])
    ),
    jobs_of_states: SEEDS.map(of_states).map(lambda case: (case[2], case[0])),
    limit_outcomes: st.tuples(SEEDS.map(of_bins), LIMITS, st.floats(0, 1)),
    log_likelihoods: cases().map(lambda case: (case.counts, case.model[0])),
    log_likelihood: st.tuples(st.integers(1, 1000), st.floats(1, 1e9)),
    mass_before: st.tuples(SEEDS.map(of_bins), st.floats(0, 1e6)),
    merge_order: SEEDS.map(lambda chance: (chance.integers(1, 9, 20), chance.integers(1, 10**6, 20).astype(float))),
    outlasted: st.tuples(SEEDS.map(of_bins), LIMITS, st.floats(0, 1)),
    propagate: cases().map(lambda case: (case.prior, case.model[1], len(case.counts))),
    remove_row: SEEDS.map(of_table),
    replay: SEEDS.map(lambda chance: (of_waits(chance), ranks(1000), 59, LEVELS, MISSES)),
    smooth: SEEDS.map(of_states).map(lambda case: case[:2]),
    worthwhile: st.tuples(
        *(st.integers(1, 99_999) for _ in range(2)),
        *(st.integers(0, 999), st.integers(1000, 99_999)),
        *(SEEDS.map(of_bins), st.just(EDGES)),
    ),
}
"""Kernels with arguments that no run of this length has, or with more of them than it has."""


@pytest.mark.parametrize(
    "made", KERNELS, ids=lambda each: f"{each.__module__.removeprefix('shadowtime.')}.{each.__name__}"
)
@given(data=st.data())
@examples(60)
def test_a_kernel_equals_its_plain_self(made: Kernel, calls: Calls, data: st.DataObject) -> None:
    assert made in DRAWN or calls.kept[made], (
        f"no run calls {made.__module__}.{made.py_func.__qualname__}: add one that does to RUNS, or a strategy to DRAWN"
    )
    arguments = data.draw(DRAWN[made] if made in DRAWN else st.sampled_from(calls.kept[made]))
    mine, plain = copied(arguments), copied(arguments)
    defined = UNDEFINED.get(made, lambda said: said)
    require_same(defined(made(*mine)), defined(made.py_func(*plain)))
    require_same(mine, plain)
