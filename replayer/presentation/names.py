"""Short names for the rows of a table. Its legend explains each name."""

from collections import Counter
from collections.abc import Iterable, Mapping

MAX_NAME = 18
"""Maximum length of a name in a row, in characters."""


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """Return the row name of each SPEC.

    A short SPEC is unchanged. A long SPEC becomes its NAME and `…`, with a number if several SPECs have the same NAME.

    >>> list(short_names(["easy", "wfp:adjustment=percentile(percentile=85)"]).values())
    ['easy', 'wfp…']
    >>> list(short_names(["easy", "easy:adjustment=percentile", "easy:adjustment=auto,running=yes"]).values())
    ['easy', 'easy…1', 'easy…2']
    """
    return numbered({label: label if len(label) <= MAX_NAME else f"{_name(label)}…" for label in labels})


def numbered(names: Mapping[str, str], between: str = "") -> dict[str, str]:
    """Return the names, with `between` and a number after each name that several keys share.

    >>> numbered({"hmm(states=2)": "hmm", "hmm(states=3)": "hmm", "none": "none"}, " ")
    {'hmm(states=2)': 'hmm 1', 'hmm(states=3)': 'hmm 2', 'none': 'none'}
    """
    alike, seen = Counter(names.values()), Counter[str]()
    different = {}
    for key, name in names.items():
        seen[name] += 1
        different[key] = f"{name}{between}{seen[name]}" if alike[name] > 1 else name
    return different


def _name(label: str) -> str:
    return label.partition(":")[0].partition("(")[0][: MAX_NAME - 3].rstrip()
