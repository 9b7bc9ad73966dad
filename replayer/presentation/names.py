"""Short names for the rows of a table. Its legend explains each name."""

from collections import Counter
from collections.abc import Iterable

MAX_NAME = 18
"""Maximum length of a name in a row, in characters."""


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """Return the row name of each SPEC.

    A short SPEC stays as it is. A long SPEC becomes its NAME and `…`, with a number if several share that.

    >>> list(short_names(["easy", "wfp:adjustment=percentile(percentile=85)"]).values())
    ['easy', 'wfp…']
    >>> list(short_names(["easy", "easy:adjustment=percentile", "easy:adjustment=auto,running=yes"]).values())
    ['easy', 'easy…1', 'easy…2']
    """
    cut = {label: label if len(label) <= MAX_NAME else f"{_name(label)}…" for label in labels}
    alike, seen = Counter(cut.values()), Counter[str]()
    names = {}
    for label, name in cut.items():
        seen[name] += 1
        names[label] = f"{name}{seen[name]}" if alike[name] > 1 else name
    return names


def _name(label: str) -> str:
    return label.partition(":")[0].partition("(")[0][: MAX_NAME - 3].rstrip()
