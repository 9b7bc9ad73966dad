"""What a user asks of a replay, as typed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Oversized = Literal["drop", "align"]
Requests = Literal["as-logged", "actual", "doubled"]
Transport = Literal["embedded", "kafka"]
YesNo = Literal["yes", "no"]

DEFAULT_LOAD = 0.6
"""Of a generated log, as a share of the machine."""

KINDS = {
    "policies": "policy",
    "predictors": "runtime",
    "adjusters": "adjustment",
    "bounders": "wait-bound",
    "sources": "mode",
}
"""Kinds of what a user can name, and the option that names one of each."""


@dataclass(frozen=True)
class Options:
    """The options of `shadowtime replay`; None where one is not given."""

    traces: list[str] | None
    policy: list[str] | None
    baseline: str | None
    runtime: list[str] | None
    adjustment: list[str] | None
    wait_bound: list[str] | None
    mode: str
    transport: Transport
    run: str | None
    setting: list[str] | None
    speed: str
    requests: Requests
    filter_: Oversized
    restartable: YesNo
    moldable: YesNo
    speedup: str
    capacity: list[str] | None
    jobs: int | None
    processors: int | None
    seed: int
    json: Path | None
    schedule: Path | None
    decisions: Path | None
    report: Path | None
    results: Path | None
    seconds: bool
    predictions: bool
    columns: list[str] | None = None
    time_zone: str | None = None
    pools: Path | None = None
    names: Path | None = None
    names_key: Path | None = None
    in_pieces: bool = False
