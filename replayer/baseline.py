"""The policy with which all others are compared."""

from collections.abc import Sequence

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.wording import quoted

PREFERRED = "easy"
"""What most machines run, and most papers compare with."""


def baseline_of(policies: Sequence[str], wanted: str | None = None) -> str:
    """Return the one that is wanted; if none is, EASY where it is among the policies, else the first.

    Raises
    ------
    SettingsError
        If the one that is wanted is not among them.

    Examples
    --------
    >>> baseline_of(["fcfs", "easy", "lwf"]), baseline_of(["lwf", "wfp"]), baseline_of(["fcfs", "easy"], "fcfs")
    ('easy', 'lwf', 'fcfs')
    """
    if wanted is None:
        return PREFERRED if PREFERRED in policies else policies[0]
    if wanted not in policies:
        raise SettingsError(f"--baseline {quoted(wanted)}: not among the policies {', '.join(policies)}")
    return wanted
