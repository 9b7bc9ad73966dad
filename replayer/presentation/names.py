"""Short names for the rows of a table. Its legend explains each name."""

from collections import Counter
from collections.abc import Iterable, Mapping

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.spec import parse

MAX_NAME = 18
"""Maximum length of a name in a row, in characters."""


def short_names(labels: Iterable[str], most: int = MAX_NAME) -> dict[str, str]:
    """Return the row name of each SPEC.

    A SPEC of at most `most` characters is unchanged. A long one becomes its NAME and the values in which it differs
    from the other long SPECs of that NAME. If they do not fit, it becomes its NAME and `…`, with a number if there are
    several.

    >>> list(short_names(["easy", "wfp:adjustment=percentile(percentile=85)"]).values())
    ['easy', 'wfp…']
    >>> list(short_names(["easy:queue=srf,threshold=20h", "easy:queue=saf,threshold=20h"]).values())
    ['easy srf', 'easy saf']
    >>> list(short_names(["easy", "easy:adjustment=percentile(percentile=85)"]).values())
    ['easy', 'easy…']
    """
    labels = [*labels]
    names = {label: label if len(label) <= most else _distinguished(label, labels, most) for label in labels}
    taken = Counter(names.values())
    return numbered({label: f"{_name(label, most)}…" if taken[name] > 1 else name for label, name in names.items()})


def _distinguished(label: str, labels: Iterable[str], most: int) -> str:
    """Return a name of a long SPEC with the values of the keys that differ between SPECs of its NAME."""
    short = f"{_name(label, most)}…"
    try:
        spec = parse(label)
        others = [parse(other) for other in labels if len(other) > most and _name(other, most) == spec.name]
    except SettingsError:  # a label of a user's own
        return short
    values = [value for key, value in spec.keys.items() if any(other.keys.get(key) != value for other in others)]
    name = " ".join([spec.name, *values])
    return name if values and len(name) <= most else short


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


def _name(label: str, most: int) -> str:
    return label.partition(":")[0].partition("(")[0][: most - 3].rstrip()
