"""What makes a right stream almost right: each function changes the envelopes of one run, as plain values, in place."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, get_args

from shadowtime.services.catalogue import REGISTRIES, configure
from shadowtime.shared.bounds import (
    MAX_DURATION,
    MAX_INTEGER,
    MAX_NAME_LENGTH,
    MAX_PROCESSORS,
    MAX_SPEC_LENGTH,
    MAX_TIME,
)
from shadowtime.shared.spec import as_text

Json = dict[str, Any]
Mutation = Callable[[list[Json], Random], None]

EDGES = (MAX_INTEGER, MAX_TIME, MAX_DURATION, MAX_PROCESSORS, 2**31, 2**32, 2**63, 2**64, 10**30)
VALUES: tuple[Any, ...] = (
    *(edge + beside for edge in EDGES for beside in (-1, 0, 1)),
    *(-edge for edge in EDGES),
    *(0, 1, -1, 0.5, -0.0, 1e300, 5e-324, float("nan"), float("inf"), "5", "", True, None, [], {}, [1], {"kind": "x"}),
)
TEXTS = ("\0", "\x1b[2J", "<script>", "\ud800", "\u202e", "'; --", "{}", "%s%n", "..", "名" * 50, "x" * 200, "x" * 201)
LONG_TEXTS = (1_000, 5_000, 15_000)
HUGE = 990_000

WRONG = ("", "nan", "inf", "1e400", "-1", "0", "9" * 400, "yes", "\x1b")
"""Values that a key of a SPEC seldom takes."""

FOREIGN: tuple[Json, ...] = (
    {"run_time": {"point": 5, "observations": 1}},
    {
        "run_time": {
            "point": MAX_DURATION,
            "observations": MAX_INTEGER,
            "histogram": [1.0],
            "interval": [MAX_DURATION, 0],
        }
    },
    {"adjustment": {"adjusted_time": 1, "observations": 0}},
    {"wait_bounds": [{"grouping": "plain", "quantile": 0.5, "confidence": 0.5, "bound": MAX_DURATION}] * 3},
    {"forecast": {"wait": MAX_DURATION}},
    {"coverage": [{"grouping": "g", "quantile": 1, "revealed": 1, "covered": 1, "low": 0, "high": 1}]},
    {"change_points": [{"grouping": "g", "misses": 3, "kept": 0}]},
    {"samples": [{"time": 0, "cluster": "c", "policy": "p", "figures": [["shadowtime_processors", [], 1e300]]}]},
    {"scores": {}},
)


def value_at_a_bound(envelopes: list[Json], chance: Random) -> None:
    """Set a number or a text anywhere in an event to a value at, or beyond, a bound."""
    holder, name = chance.choice(list(_leaves(chance.choice(envelopes))))
    holder[name] = chance.choice((*VALUES, *TEXTS) if isinstance(holder[name], str) else VALUES)


def added_field(envelopes: list[Json], chance: Random) -> None:
    """Give an optional field of a job a value at a bound."""
    event = chance.choice(envelopes)["event"]
    names = ("user_id", "queue_number", "requested_time", "limit", "original_run_time", "executable_number")
    event[chance.choice(names)] = chance.choice(VALUES)


def time_jump(envelopes: list[Json], chance: Random) -> None:
    """Let all times from some event on be later, or earlier."""
    by = chance.choice((1, 60, 10**6, 2**31, MAX_DURATION, MAX_TIME, MAX_TIME - 10, MAX_INTEGER, -1, -(10**6)))
    for each in envelopes[chance.randrange(len(envelopes)) :]:
        each["event"]["time"] += by


def lost(envelopes: list[Json], chance: Random) -> None:
    """Leave some events out; the sequence has a hole then."""
    at = chance.randrange(len(envelopes))
    del envelopes[at : at + chance.choice((1, 1, 5))]


def repeated(envelopes: list[Json], chance: Random) -> None:
    """Say some events again, right away or later."""
    at = chance.randrange(len(envelopes))
    copies = [_copy(each) for each in envelopes[at : at + chance.choice((1, 1, 5))]]
    later = chance.randint(at, len(envelopes))
    envelopes[later:later] = copies


def reordered(envelopes: list[Json], chance: Random) -> None:
    """Let some events come in another order than their sequences."""
    at = chance.randrange(len(envelopes))
    part = envelopes[at : at + chance.choice((2, 2, 6))]
    chance.shuffle(part)
    envelopes[at : at + len(part)] = part


def shuffled_story(envelopes: list[Json], chance: Random) -> None:
    """Let events be told in another order, with right sequences: they contradict each other."""
    reordered(envelopes, chance)
    _number(envelopes)


def half_a_story(envelopes: list[Json], chance: Random) -> None:
    """Leave some events out, with right sequences: what follows contradicts what was told."""
    lost(envelopes, chance)
    _number(envelopes)


def forged_sequence(envelopes: list[Json], chance: Random) -> None:
    """Put a message in between whose sequence is not the next one."""
    forged = _copy(chance.choice(envelopes))
    at = chance.randrange(len(envelopes))
    here = forged["sequence"]
    forged["sequence"] = chance.choice((here + 2, here + 900, MAX_INTEGER, MAX_INTEGER + 1, -1, 0, 2**63, here / 2))
    envelopes.insert(at, forged)


def sequences_moved(envelopes: list[Json], chance: Random) -> None:
    """Let all sequences from some event on be larger."""
    for each in envelopes[chance.randrange(len(envelopes)) :]:
        each["sequence"] += chance.choice((1, 1_000))


def other_run(envelopes: list[Json], chance: Random) -> None:
    """Name another run in a message."""
    each = chance.choice(envelopes)
    each["run"] = chance.choice(("honest", each["run"] + "x", "", "x" * 200, "x" * 201, *TEXTS))


def foreign_field(envelopes: list[Json], chance: Random) -> None:
    """Let messages bring along what only stages say."""
    added = chance.choice(FOREIGN)
    for each in chance.sample(envelopes, min(len(envelopes), chance.choice((1, 20)))):
        each.update(_copy(added))


def foreign_event(envelopes: list[Json], chance: Random) -> None:
    """Say an event that only stages say, in between or in the place of another."""
    at = chance.randrange(len(envelopes))
    time = envelopes[at]["event"]["time"]
    said: tuple[Json, ...] = (
        {"kind": "Decided", "time": time},
        {"kind": "Decided", "time": time, "kills": [{"job_number": 1, "requeue": True, "reason": "x" * 3_000}]},
        {"kind": "Rejected", "time": time, "reason": "x"},
        {"kind": "Rejected", "time": time, "reason": "x", "code": chance.choice(("failed", "quarantined"))},
    )
    envelopes[at]["event"] = chance.choice(said)


def inserted_event(envelopes: list[Json], chance: Random) -> None:
    """Tell something more that may be right or wrong, and go on."""
    at = chance.randrange(len(envelopes))
    time = envelopes[at]["event"]["time"]
    number = chance.choice((0, 1, 2, 3, 5, 8, MAX_INTEGER))
    size = chance.choice((1, 2, 16, 17, MAX_PROCESSORS))
    told: tuple[Json, ...] = (
        {"kind": "JobSubmitted", "job_number": number, "requested_processors": size, "requested_time": MAX_DURATION},
        {"kind": "JobStarted", "job_number": number, "processors": size, "limit": 1, "trial": True},
        {"kind": "JobStarted", "job_number": number, "processors": size},
        {"kind": "JobEnded", "job_number": number, "run_time": chance.choice((0, 1, MAX_DURATION)), "requeued": True},
        {
            "kind": "JobEnded",
            "job_number": number,
            "run_time": 0,
            "original_run_time": MAX_DURATION,
            "outcome": "killed",
        },
        {"kind": "CapacityChanged", "processors": chance.choice((0, 1, 16, MAX_PROCESSORS))},
        {"kind": "ClusterOpened", "cluster": "again", "processors": size},
        {"kind": "SchedulingPoint"},
        {"kind": "ClusterClosed"},
    )
    copy = _copy(envelopes[at])
    copy["event"] = {"time": time, **chance.choice(told)}
    envelopes.insert(at, copy)
    _number(envelopes)


def burst(envelopes: list[Json], chance: Random) -> None:
    """Submit many jobs at once, each of another owner and queue, then pass."""
    at = chance.randrange(1, len(envelopes)) if len(envelopes) > 1 else 0
    model = _copy(envelopes[at])
    time = model["event"]["time"]
    jobs = []
    for number in range(chance.choice((5, 30))):
        job = {"job_number": 10**6 + number, "requested_processors": 1 + number % 16, "requested_time": 60 * number + 1}
        owner = dict.fromkeys(("user_id", "group_id", "queue_number", "partition_number"), number)
        jobs.append({**model, "event": {"kind": "JobSubmitted", "time": time, **job, **owner}})
    jobs.append({**model, "event": {"kind": "SchedulingPoint", "time": time}})
    envelopes[at:at] = jobs
    _number(envelopes)


def overlong_text(envelopes: list[Json], chance: Random) -> None:
    """Let a text, the name of a field, or a list be overlong."""
    each = chance.choice(envelopes)
    text = chance.choice(("x", "\ud83d\ude00", "'", "\x1b")) * chance.choice(LONG_TEXTS)
    where = chance.choice(("cluster", "run", "kind", "field", "event field", "list"))
    if where == "field":
        each[text] = 1
    elif where == "event field":
        each["event"][text] = text[:100]
    elif where == "kind":
        each["event"]["kind"] = text
    elif where == "list":
        each["wait_bounds"] = [0] * len(text)
    else:
        each[where] = text


def nested(envelopes: list[Json], chance: Random) -> None:
    """Put brackets into each other where a number or a text should be."""
    deep: Any = 1
    for _ in range(chance.choice((3, 100, 500))):
        deep = [deep] if chance.random() < 0.5 else {"kind": deep}
    chance.choice(envelopes)[chance.choice(("event", "run_time", "scores", "x"))] = deep


def spec_at_its_bounds(envelopes: list[Json], chance: Random) -> None:
    """Open the run with a SPEC at, or beyond, its bounds."""
    opened = envelopes[0]["event"]
    option = chance.choice(("policy", "runtime", "adjustment", "wait-bound"))
    opened[option.replace("-", "_")] = chance.choice(_specs(option))


def odd_opening(envelopes: list[Json], chance: Random) -> None:
    """Open the run with odd but allowed settings."""
    opened = envelopes[0]["event"]
    opened |= chance.choice(
        (
            {"processors": 1},
            {"processors": MAX_PROCESSORS},
            {"mode": "recorded"},
            {"time": -MAX_TIME},
            {"sample_every": 1},
            {"sample_every": MAX_DURATION, "unix_start": MAX_TIME},
            {"seed": MAX_INTEGER},
            {"cluster": "x" * MAX_NAME_LENGTH},
        )
    )


def cut_off(envelopes: list[Json], chance: Random) -> None:
    """End the stream anywhere, or begin it anywhere."""
    at = chance.randrange(1, len(envelopes)) if len(envelopes) > 1 else 1
    envelopes[:] = envelopes[at:] if chance.random() < 0.3 else envelopes[:at]


MUTATIONS: tuple[Mutation, ...] = (
    value_at_a_bound,
    added_field,
    time_jump,
    lost,
    repeated,
    reordered,
    shuffled_story,
    half_a_story,
    forged_sequence,
    sequences_moved,
    other_run,
    foreign_field,
    foreign_event,
    inserted_event,
    burst,
    overlong_text,
    nested,
    spec_at_its_bounds,
    odd_opening,
    cut_off,
)


def mutated(values: Sequence[bytes], mutations: Sequence[Mutation], chance: Random) -> list[bytes]:
    """Return the messages of a run after these mutations, in turn; what one of them cannot be applied to stays."""
    envelopes: list[Json] = [json.loads(value) for value in values]
    for mutation in mutations:
        try:
            mutation(envelopes, chance)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            continue  # an earlier one has left nothing of that shape
    return [json.dumps(each, separators=(",", ":")).encode() for each in envelopes]


def damaged(value: bytes, other: bytes, chance: Random) -> bytes:
    """Return the bytes of a message with something done to them, whatever they mean."""
    at, to = chance.randrange(len(value) + 1), chance.randrange(len(other) + 1)
    kind = chance.randrange(12)
    if kind == 0 and value:
        flipped = bytearray(value)
        for _ in range(chance.choice((1, 1, 4, 40))):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return value[:at]
    if kind == 2:
        return value[at:]
    if kind == 3:
        return value[:at] + other[to:]
    if kind == 4:
        return value[:at] + value[max(0, at - 40) : at] + value[at:]
    if kind == 5:
        return value[:at] + b"9" * chance.choice((1, 20, 400, 5_000)) + value[at:]
    if kind == 6:
        return chance.choice((b"[", b'{"a":', b'{"event":')) * chance.choice((10, 1_000, 9_000)) + value
    if kind == 7:
        return (
            value[:at]
            + chance.choice((b"\0", b"\xff", b"\\ud800", b"NaN", b"1e999", b"-", b'"', b"\xf0\x9f"))
            + value[at:]
        )
    if kind == 8:
        return chance.randbytes(chance.choice((0, 1, 30, 3_000)))
    if kind == 9:
        return value[:-1] + b"," + value[1:]  # every key twice
    if kind == 10:
        return b"\xef\xbb\xbf" + value if at % 2 else value.decode(errors="replace").encode("utf-16")
    return value + other


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where numbers and texts are: what holds each, and its name or place there."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list) and each:
            yield from _leaves(each)
        else:
            yield value, name


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _number(envelopes: list[Json]) -> None:
    for at, each in enumerate(envelopes):
        each["sequence"] = at


@cache
def _specs(option: str) -> tuple[str, ...]:
    """Return SPECs of an option with each key at and beside its bounds, in odd spellings, and none at all."""
    found = [
        "",
        "(",
        "nobody",
        "a" * MAX_SPEC_LENGTH,
        "a" * (MAX_SPEC_LENGTH + 1),
        "easy" + "(a=b" * 9,
        "easy(" * 2_000,
    ]
    for name, listed in sorted(REGISTRIES[option].classes.items()):
        found += [name, f"{name}()", f"{name}:x=1", f"{name}({','.join(f'k{at}=1' for at in range(70))})"]
        for key, field in listed.Settings.model_fields.items():
            values = [
                as_text(field.default),
                "",
                "nan",
                "inf",
                "1e400",
                "-1",
                "0",
                "9" * 400,
                "yes",
                "\x1b",
                f"{name}()",
            ]
            values += [str(each) for each in get_args(field.annotation) if isinstance(each, str)]
            for rule in field.metadata:
                edges = [getattr(rule, side, None) for side in ("ge", "gt", "le", "lt")]
                values += [
                    str(edge + beside) for edge in edges if edge is not None for beside in (-1, 0, 1, -1e-9, 1e-9)
                ]
            found += [f"{name}:{key}={value}" for value in values]
    if option == "policy":
        found += [configure("cautious").policy, "probabilistic:points=16,patience=0,candidates=P/L,mass=censor"]
    return tuple(found)
