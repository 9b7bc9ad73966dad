"""SHA-256 of what everything that a SPEC can name says on the bundled trace, by default and with some other keys."""

from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.services.catalogue import REGISTRIES, canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import Envelope

STAGE_OF = {"runtime": "runtime_distribution", "adjustment": "walltime_adjustment", "wait-bound": "wait_bound"}
WITH_KEYS = [
    *(("policy", f"{name}:runtime=requested") for name in ("probabilistic", "guarded", "tuned")),
    *(("wait-bound", f"bmbp:publish={name}") for name in ("nodes", "ensemble", "conformal")),
    *(("runtime", f"{name}:predict=anew") for name in ("templates", "gibbons", "downey-mean", "empirical")),
]
LISTED = [
    *((option, name) for option, each in REGISTRIES.items() for name in (*each.aliases, *each.classes)),
    *WITH_KEYS,
]


def file(option: str) -> Path:
    """Return where the digests of all that an option can name are recorded."""
    name = "decision_logs" if option == "policy" else STAGE_OF[option]
    return Path(__file__).with_name(f"{name}.sha256")


def recorded_digests(option: str) -> dict[str, str]:
    """Return the digests in the file, by name."""
    pairs = (line.split() for line in file(option).read_text().splitlines()) if file(option).exists() else ()
    return {name: recorded for recorded, name in pairs}


def digest(option: str, name: str) -> str:
    """Return the digest of the decision log of a policy, or of what another stage adds to the envelopes."""
    return decisions(name) if option == "policy" else additions(option, name)


def decisions(policy: str) -> str:
    """Replay the whole trace and return the digest of the decision log."""
    log = BytesIO()
    carry_out(RunPlan(policy, trace().name, trace(), configure(policy)), [DecisionLog(log)])
    return sha256(log.getvalue()).hexdigest()


def rounded(value: Any) -> Any:
    """Return plain values with nine digits of each fraction: the last ones differ between processors.

    >>> rounded({"point": 0.1 + 0.2, "observations": 3})
    {'point': 0.3, 'observations': 3}
    """
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def additions(option: str, name: str) -> str:
    """Replay 1,000 jobs as they were recorded and return the digest of what the stage of this option adds."""
    (adds,) = (set(stage.adds) for stage in STAGES if stage.name == STAGE_OF[option])
    hashed = sha256()

    def take_in(envelope: Envelope) -> None:
        added = envelope.model_dump(mode="json", include=adds, exclude_none=True, exclude_defaults=True)
        hashed.update(orjson.dumps({"sequence": envelope.sequence} | rounded(added)))

    chosen = {"runtime": "requested", "adjustment": "none", "wait-bound": "none"} | {option: name}
    configuration = configure("fcfs", chosen["runtime"], chosen["adjustment"])
    bound = canonical("wait-bound", chosen["wait-bound"])
    carry_out(RunPlan(name, trace().name, trace(1_000), configuration, "recorded", bound), [take_in])
    return hashed.hexdigest()


@cache
def trace(limit: int | None = None) -> Workload:
    return prepare(read_swf(BUNDLED), limit=limit)
