"""Parsing of command-line arguments."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import typer
from pydantic import ConfigDict, TypeAdapter, ValidationError

from shadowtime._version import __version__
from shadowtime.replayer.io import MIN_FACTOR, Pace
from shadowtime.replayer.logs import (
    AS_READ,
    PutBack,
    Trace,
    Workload,
    format_of,
    prepare,
    put_back,
    read_trace,
    sha256_of,
    size_note,
)
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.replayer.simulation import SOURCES
from shadowtime.services.catalogue import DEFAULTS, Configuration, canonical, chooses, configure
from shadowtime.shared.accounting import Reading
from shadowtime.shared.errors import SettingsError, TraceError, in_plain_words
from shadowtime.shared.formatting import counted
from shadowtime.shared.messages import CapacityChanged, SpeedUp
from shadowtime.shared.quoting import quote
from shadowtime.shared.spec import Spec, parse

SPEEDUPS: TypeAdapter[SpeedUp] = TypeAdapter(SpeedUp, config=ConfigDict(defer_build=True))

_NUMBER = re.compile(r"[0-9]{1,15}\Z")


class Cluster(NamedTuple):
    """A trace named on the command line, ready for a replay. Its name ends with `@PROCESSORS` if the text does."""

    name: str
    workload: Workload


@dataclass(frozen=True)
class Preparation:
    """Options for the preparation of a log before its replay, as in `prepare`.

    `reading` is None if the command has no options for accounting files and tables.
    """

    processors: int | None = None
    oversized: Oversized = "drop"
    requests: Requests = "as-logged"
    jobs: int | None = None
    reading: Reading | None = None
    in_pieces: bool = False
    sizes: Sizes = "requested"
    put_back: PutBack | None = None
    load: float = 1.0
    size_options: str = "--processors, LOG@PROCESSORS or --pools"
    """The options of the command that give the size of the machine, for the remark on a size that is assumed."""


def read_clusters(
    texts: Sequence[str], preparation: Preparation, say: Callable[[str], None], mode: str
) -> list[Cluster]:
    """Return the named traces in order, and report the jobs left out by calls of `say`.

    Raise `SettingsError` if two have the same log and machine size, or `--processors` sizes none of them; other errors
    are those of `read_cluster`.
    """
    sizes = [split_size(text)[1] for text in texts]
    if preparation.processors is not None and None not in sizes:
        raise SettingsError(size_twice(texts[0]))
    clusters = [_read_cluster(text, preparation, say, mode) for text in texts]
    require_different(
        "log",
        (
            (text, (Path(split_size(text)[0]).resolve(), cluster.workload.processors))
            for text, cluster in zip(texts, clusters, strict=True)
        ),
    )
    return clusters


def read_cluster(text: str, preparation: Preparation, say: Callable[[str], None], mode: str) -> Cluster:
    """Return the trace named as `FILE` or `FILE@PROCESSORS`, and report the jobs left out by calls of `say`.

    In a `mode` in which jobs start as recorded, jobs that never started are kept.

    Raises
    ------
    TraceError
        If the log cannot be read, or no job of it can be replayed.
    SettingsError
        If an option does not apply to the log, is out of its range, or the size of the machine is given twice.
    """
    return read_clusters([text], preparation, say, mode)[0]


def _read_cluster(text: str, preparation: Preparation, say: Callable[[str], None], mode: str) -> Cluster:
    path, size = split_size(text)
    workload, notes = _prepared(Path(path), preparation, size, recorded=not SOURCES[mode].closed_loop)
    name = workload.name
    report_left_out(workload, notes, say)
    if not SOURCES[mode].closed_loop:
        unknown = sum(
            int(((block.columns["wait_time"] == -1) & (block.columns.get("left_time", -1) == -1)).sum())
            for block in workload.blocks()
        )
        if 0 < unknown < len(workload):
            say(f"{name}: {counted(unknown, 'job')} without a known wait: the start is the submission")

    return Cluster(name if size is None else f"{name}@{size}", workload)


def report_left_out(workload: Workload, notes: Iterable[str | None], say: Callable[[str], None]) -> None:
    """Report remarks on a log (ignoring None), and its jobs that were left out or cut, by calls of `say`."""
    for note in filter(None, notes):
        say(f"{workload.name}: {note}")
    if workload.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in workload.skipped.items())
        say(f"{workload.name}: skipped {counted(sum(workload.skipped.values()), 'job')}: {reasons}")
    if workload.aligned:
        say(f"{workload.name}: cut {counted(workload.aligned, 'job')} to {workload.processors} processors")


def _prepared(
    path: Path, preparation: Preparation, size: int | None, *, recorded: bool
) -> tuple[Workload, tuple[str | None, ...]]:
    """Return the workload of a log, read as a whole or in pieces, and remarks on the log."""
    processors = preparation.processors if size is None else size
    options: dict[str, Any] = {
        "oversized": preparation.oversized,
        "requests": preparation.requests,
        "sizes": preparation.sizes,
        "limit": preparation.jobs,
        "load": preparation.load,
        "recorded": recorded,
    }
    if not preparation.in_pieces:
        reading = preparation.reading
        trace = read_without_options(path) if reading is None else read_trace(path, reading)
        if preparation.put_back is not None:
            trace = put_back(trace, preparation.put_back)
        note = size_note(trace, processors, preparation.size_options)
        return prepare(trace, processors, **options), (*trace.notes, note)
    from shadowtime.replayer.logs import read_in_pieces  # here: few logs are read in pieces

    if preparation.reading not in (None, AS_READ) or format_of(path) is not None:
        raise SettingsError(
            f"{path}: --in-pieces is only for a log in the Standard Workload Format, without other reading options"
        )
    return read_in_pieces(path, processors, **options)


ELSEWHERE = "; this command has no such option: `shadowtime convert` has it, and writes a log to use here"


def read_without_options(path: Path) -> Trace:
    """Return the log in a file, for a command without options for accounting files and tables.

    Raise `TraceError` if it cannot be read. An error that advises such an option says which command has it.
    """
    try:
        trace = read_trace(path)
    except TraceError as error:
        raise TraceError(f"{error}{ELSEWHERE if '--' in str(error) else ''}") from None
    return replace(trace, doubt=f"{trace.doubt}{ELSEWHERE}") if "--" in trace.doubt else trace


def split_size(text: str) -> tuple[str, int | None]:
    """Return the log and the processors of a text `LOG` or `LOG@PROCESSORS`; None without processors.

    The name of a file may end in @ and a number, if no file has the name before it.

    >>> split_size("kth.swf@128"), split_size("me@home.swf")
    (('kth.swf', 128), ('me@home.swf', None))
    """
    log, _, size = text.rpartition("@")
    if not _NUMBER.match(size) or (os.path.exists(text) and not os.path.exists(log)):
        return text, None
    return log, int(size)


def size_twice(log: str, option: str = "--processors") -> str:
    """Return the error about a log `LOG@PROCESSORS` with an option that gives the size, too."""
    return f"{log}: @PROCESSORS and {option} exclude each other; leave one of them out"


def parse_capacity(text: str) -> CapacityChanged:
    """Return the capacity change of a text `SECONDS:PROCESSORS`: from this time of the log on, the machine's size.

    Raise `SettingsError` if it has another form, or a number is out of range.
    """
    time, _, processors = text.partition(":")
    if not (_NUMBER.match(time) and _NUMBER.match(processors)):
        raise SettingsError(f"--capacity {quote(text)}: expected SECONDS:PROCESSORS")
    try:
        return CapacityChanged(time=int(time), processors=int(processors))
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"--capacity {quote(text)}: {first['loc'][0]}: {in_plain_words(first)}") from None


def parse_changes(texts: Iterable[str]) -> tuple[CapacityChanged, ...]:
    """Return the changes of a machine's size in order of time. Raise `SettingsError` if one is invalid."""
    return tuple(sorted(map(parse_capacity, texts), key=lambda change: change.time))


def require_one_pool(workloads: Iterable[Workload], changes: Sequence[CapacityChanged]) -> None:
    """Raise `SettingsError` if changes of the machine's size are given for a machine of several pools."""
    for workload in workloads:
        if changes and len(workload.pools or ()) > 1:
            raise SettingsError(
                "capacity: expected a machine of one pool, because a change does not name its pool; "
                f"{workload.name} has {len(workload.pools or ())} pools; leave the changes out"
            )


def parse_pace(text: str, sleep: Callable[[float], None]) -> Pace | None:
    """Return the pace of `--speed`, which waits by calls of `sleep` with seconds; None for `max`, as fast as possible.

    Raise `SettingsError` if the text is neither `max` nor a finite number of at least `MIN_FACTOR`.
    """
    if text == "max":
        return None
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0

    if not MIN_FACTOR <= factor < inf:
        raise SettingsError(f"--speed {quote(text)}: expected max or a factor of at least {MIN_FACTOR}")
    return Pace(factor, sleep=sleep)


def parse_speedup(text: str) -> SpeedUp | None:
    """Return the speedup model of moldable jobs of `--speedup`; None for `constant`.

    Raise `SettingsError` if the text is not the SPEC of a model.

    >>> parse_speedup("amdahl:serial=0.1")
    Amdahl(kind='amdahl', serial=0.1)
    """
    spec = parse(text)
    if spec == Spec("constant"):
        return None
    try:
        return SPEEDUPS.validate_python({**spec.keys, "kind": spec.name})
    except ValidationError as error:
        first = error.errors()[0]
        why = f" ({first['loc'][-1]}: {in_plain_words(first)})" if first["loc"] else ""  # no place: an unknown name
        raise SettingsError(
            f"--speedup {quote(text)}: expected constant, amdahl:serial=SHARE or "
            f"downey:parallelism=MULTIPLE,sigma=VARIANCE{why}"
        ) from None


def parse_wait_bound(texts: Sequence[str] | None, mode: str) -> str:
    """Return the SPEC of the wait bound with every key: by default `bmbp` if jobs start as recorded, else no bound.

    Raise `SettingsError` if there are several texts, or the text is not the SPEC of a wait bound.
    """
    if texts and len(texts) > 1:
        raise SettingsError(f"--wait-bound: expected one value, found {len(texts)} ({', '.join(texts)})")
    default = DEFAULTS["wait-bound"] if SOURCES[mode].closed_loop else "bmbp"
    return canonical("wait-bound", texts[0] if texts else default)


def configurations(
    mode: str, policies: Sequence[str], runtimes: Sequence[str] | None, adjustments: Sequence[str] | None
) -> list[tuple[str, Configuration]]:
    """Return the label and configuration of each pass over a trace.

    A closed-loop source makes one pass over the trace for each policy; the label is the policy's SPEC. Any other source
    has only its own schedule. It makes one pass for each predictor or adjustment to score; the label is the mode. The
    first predictor has a pass with the first adjustment, the second with the second, and so on.

    Raise `SettingsError` if a SPEC is invalid, two passes would be equal, no policy would use a predictor or an
    adjustment, or there are several values of an option of which `mode` accepts only one.
    """
    for option, values in (("runtime", runtimes), ("adjustment", adjustments)):
        if values:
            require_used(f"--{option}", option, values[0], policies)
    if SOURCES[mode].closed_loop:
        for option, values in (("--runtime", runtimes), ("--adjustment", adjustments)):
            if values and len(values) > 1:
                raise SettingsError(
                    f"{option}: expected one value in {mode} mode, found {len(values)}; "
                    f"set another value for a policy in its SPEC: easy:{option.removeprefix('--')}=…"
                )

        runtime, adjustment = (values[0] if values else None for values in (runtimes, adjustments))
        chosen = [(policy, configure(policy, runtime, adjustment)) for policy in policies]
        require_different("--policy", chosen)
        return chosen

    if len(policies) > 1:
        raise SettingsError(
            f"--policy: expected one in {mode} mode, where jobs start as recorded; found {len(policies)}"
        )
    pairs = list(zip_longest(runtimes or (), adjustments or ())) or [(None, None)]
    made = [configure(policies[0], *pair) for pair in pairs]
    defaults = DEFAULTS["runtime"], DEFAULTS["adjustment"]
    names = [", ".join(spec or default for spec, default in zip(pair, defaults, strict=True)) for pair in pairs]
    require_different("--runtime and --adjustment", zip(names, made, strict=True))
    return [(mode, value) for value in made]


def require_used(what: str, option: str, value: str, policies: Sequence[str]) -> None:
    """Raise `SettingsError` if every policy has an `option`, `runtime` or `adjustment`, of its own.

    `what` is the beginning of the error: the user's name of the option. `value` is the first value that they gave.
    """
    if all(chooses(policy, option) for policy in policies):
        first, *others = policies
        own = parse(getattr(configure(first), option)).name
        more = f", and {counted(len(others), 'other')} too" if others else ""
        raise SettingsError(
            f"{what} {quote(value)}: {quote(first)} has its own ({own}){more}, so no policy would use this; leave it "
            f"out, add a policy without its own, or set it in a SPEC: {parse(first).name}:{option}=…"
        )


def require_different(what: str, values: Iterable[tuple[str, object]]) -> None:
    """Raise `SettingsError` if two values are equal. Each item is a pair: the user's text, and its value.

    `what` is the beginning of the error: the kind of the values, or their option.
    """
    texts: dict[object, str] = {}
    for text, meaning in values:
        if meaning in texts:
            same = "" if texts[meaning] == text else f": {quote(texts[meaning])} is the same"
            raise SettingsError(f"{what} {quote(text)} is given twice{same}")
        texts[meaning] = text


def parse_mode(text: str) -> str:
    """Return the text if it is the name of a mode.

    Raises
    ------
    typer.BadParameter
        If there is no mode of that name.
    """
    if text not in SOURCES:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, SOURCES.names()))}")
    return text


def origin_of(log: str) -> dict[str, str | None]:
    """Return the origin of a result from a log `FILE` or `FILE@PROCESSORS`, as fields for its document.

    The fields are the version of Shadowtime, and the SHA-256 of the log's file or None for a pipe.
    """
    path = Path(split_size(log)[0])
    return {"shadowtime": __version__, "log_sha256": sha256_of(path) if path.is_file() else None}
