"""Which runs the compiled machine replays, and how a command is interrupted between them."""

from collections.abc import Sequence

import pytest

from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out
from shadowtime.replayer.comparison.progress import Observers
from shadowtime.replayer.comparison.run_record import RunRecord
from shadowtime.replayer.comparison.side_by_side import compiled_first
from shadowtime.replayer.io.interruption import Interruption
from shadowtime.replayer.presentation.policies import replayed_by
from tests.support.small_logs import generated, plan_of


def test_the_machine_takes_what_it_covers_and_the_others_keep_their_places() -> None:
    plans = [plan_of(generated(40), policy) for policy in ("easy", "probabilistic", "fcfs")]
    records = [RunRecord(plan) for plan in plans]
    others: list[str] = []

    def through_stages(left: Sequence[RunPlan], observers: Observers) -> list[RunResult]:
        others.extend(plan.label for plan in left)
        return [carry_out(plan, those) for plan, those in zip(left, observers, strict=True)]

    results = compiled_first(plans, [[record] for record in records], through_stages, Interruption())
    assert others == ["probabilistic"]
    assert [result.plan.label for result in results] == ["easy", "probabilistic", "fcfs"]
    assert [result.compiled is None for result in results] == [False, True, False]
    assert [bool(record.decisions_sha256) for record in records] == [False, True, False]
    for result in results:
        assert result.scores == carry_out(result.plan).scores


def test_a_signal_ends_the_work_between_two_runs() -> None:
    class Signalled(Interruption):
        def __call__(self, envelope: object = None) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled_first([plan_of(generated(20))], [[]], lambda plans, observers: [], Signalled())


def test_the_table_says_who_replayed() -> None:
    assert replayed_by({"easy": True}) == "replayed by the compiled machine"
    assert replayed_by({"best": False}) == "replayed through the pipeline"
