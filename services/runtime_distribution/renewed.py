"""What is known of users and queues, of so many of them at most: who was heard of longest ago is forgotten."""

from typing import TypeVar

MAX_OWNERS = 20_000
"""Users, or queues, of which anything is remembered: twenty times those of any log of the archive."""

Owner = TypeVar("Owner")
Known = TypeVar("Known")


def renew(known: dict[Owner, Known], owner: Owner, latest: Known, most: int = MAX_OWNERS) -> None:
    """Note what is known of an owner now; with more than `most`, forget the one that was renewed longest ago. O(1).

    >>> known = {1: "a", 2: "b"}
    >>> renew(known, 1, "c", most=2)
    >>> renew(known, 3, "d", most=2)
    >>> known
    {1: 'c', 3: 'd'}
    """
    known.pop(owner, None)
    known[owner] = latest
    if len(known) > most:
        del known[next(iter(known))]
