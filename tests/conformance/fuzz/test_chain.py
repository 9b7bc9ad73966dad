"""Streams that are almost right, SPECs at their bounds and raw bytes, beside honest runs, through all five stages.

`SHADOWTIME_FUZZ=100` tries a hundred times as many examples; under the profile `nightly` they differ from run to run.
"""

import json
import os
from collections.abc import Sequence
from random import Random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shadowtime.shared.stages.topics import FLOW, JOBS
from shadowtime.testing.examples import examples
from tests.conformance.fuzz.chain import Chain, Sent, check
from tests.conformance.fuzz.mutations import MUTATIONS, Mutation, damaged, mutated, reordered, spec_at_its_bounds
from tests.conformance.fuzz.streams import SETTINGS, passed_on

TIMES = int(os.environ.get("SHADOWTIME_FUZZ", "1"))
JOBS_OF_A_RUN = 8

HOSTILE = st.tuples(
    st.sampled_from((0, 0, 0, 1, 2, 3, 4)),  # the stage in front of which it enters
    st.integers(0, 3),
    st.integers(0, len(SETTINGS) - 1),
    st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
Plan = tuple[int, int, int, Sequence[Mutation], int]

HONEST = tuple((f"honest-{kind}", 7, JOBS_OF_A_RUN, kind) for kind in range(2))


def fuzzing(number: int) -> settings:
    """Return the settings of a property that tries this many examples, or more if `SHADOWTIME_FUZZ` asks for more."""
    return examples(number * TIMES, database=None, suppress_health_check=list(HealthCheck))


def hostile_run(name: str, plan: Plan) -> tuple[str, list[Sent]]:
    """Return the topic that a hostile run enters, and its messages."""
    stage, seed, kind, mutations, chance = plan
    right = passed_on("evil", seed, JOBS_OF_A_RUN, kind)[stage]
    quote = json.dumps(name).encode()
    values = mutated(right, mutations, Random(chance))
    return FLOW[stage], [(name.encode(), value.replace(b'"evil"', quote, 1)) for value in values]


def interleaved(queues: Sequence[list[Sent]], chance: Random) -> list[Sent]:
    """Return the messages of several runs, those of each in order."""
    left = [list(reversed(queue)) for queue in queues if queue]
    found = []
    while left:
        queue = chance.choice(left)
        found.append(queue.pop())
        if not queue:
            left.remove(queue)
    return found


def beside_honest_runs(hostile: Sequence[tuple[str, list[Sent]]], seed: int, kills: float) -> Chain:
    """Run hostile streams beside honest ones, which must not notice; return what all stages are like then."""
    chance = Random(seed)
    queues: dict[str, list[list[Sent]]] = {topic: [] for topic in FLOW}
    for name, *which in HONEST:
        queues[JOBS].append([(name.encode(), value) for value in passed_on(name, *which)[0]])
    for topic, messages in hostile:
        queues[topic].append(messages)
    chain = Chain({topic: interleaved(each, chance) for topic, each in queues.items()}, seed, kills)
    chain.run()
    check(chain)
    for name, *which in HONEST:
        for place, expected in zip(chain.places, passed_on(name, *which)[1:], strict=True):
            assert place.outputs(name) == list(expected), f"{place.stage.name}: {name} was disturbed"
            assert name not in place.worker.quarantined
    return chain


@given(
    plans=st.lists(HOSTILE, min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
    kills=st.sampled_from((0.0, 0.0, 0.05, 0.2)),
)
@example(plans=[(1, 0, 0, [reordered], 0)], seed=0, kills=0.2)
@fuzzing(20)
def test_streams_that_are_almost_right_hurt_nobody(plans: list[Plan], seed: int, kills: float) -> None:
    beside_honest_runs([hostile_run(f"evil-{at}", plan) for at, plan in enumerate(plans)], seed, kills)


@given(plans=st.lists(HOSTILE, min_size=1, max_size=2), seed=st.integers(0, 2**32))
@fuzzing(10)
def test_hostile_runs_too_hear_the_same_whatever_is_killed(plans: list[Plan], seed: int) -> None:
    hostile = [hostile_run(f"evil-{at}", plan) for at, plan in enumerate(plans)]
    whole, killed = (beside_honest_runs(hostile, seed, kills) for kills in (0.0, 0.3))
    for place, again in zip(whole.places, killed.places, strict=True):
        assert place.runs() == again.runs()
        for run in place.runs():
            assert place.outputs(run) == again.outputs(run), f"{place.stage.name}: {run}"


@given(chances=st.lists(st.integers(0, 2**32), min_size=3, max_size=3), seed=st.integers(0, 2**32))
@fuzzing(10)
def test_specs_at_their_bounds_hurt_nobody(chances: list[int], seed: int) -> None:
    plans = [(0, 1, 0, [spec_at_its_bounds] * (1 + at), chance) for at, chance in enumerate(chances)]
    beside_honest_runs([hostile_run(f"evil-{at}", plan) for at, plan in enumerate(plans)], seed, 0.0)


@given(seed=st.integers(0, 2**32), kills=st.sampled_from((0.0, 0.1)))
@fuzzing(10)
def test_raw_bytes_hurt_nobody(seed: int, kills: float) -> None:
    """Bits, digits and pieces of real messages, under any key, on any topic."""
    chance = Random(seed)
    hostile = []
    for stage in range(len(FLOW) - 1):
        values = passed_on("evil", 1, JOBS_OF_A_RUN, chance.randrange(len(SETTINGS)))[stage]
        keys = (b"evil", b"evil", b"honest-0", None, b"", b"\xff")
        found: list[Sent] = [
            (chance.choice(keys), damaged(chance.choice(values), chance.choice(values), chance)) for _ in range(40)
        ]
        hostile.append((FLOW[stage], [*found, (b"evil", None)]))
    beside_honest_runs(hostile, seed, kills)


@given(seed=st.integers(0, 2**32), kills=st.sampled_from((0.0, 0.2)))
@example(seed=3, kills=0.2)
@fuzzing(10)
def test_forged_sequences_of_an_honest_run_do_not_hurt_it(seed: int, kills: float) -> None:
    """Any sequence but the next one, at any place; also one that is the next after a process has begun anew."""
    chance = Random(seed)
    name, *which = HONEST[0]
    values = [json.loads(value) for value in passed_on(name, *which)[0]]
    log: list[Sent] = []
    for at, value in enumerate(values):
        for _ in range(chance.choice((0, 0, 1, 3))):
            forged = chance.choice(values) | {
                "sequence": chance.choice((at + 1, at + 2, at + 7, 10**6, max(0, at - 1)))
            }
            if forged["sequence"] != at:
                log.append((name.encode(), json.dumps(forged).encode()))
        log.append((name.encode(), json.dumps(value, separators=(",", ":")).encode()))
    chain = Chain({JOBS: log}, seed, kills)
    chain.run()
    for place, expected in zip(chain.places, passed_on(name, *which)[1:], strict=True):
        assert place.outputs(name) == list(expected), place.stage.name
