"""The types of GPUs in a pool: how many a waiting job needs, and how many of each a job gets at its start."""

from collections.abc import Iterable, Sequence

from shadowtime.shared.messages.base import Amount, FrozenModel, Name

MAX_GPU_TYPES = 50

OR = "+"
"""Sign between the types of a job that names several."""


class GpuType(FrozenModel):
    """The GPUs of one type: in a pool, or of a job."""

    name: Name
    gpus: Amount


def by_type(types: Sequence[str], gpus: Iterable[GpuType]) -> tuple[int, ...]:
    """Return the number of GPUs of each of these types; 0 for a type that `gpus` lacks.

    >>> by_type(("a100", "v100"), [GpuType(name="v100", gpus=2)])
    (0, 2)
    """
    has = {kind.name: kind.gpus for kind in gpus}
    return tuple(has.get(name, 0) for name in types)


def of_types(types: Sequence[str], gpus: Iterable[int | None]) -> tuple[GpuType, ...] | None:
    """Return each of these types with its number of GPUs, in the form of a message; None if there is no type.

    `gpus` has one number for each type. A number of None counts as 0.

    >>> of_types(("a100", "v100"), (0, 2)), of_types((), ())
    ((GpuType(name='a100', gpus=0), GpuType(name='v100', gpus=2)), None)
    """
    return tuple(GpuType(name=name, gpus=count or 0) for name, count in zip(types, gpus, strict=True)) or None


def needed(types: Sequence[str], gpu_type: str | None, gpus: int | None) -> tuple[int, ...]:
    """Return the GPUs of each type that a waiting job needs. A job that names no type, or several, needs none of them.

    >>> needed(("a100", "v100"), "v100", 2), needed(("a100", "v100"), None, 2)
    ((0, 2), (0, 0))
    """
    return tuple([gpus if gpus and name == gpu_type else 0 for name in types])


def allotted(types: Sequence[str], free: Sequence[float], gpu_type: str | None, gpus: int | None) -> tuple[int, ...]:
    """Return the GPUs of each type that a job gets at its start, if nothing states them.

    A job gets the type that it names. Otherwise it gets the type with most free, then the next, never more than are
    free. Of equal types the first of the pool counts. If a job names several types, it gets only these.

    >>> allotted(("a100", "v100"), (4, 3), "v100", 5), allotted(("a100", "v100"), (2, 4), None, 5)
    ((0, 5), (1, 4))
    """
    got = list(needed(types, gpu_type, gpus))
    if not gpus or any(got):
        return tuple(got)
    named = gpu_type.split(OR) if gpu_type else types
    left = gpus
    for at in sorted(range(len(types)), key=lambda at: -free[at]):
        if types[at] in named:
            got[at] = min(left, max(int(free[at]), 0))
            left -= got[at]
    return tuple(got)


def after_change(held: Sequence[int], gpus: int) -> list[int]:
    """Return the GPUs of each type that a running job holds after a change to so many GPUs in total.

    A job gives back GPUs of its last type first. Added GPUs are of the type of which it holds the most.

    >>> after_change([2, 2], 1), after_change([2, 4], 7), after_change([0, 0], 3)
    ([1, 0], [2, 5], [0, 0])
    """
    now, extra = list(held), sum(held) - gpus
    for at in reversed(range(len(now))):
        back = min(max(extra, 0), now[at])
        now[at], extra = now[at] - back, extra - back
    if extra < 0 and any(now):
        now[now.index(max(now))] -= extra
    return now
