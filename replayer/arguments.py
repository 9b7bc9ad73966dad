"""What the words on the command line mean."""

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from replayer.swf import Oversized, Requests, Workload, prepare, read_swf
from services.catalogue import Configuration, canonical, configure
from shared.errors import SettingsError
from shared.events import CapacityChanged
from shared.spec import Spec, parse
from shared.speedup import SpeedUp

SPEEDUPS: TypeAdapter[SpeedUp] = TypeAdapter(SpeedUp)

_NUMBER = re.compile(r"[0-9]{1,15}\Z")


class Cluster(NamedTuple):
    """A trace as named on the command line, ready to be replayed."""

    name: str
    workload: Workload


def read_cluster(
    text: str,
    processors: int | None,
    oversized: Oversized,
    requests: Requests,
    jobs: int | None,
    say: Callable[[str], None],
    mode: str,
) -> Cluster:
    """Read a trace named as `FILE` or `FILE@PROCESSORS`, and say what was left out of it."""
    path, _, size = text.rpartition("@") if _NUMBER.match(text.rpartition("@")[2]) else (text, "", "")
    trace = read_swf(path)
    workload = prepare(trace, int(size) if size else processors, oversized=oversized, requests=requests, limit=jobs)
    for note in trace.notes:
        say(f"{trace.name}: {note}")
    if workload.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in workload.skipped.items())
        say(f"{trace.name}: skipped {sum(workload.skipped.values()):,} jobs: {reasons}")
    if workload.aligned:
        say(f"{trace.name}: cut {workload.aligned:,} jobs to {workload.processors} processors")
    unknown = int((workload.columns["wait_time"] == -1).sum())
    if mode == "recorded" and 0 < unknown < len(workload):
        say(f"{trace.name}: {unknown:,} jobs without a known wait start at their submission")
    return Cluster(f"{trace.name}@{size}" if size else trace.name, workload)


def parse_capacity(text: str) -> CapacityChanged:
    """Return the change that `SECONDS:PROCESSORS` spells."""
    time, _, processors = text.partition(":")
    if not (_NUMBER.match(time) and _NUMBER.match(processors)):
        raise SettingsError(f"--capacity {text!r}: expected SECONDS:PROCESSORS")
    return CapacityChanged(time=int(time), processors=int(processors))


def parse_factor(text: str) -> float:
    """Return the factor that `--speed` names."""
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"--speed {text!r}: expected max or a factor above 0") from None


def parse_speedup(text: str) -> SpeedUp | None:
    """Return how moldable jobs scale; None is constant efficiency.

    >>> parse_speedup("amdahl:serial=0.1")
    Amdahl(kind='amdahl', serial=0.1)
    """
    spec = parse(text)
    if spec == Spec("constant"):
        return None
    try:
        return SPEEDUPS.validate_python({**spec.keys, "kind": spec.name})
    except ValidationError as error:
        raise SettingsError(
            f"--speedup {text!r}: expected constant, amdahl:serial=SHARE or downey:parallelism=MULTIPLE,sigma=VARIANCE "
            f"({error.errors()[0]['msg']})"
        ) from None


def parse_wait_bound(texts: Sequence[str] | None, mode: str) -> str:
    """Return the SPEC of the wait bound, every key spelled out; recorded waits are bounded unless said otherwise."""
    if texts and len(texts) > 1:
        raise SettingsError(f"--wait-bound is taken once: {', '.join(texts)}")
    default = "all" if mode == "recorded" else "none"
    return canonical("wait-bound", texts[0] if texts else default)


def configurations(
    mode: str, policies: Sequence[str], runtimes: Sequence[str] | None, adjustments: Sequence[str] | None
) -> list[tuple[str, Configuration]]:
    """Return label and configuration of each pass over a trace.

    Closed mode makes one pass per policy. Recorded mode has one schedule, the one that happened, and makes as many
    passes as there are predictors or adjustments to score.
    """
    if mode == "closed":
        for option, given in (("--runtime", runtimes), ("--adjustment", adjustments)):
            if given and len(given) > 1:
                raise SettingsError(
                    f"{option} is taken once in closed mode; a policy can name its own, as in easy:runtime=…"
                )
        pair = ((runtimes or ["requested"])[0], (adjustments or ["none"])[0])
        return [(each, configure(each, *pair)) for each in policies]
    if len(policies) > 1:
        raise SettingsError("--policy is taken once in recorded mode: jobs start as they did")
    pairs = zip_longest(runtimes or ["requested"], adjustments or ["none"])
    return [("recorded", configure(policies[0], a or "requested", b or "none")) for a, b in pairs]
