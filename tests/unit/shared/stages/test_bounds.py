"""What is beyond a bound is refused at the border; what is within does no harm behind it."""

import re
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from shadowtime.services.catalogue import canonical
from shadowtime.services.processes.metrics.grafana_live import live_lines
from shadowtime.shared import bounds
from shadowtime.shared.bounds import (
    MAX_DURATION,
    MAX_INTEGER,
    MAX_PROCESSORS,
    MAX_REASON_LENGTH,
    MAX_SPEC_LENGTH,
    MAX_TIME,
)
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import LogViolation, SettingsError
from shadowtime.shared.messages.decisions import Kill
from shadowtime.shared.messages.envelope import ClusterClosed, Envelope, JobSubmitted, Rejected
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.spec import parse
from shadowtime.shared.stages import jobs_in_system
from shadowtime.shared.stages.jobs_in_system import JobsInSystem
from tests.support.answers import answer_all

PAGE = ROOT / "docs" / "bounds.md"
POINT = {"kind": "SchedulingPoint", "time": 0}
KILL = {"job_number": 1, "requeue": True, "reason": ""}


def opened(**settings: Any) -> dict[str, Any]:
    return {"event": {"kind": "ClusterOpened", "time": 0, "cluster": "c", "processors": 100, **settings}}


def submitted(number: int, time: int, processors: int, **more: Any) -> dict[str, Any]:
    job = {"kind": "JobSubmitted", "time": time, "job_number": number, "requested_processors": processors}
    return {"event": job | more}


def started(number: int, time: int, processors: int, **more: Any) -> dict[str, Any]:
    return {"event": {"kind": "JobStarted", "time": time, "job_number": number, "processors": processors, **more}}


def ended(number: int, time: int, run_time: int, **more: Any) -> dict[str, Any]:
    return {"event": {"kind": "JobEnded", "time": time, "job_number": number, "run_time": run_time, **more}}


def value(message: dict[str, Any]) -> bytes:
    return orjson.dumps({"run": "r", "sequence": 1} | message)


# The page


def test_the_page_has_every_bound_and_its_number() -> None:
    told = {
        name: int(number.replace(",", ""))
        for name, number in re.findall(r"\| `(\w+)`.*? \| ([\d,]+) \|", PAGE.read_text())
    }
    known = {name: each for name, each in vars(bounds).items() if name.isupper()}
    assert told == known


# Finding 1: times whose answers are beyond the schema


def blocked_head_at(time: int) -> list[dict[str, Any]]:
    """Return a candidate that would have to be told of a shadow time an hour later."""
    return [
        submitted(1, time, 60, requested_time=MAX_DURATION),
        started(1, time, 60, limit=MAX_DURATION),
        submitted(2, time, 60, requested_time=3600),
        submitted(3, time, 10, requested_time=60),
        {"event": POINT | {"time": time}},
    ]


def test_finding_01_a_time_near_the_largest_number_is_refused() -> None:
    for message in blocked_head_at(2**53 - 10):
        assert Envelope.read(value(message)) is None


@pytest.mark.parametrize("policy", ["easy", "conservative", "all-reserve", "probabilistic", "wfp", "lwf", "fcfs"])
def test_finding_01_at_the_latest_time_every_answer_is_within_the_schema(policy: str) -> None:
    opening = opened(policy=canonical("policy", policy), wait_bound=canonical("wait-bound", "bmbp"))
    answers = answer_all([opening, *blocked_head_at(MAX_TIME), {"event": {"kind": "ClusterClosed", "time": MAX_TIME}}])
    assert not [each for each in answers if isinstance(each.event, Rejected)]


def test_finding_01_nanoseconds_saturate_at_64_bits() -> None:
    job = JobSubmitted(time=MAX_TIME, job_number=1, requested_processors=1)
    (line,) = live_lines(Envelope(run="r", sequence=1, event=job), MAX_TIME)
    assert line.endswith(f" {2**63 - 1}")
    (line,) = live_lines(Envelope(run="r", sequence=1, event=job.model_copy(update={"time": -MAX_TIME})), 0)
    assert line.endswith(f" {1 - 2**63}")


# Finding 2: sums beyond 64 bits


@pytest.mark.parametrize("end", [{}, {"outcome": "killed", "requeued": True}], ids=["ended", "requeued"])
def test_finding_02_sums_beyond_64_bits_are_stored_and_told(end: dict[str, Any]) -> None:
    most = MAX_PROCESSORS
    held = [
        submitted(1, 0, most, requested_time=MAX_DURATION),
        started(1, 0, most),
        ended(1, 2**34, 2**34, **end),
        {"event": {"kind": "CapacityChanged", "time": MAX_TIME, "processors": 5}},
        {"event": {"kind": "ClusterClosed", "time": MAX_TIME}},
    ]
    last = answer_all([opened(processors=most, sample_every=3600), *held])[-1]
    assert isinstance(last.event, ClusterClosed)
    assert last.scores is not None
    assert last.scores.policy.wasted_processor_seconds == (MAX_INTEGER if end else 0)
    assert last.scores.policy.max_wait == (None if end else 0)


def test_finding_02_sums_are_exact_across_a_snapshot() -> None:
    sums = {"wait": 2**80 + 1, "least": -(2**63), "jobs": 3, "mean": 0.5, "first": None}
    assert bounds.restored(orjson.loads(orjson.dumps(bounds.storable(sums)))) == sums


# Finding 3: messages that grow


def test_finding_03_defaults_that_would_be_spelled_out_by_the_thousand_are_refused() -> None:
    told = [{"grouping": "", "quantile": 0.5, "confidence": 0.5}] * 20_500
    assert Envelope.read(value({"event": {"kind": "Decided", "time": 0}, "wait_bounds": told})) is None
    many = {"head": 0, "needed": 0, "after": 0, "accepted": False, "probabilities": [0], "bounds": [0]}
    decided = {"kind": "Decided", "time": 0, "evaluated": [many | {"job_numbers": [9e15]}]}
    assert Envelope.read(value({"event": decided})) is None
    told = [{"grouping": "", "misses": 9e15, "kept": 9e15}] * 22_000
    assert Envelope.read(value({"event": {"kind": "Decided", "time": 0}, "change_points": told})) is None


@pytest.mark.parametrize(
    "message",
    [
        {"run": "x" * 201, "event": POINT},
        {"cluster": "x" * 201, "event": POINT},
        opened(cluster="x" * 201),
        opened(policy="x" * (MAX_SPEC_LENGTH + 1)),
        opened(unix_start=MAX_TIME + 1),
        submitted(1, MAX_TIME + 1, 1),
        submitted(1, -MAX_TIME - 1, 1),
        submitted(1, 0, MAX_PROCESSORS + 1),
        {"event": {"kind": "CapacityChanged", "time": 0, "processors": MAX_PROCESSORS + 1}},
        {"event": POINT, "run_time": {"point": MAX_DURATION + 1, "observations": 1}},
        {"event": POINT, "run_time": {"point": 1.7e308, "observations": 1}},
        {"event": POINT, "run_time": {"point": 1, "observations": 1, "interval": [0, 1e300]}},
        {"event": POINT, "run_time": {"point": 1, "observations": 1, "histogram": [1e-320] * 10}},
        {"event": POINT, "run_time": {"point": 1, "observations": 1, "histogram": [1.0] * 10}},
        {"event": POINT, "adjustment": {"adjusted_time": 1, "observations": 1, "key": "x" * 201}},
        {"event": POINT, "samples": [{"time": 0, "cluster": "c", "policy": "p", "figures": [["x" * 201, [], 1]]}]},
        {"event": POINT, "samples": [{"time": 0, "cluster": "c", "policy": "p", "figures": [["x", ["l"] * 9, 1]]}]},
        {
            "event": {
                "kind": "Decided",
                "time": 0,
                "kills": [KILL] * 100_001,
            }
        },
    ],
    ids=lambda message: str(message)[:60],
)
def test_what_is_beyond_its_bound_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Envelope.from_bytes(value(message))


def test_a_reason_is_cut_once_and_for_all() -> None:
    rejected = Rejected(time=0, reason="x" * 100_000)
    assert len(rejected.reason) <= MAX_REASON_LENGTH
    assert rejected.reason.startswith("xxx")
    assert "(100000 characters, sha256 " in rejected.reason
    assert Rejected.model_validate(rejected.model_dump()) == rejected
    assert len(Kill(job_number=1, requeue=True, reason="é" * 2_001).reason) <= MAX_REASON_LENGTH


def test_a_histogram_of_nothing_but_zeros_says_nothing() -> None:
    assert RunTimePrediction(point=1.0, observations=1, histogram=(0.0,) * 20).histogram == (0.0,) * 20


# Runs and SPECs


def test_a_job_beyond_the_most_live_ones_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_in_system, "MAX_LIVE_JOBS", 2)
    jobs = JobsInSystem()
    for number in (1, 2):
        job = JobSubmitted(time=0, job_number=number, requested_processors=1)
        jobs.require_new(job)
        jobs.submit(job)
    with pytest.raises(
        LogViolation, match=r"^job 3 submitted at 0 is one too many: 2 wait and 0 run, at most 2 in all$"
    ):
        jobs.require_new(job.model_copy(update={"job_number": 3}))


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_SPEC_LENGTH + 1),
        "easy:a=" + "(" * 4_000 + ")" * 4_000,
        "easy:" + ",".join(f"k{number}=1" for number in range(1_000)),
        "easy:" + "k" * 8_000,
        "easy(" + "," * 8_000,
        "\x00" * 5_000,
        "easy:candidates=" + "x" * 5_000,
        "easy:" + "k" * 4_000 + "=1",
        "templates:set=" + "mean;" * 1_000,
        "templates:set=mean(key=" + "x" * 4_000 + ")",
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("option", ["policy", "runtime"])
def test_a_spec_without_measure_is_refused_in_few_words(option: str, text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        canonical(option, text)
    assert len(str(raised.value)) < 1_000


def test_a_spec_at_its_bounds_is_taken() -> None:
    deep = "a" + "(k=a" * bounds.MAX_SPEC_DEPTH + ")" * bounds.MAX_SPEC_DEPTH
    assert str(parse(deep)) == deep
    assert len(parse("a:" + ",".join(f"k{number}=1" for number in range(bounds.MAX_KEYS))).keys) == bounds.MAX_KEYS
    with pytest.raises(SettingsError, match="it is nested more than 8 levels deep"):
        parse(f"a(k={deep})")


@pytest.mark.parametrize("name", ["policy", "runtime", "adjustment", "wait_bound"])
def test_a_run_that_is_opened_with_such_a_spec_is_rejected_in_few_words(name: str) -> None:
    for text in ("x" * MAX_SPEC_LENGTH, "(" * MAX_SPEC_LENGTH, "easy:" + "k" * 8_000 + "=1"):
        answer = answer_all([opened(**{name: text})])[-1]
        assert isinstance(answer.event, Rejected)
        assert len(answer.event.reason) < 1_000
