"""Prices of SPECs: what a run is said to take at most is more than what it takes."""

import json

import pytest

from shadowtime.services.catalogue import REGISTRIES
from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.services.runtime_distribution.revisions import WORK
from shadowtime.services.runtime_distribution.templates import TemplatesSettings
from shadowtime.shared.kernels.decorator import load_all
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.spec import parse
from shadowtime.shared.streaming.worker.context import SHARE
from tests.benchmarks.worst_messages import cases, measured

SMALL_WORKER = 512 * 2**20
"""Bytes of a worker in compose."""

CHOICES = [(option, name) for option, registry in REGISTRIES.items() for name in registry.classes.names()]
FREE = {("runtime", "requested"), ("adjustment", "none"), ("wait-bound", "none")}


@pytest.mark.parametrize(("option", "name"), CHOICES)
def test_a_small_worker_takes_every_choice_as_it_is(option: str, name: str) -> None:
    memory, storing, steps = REGISTRIES[option].price(parse(name))
    assert memory + storing <= SHARE * SMALL_WORKER
    assert (steps > 0) == ((option, name) not in FREE)


def test_greater_keys_cost_more() -> None:
    price = REGISTRIES["runtime"].price
    assert price(parse("templates:history=200000")).memory == 10 * price(parse("templates")).memory
    assert price(parse("experts:hmm=yes")).memory > price(parse("experts")).memory
    assert TemplatesSettings(history=1_000).price().memory < TemplatesSettings().price().memory
    assert price(parse("mixture")).memory > sum(price(parse(kind)).memory for kind in ("templates", "hmm", "experts"))
    bound = REGISTRIES["wait-bound"].price
    assert bound(parse("futures:trees=yes")).memory > bound(parse("futures")).memory


@pytest.mark.parametrize("name", REGISTRIES["runtime"].classes.names())
def test_predictions_made_anew_have_a_price(name: str) -> None:
    if name == "requested":  # it has nothing to predict anew
        return
    once, anew = (
        RuntimeDistribution.price(ClusterOpened(time=0, cluster="c", processors=1, runtime=f"{name}{keys}"))
        for keys in ("", ":predict=anew")
    )
    assert (anew.memory, anew.steps - once.steps) == (once.memory, WORK)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, _ in cases()])
def test_no_run_takes_more_than_its_price(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load_all()
    figures = measured(name, dict(cases())[name])
    with capsys.disabled():
        print(json.dumps(figures))
    assert "failed" not in figures
    if name != "scoreboard":  # it has no keys
        assert figures["peak_megabytes"] <= figures["priced_megabytes"] + figures["live_megabytes"] + PROCESS
        assert figures["slowest_seconds"] <= 2 * figures["priced_seconds"] + COLLECTION


PROCESS = 15
"""Megabytes that a process takes to handle any run at all."""

COLLECTION = 0.3
"""Seconds of a collection of garbage, which may happen in any message."""
