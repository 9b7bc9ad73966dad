"""Whatever the schema admits every stage answers, within the schema; its state can be saved and taken up again."""

from typing import Any

from hypothesis import HealthCheck, given

from shadowtime.services.catalogue import canonical
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.messages.envelope import Decided
from shadowtime.testing.examples import examples
from tests.support.answers import answer_all
from tests.support.strategies.hostile import OPENINGS, STREAMS, Json, events

POLICY = "easy"


@given(opening=OPENINGS, stream=STREAMS)
@examples(60, suppress_health_check=list(HealthCheck))
def test_finding_01_finding_02_values_at_their_bounds_pass_every_stage(
    opening: Json, stream: list[tuple[int, Any]]
) -> None:
    answer_all(list(events(opening, stream)), every=3)


def test_no_policy_asks_to_be_asked_again_after_the_end_of_time() -> None:
    """Job 2 finds room now, and is not reached; the rhythm of `slurm` would have it tried half a minute later."""
    opening = {"kind": "ClusterOpened", "time": MAX_TIME, "cluster": "c", "processors": 2}
    policy = canonical("policy", "slurm:sched_depth=1,backfill=no")
    jobs = [
        {"kind": "JobSubmitted", "time": MAX_TIME, "job_number": number, "requested_processors": 1, "requested_time": 9}
        for number in (1, 2)
    ]
    point = {"kind": "SchedulingPoint", "time": MAX_TIME}
    *_, decided = answer_all([{"event": each} for each in ({**opening, "policy": policy}, *jobs, point)])
    assert isinstance(decided.event, Decided)
    assert len(decided.event.starts) == 1
    assert decided.event.again is None
