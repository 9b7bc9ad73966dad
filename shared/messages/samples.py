"""Figures of a run at a moment, as they travel from the scoreboard to the store of time series."""

from hashlib import sha256
from typing import Annotated

from shadowtime.shared.bounds import MAX_FIGURES, MAX_LABELS, MAX_NAME_LENGTH
from shadowtime.shared.messages.base import AtMost, Finite, FrozenModel, Name, Whole

Figure = tuple[Name, Annotated[tuple[Name, ...], AtMost(MAX_LABELS)], Finite]
"""Name of a metric of `shared.metric_names`, the values of its labels in their order, and a number."""

MAX_LABEL_LENGTH = MAX_NAME_LENGTH
"""Maximum number of characters of a label; a longer one is cut."""

MEANINGFUL = frozenset("\"'`\\$<>&{}")


class Sample(FrozenModel):
    """All figures of a run at one moment.

    The same log gives the same samples at the same times, so storing them twice is the same as storing them once.

    Parameters
    ----------
    time
        Unix time in seconds, of the cluster's own time line.
    cluster, policy, experiment
        Labels of all the figures, beside the run. If there is no experiment, the run takes its place.
    figures
        The figures after the last event up to that time.
    """

    time: Whole
    cluster: Name
    policy: Name
    experiment: Name | None = None
    figures: Annotated[tuple[Figure, ...], AtMost(MAX_FIGURES)]


def label(value: str) -> str:
    """Return the label for a name from outside; `-` for an empty name.

    A character with a meaning in PromQL, HTML, a shell or a terminal becomes `_`. Therefore tools that do not escape
    the name can put it into a query or a page. A long name is cut.

    >>> label("kth"), label('"}<b>'), label(""), len(label("x" * 1_000))
    ('kth', '___b_', '-', 200)
    """
    kept = value if len(value) <= MAX_LABEL_LENGTH else value[: MAX_LABEL_LENGTH - 1] + "…"
    return (
        "".join(character if character.isprintable() and character not in MEANINGFUL else "_" for character in kept)
        or "-"
    )


def name_label(name: str) -> str:
    """Return the unique label of a cluster or a run. It ends with a digest if it does not show the whole name.

    >>> name_label("kth"), name_label("k'"), name_label('k"')
    ('kth', 'k_ 7a0a635a', 'k_ 4167ab9b')
    """
    shown = label(name)
    return shown if shown == name else f"{shown[: MAX_LABEL_LENGTH - 9]} {sha256(name.encode()).hexdigest()[:8]}"
