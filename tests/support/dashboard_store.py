"""A VictoriaMetrics with what dashboards show: a replayed log, a cluster of today with shadows, and workers."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.metrics.writer import import_lines
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.metric_names import METRICS, OF_PROCESSES
from shadowtime.stack.servers.servers import VictoriaMetrics
from shadowtime.testing.chain import Chain
from tests.support.dashboard_queries import Asked, answered, at_first, boards, panels, regular, values, variables
from tests.support.metric_store import write
from tests.support.patience import PATIENCE
from tests.support.server_control import flush, reset_rollup_cache

EVERY = 1_800
EASY, BEST = "easy", "cautious:forecast=yes,runtime=empirical,adjustment=auto"
POLICIES = ("fcfs", EASY, BEST)
REPLAYED, FOLLOWED = "2026-01-02 replayed", "2026-01-01 followed"
"""Experiments: the one that began last is the first to choose."""

SHADOWS = {"today/shadow/best": (-0.12, -0.2, 0.03, 4.0), "today/shadow/easy:forecast=yes": (0.3, 0.2, 0.4, 50.0)}
"""Change of the mean wait of each shadow, its interval, and the evidence."""


RESULTS = [name for name, board in boards().items() if "policy" in variables(board)]
"""Dashboards of the results of runs. The others are about the present."""


SEVERAL = ("policies", "scoreboard")
"""Dashboards of several policies at once."""


class Filled(NamedTuple):
    """The store, the scores of each replayed policy by its name, and the time ranges of the log and of today."""

    store: VictoriaMetrics
    scores: dict[str, Any]
    log: tuple[int, int]
    today: tuple[int, int]
    single: str = BEST
    """The policy that dashboards of one policy show."""


def choice(filled: Filled, name: str, at: tuple[int, int], **wanted: str) -> dict[str, str]:
    """Return what Grafana has chosen when a dashboard is opened with the variables `wanted` in its address."""
    chosen: dict[str, str] = {}
    for variable, each in variables(boards()[name]).items():
        offered = values(filled.store, each, chosen, *at)
        assert offered, f"{name}: nothing to choose from for {variable}"
        value = wanted.get(variable, at_first(each, offered))
        chosen[variable] = regular(value) if each.get("multi") and variable in wanted else value
    return chosen


def shown_time(filled: Filled, name: str) -> tuple[int, int]:
    """Return the time range of a dashboard: that of the log for results, else the last days."""
    return filled.log if name in RESULTS else filled.today


def chosen_for(filled: Filled, name: str) -> dict[str, str]:
    """Return the values of the variables of a dashboard."""
    wanted = {"policy": filled.single} if name in RESULTS and name not in SEVERAL else {}
    return choice(filled, name, shown_time(filled, name), **wanted)


def questions(filled: Filled, name: str) -> list[dict[str, Any]]:
    """Return the panels of a dashboard with the answers to their queries, when it is opened in the time of its log."""
    at, chosen = shown_time(filled, name), chosen_for(filled, name)
    found = []
    for panel in panels(boards()[name]):
        if panel["type"] not in ("row", "text"):
            targets = [target for target in panel["targets"] if "expr" in target]
            answers = {
                target["refId"]: answered(
                    filled.store, Asked(name, panel["title"], target["expr"], "", target["instant"]), chosen, *at
                )
                for target in targets
            }
            found.append({"panel": panel, "answers": answers})
    return found


def played(name: str, policy: str, cluster: str, experiment: str, jobs: int) -> list[Envelope]:
    """Return all that leaves the scoreboard in a replay of the bundled trace, whose policy is called `name`."""
    workload = prepare(read_swf(BUNDLED), limit=jobs)
    plan = RunPlan(
        name,
        cluster,
        workload,
        configure(policy),
        wait_bound="bmbp",
        sample_every=EVERY,
        experiment=experiment,
    )
    answers = [answer for _, answer in Chain(plan.opened()).play(plan.source())]
    return [answer.model_copy(update={"run": f"{cluster}/{name}"}) for answer in answers]


def fill(store: VictoriaMetrics, jobs: int, policies: Mapping[str, str] | None = None) -> Iterator[Filled]:
    """Fill a store that runs, and yield it. `policies` are SPECs by their names; by default `POLICIES`."""
    scores, first, last, shift = {}, None, 0, 0
    chosen = policies or {policy: policy for policy in POLICIES}
    for name, policy in chosen.items():
        envelopes = played(name, policy, "bundled", REPLAYED, jobs)
        scores[name] = envelopes[-1].scores
        times = [sample.time for envelope in envelopes for sample in envelope.samples or ()]
        first, last = min(times[0], first or times[0]), max(times[-1], last)
        _import(store, import_lines(envelopes)[0])
    now = int(time.time())
    envelopes = played("easy", "easy", "today", FOLLOWED, jobs)
    shift = now - 60 - max(sample.time for envelope in envelopes for sample in envelope.samples or ())
    _import(store, import_lines(envelopes)[0], shift)
    write(store, "\n".join(_processes(now)))
    flush(store)
    reset_rollup_cache(store)
    yield Filled(store, scores, (first or 0, last + 3_600), (now - 7 * 86_400, now), [*chosen][-1])


def _import(store: VictoriaMetrics, lines: bytes, shift: int = 0) -> None:
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        row["timestamps"] = [at + 1_000 * shift for at in row["timestamps"]]
    body = "\n".join(map(json.dumps, rows)).encode()
    with urllib.request.urlopen(f"{store.url}/api/v1/import", data=body, timeout=PATIENCE) as answer:
        assert answer.status == 204


def _processes(now: int) -> Iterator[str]:
    """Yield what the pages of workers, followers and shadows say, as it would have been scraped."""
    for age in range(0, 3_600, 15):  # a week's chart has a point every 1,209 s: the last one may lie that far back
        at = now - 3_585 + age
        for stage in (*(stage.name for stage in STAGES), "metrics"):
            yield f'up{{job="workers",worker="{stage}-1"}} 1 {at}000'
        for metric in METRICS:
            if metric.name.startswith(OF_PROCESSES) and "twin" not in metric.name:
                labels = {"stage": [stage.name for stage in STAGES], "shadow": list(SHADOWS), "followed": ["today"]}
                for value in labels[metric.labels[0]] if metric.labels else [""]:
                    label = f'{{{metric.labels[0]}="{value}"}}' if metric.labels else ""
                    counter = metric.name.endswith("_total")
                    if metric.name.endswith(("batch_seconds", "latency_seconds")):
                        for limit, count in (("0.1", 8), ("1", 10), ("+Inf", 10)):
                            yield f'{metric.name}_bucket{{stage="{value}",le="{limit}"}} {count * age} {at}000'
                    else:
                        yield f"{metric.name}{label} {age if counter else 0} {at}000"

    for shadow, (mean, low, high, evidence) in SHADOWS.items():
        for at in range(now - 3 * 86_400, now, 3_600):
            name = f'shadow="{shadow}"'
            yield f"shadowtime_twin_evidence{{{name}}} {evidence} {at}000"
            for shape in ("all", "short wide"):
                yield f'shadowtime_twin_jobs{{{name},shape="{shape}"}} 1234 {at}000'
                for bound, change in (("mean", mean), ("low", low), ("high", high)):
                    yield f'shadowtime_twin_wait_change{{{name},shape="{shape}",bound="{bound}"}} {change} {at}000'
                for when in ("sooner", "later"):
                    yield f'shadowtime_twin_moved_share{{{name},shape="{shape}",when="{when}"}} 0.1 {at}000'
                for of in ("real", "shadow"):
                    for figure in ("wait_seconds", "longest_wait_seconds", "slowdown"):
                        yield f'shadowtime_twin_{figure}{{{name},shape="{shape}",of="{of}"}} 5000 {at}000'
            for of in ("real", "shadow"):
                for figure in ("utilization", "longest_waiting_seconds"):
                    yield f'shadowtime_twin_{figure}{{{name},of="{of}"}} 0.5 {at}000'
