"""How a shadow fares beside the real cluster, in words."""

from collections.abc import Iterator

from shadowtime.replayer.twin.compared import Between, Comparison, Real
from shadowtime.shared.formatting import clock, duration, percent

REAL_NAME = "real"
SHAPES_MEAN = "long: more than 1 h requested; wide: more than 8 processors; change: between which bounds, at 95 %"


def verdict(compared: Comparison, unix_start: int) -> str | None:
    """Return by how much waits are shorter in the shadow, and since when that is real; None before that is known."""
    if compared.all is None or compared.all.wait_change is None:
        return None
    return f"{_waits(compared.all.wait_change)}; {real(compared.wait_real, unix_start)}"


def notes_of(name: str, compared: Comparison) -> Iterator[str]:
    """Yield what else a comparison with the shadow of this name says."""
    fares = compared.all
    if fares is not None:
        for word, moved in (("sooner", fares.sooner), ("later", fares.later)):
            if moved.mean is not None and moved.quantiles is not None:
                half, mean = duration(moved.quantiles[1]), duration(moved.mean)
                yield f"{percent(moved.share)} start {word}, by {mean} on average, half of them by {half} or less"
    for which, waiting in ((REAL_NAME, compared.real_waiting), (name, compared.shadow_waiting)):
        if waiting.longest is not None:
            yield f"{which}: {waiting.jobs:,} jobs wait, the longest for {duration(waiting.longest)} so far"
    if compared.open_jobs:
        yield f"{compared.open_jobs:,} jobs are of days that are not over for all of them, and not compared yet"
    if compared.withdrawn:
        yield f"{compared.withdrawn:,} jobs were withdrawn, and count for neither"


def _waits(change: Between) -> str:
    word, sign = ("shorter", -100) if change.mean < 0 else ("longer", 100)
    bounds = sorted(sign * each for each in (change.low, change.high) if each is not None)
    within = f" ({bounds[0]:.0f} to {bounds[1]:.0f})" if bounds else ""
    return f"waits {abs(100 * change.mean):.0f} % {word}{within}"


def real(found: Real, unix_start: int) -> str:
    """Return since when a difference is real.

    >>> real(Real(since=86_400, shorter=True, evidence=31.0), 843_436_800)
    'real since 24 Sep'
    >>> real(Real(since=None, shorter=None, evidence=2.5), 0)
    'not known to be real yet (evidence 2.5 of 20)'
    """
    if found.since is None:
        return f"not known to be real yet (evidence {found.evidence:.1f} of 20)"
    day = clock(found.since, unix_start).rsplit(" ", 1)[0]
    return f"real since {day}" if unix_start else f"real since day {day.split()[0]}"
